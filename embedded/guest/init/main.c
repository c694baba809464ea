/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * init of the kerntune guest, process 1: boot, services, one run of the plan, collection, power off.
 * Talks to: crates/guest by /kt/plan; crates/machine by the kernel command line (kt.run=, kt.gcov=1,
 * kt.ftrace=1, kt.proc=1, kt.cpus=, kt.poweroff=1), by "kt: " lines on the console and by the result stream; the recorder by marks.
 *
 * It never exits and never panics: whatever happens ends in one line, `kt: done` or `kt: failed:
 * REASON`, and in power off. Nothing is written to the console while a program is being measured.
 */
#include "init.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_DEFAULT 600 /* guest seconds for one program */
#define SETTLE_NS 200000000

static char reason[REASON_MAX];
#ifdef KT_PROC
static bool read_proc;
#endif

bool fail(const char *format, ...)
{
	va_list list;

	if (reason[0] == '\0') {
		va_start(list, format);
		vsnprintf(reason, sizeof(reason), format, list);
		va_end(list);
	}
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static unsigned long number(const char *text)
{
	unsigned long value = 0;

	plan_number(text, &value);
	return value;
}

/* `setup`, `warmup` or `step`, the n-th of its kind in its section. */
static bool run_program(const struct directive *d, const char *kind, const char *prefix, int n,
			unsigned long limit)
{
	char what[160], log[256];
	struct program program = { .what = what, .log = log, .command = d->word, .limit = limit };

	if (d->verb == VERB_STEP) {
		program.command = d->word + 2;
		program.operations = number(d->word[1]);
		if (strcmp(d->word[0], "-") != 0)
			program.region = d->word[0];
	}
	snprintf(what, sizeof(what), "%s %d", kind, n);
	snprintf(log, sizeof(log), "%s-%d-%.100s.log", prefix, n, base_name(program.command[0]));
#ifdef KT_PROC
	char name[128];

	snprintf(name, sizeof(name), "%.100s-%d", prefix, n);
	if (d->verb == VERB_STEP && read_proc)
		program.proc = name;
#endif
	announce("kt: phase %s %s", what, program.region ? program.region : base_name(program.command[0]));
	return program_run(&program);
}

static bool run_step(const struct directive *d, const struct options *options, int n, unsigned long limit)
{
	char kind[96], name[192];
	bool good;

	snprintf(kind, sizeof(kind), "%s step", options->run);
	if (!options->ftrace)
		return run_program(d, kind, options->run, n, limit);
	good = profiler_switch(true) && run_program(d, kind, options->run, n, limit);
	good = profiler_switch(false) && good;
	snprintf(name, sizeof(name), "%s-%d-%s", options->run, n,
		 strcmp(d->word[0], "-") == 0 ? base_name(d->word[2]) : d->word[0]);
	return profiler_save(name) && good;
}

/* Everything before the first `run`, in the order of the plan. */
static bool prepare(const struct plan *plan, unsigned long *limit)
{
	int setups = 0;

	for (int at = 0; at < plan->count; at++) {
		const struct directive *d = &plan->directive[at];
		bool good = true;

		switch (d->verb) {
		case VERB_RUN:
			return true;
		case VERB_ENV:
			good = putenv(d->word[0]) == 0 || fail("env: out of memory");
			break;
		case VERB_LIMIT:
			*limit = number(d->word[0]);
			break;
		case VERB_SETUP:
			good = run_program(d, "setup", "setup", ++setups, *limit);
			break;
		case VERB_SERVICE:
			announce("kt: phase service %s", d->word[0]);
			good = service_start(d->word[0], d->word + 1);
			break;
		case VERB_READY:
			announce("kt: phase ready %s", d->word[0]);
			good = service_ready(d->word[0], d->word + 1);
			break;
#ifdef KT_COMMAND
		case VERB_DIRECTORY:
			good = chdir(d->word[0]) == 0 ||
			       fail("cannot go to %s: %s", d->word[0], strerror(errno));
			break;
		case VERB_INPUT:
			command_input_is(d->word[0]);
			break;
		case VERB_STATUS:
			command_keeps_going();
			break;
		case VERB_USER:
			command_user_is(d->word, d->count);
			break;
		case VERB_RESOURCE:
			good = command_limit_is(d->word);
			break;
		case VERB_UMASK:
			command_umask_is(d->word[0]);
			break;
		case VERB_CLOCK:
			good = command_clock(d->word[0]);
			break;
#endif
		default:
			good = fail("plan line %d: not allowed here", d->line);
		}
		if (!good)
			return false;
	}
	return true;
}

/* What boot, services and warm-up left to be done later, freeing after RCU grace periods above all, is done before the
 * first step, and not in it: how much of it there falls to a step differs between kernels of nearly the same code. */
static void settle(void)
{
	struct timespec rest = { .tv_nsec = SETTLE_NS };

	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		;
}

/* The directives of one run, from the one after its `run` line. */
static bool run_section(const struct plan *plan, int at, const struct options *options, unsigned long limit)
{
	int warmups = 0, steps = 0;
	char kind[96], prefix[96];

	snprintf(kind, sizeof(kind), "%s warm-up", options->run);
	snprintf(prefix, sizeof(prefix), "%s-warmup", options->run);
	for (; at < plan->count && plan->directive[at].verb != VERB_RUN; at++) {
		const struct directive *d = &plan->directive[at];
		bool good = true;

		if (d->verb == VERB_LIMIT) {
			limit = number(d->word[0]);
		} else if (d->verb == VERB_WARMUP) {
			good = run_program(d, kind, prefix, ++warmups, limit);
		} else if (d->verb == VERB_STEP) {
			if (steps == 0)
				settle();
			if (steps == 0 && options->gcov)
				good = gcov_reset();
			good = good && run_step(d, options, ++steps, limit);
		} else {
			good = fail("plan line %d: not allowed in a run", d->line);
		}
		if (!good)
			return false;
	}
	return true;
}

/* A kernel that is built for fewer CPUs than the machine has boots, and leaves the others alone. */
static bool has_cpus(unsigned long wanted)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (wanted == 0 || online == (long)wanted)
		return true;
	return fail("boot: the kernel runs on %ld of %lu CPUs; build it with --set CONFIG_NR_CPUS=%lu, or ask for fewer",
		    online, wanted, wanted);
}

