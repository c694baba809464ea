// SPDX-License-Identifier: GPL-2.0
/*
 * Begins and ends counting: calls, samples and the memory for both. Callers hold kg_lock.
 */
#include "kgmon.h"

#include <linux/timekeeping.h>

DEFINE_MUTEX(kg_lock);
struct kg_state kg_state;

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
