/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * mckusick: an aggregate of system services in variations, after the kernel tests that 4.2BSD was
 * measured with (Leffler, Karels, McKusick, "Measuring and Improving the Performance of 4.2BSD", 1984):
 * system calls, signals and switches, messages to ourselves, to a process that discards them and to one
 * that sends them back, over pipes and datagram sockets; fork, vfork and exec of a small and a big job
 * by a process with more or less memory; and files. Arguments and output: kt_suite.h; what differs from
 * those tests: docs/suites.md.
 *
 * The aggregate is the sum of all rows.
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/mckusick.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#define BIG_JOB (256 * 1024) /* bytes that the big job touches before it exits */
#define BYTES(text) #text #text #text #text #text #text #text #text

/* ---- system calls ---- */

static void syscall_one(const struct kt_row *row)
{
	(void)row;
	syscall(SYS_getpid);
}

/* Ten of the calls that cost little besides entering the kernel. */
static void syscall_mix_one(const struct kt_row *row)
{
	struct stat status;
	int copy;

	(void)row;
	syscall(SYS_getppid);
	syscall(SYS_getuid);
	syscall(SYS_getgid);
	if (umask(022) != 022)
		die("umask");
	copy = dup(kt_in);
	if (copy < 0 || fcntl(copy, F_GETFD) < 0 || lseek(copy, 0, SEEK_SET) != 0 || close(copy) < 0)
		die("dup, fcntl, lseek, close");
	if (fstat(kt_in, &status) < 0 || access(kt_dir, R_OK) < 0)
		die("fstat, access");
}

static void syscall_mix_begin(const struct kt_row *row)
{
	(void)row;
	umask(022);
	kt_in = kt_out = open_new(kt_path("mix"));
}

static void remove_end(const struct kt_row *row)
{
	(void)row;
	if (close(kt_in) < 0 || unlink(kt_path("mix")) < 0)
		die("remove");
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;
static sigset_t none;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* Blocked but while we wait for it, so that none arrives before we do. */
static void signal_begin(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t blocked;

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	if (sigaction(SIGUSR1, &action, NULL) < 0 || sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
		die("sigaction");
	signals = 0;
}

static void await_signal(void)
{
	while (signals == 0)
		sigsuspend(&none);
	signals = 0;
}

static void csw_begin(const struct kt_row *row)
{
	pid_t other = getpid();

	(void)row;
	signal_begin();
	kt_peer = fork_peer();
	while (kt_peer == 0) {
		await_signal();
		if (kill(other, SIGUSR1) < 0)
			die("kill");
	}
}

static void csw_one(const struct kt_row *row)
{
	(void)row;
	if (kill(kt_peer, SIGUSR1) < 0)
		die("kill");
	await_signal();
}

static void csw_end(const struct kt_row *row)
{
	int status;

	(void)row;
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (kill(kt_peer, SIGKILL) < 0 || waitpid(kt_peer, &status, 0) != kt_peer)
		die("end of the peer");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("the peer ended with status %#x", (unsigned)status);
}

static void signocsw_begin(const struct kt_row *row)
{
	(void)row;
	signal_begin();
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void signocsw_one(const struct kt_row *row)
{
	(void)row;
	signals = 0;
	if (kill(getpid(), SIGUSR1) < 0 || signals != 1)
		die("kill of ourselves");
}

/* ---- messages ---- */

static void self_datagram_begin(const struct kt_row *row)
{
	(void)row;
	self_pair_begin(SOCK_DGRAM);
}

/* A process that reads until the end and then says so; kt_in is where it says it. */
static void start_discard(int in, int close_too)
{
	static char bytes[512];
	int done[2];
	ssize_t size;

	if (pipe(done) < 0)
		die("pipe");
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		close_all(done[0], close_too);
		while ((size = read(in, bytes, sizeof(bytes))) > 0)
			;
		if (size < 0)
			die("read");
		put_all(done[1], "k", 1);
		_exit(0);
	}
	close_all(in, done[1]);
	kt_in = done[0];
}

static void discard_pipe_begin(const struct kt_row *row)
{
	int ends[2];

	(void)row;
	if (pipe(ends) < 0)
		die("pipe");
	start_discard(ends[0], ends[1]);
	kt_out = ends[1];
}

static void discard_datagram_begin(const struct kt_row *row)
{
	int ends[2];

	(void)row;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
		die("socketpair");
	start_discard(ends[0], ends[1]);
	kt_out = ends[1];
}

static void discard_one(const struct kt_row *row)
{
	put_all(kt_out, kt_message, row->size);
}

/* All of it has been read when the answer comes. */
static void discard_pipe_finish(const struct kt_row *row)
{
	char byte;

	(void)row;
	if (close(kt_out) < 0)
		die("close");
	if (!get_all(kt_in, &byte, 1))
		die("the peer is gone");
	kt_out = kt_in;
}

static void discard_datagram_finish(const struct kt_row *row)
{
	char byte;

	(void)row;
	if (send(kt_out, kt_message, 0, 0) < 0)
		die("send");
	if (!get_all(kt_in, &byte, 1))
		die("the peer is gone");
}

static void echo_datagram_begin(const struct kt_row *row)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
		die("socketpair");
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		close_all(ends[0], ends[0]);
		echo(ends[1], ends[1], row->size);
	}
	close_all(ends[1], ends[1]);
	kt_in = kt_out = ends[0];
}

