/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * smp: what CPUs do to each other, each kind by itself and so often, between marks.
 *
 *   smp [--half] [ROW...]     --half: half as often
 *
 * migrate   the thread "mover" goes from one CPU to another and back, because it says where it may run
 * wake      the threads "ping" and "pong", each on its CPU, wake each other through two pipes
 * mutex     the thread "waiter" waits for a mutex of the kernel that "holder" sleeps with: both read one terminal
 * spinlock  the threads "left" and "right", each on its CPU, ask about the same pages: under one spinlock
 *
 * Needs CPUs 0 and 1. Talks to: the recorder by marks (kt_mark.h); `data/workloads/smp.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int migrations = 200;
static int wake_ups = 300; /* of each thread */
static uint64_t mutex_waits = 40;
static int looks = 3000; /* of each thread */

#define AREA (2ul << 20) /* bytes: the pages of one page table */
#define STEP 2000000     /* ns: between two steps of a round for the mutex */

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		err(1, "CPU %d", cpu);
}

/* A thread on a CPU under a name. */
struct thread {
	const char *name;
	int cpu;
	void (*work)(struct thread *);
	int in, out;
	char *area;
	struct timespec begin;
	pthread_t id;
};

static void *started(void *argument)
{
	struct thread *self = argument;

	prctl(PR_SET_NAME, self->name);
	run_on(self->cpu);
	self->work(self);
	return NULL;
}

static void start(struct thread *thread)
{
	if (pthread_create(&thread->id, NULL, started, thread) != 0)
		errx(1, "no thread %s", thread->name);
}

static void join(struct thread *thread)
{
	if (pthread_join(thread->id, NULL) != 0)
		errx(1, "thread %s does not end", thread->name);
}

/* Sleeps until so many ns after a moment. */
static void until(const struct timespec *begin, uint64_t ns)
{
	struct timespec at = *begin;

	ns += at.tv_nsec;
	at.tv_sec += ns / 1000000000;
	at.tv_nsec = ns % 1000000000;
	if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		errx(1, "cannot sleep");
}

static void move(struct thread *self)
{
	kt_begin("migrate");
	for (int i = 0; i < migrations; i++) {
		run_on(i % 2 == 0 ? 1 - self->cpu : self->cpu);
		kt_op();
	}
	kt_end("migrate", 0);
}

static void migrate(void)
{
	struct thread mover = { .name = "mover", .cpu = 0, .work = move };

	start(&mover);
	join(&mover);
}

static void get(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		err(1, "read");
}

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		err(1, "write");
}

static void pong(struct thread *self)
{
	for (int i = 0; i < wake_ups + 1; i++) {
		get(self->in);
		put(self->out);
	}
}

static void ping(struct thread *self)
{
	put(self->out); /* the other is there */
	get(self->in);
	kt_begin("wake");
	for (int i = 0; i < wake_ups; i++) {
		put(self->out);
		get(self->in);
		kt_op();
	}
	kt_end("wake", 0);
}

static void wake(void)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		err(1, "pipe");
	struct thread one = { .name = "ping", .cpu = 0, .work = ping, .in = back[0], .out = there[1] };
	struct thread other = { .name = "pong", .cpu = 1, .work = pong, .in = there[0], .out = back[1] };

	start(&other);
	start(&one);
	join(&one);
	join(&other);
}

/* Of a terminal one line is read at a time, under a mutex with which the reader sleeps. */
static void line(struct thread *self)
{
	char text[16];
	int late = strcmp(self->name, "waiter") == 0;

	for (uint64_t round = 0; round < mutex_waits; round++) {
		until(&self->begin, (round * 4 + late) * STEP);
		if (read(self->in, text, sizeof(text)) != 2)
			err(1, "%s", self->name);
	}
}

static void mutex(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct timespec begin;
	struct termios raw;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		err(1, "a terminal");
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY);

	if (slave < 0 || tcgetattr(slave, &raw) < 0)
		err(1, "a terminal");
	raw.c_lflag &= ~ECHO;
	if (tcsetattr(slave, TCSANOW, &raw) < 0)
		err(1, "a terminal");
	run_on(0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	begin.tv_sec += 1;
	struct thread holder = { .name = "holder", .cpu = 0, .work = line, .in = slave, .begin = begin };
	struct thread waiter = { .name = "waiter", .cpu = 1, .work = line, .in = slave, .begin = begin };

	start(&holder);
	start(&waiter);
	kt_begin("mutex");
	for (uint64_t round = 0; round < mutex_waits; round++) {
		for (int step = 2; step < 4; step++) {
			until(&begin, (round * 4 + step) * STEP);
			if (write(master, "x\n", 2) != 2)
				err(1, "write");
		}
		kt_op();
	}
	join(&holder);
	join(&waiter);
	kt_end("mutex", 0);
	close(slave);
	close(master);
}

/* Which of its pages are in memory the kernel finds out under one spinlock, which it holds nearly all the time. */
static void look(struct thread *self)
{
	unsigned char pages[AREA / 4096];

	until(&self->begin, 0);
	for (int i = 0; i < looks; i++)
		if (mincore(self->area, AREA, pages) < 0)
			err(1, "mincore");
}

static void spinlock(void)
{
	char *room = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *area = (char *)(((uintptr_t)room + AREA - 1) & -(uintptr_t)AREA);
	struct timespec begin;

	if (room == MAP_FAILED)
		err(1, "mmap");
	for (size_t at = 0; at < AREA; at += 4096)
		area[at] = 1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	begin.tv_sec += 1;
	struct thread left = { .name = "left", .cpu = 0, .work = look, .area = area, .begin = begin };
	struct thread right = { .name = "right", .cpu = 1, .work = look, .area = area, .begin = begin };

	start(&left);
	start(&right);
	kt_begin("spinlock");
	join(&left);
	join(&right);
	kt_end("spinlock", 2 * looks);
	munmap(room, 2 * AREA);
}

static const struct {
	const char *name;
	void (*run)(void);
} rows[] = { { "migrate", migrate }, { "wake", wake }, { "mutex", mutex }, { "spinlock", spinlock } };

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--half") == 0) {
		migrations /= 2;
		wake_ups /= 2;
		mutex_waits /= 2;
		looks /= 2;
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		bool wanted = argc == 1;

		for (int i = 1; i < argc; i++)
			wanted = wanted || strcmp(argv[i], rows[row].name) == 0;
		if (wanted)
			rows[row].run();
	}
	return 0;
}
