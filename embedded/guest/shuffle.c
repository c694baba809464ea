/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * shuffle: what a data job asks of the kernel, as MapReduce and its successors do it on a cluster of four nodes. Each node is a
 * process with a TCP port; records are those of TeraSort, a key of 10 bytes in 100. Arguments and output: kt_suite.h;
 * docs/suites.md.
 *
 * map    a task reads a split of the input, sorts it by partition and key, and writes it with an index beside it, both under
 *        names that only a whole file gets
 * fetch  a reducer gets a sorted part of a map's output from the node that made it (sendfile), and spills it to a file; the
 *        four nodes work at once, over a connection to each for every reducer
 * merge  a reducer merges the sorted parts of all maps into its output
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/shuffle.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/sendfile.h>

#define KEY 10
#define RECORD 100
#define SPLIT 640          /* records of a map task */
#define PARTS 4            /* partitions, one for each reducer */
#define NODES 4
#define MAPS 16            /* map m ran on node m % NODES */
#define PART_MAX (SPLIT * RECORD)
#define BUFFER 4096        /* of each input of a merge */
#define OUTPUT 65536

struct extent {
	off_t start;
	size_t size;
};

struct request {
	int map, part;
};

static char split[SPLIT * RECORD];
static const char *sorted[SPLIT];
static char output[OUTPUT];
static int input = -1;
static unsigned long task; /* the next map, or the next reducer */
static struct {
	in_port_t port;
	pid_t pid;
} nodes[NODES];

static const char *numbered(const char *name, unsigned long number)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s.%lu", kt_dir, name, number);
	return path;
}

/* A file gets the name by which others know it when it is whole. */
static void publish(const char *made, const char *name, unsigned long number)
{
	if (rename(kt_path(made), numbered(name, number)) < 0)
		die("rename %s", made);
}

static void remove_all(const char *name, unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		if (unlink(numbered(name, i)) < 0)
			die("unlink %s", numbered(name, i));
}

static int open_to_read(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die("open %s", path);
	return fd;
}

static void read_at(int fd, void *bytes, size_t size, off_t place)
{
	if (pread(fd, bytes, size, place) != (ssize_t)size)
		die("pread of %zu bytes", size);
}

/* ---- map ---- */

static int part_of(const char *record)
{
	return (unsigned char)record[KEY - 1] % PARTS;
}

static int by_part_and_key(const void *a, const void *b)
{
	const char *left = *(const char *const *)a, *right = *(const char *const *)b;
	int parts = part_of(left) - part_of(right);

	return parts ? parts : memcmp(left, right, KEY);
}

static void make_input(void)
{
	input = open_new(kt_path("input"));
	for (int map = 0; map < MAPS; map++) {
		for (size_t i = 0; i < sizeof(split); i++)
			split[i] = (char)(kt_random() >> 32);
		put_all(input, split, sizeof(split));
	}
}

static void map_one(const struct kt_row *row)
{
	unsigned long map = task++ % MAPS;
	struct extent index[PARTS] = { { 0, 0 } };
	int out = open_new(kt_path("map.new")), index_file;
	size_t filled = 0;
	off_t written = 0;

	(void)row;
	read_at(input, split, sizeof(split), (off_t)(map * sizeof(split)));
	for (size_t i = 0; i < SPLIT; i++)
		sorted[i] = split + i * RECORD;
	qsort(sorted, SPLIT, sizeof(*sorted), by_part_and_key);
	for (size_t i = 0; i < SPLIT; i++) {
		struct extent *part = &index[part_of(sorted[i])];

		if (part->size == 0)
			part->start = written;
		part->size += RECORD;
		written += RECORD;
	}
	for (size_t i = 0; i < SPLIT; i++) {
		if (filled + RECORD > sizeof(output)) {
			put_all(out, output, filled);
			filled = 0;
		}
		memcpy(output + filled, sorted[i], RECORD);
		filled += RECORD;
	}
	put_all(out, output, filled);
	index_file = open_new(kt_path("index.new"));
	put_all(index_file, (const char *)index, sizeof(index));
	close_all(out, index_file);
	publish("map.new", "map", map);
	publish("index.new", "index", map);
}

/* All maps, before what needs their output. */
static void map_begin(const struct kt_row *row)
{
	make_input();
	task = 0;
	for (int map = 0; map < MAPS; map++)
		map_one(row);
}

static void map_end(const struct kt_row *row)
{
	(void)row;
	close_all(input, input);
	if (unlink(kt_path("input")) < 0)
		die("unlink input");
	remove_all("map", MAPS);
	remove_all("index", MAPS);
}

/* ---- fetch ---- */

/* A node answers requests of one reducer after the other: the size of the part, then its bytes from the page cache. */
static _Noreturn void serve(int listener)
{
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		struct request request;

		if (client < 0)
			die("accept");
		while (get_all(client, (char *)&request, sizeof(request))) {
			int index = open_to_read(numbered("index", (unsigned long)request.map)), map;
			struct extent part;
			size_t left;

			read_at(index, &part, sizeof(part), (off_t)((size_t)request.part * sizeof(part)));
			map = open_to_read(numbered("map", (unsigned long)request.map));
			if (send(client, &part.size, sizeof(part.size), MSG_MORE) != sizeof(part.size))
				die("send");
			for (left = part.size; left > 0;) {
				ssize_t sent = sendfile(client, map, &part.start, left);

				if (sent <= 0)
					die("sendfile");
				left -= (size_t)sent;
			}
			close_all(index, map);
		}
		close_all(client, client);
	}
}

