/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The CPU's own counters around a row, of kernel code: perf_event_open(2), where there is a clock and not a recorder.
 *
 * KT_COUNTERS in the environment names them by commas (kt_counters below); without it nothing is opened. They count all
 * that runs on the CPUs that the program may use, so that a peer, a softirq and a kernel thread are in it, as they are in
 * the time. What cannot be counted is no error: a CPU, and a virtual one above all, has what it has. The reason is printed.
 *
 * Talks to: kt_suite.h, which prints them; crates/tune/src/bench/lines.rs, which reads that.
 */
#ifndef KT_COUNTERS_H
#define KT_COUNTERS_H

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* init prints elsewhere. */
#ifndef KT_PRINT
#define KT_PRINT(...) printf(__VA_ARGS__)
#endif

#define KT_COUNTED_CPUS 64 /* each has a descriptor for each counter, which a fork copies */

#define KT_CACHE_MISS(cache) ((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
	const char *name;
	unsigned type;
	unsigned long long config;
} kt_counters[] = {
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "l1i_misses", PERF_TYPE_HW_CACHE, KT_CACHE_MISS(PERF_COUNT_HW_CACHE_L1I) },
	{ "itlb_misses", PERF_TYPE_HW_CACHE, KT_CACHE_MISS(PERF_COUNT_HW_CACHE_ITLB) },
	/* The kernel's own, which every machine has. */
	{ "page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
};

#define KT_COUNTERS (sizeof(kt_counters) / sizeof(*kt_counters))

/* What the counters say at one moment: sums over the CPUs. Times are the kernel's: how long one was wanted, and had. */
struct kt_counted {
	unsigned long long value[KT_COUNTERS], wanted[KT_COUNTERS], had[KT_COUNTERS];
};

static struct {
	int asked;               /* whether somebody wants it */
	const char *why;         /* if it is not counted */
	int fd[KT_COUNTED_CPUS]; /* one for each CPU */
	int cpus;
} kt_counter[KT_COUNTERS];

static const char *kt_open_counter(size_t which, const cpu_set_t *cpus)
{
	struct perf_event_attr attr = {
		.type = kt_counters[which].type,
		.size = sizeof(attr),
		.config = kt_counters[which].config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		/* A fault is the user's who caused it, and still the kernel's work. */
		.exclude_user = kt_counters[which].type != PERF_TYPE_SOFTWARE,
		.exclude_hv = 1,
	};

	if (CPU_COUNT(cpus) > KT_COUNTED_CPUS)
		return "the program may run on more CPUs than can be counted: give it fewer (taskset)";
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		long fd;

		if (!CPU_ISSET(cpu, cpus))
			continue;
		fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0) {
			const char *why = strerror(errno);

			while (kt_counter[which].cpus > 0)
				close(kt_counter[which].fd[--kt_counter[which].cpus]);
			return why;
		}
		kt_counter[which].fd[kt_counter[which].cpus++] = (int)fd;
	}
	return NULL;
}

/* Opens those that `names` has; the first name that is none, or NULL. */
static const char *kt_open_counters(char *names)
{
	cpu_set_t cpus;
	char *rest, *name;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		CPU_ZERO(&cpus);
	for (name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		size_t which = 0;

		while (which < KT_COUNTERS && strcmp(kt_counters[which].name, name) != 0)
			which++;
		if (which == KT_COUNTERS)
			return name;
		if (!kt_counter[which].asked)
			kt_counter[which].why = kt_open_counter(which, &cpus);
		kt_counter[which].asked = 1;
	}
	return NULL;
}

static void kt_read_counters(struct kt_counted *now)
{
	memset(now, 0, sizeof(*now));
	for (size_t which = 0; which < KT_COUNTERS; which++) {
		for (int i = 0; i < kt_counter[which].cpus; i++) {
			unsigned long long said[3];

			if (read(kt_counter[which].fd[i], said, sizeof(said)) != sizeof(said)) {
				kt_counter[which].why = "it could not be read";
				continue;
			}
			now->value[which] += said[0];
			now->wanted[which] += said[1];
			now->had[which] += said[2];
		}
	}
}

/* What came between two moments. */
static void kt_count_since(const struct kt_counted *start, struct kt_counted *now)
{
	kt_read_counters(now);
	for (size_t which = 0; which < KT_COUNTERS; which++) {
		now->value[which] -= start->value[which];
		now->wanted[which] -= start->wanted[which];
		now->had[which] -= start->had[which];
	}
}

/* `,"counters":{"instructions":N},"uncounted":{"cycles":"why"}`; nothing if nobody wants any. */
static void kt_print_counters(const struct kt_counted *counted)
{
	const char *comma = ",\"counters\":{", *end = "";

	for (size_t which = 0; which < KT_COUNTERS; which++) {
		if (!kt_counter[which].asked || kt_counter[which].why || counted->had[which] < counted->wanted[which])
			continue;
		KT_PRINT("%s\"%s\":%llu", comma, kt_counters[which].name, counted->value[which]);
		comma = ",", end = "}";
	}
	KT_PRINT("%s", end);
	comma = ",\"uncounted\":{", end = "";
	for (size_t which = 0; which < KT_COUNTERS; which++) {
		const char *why = kt_counter[which].why;

		/* An estimate from a part of the time is no count. */
		if (!why && counted->had[which] < counted->wanted[which])
			why = "it had to share the CPU's counters with others";
		if (!kt_counter[which].asked || !why)
			continue;
		KT_PRINT("%s\"%s\":\"%s\"", comma, kt_counters[which].name, why);
		comma = ",", end = "}";
	}
	KT_PRINT("%s", end);
}

#endif