static void echo_datagram_end(const struct kt_row *row)
{
	/* An empty datagram reads as the end of the stream. */
	if (send(kt_out, kt_message, 0, 0) < 0)
		die("send");
	peer_end(row);
}

/* ---- processes ---- */

/* row->size bytes more of memory, touched, so that fork has them to copy and exec to free. */
static void memory_begin(const struct kt_row *row)
{
	char *start = sbrk((intptr_t)row->size);

	if (start == (void *)-1)
		die("sbrk");
	memset(start, 'k', row->size);
}

static void memory_end(const struct kt_row *row)
{
	if (sbrk(-(intptr_t)row->size) == (void *)-1)
		die("sbrk");
}

static char *no_environment[] = { NULL };
static char environment_bytes[] = "KT=" BYTES(0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef)
	BYTES(0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef);
static char *kilobyte_environment[] = { environment_bytes, NULL };
static char null_job[] = "--exit", big_job[] = "--big";

static void exec_job(int by_vfork, char *job, char **environment)
{
	char *arguments[] = { kt_self, job, NULL };

	exec_one(by_vfork, arguments, environment);
}

static void execs_null_one(const struct kt_row *row)
{
	(void)row;
	exec_job(0, null_job, no_environment);
}

static void execs_big_one(const struct kt_row *row)
{
	(void)row;
	exec_job(0, big_job, no_environment);
}

static void vexecs_null_one(const struct kt_row *row)
{
	(void)row;
	exec_job(1, null_job, no_environment);
}

static void vexecs_big_one(const struct kt_row *row)
{
	(void)row;
	exec_job(1, big_job, no_environment);
}

static void execs_null_env_one(const struct kt_row *row)
{
	(void)row;
	exec_job(0, null_job, kilobyte_environment);
}

static void execs_big_env_one(const struct kt_row *row)
{
	(void)row;
	exec_job(0, big_job, kilobyte_environment);
}

static int job(int argc, char **argv)
{
	static volatile char bytes[BIG_JOB];

	if (argc != 2 || (strcmp(argv[1], null_job) != 0 && strcmp(argv[1], big_job) != 0))
		return -1;
	if (strcmp(argv[1], big_job) == 0)
		for (size_t at = 0; at < sizeof(bytes); at += 4096)
			bytes[at] = 1;
	return 0;
}

/* ---- files ---- */

static char from[128], to[128];

static void files_begin(const struct kt_row *row)
{
	(void)row;
	snprintf(from, sizeof(from), "%s/from", kt_dir);
	snprintf(to, sizeof(to), "%s/to", kt_dir);
}

