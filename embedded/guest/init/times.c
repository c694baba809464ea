/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * See times.h. A line has the form of the programs' own (kt_suite.h), with the CPU time of the step beside its elapsed time.
 *
 * CPU time is that of all processes but init: of those that ended and were waited for, to the microsecond (getrusage), and
 * of those that live on, such as a server, in the kernel's ticks (/proc/PID/stat). Counters are those of KT_COUNTERS.
 * Talks to: crates/tune/src/bench/lines.rs, which reads the lines.
 */
#include "init.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static FILE *lines;

#define KT_PRINT(...) fprintf(lines, __VA_ARGS__)
#include "../kt_counters.h"

#define TIMES_FILE OUT_DIR "/times"
#define KTHREADD 2 /* parent of the kernel's own threads */

static struct {
	struct timespec clock;
	unsigned long long user, system; /* nanoseconds */
	struct kt_counted counted;
} start, end;

static unsigned long long nanoseconds(const struct timeval *time)
{
	return (unsigned long long)time->tv_sec * 1000000000 + (unsigned long long)time->tv_usec * 1000;
}

/* Adds the times of a process and of its children that it waited for, in ticks. */
static void add_ticks(const char *pid, unsigned long long *user, unsigned long long *system)
{
	unsigned long long own[2];
	long long waited[2];
	char path[64], text[1024];
	const char *after;
	int parent;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (read_text(path, text, sizeof(text)) < 0)
		return; /* it ended just now */
	/* A name in parentheses may have any bytes. */
	after = strrchr(text, ')');
	/* Fields 3, 4 and 14 to 17. */
	if (!after || sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &parent,
			     &own[0], &own[1], &waited[0], &waited[1]) != 5)
		return;
	if (parent == KTHREADD && !is_contained())
		return;
	*user += own[0] + (unsigned long long)waited[0];
	*system += own[1] + (unsigned long long)waited[1];
}

static bool cpu_times(unsigned long long *user, unsigned long long *system)
{
	unsigned long long ticks[2] = { 0, 0 }, tick = 1000000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
	struct rusage ended;
	struct dirent *entry;
	DIR *processes = opendir("/proc");

	if (!processes || getrusage(RUSAGE_CHILDREN, &ended) < 0)
		return fail("times: cannot read CPU times: %s", strerror(errno));
	while ((entry = readdir(processes)))
		if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0 &&
		    (is_contained() || atoi(entry->d_name) != KTHREADD))
			add_ticks(entry->d_name, &ticks[0], &ticks[1]);
	closedir(processes);
	*user = nanoseconds(&ended.ru_utime) + ticks[0] * tick;
	*system = nanoseconds(&ended.ru_stime) + ticks[1] * tick;
	return true;
}

bool times_begin(void)
{
	char *counters = getenv("KT_COUNTERS");
	const char *unknown = NULL;

	if (!lines) {
		lines = fopen(TIMES_FILE, "we");
		if (!lines)
			return fail("times: cannot write " TIMES_FILE ": %s", strerror(errno));
		counters = counters ? strdup(counters) : NULL;
		unknown = counters ? kt_open_counters(counters) : NULL;
		if (unknown)
			return fail("times: KT_COUNTERS has %s, which is no counter", unknown);
		free(counters);
	}
	if (!cpu_times(&start.user, &start.system))
		return false;
	kt_read_counters(&start.counted);
	clock_gettime(CLOCK_MONOTONIC, &start.clock);
	return true;
}

void times_end(void)
{
	clock_gettime(CLOCK_MONOTONIC, &end.clock);
	end.counted = start.counted;
	kt_count_since(&start.counted, &end.counted);
}

static unsigned long long since(unsigned long long before, unsigned long long now)
{
	return now > before ? now - before : 0;
}

bool times_save(const char *region, unsigned long operations)
{
	long long elapsed = (end.clock.tv_sec - start.clock.tv_sec) * 1000000000LL + end.clock.tv_nsec - start.clock.tv_nsec;

	if (!cpu_times(&end.user, &end.system))
		return false;
	/* Names of regions have no character that JSON escapes. */
	fprintf(lines, "{\"row\":\"%s\",\"operations\":%lu,\"nanoseconds\":%lld,\"user_nanoseconds\":%llu,"
		"\"system_nanoseconds\":%llu", region, operations ? operations : 1, elapsed, since(start.user, end.user),
		since(start.system, end.system));
	kt_print_counters(&end.counted);
	fprintf(lines, "}\n");
	if (fflush(lines) != 0 || ferror(lines))
		return fail("times: cannot write " TIMES_FILE ": %s", strerror(errno));
	return true;
}
