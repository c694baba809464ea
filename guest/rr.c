/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * rr: request/response and micro-operation benchmark. Each row is one operation repeated a fixed
 * number of times between marks; the same arguments do exactly the same work.
 *
 *   rr [--scale X] [--only ROW,ROW…] [--order listed|reversed|shuffled] [--seed N] [--list]
 *
 * Sockets, peers and files are set up, and a few operations done, before a row's region begins, so
 * that the region holds nothing but the operations. Results are printed after the last row, one JSON
 * line each: {"row":"tcp_rr","operations":800,"nanoseconds":N} (guest time of the region).
 * Talks to: the recorder by marks (kt_mark.h); crates/guest `workloads/rr.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 16         /* operations before the region */
#define PIPE_BYTES 20      /* McRae's and Chen's message */
#define PAGE 4096
#define CACHED_PAGES 64    /* of the file that is read and written */
#define STAT_FILES 16

static char self[512];      /* our own path, for exec */
static char dir[64];        /* scratch, on tmpfs in the guest */
static unsigned long random_state;

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *format, ...)
{
	int error = errno;
	va_list list;

	fputs("rr: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}

/* xorshift64*: the same seed gives the same work. */
static unsigned long next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717UL;
}

/* ---- a row: begin() sets up, one() does an operation, end() cleans up ---- */

static int ours = -1, theirs = -1; /* our two ends; the same for a socket */
static pid_t peer;
static char message[PAGE];

static void put_all(int fd, const char *bytes, size_t size)
{
	ssize_t done = write(fd, bytes, size);

	if (done != (ssize_t)size)
		die("write of %zu bytes gave %zd", size, done);
}

/* False at the end of the stream. */
static int get_all(int fd, char *bytes, size_t size)
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

/* A second process that sends back what it gets until the stream ends. */
static void start_echo(int in, int out, size_t size, int close1, int close2)
{
	char bytes[64];

	peer = fork();
	if (peer < 0)
		die("fork");
	if (peer > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(close1);
	if (close2 != close1)
		close(close2);
	while (get_all(in, bytes, size))
		put_all(out, bytes, size);
	_exit(0);
}

static void end_peer(void)
{
	int status;

	close(ours);
	if (theirs != ours)
		close(theirs);
	if (waitpid(peer, &status, 0) != peer || status != 0)
		die("the peer ended with status %#x", (unsigned)status);
}

static void tcp_begin(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0), accepted;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (server < 0 || bind(server, (struct sockaddr *)&address, size) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (struct sockaddr *)&address, &size) < 0)
		die("tcp server socket");
	ours = theirs = socket(AF_INET, SOCK_STREAM, 0);
	if (ours < 0 || connect(ours, (struct sockaddr *)&address, size) < 0)
		die("tcp connect");
	accepted = accept(server, NULL, NULL);
	if (accepted < 0)
		die("accept");
	if (setsockopt(ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		die("TCP_NODELAY");
	start_echo(accepted, accepted, 1, ours, server);
	close(accepted);
	close(server);
}

static void byte_one(void)
{
	put_all(theirs, message, 1);
	if (!get_all(ours, message, 1))
		die("the peer is gone");
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

static void udp_begin(void)
{
	struct sockaddr_in a, b;
	int other;

	ours = theirs = udp_socket(&a);
	other = udp_socket(&b);
	if (connect(ours, (struct sockaddr *)&b, sizeof(b)) < 0 ||
	    connect(other, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("udp connect");
	start_echo(other, other, 1, ours, ours);
	close(other);
}

static void udp_end(void)
{
	/* An empty datagram reads as the end of the stream. */
	if (send(ours, message, 0, 0) < 0)
		die("send");
	end_peer();
}

static void pipe_begin(void)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	start_echo(there[0], back[1], PIPE_BYTES, there[1], back[0]);
	close(there[0]);
	close(back[1]);
	theirs = there[1];
	ours = back[0];
}

static void pipe_one(void)
{
	put_all(theirs, message, PIPE_BYTES);
	if (!get_all(ours, message, PIPE_BYTES))
		die("the peer is gone");
}

static void socketpair_begin(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		die("socketpair");
	start_echo(pair[1], pair[1], 1, pair[0], pair[0]);
	close(pair[1]);
	ours = theirs = pair[0];
}

static void wait_child(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status != 0)
		die("the child ended with status %#x", (unsigned)status);
}

static void fork_exit_one(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0)
		_exit(0);
	wait_child(child);
}

static void fork_exec_one(void)
{
	static char exit_now[] = "--exit";
	char *command[] = { self, exit_now, NULL }, *empty[] = { NULL };
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0) {
		execve(self, command, empty);
		_exit(1);
	}
	wait_child(child);
}

static char file[128];
static unsigned long created;

static void creat_begin(void)
{
	created = 0;
}

static void creat_one(void)
{
	int fd;

	snprintf(file, sizeof(file), "%s/c%lu", dir, created++);
	fd = creat(file, 0600);
	if (fd < 0)
		die("creat %s", file);
	if (close(fd) < 0)
		die("close");
}

static void creat_end(void)
{
	while (created > 0) {
		snprintf(file, sizeof(file), "%s/c%lu", dir, --created);
		if (unlink(file) < 0)
			die("unlink %s", file);
	}
}

static char stat_file[STAT_FILES][128];

static void stat_begin(void)
{
	for (int i = 0; i < STAT_FILES; i++) {
		int fd;

		snprintf(stat_file[i], sizeof(stat_file[i]), "%s/s%d", dir, i);
		fd = creat(stat_file[i], 0600);
		if (fd < 0 || close(fd) < 0)
			die("creat %s", stat_file[i]);
	}
}

static void stat_one(void)
{
	struct stat status;

	if (stat(stat_file[next_random() % STAT_FILES], &status) < 0)
		die("stat");
}

static void stat_end(void)
{
	for (int i = 0; i < STAT_FILES; i++)
		if (unlink(stat_file[i]) < 0)
			die("unlink %s", stat_file[i]);
}

static void cached_begin(void)
{
	snprintf(file, sizeof(file), "%s/cached", dir);
	ours = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (ours < 0)
		die("open %s", file);
	for (int i = 0; i < CACHED_PAGES; i++)
		put_all(ours, message, PAGE);
}

static void read_one(void)
{
	if (pread(ours, message, PAGE, (off_t)(next_random() % CACHED_PAGES) * PAGE) != PAGE)
		die("pread");
}

static void write_one(void)
{
	if (pwrite(ours, message, PAGE, (off_t)(next_random() % CACHED_PAGES) * PAGE) != PAGE)
		die("pwrite");
}

static void cached_end(void)
{
	if (close(ours) < 0 || unlink(file) < 0)
		die("remove %s", file);
}

static void getpid_one(void)
{
	syscall(SYS_getpid);
}

static void nothing(void)
{
}

/* `operations` at scale 1: about 5 to 20 million kernel instructions each. */
static const struct row {
	const char *name;
	unsigned long operations;
	void (*begin)(void), (*one)(void), (*end)(void);
} rows[] = {
	{ "tcp_rr", 1000, tcp_begin, byte_one, end_peer },
	{ "udp_rr", 1000, udp_begin, byte_one, udp_end },
	{ "pipe_rr", 2500, pipe_begin, pipe_one, end_peer },
	{ "socketpair_rr", 1500, socketpair_begin, byte_one, end_peer },
	{ "fork_exit", 100, nothing, fork_exit_one, nothing },
	{ "fork_exec", 30, nothing, fork_exec_one, nothing },
	{ "creat_close", 2000, creat_begin, creat_one, creat_end },
	{ "stat", 6000, stat_begin, stat_one, stat_end },
	{ "read_cached", 4000, cached_begin, read_one, cached_end },
	{ "write_cached", 4000, cached_begin, write_one, cached_end },
	{ "getpid", 40000, nothing, getpid_one, nothing },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct result {
	const struct row *row;
	unsigned long operations;
	long long nanoseconds;
};

static long long clock_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_MONOTONIC, &time) < 0)
		die("clock_gettime");
	return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct result run(const struct row *row, double scale)
{
	struct result result = { .row = row };
	double wanted = (double)row->operations * scale;
	long long start;

	result.operations = wanted < 1 ? 1 : (unsigned long)wanted;
	row->begin();
	for (int i = 0; i < WARM_UP; i++)
		row->one();
	start = clock_ns();
	kt_begin(row->name);
	for (unsigned long i = 0; i < result.operations; i++) {
		row->one();
		kt_op();
	}
	kt_end(row->name, result.operations);
	result.nanoseconds = clock_ns() - start;
	row->end();
	return result;
}

/* ---- arguments ---- */

static const struct row *find_row(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	fprintf(stderr, "rr: there is no row \"%s\"; `rr --list` shows them\n", name);
	exit(2);
}

static size_t choose(char *only, const struct row **chosen)
{
	size_t count = 0;
	char *rest, *name;

	if (!only) {
		for (; count < ROWS; count++)
			chosen[count] = &rows[count];
		return count;
	}
	for (name = strtok_r(only, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		const struct row *row = find_row(name);

		for (size_t i = 0; i < count; i++) {
			if (chosen[i] == row) {
				fprintf(stderr, "rr: --only names %s twice\n", name);
				exit(2);
			}
		}
		chosen[count++] = row;
	}
	return count;
}

static void swap(const struct row **a, const struct row **b)
{
	const struct row *kept = *a;

	*a = *b;
	*b = kept;
}

static void reorder(const char *order, const struct row **chosen, size_t count)
{
	if (strcmp(order, "reversed") == 0) {
		for (size_t i = 0; i < count / 2; i++)
			swap(&chosen[i], &chosen[count - 1 - i]);
	} else if (strcmp(order, "shuffled") == 0) {
		for (size_t i = count; i > 1; i--)
			swap(&chosen[i - 1], &chosen[next_random() % i]);
	} else if (strcmp(order, "listed") != 0) {
		fprintf(stderr, "rr: --order is listed, reversed or shuffled, not \"%s\"\n", order);
		exit(2);
	}
}

static double read_scale(const char *text)
{
	char *rest;
	double scale = strtod(text, &rest);

	if (rest == text || *rest || !(scale > 0 && scale <= 1e6)) {
		fprintf(stderr, "rr: --scale is a number above 0 and up to 1e6, not \"%s\"\n", text);
		exit(2);
	}
	return scale;
}

static unsigned long read_seed(const char *text)
{
	char *rest;
	unsigned long seed;

	errno = 0;
	seed = strtoul(text, &rest, 10);
	if (rest == text || *rest || errno || *text == '-') {
		fprintf(stderr, "rr: --seed is a whole number, not \"%s\"\n", text);
		exit(2);
	}
	return seed;
}

int main(int argc, char **argv)
{
	const struct row *chosen[ROWS];
	struct result results[ROWS];
	const char *order = "listed";
	unsigned long seed = 1;
	double scale = 1;
	char *only = NULL;
	ssize_t length;
	size_t count;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--exit") == 0)
			return 0; /* what fork_exec executes */
		if (strcmp(argv[i], "--list") == 0) {
			for (size_t row = 0; row < ROWS; row++)
				printf("%s\t%lu\n", rows[row].name, rows[row].operations);
			return 0;
		}
		if (i + 1 < argc && strcmp(argv[i], "--scale") == 0) {
			scale = read_scale(argv[++i]);
		} else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
			only = argv[++i];
		} else if (i + 1 < argc && strcmp(argv[i], "--order") == 0) {
			order = argv[++i];
		} else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
			seed = read_seed(argv[++i]);
		} else {
			fprintf(stderr,
				"rr: cannot use \"%s\"\nusage: rr [--scale X] [--only ROW,ROW...] "
				"[--order listed|reversed|shuffled] [--seed N] [--list]\n",
				argv[i]);
			return 2;
		}
	}
	random_state = (seed * 0x9e3779b97f4a7c15UL) | 1; /* never 0 */
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		die("readlink /proc/self/exe");
	self[length] = '\0';
	/* One name for one process: two runs must do the same. */
	snprintf(dir, sizeof(dir), "/tmp/rr.%d", getpid());
	if (mkdir(dir, 0700) < 0)
		die("mkdir %s", dir);
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (char)next_random();
	count = choose(only, chosen);
	reorder(order, chosen, count);
	for (size_t i = 0; i < count; i++)
		results[i] = run(chosen[i], scale);
	if (rmdir(dir) < 0)
		die("rmdir %s", dir);
	for (size_t i = 0; i < count; i++)
		printf("{\"row\":\"%s\",\"operations\":%lu,\"nanoseconds\":%lld}\n", results[i].row->name,
		       results[i].operations, results[i].nanoseconds);
	return fflush(stdout) == 0 ? 0 : 1;
}