static void start_node(int node)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0 || listen(listener, NODES) < 0)
		die("a port of 127.0.0.1");
	nodes[node].port = address.sin_port;
	nodes[node].pid = fork_peer();
	if (nodes[node].pid == 0)
		serve(listener);
	close_all(listener, listener);
}

static int connect_to(int node)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = nodes[node].port,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	return fd;
}

static void ask(int fd, int map, int part)
{
	struct request request = { map, part };

	put_all(fd, (const char *)&request, sizeof(request));
}

/* One part of one map's output, to a file of the reducer's. */
static void spill(int fd, int map)
{
	const char *path = numbered("part", (unsigned long)map);
	int out = open_new(path);
	size_t left;

	if (!get_all(fd, (char *)&left, sizeof(left)))
		die("the node is gone");
	if (left > PART_MAX)
		die("a part of %zu bytes", left);
	while (left > 0) {
		size_t now = left < sizeof(output) ? left : sizeof(output);

		if (!get_all(fd, output, now))
			die("the node is gone");
		put_all(out, output, now);
		left -= now;
	}
	close_all(out, out);
}

/* A reducer: MAPS operations. Each node is asked for its next part while another's is written. */
static void reducer(int part, int mark)
{
	struct pollfd from[NODES];
	int next[NODES], left = MAPS;

	for (int node = 0; node < NODES; node++) {
		from[node] = (struct pollfd){ .fd = connect_to(node), .events = POLLIN };
		next[node] = node;
		ask(from[node].fd, node, part);
	}
	while (left > 0) {
		if (poll(from, NODES, -1) < 0)
			die("poll");
		for (int node = 0; node < NODES; node++) {
			if (!from[node].revents)
				continue;
			spill(from[node].fd, next[node]);
			next[node] += NODES;
			if (next[node] < MAPS)
				ask(from[node].fd, next[node], part);
			else
				from[node].events = 0;
			left--;
			if (mark)
				kt_op();
		}
	}
	for (int node = 0; node < NODES; node++)
		close_all(from[node].fd, from[node].fd);
}

static void fetch_begin(const struct kt_row *row)
{
	map_begin(row);
	for (int node = 0; node < NODES; node++)
		start_node(node);
	task = 0;
	reducer((int)(task++ % PARTS), 0);
}

static void fetch_all(const struct kt_row *row, unsigned long operations)
{
	(void)row;
	for (unsigned long done = 0; done < operations; done += MAPS)
		reducer((int)(task++ % PARTS), 1);
}

static void fetch_end(const struct kt_row *row)
{
	for (int node = 0; node < NODES; node++)
		if (kill(nodes[node].pid, SIGKILL) < 0 || waitpid(nodes[node].pid, NULL, 0) != nodes[node].pid)
			die("kill");
	remove_all("part", MAPS);
	map_end(row);
}

/* ---- merge ---- */

struct source {
	int fd;
	size_t at, have;
	char bytes[BUFFER / RECORD * RECORD];
};

static struct source sources[MAPS];
static size_t expected; /* bytes of all parts */

/* The record that comes next, or NULL at the end. */
static const char *head(struct source *source)
{
	if (source->at == source->have) {
		ssize_t now = read(source->fd, source->bytes, sizeof(source->bytes));

		if (now < 0)
			die("read");
		source->at = 0;
		source->have = (size_t)now;
	}
	return source->have ? source->bytes + source->at : NULL;
}

static void merge_begin(const struct kt_row *row)
{
	fetch_begin(row);
	expected = 0;
	for (int map = 0; map < MAPS; map++) {
		struct stat stat_;

		if (stat(numbered("part", (unsigned long)map), &stat_) < 0)
			die("stat");
		expected += (size_t)stat_.st_size;
	}
}

static void merge_one(const struct kt_row *row)
{
	int out = open_new(kt_path("result.new"));
	size_t filled = 0, written = 0;
	char last[KEY] = { 0 };

	(void)row;
	for (int map = 0; map < MAPS; map++) {
		sources[map].fd = open_to_read(numbered("part", (unsigned long)map));
		sources[map].at = sources[map].have = 0;
	}
	for (;;) {
		struct source *least = NULL;
		const char *record = NULL;

		for (int map = 0; map < MAPS; map++) {
			const char *other = head(&sources[map]);

			if (other && (!record || memcmp(other, record, KEY) < 0)) {
				record = other;
				least = &sources[map];
			}
		}
		if (!record)
			break;
		if (memcmp(record, last, KEY) < 0)
			die("records are not in order");
		memcpy(last, record, KEY);
		if (filled + RECORD > sizeof(output)) {
			put_all(out, output, filled);
			written += filled;
			filled = 0;
		}
		memcpy(output + filled, record, RECORD);
		filled += RECORD;
		least->at += RECORD;
	}
	put_all(out, output, filled);
	if (written + filled != expected)
		die("%zu bytes came out of %zu", written + filled, expected);
	for (int map = 0; map < MAPS; map++)
		close_all(sources[map].fd, sources[map].fd);
	close_all(out, out);
	publish("result.new", "result", 0);
}

static void merge_end(const struct kt_row *row)
{
	remove_all("result", 1);
	fetch_end(row);
}

static const struct kt_row rows[] = {
	{ .name = "map", .operations = 96, .begin = map_begin, .one = map_one, .end = map_end },
	{ .name = "fetch", .operations = 640, .multiple = MAPS, .begin = fetch_begin, .all = fetch_all, .end = fetch_end },
	{ .name = "merge", .operations = 48, .warm_up = 2, .begin = merge_begin, .one = merge_one, .end = merge_end },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "shuffle", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
