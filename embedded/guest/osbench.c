/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * osbench: the rows of Ousterhout's OSBENCH as the table of Speer, Kumar and Partridge has them.
 * Arguments and output: kt_suite.h; what differs from the table: docs/suites.md.
 *
 * cwcor_SIZE   make a file, write SIZE bytes, close, open, read them, close, remove
 * cswitch      1 byte to a second process and back through two pipes: two switches
 * getpid       the smallest system call
 * open_close   open and close of a file that is there
 * read         16 KiB from a file in memory, one after the other
 * select_N_M   select of N pipes M of which can be read, without waiting
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/osbench.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <sys/select.h>

#define LARGEST (128 * 1024)
#define READ_BYTES (16 * 1024)
#define READ_FILE (1024 * 1024)
#define PIPES 15

static char bytes[LARGEST];
static const char *path; /* made before the region: an operation is to be the kernel's work */

static void cwcor_begin(const struct kt_row *row)
{
	(void)row;
	path = kt_path("cwcor");
}

static void cwcor_one(const struct kt_row *row)
{
	int fd = open_new(path);

	put_all(fd, bytes, row->size);
	close_all(fd, fd);
	fd = open(path, O_RDONLY);
	if (fd < 0 || !get_all(fd, bytes, row->size))
		die("read of %s", path);
	close_all(fd, fd);
	if (unlink(path) < 0)
		die("unlink %s", path);
}

static void getpid_one(const struct kt_row *row)
{
	(void)row;
	syscall(SYS_getpid);
}

static void file_begin(const struct kt_row *row)
{
	int fd;

	path = kt_path("file");
	fd = open_new(path);
	for (size_t size = 0; size < row->size; size += READ_BYTES)
		put_all(fd, bytes, READ_BYTES);
	close_all(fd, fd);
}

static void file_end(const struct kt_row *row)
{
	(void)row;
	if (unlink(path) < 0)
		die("unlink");
}

static void open_close_one(const struct kt_row *row)
{
	int fd = open(path, O_RDONLY);

	(void)row;
	if (fd < 0)
		die("open");
	close_all(fd, fd);
}

static void read_begin(const struct kt_row *row)
{
	file_begin(row);
	kt_in = kt_out = open(path, O_RDONLY);
	if (kt_in < 0)
		die("open");
}

/* At the end of the file it begins again. */
static void read_one(const struct kt_row *row)
{
	ssize_t size = read(kt_in, bytes, READ_BYTES);

	(void)row;
	if (size == 0 && lseek(kt_in, 0, SEEK_SET) == 0)
		size = read(kt_in, bytes, READ_BYTES);
	if (size != READ_BYTES)
		die("read gave %zd", size);
}

static void read_end(const struct kt_row *row)
{
	close_all(kt_in, kt_in);
	file_end(row);
}

/* ---- select ---- */

static int pipes[PIPES][2];

/* Both numbers of a row in its one size: the watched pipes times 100 and the readable ones. */
#define WATCHED(row) ((row)->size / 100)
#define READABLE(row) ((row)->size % 100)

static void select_begin(const struct kt_row *row)
{
	for (size_t i = 0; i < WATCHED(row); i++) {
		if (pipe(pipes[i]) < 0)
			die("pipe");
		if (i < READABLE(row))
			put_all(pipes[i][1], "k", 1);
	}
}

static void select_one(const struct kt_row *row)
{
	struct timeval now = { 0, 0 };
	int most = 0, count;
	fd_set set;

	FD_ZERO(&set);
	for (size_t i = 0; i < WATCHED(row); i++) {
		FD_SET(pipes[i][0], &set);
		if (pipes[i][0] > most)
			most = pipes[i][0];
	}
	count = select(most + 1, &set, NULL, NULL, &now);
	if (count != (int)READABLE(row))
		die("select says %d", count);
}

static void select_end(const struct kt_row *row)
{
	for (size_t i = 0; i < WATCHED(row); i++)
		close_all(pipes[i][0], pipes[i][1]);
}

#define CWCOR(kib, count)                                                                                \
	{ .name = "cwcor_" #kib "K", .operations = count, .size = kib * 1024, .begin = cwcor_begin,      \
	  .one = cwcor_one }
#define SELECT(n, m, count)                                                                              \
	{ .name = "select_" #n "_" #m, .operations = count, .size = n * 100 + m, .begin = select_begin,  \
	  .one = select_one, .end = select_end }

static const struct kt_row rows[] = {
	CWCOR(1, 600),
	CWCOR(4, 600),
	CWCOR(8, 400),
	CWCOR(16, 300),
	CWCOR(64, 100),
	CWCOR(128, 50),
	{ .name = "cswitch", .operations = 1500, .size = 1, .begin = echo_pipe_begin, .one = exchange_one,
	  .end = peer_end },
	{ .name = "getpid", .operations = 40000, .one = getpid_one },
	{ .name = "open_close", .operations = 2000, .begin = file_begin, .one = open_close_one,
	  .end = file_end },
	{ .name = "read", .operations = 1000, .size = READ_FILE, .bytes = READ_BYTES, .unit = "MB/s",
	  .begin = read_begin, .one = read_one, .end = read_end },
	SELECT(1, 0, 5000),
	SELECT(1, 1, 5000),
	SELECT(10, 0, 2000),
	SELECT(10, 5, 2000),
	SELECT(10, 10, 2000),
	SELECT(15, 0, 1500),
	SELECT(15, 5, 1500),
	SELECT(15, 10, 1500),
	SELECT(15, 15, 1500),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "osbench", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
