/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * rr: request/response and micro-operations, in the frame of kt_suite.h, which has the arguments.
 * Talks to: kt_suite.h; crates/guest `data/workloads/rr.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_suite.h"
#include "kt_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#define PIPE_BYTES 20      /* McRae's and Chen's message */
#define PAGE 4096
#define CACHED_PAGES 64    /* of the file that is read and written */
#define STAT_FILES 16

/* ---- round trips with a second process that sends back what it gets ---- */

/* `theirs` is the other process's end of what kt_in and kt_out are; `other` is nobody's from here on, or -1. */
static void start_echo(const struct kt_row *row, int theirs, int other)
{
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		close_all(kt_in, other < 0 ? kt_in : other);
		echo(theirs, theirs, row->size);
	}
	close_all(theirs, other < 0 ? theirs : other);
}

static void tcp_begin(const struct kt_row *row)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0), accepted;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (server < 0 || bind(server, (struct sockaddr *)&address, size) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (struct sockaddr *)&address, &size) < 0)
		die("tcp server socket");
	kt_in = kt_out = socket(AF_INET, SOCK_STREAM, 0);
	if (kt_in < 0 || connect(kt_in, (struct sockaddr *)&address, size) < 0)
		die("tcp connect");
	accepted = accept(server, NULL, NULL);
	if (accepted < 0)
		die("accept");
	if (setsockopt(kt_in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		die("TCP_NODELAY");
	start_echo(row, accepted, server);
}

static int udp_socket(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &size) < 0)
		die("udp socket");
	return fd;
}

static void udp_begin(const struct kt_row *row)
{
	struct sockaddr_in a, b;
	int theirs;

	kt_in = kt_out = udp_socket(&a);
	theirs = udp_socket(&b);
	if (connect(kt_in, (struct sockaddr *)&b, sizeof(b)) < 0 ||
	    connect(theirs, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("udp connect");
	start_echo(row, theirs, -1);
}

static void udp_end(const struct kt_row *row)
{
	/* An empty datagram reads as the end of the stream. */
	if (send(kt_out, kt_message, 0, 0) < 0)
		die("send");
	peer_end(row);
}

static void socketpair_begin(const struct kt_row *row)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		die("socketpair");
	kt_in = kt_out = pair[0];
	start_echo(row, pair[1], -1);
}

/* ---- processes ---- */

static void fork_exec_one(const struct kt_row *row)
{
	static char exit_now[] = "--exit";
	char *command[] = { kt_self, exit_now, NULL }, *empty[] = { NULL };

	(void)row;
	exec_one(0, command, empty);
}

/* What fork_exec executes. */
static int child(int argc, char **argv)
{
	(void)argc;
	return strcmp(argv[1], "--exit") == 0 ? 0 : -1;
}

/* ---- files ---- */

static unsigned long created;

static const char *numbered(char kind, unsigned long number)
{
	char name[32];

	snprintf(name, sizeof(name), "%c%lu", kind, number);
	return kt_path(name);
}

static void make_empty(const char *path)
{
	int fd = creat(path, 0600);

	if (fd < 0)
		die("creat %s", path);
	if (close(fd) < 0)
		die("close");
}

static void delete(const char *path)
{
	if (unlink(path) < 0)
		die("unlink %s", path);
}

static void creat_begin(const struct kt_row *row)
{
	(void)row;
	created = 0;
}

static void creat_one(const struct kt_row *row)
{
	(void)row;
	make_empty(numbered('c', created++));
}

static void creat_end(const struct kt_row *row)
{
	(void)row;
	while (created > 0)
		delete(numbered('c', --created));
}

static char stat_file[STAT_FILES][128];

static void stat_begin(const struct kt_row *row)
{
	(void)row;
	for (unsigned long i = 0; i < STAT_FILES; i++) {
		snprintf(stat_file[i], sizeof(stat_file[i]), "%s", numbered('s', i));
		make_empty(stat_file[i]);
	}
}

static void stat_one(const struct kt_row *row)
{
	struct stat status;

	(void)row;
	if (stat(stat_file[kt_random() % STAT_FILES], &status) < 0)
		die("stat");
}

static void stat_end(const struct kt_row *row)
{
	(void)row;
	for (int i = 0; i < STAT_FILES; i++)
		delete(stat_file[i]);
}

static void cached_begin(const struct kt_row *row)
{
	(void)row;
	kt_in = open_new(kt_path("cached"));
	for (int i = 0; i < CACHED_PAGES; i++)
		put_all(kt_in, kt_message, PAGE);
}

static off_t any_page(void)
{
	return (off_t)(kt_random() % CACHED_PAGES) * PAGE;
}

static void read_one(const struct kt_row *row)
{
	(void)row;
	if (pread(kt_in, kt_message, PAGE, any_page()) != PAGE)
		die("pread");
}

static void write_one(const struct kt_row *row)
{
	(void)row;
	if (pwrite(kt_in, kt_message, PAGE, any_page()) != PAGE)
		die("pwrite");
}

static void cached_end(const struct kt_row *row)
{
	(void)row;
	if (close(kt_in) < 0)
		die("close");
	delete(kt_path("cached"));
}

static void getpid_one(const struct kt_row *row)
{
	(void)row;
	syscall(SYS_getpid);
}

#define ROW(ROW_NAME, OPERATIONS, ...) { .name = ROW_NAME, .operations = OPERATIONS, __VA_ARGS__ }

/* `operations` at scale 1: about 5 to 20 million kernel instructions each. */
static const struct kt_row rows[] = {
	ROW("tcp_rr", 1000, .size = 1, .begin = tcp_begin, .one = exchange_one, .end = peer_end),
	ROW("udp_rr", 1000, .size = 1, .begin = udp_begin, .one = exchange_one, .end = udp_end),
	ROW("pipe_rr", 2500, .size = PIPE_BYTES, .begin = echo_pipe_begin, .one = exchange_one, .end = peer_end),
	ROW("socketpair_rr", 1500, .size = 1, .begin = socketpair_begin, .one = exchange_one, .end = peer_end),
	ROW("fork_exit", 100, .one = fork_exit_one),
	ROW("fork_exec", 30, .one = fork_exec_one),
	ROW("creat_close", 2000, .begin = creat_begin, .one = creat_one, .end = creat_end),
	ROW("stat", 6000, .begin = stat_begin, .one = stat_one, .end = stat_end),
	ROW("read_cached", 4000, .begin = cached_begin, .one = read_one, .end = cached_end),
	ROW("write_cached", 4000, .begin = cached_begin, .one = write_one, .end = cached_end),
	ROW("getpid", 40000, .one = getpid_one),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = {
		.name = "rr", .rows = rows, .count = sizeof(rows) / sizeof(rows[0]), .child = child,
	};

	return kt_main(&suite, argc, argv);
}
