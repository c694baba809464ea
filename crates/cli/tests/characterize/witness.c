/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the guest's kernel says that it did, before and after some work (crates/cli/tests/characterize.rs).
 *
 * Region "all" has within it, with nothing between: "first", in which /proc is read, "work", and "second", in which it is read
 * again. What is read is printed afterwards. So what happened between the two readings is at least what "work" has, and at most
 * what "all" has. With an argument the work reads that disk, too.
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS 200
#define PAGES 64
#define SLEEPS 20
#define DATAGRAMS 50
#define BLOCKS 100
#define BLOCK 4096

static const char *const files[] = { "stat", "vmstat", "softirqs", "interrupts", "diskstats", "net/dev" };
#define FILES (sizeof(files) / sizeof(files[0]))
#define ROOM 32768

static int fds[FILES];

/* A file of /proc that is read from its beginning is made anew. */
static void take(char (*texts)[ROOM])
{
	for (unsigned int i = 0; i < FILES; i++) {
		ssize_t length = 0, more;

		do {
			more = pread(fds[i], texts[i] + length, ROOM - 1 - length, length);
			if (more < 0)
				err(1, "%s", files[i]);
			length += more;
		} while (more > 0 && length < ROOM - 1);
		texts[i][length] = '\0';
	}
}

static void show(const char *when, char (*texts)[ROOM])
{
	for (unsigned int i = 0; i < FILES; i++)
		printf("==== %s %s\n%s\n", when, files[i], texts[i]);
}

static void ping_pong(void)
{
	int there[2], back[2];
	char byte = 'x';
	pid_t child;

	if (pipe(there) < 0 || pipe(back) < 0)
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (child == 0) {
		for (int i = 0; i < TURNS; i++)
			if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < TURNS; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			err(1, "turn %d", i);
	if (waitpid(child, NULL, 0) < 0)
		err(1, "waitpid");
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

static void touch(void)
{
	volatile char *area = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		err(1, "mmap");
	for (int i = 0; i < PAGES; i++)
		area[i * 4096] = 1;
	munmap((void *)area, PAGES * 4096);
}

static void sleep_often(void)
{
	struct timespec millisecond = { 0, 1000000 };

	for (int i = 0; i < SLEEPS; i++)
		nanosleep(&millisecond, NULL);
}

static void datagrams(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 'x';

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err(1, "socket");
	for (int i = 0; i < DATAGRAMS; i++)
		if (sendto(fd, &byte, 1, 0, (struct sockaddr *)&address, length) != 1 || recv(fd, &byte, 1, 0) != 1)
			err(1, "datagram %d", i);
	close(fd);
}

static void blocks(const char *disk)
{
	int fd = open(disk, O_RDONLY | O_DIRECT);
	void *block = NULL;

	if (fd < 0 || posix_memalign(&block, BLOCK, BLOCK) != 0)
		err(1, "%s", disk);
	for (int i = 0; i < BLOCKS; i++)
		if (pread(fd, block, BLOCK, (off_t)i * 7 % BLOCKS * BLOCK) != BLOCK)
			err(1, "%s, block %d", disk, i);
	free(block);
	close(fd);
}

static void work(const char *disk)
{
	volatile unsigned int spin = 0;

	ping_pong();
	touch();
	sleep_often();
	datagrams();
	if (disk)
		blocks(disk);
	while (spin < 4000000)
		spin++;
}

/* Shared, so that a child makes no copies of it: writing to it is no page fault. */
static char (*room(void))[ROOM]
{
	char(*texts)[ROOM] = mmap(NULL, FILES * ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (texts == MAP_FAILED)
		err(1, "mmap");
	memset(texts, 1, FILES * ROOM);
	return texts;
}

int main(int argc, char **argv)
{
	char(*before)[ROOM] = room(), (*after)[ROOM] = room();

	for (unsigned int i = 0; i < FILES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%s", files[i]);
		fds[i] = open(path, O_RDONLY);
		if (fds[i] < 0)
			err(1, "%s", path);
	}
	/* Memory and the kernel's buffers are there before anything is counted. */
	take(before);
	take(after);
	kt_begin("all");
	kt_begin("first");
	take(before);
	kt_end("first", 1);
	kt_begin("work");
	work(argc > 1 ? argv[1] : NULL);
	kt_end("work", 1);
	kt_begin("second");
	take(after);
	kt_end("second", 1);
	kt_end("all", 1);
	show("before", before);
	show("after", after);
	return 0;
}
