/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * kbx: the 26 rows of the KBX kernel benchmark as the table of Speer, Kumar and Partridge has them, in
 * the order of the table. Arguments and output: kt_suite.h; what differs from the table: docs/suites.md.
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/kbx.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <termio.h>

#define ARGUMENTS 1000
#define FILE_BYTES (1024 * 1024)

static void getpid_one(const struct kt_row *row)
{
	(void)row;
	syscall(SYS_getpid);
}

/* ---- a terminal ---- */

static void terminal_begin(const struct kt_row *row)
{
	(void)row;
	kt_out = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	if (kt_out < 0 || unlockpt(kt_out) < 0)
		die("open /dev/ptmx");
	kt_in = ioctl(kt_out, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (kt_in < 0)
		die("TIOCGPTPEER");
}

static const char *terminal_missing(void)
{
	static char reason[80];
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	snprintf(reason, sizeof(reason), "/dev/ptmx cannot be opened: %s", strerror(errno));
	return reason;
}

static void ioctl_one(const struct kt_row *row)
{
	struct termio settings;

	(void)row;
	if (ioctl(kt_in, TCGETA, &settings) < 0)
		die("TCGETA");
}

/* ---- small calls; libc or the vDSO would answer without the kernel ---- */

static void gettimeofday_one(const struct kt_row *row)
{
	struct timeval time;

	(void)row;
	if (syscall(SYS_gettimeofday, &time, NULL) < 0)
		die("gettimeofday");
}

static void sbrk_one(const struct kt_row *row)
{
	(void)row;
	if (syscall(SYS_brk, 0) <= 0)
		die("brk");
}

static void umask_one(const struct kt_row *row)
{
	(void)row;
	umask(0);
}

static void umask_end(const struct kt_row *row)
{
	(void)row;
	umask(022);
}

/* ---- files ---- */

static const char *temp; /* made before the region: an operation is to be the kernel's work */

static void creat_begin(const struct kt_row *row)
{
	(void)row;
	temp = kt_path("temp");
}

static void creat_one(const struct kt_row *row)
{
	int fd = creat(temp, 0777);

	(void)row;
	if (fd < 0)
		die("creat");
	if (close(fd) < 0)
		die("close");
}

static void creat_end(const struct kt_row *row)
{
	(void)row;
	if (unlink(temp) < 0)
		die("unlink");
}

static void read_begin(const struct kt_row *row)
{
	creat_begin(row);
	kt_in = kt_out = open_new(temp);
	for (size_t size = 0; size < FILE_BYTES; size += KT_MESSAGE)
		put_all(kt_in, kt_message, KT_MESSAGE);
	if (lseek(kt_in, 0, SEEK_SET) != 0)
		die("lseek");
}

/* Where the file ends it begins again: once in FILE_BYTES / row->size operations. */
static void read_one(const struct kt_row *row)
{
	ssize_t size = read(kt_in, kt_message, row->size);

	if (size >= 0 && size < (ssize_t)row->size && lseek(kt_in, 0, SEEK_SET) == 0)
		size = read(kt_in, kt_message, row->size);
	if (size != (ssize_t)row->size)
		die("read gave %zd", size);
}

static void read_end(const struct kt_row *row)
{
	close_all(kt_in, kt_in);
	creat_end(row);
}

static void pipe_close_one(const struct kt_row *row)
{
	int ends[2];

	(void)row;
	if (pipe(ends) < 0)
		die("pipe");
	close_all(ends[0], ends[1]);
}

/* ---- processes ---- */

static char *few[] = { kt_self, "--exit", NULL };
static char *many[ARGUMENTS + 1], *environment[] = { NULL };

static void exec_begin(const struct kt_row *row)
{
	(void)row;
	many[0] = kt_self;
	many[1] = "--exit";
	for (size_t at = 2; at < ARGUMENTS; at++)
		many[at] = "argument";
}

static void fork_exec_one(const struct kt_row *row)
{
	(void)row;
	exec_one(0, few, environment);
}

static void fork_exec_many_one(const struct kt_row *row)
{
	(void)row;
	exec_one(0, many, environment);
}

static void vfork_exec_one(const struct kt_row *row)
{
	(void)row;
	exec_one(1, few, environment);
}

static void vfork_exec_many_one(const struct kt_row *row)
{
	(void)row;
	exec_one(1, many, environment);
}

static int exit_now(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "--exit") == 0 ? 0 : -1;
}

