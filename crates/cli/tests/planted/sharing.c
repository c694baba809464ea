/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Accesses to data whose misses are known (crates/cli/tests/data.rs).
 *
 * shared  two threads, each on its CPU, write to /proc/kt_planted in turn, 300 times each
 * walk    one read of each line of 12 MiB, half as much again as any cache of the model skylake has: each is missed by all
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES 300
#define LINE 64
#define AREA (12ul << 20)

struct side {
	int cpu, in, out;
	pthread_t thread;
};

static void *writer(void *argument)
{
	struct side *side = argument;
	int file = open("/proc/kt_planted", O_WRONLY);
	cpu_set_t set;
	char byte = 'x';

	CPU_ZERO(&set);
	CPU_SET(side->cpu, &set);
	if (file < 0 || sched_setaffinity(0, sizeof(set), &set) < 0)
		err(1, "CPU %d", side->cpu);
	for (int i = 0; i < TIMES; i++) {
		if (read(side->in, &byte, 1) != 1 || write(file, &byte, 1) != 1 || write(side->out, &byte, 1) != 1)
			err(1, "round %d", i);
	}
	return NULL;
}

int main(void)
{
	int there[2], back[2];
	volatile char *area = malloc(AREA);

	if (!area || pipe(there) < 0 || pipe(back) < 0)
		err(1, "set-up");
	struct side sides[2] = { { 0, there[0], back[1], 0 }, { 1, back[0], there[1], 0 } };

	kt_begin("shared");
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&sides[i].thread, NULL, writer, &sides[i]))
			err(1, "thread");
	}
	if (write(there[1], "x", 1) != 1)
		err(1, "pipe");
	for (int i = 0; i < 2; i++)
		pthread_join(sides[i].thread, NULL);
	kt_end("shared", 2 * TIMES);

	memset((void *)area, 1, AREA);
	kt_begin("walk");
	for (unsigned long at = 0; at < AREA; at += LINE)
		(void)area[at];
	kt_end("walk", AREA / LINE);
	return 0;
}