static bool run_plan(const struct plan *plan, const struct options *options)
{
	unsigned long limit = LIMIT_DEFAULT;
	char names[256] = "";

#ifdef KT_PROC
	read_proc = options->proc;
#endif
	if (!has_cpus(options->cpus))
		return false;
	for (int i = 0; i < plan->count; i++) {
		const struct directive *d = &plan->directive[i];

		if (d->verb != VERB_RUN)
			continue;
		if (strcmp(d->word[0], options->run) == 0)
			return prepare(plan, &limit) && run_section(plan, i + 1, options, limit);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s", d->word[0]);
	}
	if (options->run[0] == '\0')
		return fail("boot: no kt.run= on the kernel command line; the runs are:%s", names);
	return fail("boot: there is no run %s; the runs are:%s", options->run, names);
}

/* Sends what there is, after a failure too; a failure to send is a failure of the whole. */
static void send_results(bool ran, const struct options *options)
{
	announce("kt: phase results");
	if (!stream_open())
		return;
	/* The counters first: everything done later would count as well. */
	if (ran && options->gcov)
		gcov_send();
	kill_everything();
	stream_tree(OUT_DIR, "", NULL);
	stream_bytes(reason[0] ? reason : "done", strlen(reason[0] ? reason : "done"), "status");
	stream_close();
}

int main(int argc, char **argv)
{
	struct options options = { .run = "" };
	struct plan plan = { NULL, 0 };
	bool ran = false;

	/* At the end all processes that there are get killed. */
	if (getpid() != 1) {
		fprintf(stderr, "init: not process 1: it runs in a guest, or in namespaces of its own\n");
		return 1;
	}
	bool started = system_start(&options, argc, argv);

#ifdef KT_MODULES
	started = started && modules_load();
#endif
	if (started && plan_read(PLAN_FILE, &plan)) {
		if (setenv("PATH", "/kt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) ||
		    setenv("HOME", "/root", 1) || setenv("LANG", "C", 1) || setenv("KT_OUT", OUT_DIR, 1))
			fail("boot: out of memory");
		else
			ran = (!options.ftrace || profiler_open()) && run_plan(&plan, &options);
	}
#ifdef KT_COMMAND
	/* What it lacked may be why it failed, if it did. */
	const char *stub = command_read_stub();

	if (stub) {
		reason[0] = '\0';
		ran = fail("without contents: %s", stub);
	}
#endif
	send_results(ran, &options);
	if (reason[0] == '\0')
		announce("kt: done");
	else
		announce("kt: failed: %s", reason);
	power_off();
}