/* ---- sockets to ourselves ---- */

static void inet_begin(const struct kt_row *row)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);

	(void)row;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (server < 0 || bind(server, (struct sockaddr *)&address, size) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (struct sockaddr *)&address, &size) < 0)
		die("tcp server socket");
	kt_out = socket(AF_INET, SOCK_STREAM, 0);
	if (kt_out < 0 || connect(kt_out, (struct sockaddr *)&address, size) < 0)
		die("tcp connect");
	kt_in = accept(server, NULL, NULL);
	if (kt_in < 0 || close(server) < 0)
		die("accept");
	if (setsockopt(kt_out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		die("TCP_NODELAY");
}

static void unix_begin(const struct kt_row *row)
{
	(void)row;
	self_pair_begin(SOCK_STREAM);
}

#define MESSAGES(what, begins, one_of, ends, small, medium, large)                                       \
	{ .name = what "_20", .operations = small, .size = 20, .begin = begins, .one = one_of,           \
	  .end = ends },                                                                                 \
	{ .name = what "_1024", .operations = medium, .size = 1024, .begin = begins, .one = one_of,      \
	  .end = ends },                                                                                 \
	{ .name = what "_8192", .operations = large, .size = 8192, .begin = begins, .one = one_of,       \
	  .end = ends }
#define EXEC(what, function)                                                                             \
	{ .name = what, .operations = 25, .warm_up = 4, .begin = exec_begin, .one = function }

static const struct kt_row rows[] = {
	{ .name = "getpid", .operations = 30000, .one = getpid_one },
	{ .name = "ioctl_tcgeta", .operations = 8000, .needs = "CONFIG_UNIX98_PTYS",
	  .missing = terminal_missing, .begin = terminal_begin, .one = ioctl_one, .end = self_end },
	{ .name = "gettimeofday", .operations = 10000, .one = gettimeofday_one },
	{ .name = "sbrk", .operations = 15000, .one = sbrk_one },
	{ .name = "umask", .operations = 30000, .one = umask_one, .end = umask_end },
	{ .name = "pipe_switch_20", .operations = 1000, .size = 20, .begin = echo_pipe_begin,
	  .one = exchange_one, .end = peer_end },
	MESSAGES("pipe", self_pipe_begin, exchange_one, self_end, 4000, 3000, 1500),
	{ .name = "creat_close", .operations = 2000, .begin = creat_begin, .one = creat_one,
	  .end = creat_end },
	{ .name = "pipe_close", .operations = 600, .one = pipe_close_one },
	{ .name = "fork_exit", .operations = 50, .one = fork_exit_one },
	{ .name = "vfork_exit", .operations = 80, .one = vfork_exit_one },
	EXEC("fork_exec", fork_exec_one),
	EXEC("fork_exec_args1000", fork_exec_many_one),
	EXEC("vfork_exec", vfork_exec_one),
	EXEC("vfork_exec_args1000", vfork_exec_many_one),
	MESSAGES("file_read", read_begin, read_one, read_end, 8000, 8000, 3000),
	MESSAGES("inet_socket", inet_begin, exchange_one, self_end, 600, 600, 300),
	MESSAGES("unix_socket", unix_begin, exchange_one, self_end, 1500, 1500, 700),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "kbx", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]), .child = exit_now };

	return kt_main(&suite, argc, argv);
}
