/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * ipc: ways for two processes to take turns, as a database's processes do. An operation is a turn of each.
 * Arguments and output: kt_suite.h; docs/suites.md.
 *
 * semop_rr      two System V semaphores of one set, waited for without a limit
 * semtimedop_rr the same with a limit of a second, which never passes: what Oracle waited by
 * futex_rr      two words of shared memory
 * pipe_rr       1 byte through two pipes
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/ipc.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <linux/futex.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>

static int set; /* of semaphores: 0 is our turn, 1 the peer's */
static const struct timespec second = { 1, 0 };
static unsigned *turns; /* the same as words: 1 if it is somebody's turn */

/* ---- semaphores ---- */

static void sem(unsigned short number, short by, const struct timespec *limit)
{
	struct sembuf operation = { number, by, 0 };

	if ((limit ? semtimedop(set, &operation, 1, limit) : semop(set, &operation, 1)) < 0)
		die("semop");
}

static void sem_begin(const struct kt_row *row)
{
	const struct timespec *limit = row->data;

	set = semget(IPC_PRIVATE, 2, 0600);
	if (set < 0)
		die("semget");
	kt_peer = fork_peer();
	if (kt_peer == 0)
		for (;;) {
			sem(1, -1, limit);
			sem(0, 1, NULL);
		}
}

static void sem_one(const struct kt_row *row)
{
	sem(1, 1, NULL);
	sem(0, -1, row->data);
}

static void kill_peer(void)
{
	if (kill(kt_peer, SIGKILL) < 0 || waitpid(kt_peer, NULL, 0) != kt_peer)
		die("kill");
}

static void sem_end(const struct kt_row *row)
{
	(void)row;
	kill_peer();
	if (semctl(set, 0, IPC_RMID) < 0)
		die("semctl");
}

static const char *sem_missing(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);

	if (id < 0)
		return "there are no System V semaphores";
	semctl(id, 0, IPC_RMID);
	return NULL;
}

/* ---- futexes ---- */

static void futex_pass(unsigned *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	if (syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
		die("futex");
}

static void futex_take(unsigned *word)
{
	unsigned one = 1;

	while (!__atomic_compare_exchange_n(word, &one, 0, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		one = 1;
		if (syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0) < 0 && errno != EAGAIN && errno != EINTR)
			die("futex");
	}
}

static void futex_begin(const struct kt_row *row)
{
	(void)row;
	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turns == MAP_FAILED)
		die("mmap");
	kt_peer = fork_peer();
	if (kt_peer == 0)
		for (;;) {
			futex_take(&turns[16]);
			futex_pass(&turns[0]);
		}
}

static void futex_one(const struct kt_row *row)
{
	(void)row;
	futex_pass(&turns[16]);
	futex_take(&turns[0]);
}

static void futex_end(const struct kt_row *row)
{
	(void)row;
	kill_peer();
	if (munmap(turns, 4096) < 0)
		die("munmap");
}

static const struct kt_row rows[] = {
	{ .name = "semop_rr", .operations = 1500, .needs = "CONFIG_SYSVIPC", .missing = sem_missing,
	  .begin = sem_begin, .one = sem_one, .end = sem_end },
	{ .name = "semtimedop_rr", .operations = 1500, .needs = "CONFIG_SYSVIPC", .missing = sem_missing,
	  .begin = sem_begin, .one = sem_one, .end = sem_end, .data = &second },
	{ .name = "futex_rr", .operations = 1500, .needs = "CONFIG_FUTEX", .begin = futex_begin, .one = futex_one,
	  .end = futex_end },
	{ .name = "pipe_rr", .operations = 1500, .size = 1, .begin = echo_pipe_begin, .one = exchange_one,
	  .end = peer_end },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "ipc", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