/* Make a file, write it, look at it, read it, give it another name, remove it. */
static void files_one(const struct kt_row *row)
{
	static char bytes[64 * 1024];
	struct stat status;
	int fd = open_new(from);

	put_all(fd, bytes, row->size);
	if (close(fd) < 0 || stat(from, &status) < 0)
		die("close, stat");
	fd = open(from, O_RDONLY);
	if (fd < 0 || !get_all(fd, bytes, row->size) || close(fd) < 0)
		die("read of %s", from);
	if (rename(from, to) < 0 || unlink(to) < 0)
		die("rename, unlink");
}

#define PIPE_ROWS(bytes)                                                                                 \
	{ .name = "pipeself_" #bytes, .operations = 2400, .size = bytes, .begin = self_pipe_begin,       \
	  .one = exchange_one, .end = self_end },                                                        \
	{ .name = "udgself_" #bytes, .operations = 1200, .size = bytes, .begin = self_datagram_begin,    \
	  .one = exchange_one, .end = self_end },                                                        \
	{ .name = "pipediscard_" #bytes, .operations = 3000, .size = bytes,                              \
	  .begin = discard_pipe_begin, .one = discard_one, .finish = discard_pipe_finish,                \
	  .end = peer_end },                                                                             \
	{ .name = "udgdiscard_" #bytes, .operations = 1200, .size = bytes,                               \
	  .begin = discard_datagram_begin, .one = discard_one, .finish = discard_datagram_finish,        \
	  .end = peer_end },                                                                             \
	{ .name = "pipeback_" #bytes, .operations = 800, .size = bytes, .begin = echo_pipe_begin,        \
	  .one = exchange_one, .end = peer_end },                                                        \
	{ .name = "udgback_" #bytes, .operations = 500, .size = bytes, .begin = echo_datagram_begin,     \
	  .one = exchange_one, .end = echo_datagram_end }

#define PROCESS_ROW(what, function, memory, bytes, count)                                                \
	{ .name = what "_" memory, .operations = count, .size = bytes, .warm_up = 4,                     \
	  .begin = memory_begin, .one = function, .end = memory_end }
#define PROCESS_ROWS(what, function, count)                                                              \
	PROCESS_ROW(what, function, "0", 0, count), PROCESS_ROW(what, function, "1K", 1024, count),      \
		PROCESS_ROW(what, function, "100K", 102400, count)

static const struct kt_row rows[] = {
	{ .name = "syscall", .operations = 16000, .one = syscall_one },
	{ .name = "syscall_mix", .operations = 800, .begin = syscall_mix_begin, .one = syscall_mix_one,
	  .end = remove_end },
	{ .name = "csw", .operations = 500, .begin = csw_begin, .one = csw_one, .end = csw_end },
	{ .name = "signocsw", .operations = 1600, .begin = signocsw_begin, .one = signocsw_one },
	PIPE_ROWS(4),
	PIPE_ROWS(512),
	PROCESS_ROWS("forks", fork_exit_one, 40),
	PROCESS_ROWS("vforks", vfork_exit_one, 60),
	PROCESS_ROWS("execs_null", execs_null_one, 20),
	PROCESS_ROWS("execs_big", execs_big_one, 12),
	PROCESS_ROWS("vexecs_null", vexecs_null_one, 20),
	PROCESS_ROWS("vexecs_big", vexecs_big_one, 12),
	PROCESS_ROW("execs_null_env", execs_null_env_one, "0", 0, 20),
	PROCESS_ROW("execs_big_env", execs_big_env_one, "0", 0, 12),
	{ .name = "files_1K", .operations = 150, .size = 1024, .begin = files_begin, .one = files_one },
	{ .name = "files_64K", .operations = 60, .size = 64 * 1024, .begin = files_begin,
	  .one = files_one },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "mckusick", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]),
					       .aggregate = 1, .child = job };

	return kt_main(&suite, argc, argv);
}
