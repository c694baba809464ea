/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the operations of several suites are made of: whole reads and writes, children, second
 * processes that echo or discard, memory. Each function ends the program if a call fails: a row that
 * does not do its work has no figure.
 * Talks to: nobody but its own children. After kt_suite.h, in the one file of a program.
 */
#ifndef KT_PEER_H
#define KT_PEER_H

#include "kt_suite.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

/* Our two ends, the same for a socket; and the process at the other ends. */
static int kt_in = -1, kt_out = -1;
static pid_t kt_peer;

static inline void put_all(int fd, const char *bytes, size_t size)
{
	ssize_t done = write(fd, bytes, size);

	if (done != (ssize_t)size)
		die("write of %zu bytes gave %zd", size, done);
}

/* False at the end of the stream. */
static inline int get_all(int fd, char *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t now = read(fd, bytes + done, size - done);

		if (now < 0)
			die("read");
		if (now == 0)
			return 0;
		done += (size_t)now;
	}
	return 1;
}

static inline void close_all(int a, int b)
{
	if (close(a) < 0 || (b != a && close(b) < 0))
		die("close");
}

static inline void wait_child(pid_t child)
{
	int status;

	if (child < 0)
		die("fork");
	if (waitpid(child, &status, 0) != child || status != 0)
		die("the child ended with status %#x", (unsigned)status);
}

/* A child that dies with us. */
static inline pid_t fork_peer(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Sends back what it gets until the stream ends, or a datagram is empty. */
static inline _Noreturn void echo(int in, int out, size_t size)
{
	static char bytes[KT_MESSAGE];

	while (get_all(in, bytes, size))
		put_all(out, bytes, size);
	_exit(0);
}

static inline void exchange(size_t size)
{
	put_all(kt_out, kt_message, size);
	if (!get_all(kt_in, kt_message, size))
		die("the peer is gone");
}

/* Two pipes to a process that echoes messages of row->size bytes. */
static inline void echo_pipe_begin(const struct kt_row *row)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		close_all(there[1], back[0]);
		echo(there[0], back[1], row->size);
	}
	close_all(there[0], back[1]);
	kt_out = there[1];
	kt_in = back[0];
}

static inline void exchange_one(const struct kt_row *row)
{
	exchange(row->size);
}

/* Closing ends the peer's stream. */
static inline void peer_end(const struct kt_row *row)
{
	(void)row;
	close_all(kt_in, kt_out);
	wait_child(kt_peer);
}

/* Writes to ourselves: what is written to kt_out is read from kt_in by the same process. */
static inline void self_pipe_begin(const struct kt_row *row)
{
	int ends[2];

	(void)row;
	if (pipe(ends) < 0)
		die("pipe");
	kt_in = ends[0];
	kt_out = ends[1];
}

static inline void self_pair_begin(int kind)
{
	int ends[2];

	if (socketpair(AF_UNIX, kind, 0, ends) < 0)
		die("socketpair");
	kt_in = ends[0];
	kt_out = ends[1];
}

static inline void self_end(const struct kt_row *row)
{
	(void)row;
	close_all(kt_in, kt_out);
}

static inline void fork_exit_one(const struct kt_row *row)
{
	pid_t child = fork();

	(void)row;
	if (child == 0)
		_exit(0);
	wait_child(child);
}

static inline void vfork_exit_one(const struct kt_row *row)
{
	pid_t child = vfork();

	(void)row;
	if (child == 0)
		_exit(0);
	wait_child(child);
}

/* Executes ourselves with these arguments and environment. */
static inline void exec_one(int by_vfork, char **arguments, char **environment)
{
	pid_t child = by_vfork ? vfork() : fork();

	if (child == 0) {
		execve(kt_self, arguments, environment);
		_exit(1);
	}
	wait_child(child);
}

static inline int open_new(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		die("open %s", path);
	return fd;
}

#endif
