/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Pipes, event descriptors, and the two kinds of queues, semaphores and shared memory.
 */
#include "selftest.h"

#include <mqueue.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/timerfd.h>

static void pipe_order(void)
{
	unsigned char bytes[PAGE];
	size_t at = 0;
	int pair[2];
	pid_t child;

	MUST(pipe(pair) == 0);
	child = fork();
	if (child == 0) {
		close(pair[0]);
		for (size_t sent = 0; sent < 1 << 20; sent += 1000) {
			fill(bytes, sent, 1000);
			MUST(write(pair[1], bytes, 1000) == 1000);
		}
		_exit(0);
	}
	close(pair[1]);
	for (ssize_t size; (size = read(pair[0], bytes, sizeof(bytes))) > 0; at += (size_t)size)
		MUST(is_filled(bytes, at, (size_t)size));
	MUST(at == 1049000);
	await(child, 0);
}

static void pipe_ends(void)
{
	int pair[2];
	char byte;

	MUST(pipe2(pair, O_NONBLOCK) == 0);
	MUST(read(pair[0], &byte, 1) == -1 && errno == EAGAIN);
	MUST(fcntl(pair[1], F_SETPIPE_SZ, 2 * PAGE) == 2 * PAGE);
	while (write(pair[1], "x", 1) == 1)
		;
	MUST(errno == EAGAIN);
	close(pair[0]);
	signal(SIGPIPE, SIG_IGN);
	MUST(write(pair[1], "x", 1) == -1 && errno == EPIPE);
}

static void event_fd(void)
{
	uint64_t value = 3;
	int fd = (int)HAVE(eventfd(4, EFD_NONBLOCK));

	MUST(write(fd, &value, 8) == 8 && read(fd, &value, 8) == 8 && value == 7);
	MUST(read(fd, &value, 8) == -1 && errno == EAGAIN);
}

static void timer_fd(void)
{
	struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	uint64_t times = 0, sum = 0;
	int fd = (int)HAVE(timerfd_create(CLOCK_MONOTONIC, 0));

	MUST(timerfd_settime(fd, 0, &often, NULL) == 0);
	while (sum < 5) {
		MUST(read(fd, &times, 8) == 8 && times >= 1);
		sum += times;
	}
}

static void shm_sysv(void)
{
	int id = (int)HAVE(shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600));
	char *memory = shmat(id, NULL, 0);
	pid_t child;

	MUST(memory != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	child = fork();
	if (child == 0) {
		memory[7] = 8;
		_exit(0);
	}
	await(child, 0);
	MUST(memory[7] == 8 && shmdt(memory) == 0);
}

static void sem_sysv(void)
{
	struct sembuf down = { 0, -1, 0 }, up = { 0, 1, 0 };
	int id = (int)HAVE(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
	pid_t child = fork();

	if (child == 0) {
		MUST(semop(id, &down, 1) == 0);
		_exit(0);
	}
	usleep(2000);
	MUST(semop(id, &up, 1) == 0);
	await(child, 0);
	MUST(semctl(id, 0, IPC_RMID) == 0);
}

static void msg_sysv(void)
{
	struct { long type; char text[16]; } message = { 2, "second" }, got;
	int id = (int)HAVE(msgget(IPC_PRIVATE, IPC_CREAT | 0600));

	MUST(msgsnd(id, &message, sizeof(message.text), 0) == 0);
	message.type = 1;
	strcpy(message.text, "first");
	MUST(msgsnd(id, &message, sizeof(message.text), 0) == 0);
	MUST(msgrcv(id, &got, sizeof(got.text), 1, 0) == sizeof(got.text) && strcmp(got.text, "first") == 0);
	MUST(msgrcv(id, &got, sizeof(got.text), 0, 0) == sizeof(got.text) && strcmp(got.text, "second") == 0);
	MUST(msgctl(id, IPC_RMID, NULL) == 0);
}

static void mq_posix(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	char got[16];
	unsigned priority;
	mqd_t queue = (mqd_t)HAVE(mq_open("/kt-selftest", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));

	MUST(mq_unlink("/kt-selftest") == 0);
	MUST(mq_send(queue, "low", 4, 1) == 0 && mq_send(queue, "high", 5, 9) == 0);
	MUST(mq_receive(queue, got, 16, &priority) == 5 && priority == 9 && strcmp(got, "high") == 0);
	MUST(mq_receive(queue, got, 16, &priority) == 4 && priority == 1);
}

const struct group group_ipc = { "ipc", {
	CHECK(pipe_order), CHECK(pipe_ends), CHECK(event_fd), CHECK(timer_fd), CHECK(shm_sysv),
	CHECK(sem_sysv), CHECK(msg_sysv), CHECK(mq_posix),
} };
