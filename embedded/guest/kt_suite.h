/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The frame of a suite: a program whose rows are operations, each repeated a fixed number of times
 * between marks. A suite gives its rows; arguments, warm-up, marks, times and output are here, once.
 *
 *   SUITE [--scale X] [--only ROW,ROW...] [--order listed|reversed|shuffled] [--seed N]
 *   SUITE --list                    rows: name, operations at scale 1, unit, what it needs, by tabs
 *   SUITE --check [--only ROW,...]  one line for each row that cannot run here: name, tab, the reason
 *
 * One that is timed where nothing is counted (kt_suite.timed) has `--iterations N` as well, each of them a region and a
 * result, and takes KT_SCALE and KT_ITERATIONS of the environment where its arguments say nothing. KT_COUNTERS there asks
 * for counters of the CPU beside the times (kt_counters.h).
 *
 * Sockets, peers and files are set up, and a few operations done, before a row's region begins, so
 * that the region holds nothing but the operations; the same arguments do exactly the same work. Each
 * row comes after a rest, and no wake-up preempts (SCHED_BATCH): see kt_settle and kt_no_preemption.
 * Results are printed after the last row, one JSON line each:
 * {"row":"getpid","iteration":0,"operations":800,"nanoseconds":N}.
 *
 * Talks to: the recorder by marks (kt_mark.h); crates/guest (`--list`), crates/tune/src/bench (`--check`, the results).
 * Header only; each program includes it in one file.
 */
#ifndef KT_SUITE_H
#define KT_SUITE_H

#include "kt_counters.h"
#include "kt_mark.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KT_ROWS_MAX 64
#define KT_WARM_UP 16 /* operations before the region, unless the row says otherwise */
/* Nanoseconds: the least rest before a row, and what the clock is then a multiple of, as ticks are. In the emulator they cost
 * nothing. */
#define KT_SETTLE 50000000
#define KT_ALIGN 100000000
/* The coarsest clock that rows are timed by, nanoseconds: a tick is 1 to 10 ms. */
#define KT_CLOCK_STEP 500000
#define KT_MESSAGE 8192 /* the largest message of any row */
#define KT_ITERATIONS_MAX 10000

/* The row that is the sum of all others; printed if all of them ran. */
#define KT_AGGREGATE "aggregate"

struct kt_row {
	const char *name;
	unsigned long operations; /* at scale 1: some million kernel instructions */
	unsigned long size;       /* what varies between rows that share functions */
	unsigned long bytes;      /* moved by an operation, if the unit is MB/s */
	unsigned long warm_up;    /* 0: KT_WARM_UP */
	const char *unit;         /* of the figure that people want; NULL: ns/op */
	const char *needs;        /* kernel options by commas; NULL: none but what every kernel has */
	const char *(*missing)(void); /* why it cannot run here, or NULL; tried by doing */
	void (*begin)(const struct kt_row *row);
	/* Either one operation, or all of them, which then marks each (kt_op) and has warmed up in begin. */
	void (*one)(const struct kt_row *row);
	void (*all)(const struct kt_row *row, unsigned long operations);
	void (*finish)(const struct kt_row *row); /* in the region: the last of the work is done */
	void (*end)(const struct kt_row *row);
	unsigned long multiple; /* operations are a multiple of this, if not 0 */
	const void *data;       /* the row's own */
};

struct kt_suite {
	const char *name;
	const struct kt_row *rows;
	size_t count;
	int aggregate;                        /* whether there is a row KT_AGGREGATE */
	int (*child)(int argc, char **argv);  /* what an exec of ourselves does; -1: nothing of that kind */
	int timed;                            /* whether rows may be done several times */
	const char *scratch;                  /* where its directory is made; NULL: /tmp */
	void (*begin)(void), (*end)(void);    /* around all rows, or NULL */
};

static const char *kt_name = "suite"; /* for messages */
static int kt_timed;                  /* whether this suite knows iterations */
static char kt_self[512];             /* our own path, for exec */
static char kt_dir[64];               /* scratch, on tmpfs in the guest */
static unsigned long kt_random_state = 1;
static unsigned long kt_operations;   /* of the row that begins */
static char kt_message[KT_MESSAGE];   /* of random bytes */

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *format, ...)
{
	int error = errno;
	va_list list;

	fprintf(stderr, "%s: ", kt_name);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}

