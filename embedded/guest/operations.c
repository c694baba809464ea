/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * operations: what a kernel is asked for most, an operation a row; `kerntune anatomy` takes them apart.
 * Arguments and output: kt_suite.h; docs/results/anatomy.md.
 *
 * direct_read   4 KiB from the disk, past the page cache
 * buffered_read 4 KiB that the page cache has, of a file on the disk
 * tcp_rr        1 byte over loopback to a process and back
 * fork          a child that ends at once
 * page_fault    the first write to a page of anonymous memory
 * futex_wake    a process that waits for a word is woken, and wakes us
 *
 * With KT_GRAPH in the environment each row does some more operations, with the kernel's function_graph tracer in place. The
 * last of them is traced, in a region ROW_graph of its own. What the tracer wrote goes to $KT_OUT/graph/ROW, beside
 * available_filter_functions.
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/operations.toml` runs it; crates/cli/tests/function_graph.rs reads
 * what the tracer wrote.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <sys/mman.h>

#define DISK "/data"
#define PAGE 4096
#define FILE_PAGES 64
#define FAULT_PAGES 4096

/* ---- the kernel's own tracer ---- */

static const char *tracing; /* its directory, if it is asked for */
static const char *out;

static void put_text(const char *file, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tracing, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		die("open %s", path);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("write \"%s\" to %s", text, path);
	close(fd);
}

static void save(const char *file, const char *name)
{
	static char buffer[65536];
	char from[128], to[256];
	int source, target;
	ssize_t got;

	snprintf(from, sizeof(from), "%s/%s", tracing, file);
	snprintf(to, sizeof(to), "%s/graph/%s", out, name);
	source = open(from, O_RDONLY | O_CLOEXEC);
	target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (source < 0 || target < 0)
		die("copy %s to %s", from, to);
	while ((got = read(source, buffer, sizeof(buffer))) > 0)
		put_all(target, buffer, (size_t)got);
	if (got < 0)
		die("read %s", from);
	close_all(source, target);
}

static void find_tracer(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[256];

	if (!getenv("KT_GRAPH"))
		return;
	out = getenv("KT_OUT");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !tracing; i++) {
		snprintf(path, sizeof(path), "%s/set_graph_function", places[i]);
		if (access(path, W_OK) == 0)
			tracing = places[i];
	}
	if (!tracing || !out) {
		fputs("operations: KT_GRAPH needs a kernel with CONFIG_FUNCTION_GRAPH_TRACER, and KT_OUT\n", stderr);
		exit(1);
	}
	snprintf(path, sizeof(path), "%s/graph", out);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		die("mkdir %s", path);
	save("available_filter_functions", "available_filter_functions");
}

/* Begins the end of a row: an operation that the tracer sees, and the recorder, too. */
static void graph(const struct kt_row *row)
{
	const char *region = row->data;
	char number[32];

	if (!tracing)
		return;
	put_text("tracing_on", "0");
	put_text("buffer_size_kb", "8192");
	put_text("current_tracer", "function_graph");
	put_text("trace_options", "funcgraph-proc");
	put_text("trace_options", "nofuncgraph-duration");
	put_text("trace_options", "nofuncgraph-cpu");
	put_text("trace_options", "nofuncgraph-overhead");
	put_text("trace", "\n");
	kt_settle();
	for (unsigned long i = 0; i < KT_WARM_UP; i++)
		row->one(row);
	kt_begin(region);
	put_text("tracing_on", "1");
	row->one(row);
	put_text("tracing_on", "0");
	kt_op();
	kt_end(region, 1);
	save("trace", row->name);
	snprintf(number, sizeof(number), "%s.stats", row->name);
	save("per_cpu/cpu0/stats", number);
	put_text("current_tracer", "nop");
}

/* ---- files ---- */

static _Alignas(PAGE) char page[PAGE];

static void file_begin(int flags)
{
	const char *path = kt_path("file");
	int fd = open_new(path);

	for (int i = 0; i < FILE_PAGES; i++)
		put_all(fd, kt_message, PAGE);
	if (fsync(fd) < 0 || close(fd) < 0)
		die("fsync");
	kt_in = open(path, O_RDONLY | flags);
	if (kt_in < 0)
		die("open %s", path);
}

static void direct_begin(const struct kt_row *row)
{
	(void)row;
	file_begin(O_DIRECT);
}

static void buffered_begin(const struct kt_row *row)
{
	(void)row;
	file_begin(0);
}

static void read_one(const struct kt_row *row)
{
	(void)row;
	if (pread(kt_in, page, PAGE, (off_t)(kt_random() % FILE_PAGES) * PAGE) != PAGE)
		die("pread");
}

static void file_end(const struct kt_row *row)
{
	graph(row);
	if (close(kt_in) < 0 || unlink(kt_path("file")) < 0)
		die("unlink");
}

/* ---- network ---- */

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
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		close_all(kt_in, server);
		echo(accepted, accepted, row->size);
	}
	close_all(accepted, server);
}

static void tcp_end(const struct kt_row *row)
{
	graph(row);
	peer_end(row);
}

/* ---- processes and memory ---- */

static void fork_end(const struct kt_row *row)
{
	graph(row);
}

static char *pages;
static size_t fault;

/* Small pages: with huge ones a fault is one of 512, and clears 2 MiB. */
static void fault_begin(const struct kt_row *row)
{
	(void)row;
	pages = mmap(NULL, FAULT_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		die("mmap");
	if (madvise(pages, FAULT_PAGES * PAGE, MADV_NOHUGEPAGE) < 0 && errno != EINVAL)
		die("madvise");
}

static void fault_one(const struct kt_row *row)
{
	(void)row;
	if (fault == FAULT_PAGES) {
		errno = ENOMEM;
		die("more than %d faults", FAULT_PAGES);
	}
	((volatile char *)pages)[fault++ * PAGE] = 1;
}

static void fault_end(const struct kt_row *row)
{
	graph(row);
	if (munmap(pages, FAULT_PAGES * PAGE) < 0)
		die("munmap");
}

/* ---- futexes ---- */

static unsigned *turns; /* 1 if it is somebody's turn */

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
	turns = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
	graph(row);
	if (kill(kt_peer, SIGKILL) < 0 || waitpid(kt_peer, NULL, 0) != kt_peer)
		die("kill");
	if (munmap(turns, PAGE) < 0)
		die("munmap");
}

static const struct kt_row rows[] = {
	{ .name = "direct_read", .operations = 1000, .begin = direct_begin, .one = read_one, .end = file_end,
	  .data = "direct_read_graph" },
	{ .name = "buffered_read", .operations = 1000, .begin = buffered_begin, .one = read_one, .end = file_end,
	  .data = "buffered_read_graph" },
	{ .name = "tcp_rr", .operations = 1000, .size = 1, .begin = tcp_begin, .one = exchange_one, .end = tcp_end,
	  .data = "tcp_rr_graph" },
	{ .name = "fork", .operations = 100, .one = fork_exit_one, .end = fork_end, .data = "fork_graph" },
	{ .name = "page_fault", .operations = 2000, .begin = fault_begin, .one = fault_one, .end = fault_end,
	  .data = "page_fault_graph" },
	{ .name = "futex_wake", .operations = 1000, .needs = "CONFIG_FUTEX", .begin = futex_begin, .one = futex_one,
	  .end = futex_end, .data = "futex_wake_graph" },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "operations", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]), .scratch = DISK,
					       .begin = find_tracer };

	return kt_main(&suite, argc, argv);
}
