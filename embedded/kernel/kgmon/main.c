// SPDX-License-Identifier: GPL-2.0
/*
 * kgmon: exact call counts of the running kernel for each caller and function, and timer samples.
 *
 * Named after kgmon(8) of 4.2BSD, which profiled a kernel in operation. Here the kernel is unmodified: calls are
 * counted through ftrace, and while nothing is counted the functions have their NOPs.
 *
 * Commands and results go through /dev/kgmon (session.c). docs/kgmon.md describes the commands and the meaning of a count.
 */
#include "kgmon.h"

#include <linux/init.h>
#include <linux/module.h>
#include <linux/timekeeping.h>

MODULE_DESCRIPTION("Exact call counts and random samples of the running kernel");
MODULE_AUTHOR("The kerntune authors");
MODULE_LICENSE("GPL v2");

DEFINE_MUTEX(kg_lock);
struct kg_state kg_state;

module_param_named(text_start, kg_state.text_start, ullong, 0400);
MODULE_PARM_DESC(text_start, "address of _stext, for the header of dumps");
module_param_named(text_end, kg_state.text_end, ullong, 0400);
MODULE_PARM_DESC(text_end, "address of _etext, for the header of dumps");

int kg_fail(struct kg_said *said, int error, const char *format, ...)
{
	va_list list;

	/* The first reason is the cause of the others. */
	if (said->text[0] == '\0') {
		va_start(list, format);
		vsnprintf(said->text, sizeof(said->text), format, list);
		va_end(list);
	}
	return error;
}

static void clear(void)
{
	kg_table_clear();
	kg_sample_clear();
	kg_snapshot_clear();
	kg_modules_forget();
	kg_state.since_ns = ktime_get_mono_fast_ns();
	kg_state.counting_before = kg_state.sampling_before = 0;
}

int kg_start(const struct kg_options *options, struct kg_said *said)
{
	bool fresh = kg_table_capacity() != options->arcs || kg_sample_capacity() != options->samples ||
		     !kg_state.since_ns;
	int error;

	if (kg_sites_running() || kg_sample_running())
		return kg_fail(said, -EBUSY, "it is counting already: give the command stop first");
	if (options->entry == KG_ENTRY_OFF && options->timer == KG_TIMER_OFF)
		return kg_fail(said, -EINVAL, "neither calls nor samples are wanted");
	error = kg_table_make(options->arcs, said) ?: kg_sample_make(options->samples, said) ?:
		kg_snapshot_make(options->arcs, options->samples, said);
	if (error) {
		if (fresh) {
			kg_table_free();
			kg_sample_free();
			kg_snapshot_free();
		}
		return error;
	}
	/* Otherwise counts continue, as after kgmon -b. */
	if (fresh)
		clear();
	if (options->entry != KG_ENTRY_OFF)
		error = kg_table_wake(said) ?: kg_sites_start(options, said);
	if (error) {
		kg_table_rest();
		return error;
	}
	if (options->entry != KG_ENTRY_OFF)
		kg_state.counting_since = ktime_get_mono_fast_ns();
	kg_state.timer = options->timer;
	kg_state.period_ns = options->period_ns;
	error = kg_sample_start(options, said);
	if (error) {
		kg_stop();
		return error;
	}
	if (options->timer != KG_TIMER_OFF)
		kg_state.sampling_since = ktime_get_mono_fast_ns();
	return 0;
}

void kg_stop(void)
{
	u64 now;

	if (kg_sample_running())
		kg_sample_stop();
	if (kg_sites_running())
		kg_sites_stop();
	kg_table_rest();
	now = ktime_get_mono_fast_ns();
	if (kg_state.counting_since)
		kg_state.counting_before += now - kg_state.counting_since;
	if (kg_state.sampling_since)
		kg_state.sampling_before += now - kg_state.sampling_since;
	kg_state.counting_since = kg_state.sampling_since = 0;
}

int kg_reset(struct kg_said *said)
{
	if (kg_sites_running() || kg_sample_running())
		return kg_snapshot_rebase(said);
	/* Nobody counts, so old arcs can be dropped. */
	clear();
	return 0;
}

static int __init kg_init(void)
{
	int error = kg_modules_init();

	if (error)
		return error;
	error = kg_device_init();
	if (error)
		kg_modules_exit();
	return error;
}

static void __exit kg_exit(void)
{
	kg_device_exit();
	mutex_lock(&kg_lock);
	kg_stop();
	mutex_unlock(&kg_lock);
	kg_modules_exit();
	kg_table_free();
	kg_sample_free();
	kg_snapshot_free();
}

module_init(kg_init);
module_exit(kg_exit);