static _Noreturn void kt_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void kt_usage(const char *format, ...)
{
	va_list list;

	fprintf(stderr, "%s: ", kt_name);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr,
		"\nusage: %s [--scale X] [--only ROW,ROW...] [--order listed|reversed|shuffled] [--seed N] "
		"%s[--list] [--check]\n",
		kt_name, kt_timed ? "[--iterations N] " : "");
	exit(2);
}

/* xorshift64*: the same seed gives the same work. */
static inline unsigned long kt_random(void)
{
	kt_random_state ^= kt_random_state >> 12;
	kt_random_state ^= kt_random_state << 25;
	kt_random_state ^= kt_random_state >> 27;
	return kt_random_state * 2685821657736338717UL;
}

static inline long long kt_clock(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_MONOTONIC, &time) < 0)
		die("clock_gettime");
	return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/*
 * A clock that moves by ticks is none: short rows take no time by it and long ones whole ticks. A kernel without another
 * clock (a virtual machine that offers neither a TSC that it can rely on nor a timer to check it by) has such a one.
 */
static void kt_check_clock(void)
{
	long long step = LLONG_MAX, last = kt_clock();

	/* The smallest of some: between two readings others may run. */
	for (int steps = 0; steps < 10;) {
		long long now = kt_clock();

		if (now == last)
			continue;
		if (now - last < step)
			step = now - last;
		last = now;
		steps++;
	}
	if (step > KT_CLOCK_STEP) {
		fprintf(stderr, "%s: this kernel's clock moves in steps of %lld ns, too coarse to time anything\n", kt_name, step);
		exit(1);
	}
}

/* A path in the scratch directory. */
static inline const char *kt_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", kt_dir, name);
	return path;
}

static inline void kt_nothing(const struct kt_row *row)
{
	(void)row;
}

/* ---- rows ---- */

struct kt_result {
	const struct kt_row *row;
	unsigned long iteration, operations;
	long long nanoseconds;
	struct kt_counted counted;
};

/*
 * What the kernel put off, freeing what a row before left behind above all, is done before this one begins; and the next tick
 * is as far away as it always is, however long the rows before took.
 */
static void kt_settle(void)
{
	long long end = ((kt_clock() + KT_SETTLE) / KT_ALIGN + 1) * KT_ALIGN;
	struct timespec until = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };

	while ((errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)) != 0)
		if (errno != EINTR)
			die("clock_nanosleep");
}

/*
 * Who is woken does not take the CPU from who runs: otherwise some instructions more or less decide who runs when, and
 * so how often the kernel switches, which moves rows of several processes by more than what is to be seen in them.
 */
static void kt_no_preemption(void)
{
	struct sched_param none = { 0 };

	if (sched_setscheduler(0, SCHED_BATCH, &none) < 0)
		die("SCHED_BATCH");
}

/* So many operations between marks. */
static struct kt_result kt_measure(const struct kt_row *row, unsigned long iteration, unsigned long operations)
{
	struct kt_result result = { row, iteration, operations, 0, { { 0 }, { 0 }, { 0 } } };
	struct kt_counted before;
	long long start;

	kt_read_counters(&before);
	start = kt_clock();
	kt_begin(row->name);
	if (row->all) {
		row->all(row, operations);
	} else {
		for (unsigned long i = 0; i < operations; i++) {
			row->one(row);
			kt_op();
		}
	}
	if (row->finish)
		row->finish(row);
	kt_end(row->name, operations);
	result.nanoseconds = kt_clock() - start;
	kt_count_since(&before, &result.counted);
	return result;
}

static void kt_run(const struct kt_row *row, double scale, struct kt_result *results, unsigned long iterations)
{
	double wanted = (double)row->operations * scale;
	unsigned long rest, warm_up = row->warm_up ? row->warm_up : KT_WARM_UP;

	kt_operations = wanted < 1 ? 1 : (unsigned long)wanted;
	rest = row->multiple ? kt_operations % row->multiple : 0;
	if (rest)
		kt_operations += row->multiple - rest;
	if (row->begin)
		row->begin(row);
	kt_settle();
	for (unsigned long i = 0; row->one && i < warm_up; i++)
		row->one(row);
	for (unsigned long i = 0; i < iterations; i++)
		results[i] = kt_measure(row, i, kt_operations);
	if (row->end)
		row->end(row);
}

static void kt_print(const char *row, const struct kt_result *result)
{
	printf("{\"row\":\"%s\",\"iteration\":%lu,\"operations\":%lu,\"nanoseconds\":%lld", row, result->iteration,
	       result->operations, result->nanoseconds);
	kt_print_counters(&result->counted);
	printf("}\n");
}

/* Adds a row to the sum of all. */
static void kt_add(struct kt_result *sum, const struct kt_result *result)
{
	sum->nanoseconds += result->nanoseconds;
	for (size_t which = 0; which < KT_COUNTERS; which++) {
		sum->counted.value[which] += result->counted.value[which];
		sum->counted.wanted[which] += result->counted.wanted[which];
		sum->counted.had[which] += result->counted.had[which];
	}
}

/* ---- arguments ---- */

static const struct kt_row *kt_find(const struct kt_suite *suite, const char *name)
{
	for (size_t i = 0; i < suite->count; i++)
		if (strcmp(suite->rows[i].name, name) == 0)
			return &suite->rows[i];
	kt_usage("there is no row \"%s\"; `%s --list` shows them", name, kt_name);
}

static size_t kt_choose(const struct kt_suite *suite, char *only, const struct kt_row **chosen)
{
	size_t count = 0;
	char *rest, *name;

	if (!only || (suite->aggregate && strcmp(only, KT_AGGREGATE) == 0)) {
		for (; count < suite->count; count++)
			chosen[count] = &suite->rows[count];
		return count;
	}
	for (name = strtok_r(only, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		const struct kt_row *row = kt_find(suite, name);

		for (size_t i = 0; i < count; i++)
			if (chosen[i] == row)
				kt_usage("--only names %s twice", name);
		chosen[count++] = row;
	}
	return count;
}

static void kt_swap(const struct kt_row **a, const struct kt_row **b)
{
	const struct kt_row *kept = *a;

	*a = *b;
	*b = kept;
}

static void kt_reorder(const char *order, const struct kt_row **chosen, size_t count)
{
	if (strcmp(order, "reversed") == 0) {
		for (size_t i = 0; i < count / 2; i++)
			kt_swap(&chosen[i], &chosen[count - 1 - i]);
	} else if (strcmp(order, "shuffled") == 0) {
		for (size_t i = count; i > 1; i--)
			kt_swap(&chosen[i - 1], &chosen[kt_random() % i]);
	} else if (strcmp(order, "listed") != 0) {
		kt_usage("--order is listed, reversed or shuffled, not \"%s\"", order);
	}
}

static double kt_read_scale(const char *text)
{
	char *rest;
	double scale = strtod(text, &rest);

	if (rest == text || *rest || !(scale > 0 && scale <= 1e6))
		kt_usage("--scale is a number above 0 and up to 1e6, not \"%s\"", text);
	return scale;
}

static unsigned long kt_read_number(const char *what, const char *text, unsigned long least, unsigned long most)
{
	char *rest;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &rest, 10);
	if (rest == text || *rest || errno || *text == '-' || number < least || number > most)
		kt_usage("%s is a whole number from %lu to %lu, not \"%s\"", what, least, most, text);
	return number;
}

static unsigned long kt_read_iterations(const char *what, const char *text)
{
	return kt_read_number(what, text, 1, KT_ITERATIONS_MAX);
}

static int kt_list(const struct kt_suite *suite)
{
	for (size_t i = 0; i < suite->count; i++) {
		const struct kt_row *row = &suite->rows[i];

		printf("%s\t%lu\t%s", row->name, row->operations, row->unit ? row->unit : "ns/op");
		if (row->bytes)
			printf(":%lu", row->bytes); /* MB/s of how many bytes each */
		printf("\t%s\n", row->needs ? row->needs : "-");
	}
	if (suite->aggregate)
		printf(KT_AGGREGATE "\t1\tns/op\t-\n");
	return 0;
}

static int kt_check(const struct kt_row *const *chosen, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *reason = chosen[i]->missing ? chosen[i]->missing() : NULL;

		if (reason)
			printf("%s\t%s\n", chosen[i]->name, reason);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

static int kt_main(const struct kt_suite *suite, int argc, char **argv)
{
	const struct kt_row *chosen[KT_ROWS_MAX];
	const char *order = "listed", *scale_text, *iterations_text, *unknown;
	unsigned long seed = 1, iterations = 1;
	struct kt_result *results, sum = { .operations = 1 };
	double scale = 1;
	char *only = NULL, *counters;
	int check = 0, status;
	ssize_t length;
	size_t count;

	kt_name = suite->name;
	kt_timed = suite->timed;
	if (suite->count > KT_ROWS_MAX)
		kt_usage("it has more rows than KT_ROWS_MAX");
	status = suite->child && argc > 1 ? suite->child(argc, argv) : -1;
	if (status >= 0)
		return status;
	scale_text = suite->timed ? getenv("KT_SCALE") : NULL;
	if (scale_text)
		scale = kt_read_scale(scale_text);
	iterations_text = suite->timed ? getenv("KT_ITERATIONS") : NULL;
	if (iterations_text)
		iterations = kt_read_iterations("KT_ITERATIONS", iterations_text);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0) {
			return kt_list(suite);
		} else if (strcmp(argv[i], "--check") == 0) {
			check = 1;
		} else if (i + 1 < argc && strcmp(argv[i], "--scale") == 0) {
			scale = kt_read_scale(argv[++i]);
		} else if (suite->timed && i + 1 < argc && strcmp(argv[i], "--iterations") == 0) {
			iterations = kt_read_iterations("--iterations", argv[++i]);
		} else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
			only = argv[++i];
		} else if (i + 1 < argc && strcmp(argv[i], "--order") == 0) {
			order = argv[++i];
		} else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
			seed = kt_read_number("--seed", argv[++i], 0, ~0UL);
		} else {
			kt_usage("cannot use \"%s\"", argv[i]);
		}
	}
	kt_random_state = (seed * 0x9e3779b97f4a7c15UL) | 1; /* never 0 */
	count = kt_choose(suite, only, chosen);
	if (check)
		return kt_check(chosen, count);
	kt_check_clock();
	kt_no_preemption();
	length = readlink("/proc/self/exe", kt_self, sizeof(kt_self) - 1);
	if (length < 0)
		die("readlink /proc/self/exe");
	kt_self[length] = '\0';
	/* One name for one process: two runs must do the same. */
	snprintf(kt_dir, sizeof(kt_dir), "%s/%s.%d", suite->scratch ? suite->scratch : "/tmp", suite->name, getpid());
	if (mkdir(kt_dir, 0700) < 0)
		die("mkdir %s", kt_dir);
	for (size_t i = 0; i < sizeof(kt_message); i++)
		kt_message[i] = (char)kt_random();
	kt_reorder(order, chosen, count);
	/* Touched before anything is measured. */
	results = calloc(count * iterations, sizeof(*results));
	if (!results)
		die("no memory for %lu results", count * iterations);
	memset(results, 1, count * iterations * sizeof(*results));
	counters = getenv("KT_COUNTERS");
	unknown = counters ? kt_open_counters(counters) : NULL;
	if (unknown)
		kt_usage("KT_COUNTERS: there is no counter \"%s\"", unknown);
	if (suite->begin)
		suite->begin();
	for (size_t i = 0; i < count; i++)
		kt_run(chosen[i], scale, results + i * iterations, iterations);
	if (suite->end)
		suite->end();
	if (rmdir(kt_dir) < 0)
		die("rmdir %s", kt_dir);
	for (size_t i = 0; i < count * iterations; i++) {
		kt_print(results[i].row->name, &results[i]);
		kt_add(&sum, &results[i]);
	}
	if (suite->aggregate && count == suite->count)
		kt_print(KT_AGGREGATE, &sum);
	return fflush(stdout) == 0 ? 0 : 1;
}

#endif
