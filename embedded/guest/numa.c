/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * numa: what memory of another NUMA node costs the kernel, beside the same work on the CPU's own node. The process is on node 0,
 * the memory of rows `remote` on node 1. Arguments and output: kt_suite.h; docs/suites.md.
 *
 * fault_local, fault_remote   the first touch of a page, which the kernel clears
 * read_local, read_remote     4 KiB of a file in memory
 * write_local, write_remote   the same, written
 * touch_local, touch_remote   user code alone: a read of each line of a page
 * pipe_local, pipe_remote     4 KiB and back through two pipes to a process on the same CPU, or on one of node 1
 * migrate_page                a page from one node to the other
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/numa.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>

#define PAGE 4096ul
#define LINE 64
#define PAGES 512 /* of an area */

static char *area;
static char page[PAGE] __attribute__((aligned(PAGE)));
static unsigned long turn;
static int file = -1;
static int cpus[2]; /* one of each node */

/* The first CPU of a node, from its list: "0-1,4". */
static int cpu_of(int node)
{
	char path[64];
	FILE *list;
	int cpu;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	list = fopen(path, "r");
	if (!list)
		return -1;
	if (fscanf(list, "%d", &cpu) != 1)
		cpu = -1;
	fclose(list);
	return cpu;
}

static const char *missing(void)
{
	return cpu_of(0) >= 0 && cpu_of(1) >= 0 ? NULL : "there are no two NUMA nodes with CPUs";
}

static void run_on(int node)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[node], &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("CPU %d", cpus[node]);
}

/* What this process and its files take from now on comes from a node; from the CPU's with -1. */
static void take_from(int node)
{
	unsigned long mask = 1ul << (node < 0 ? 0 : node);

	if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND, node < 0 ? NULL : &mask, node < 0 ? 0 : 64) < 0)
		die("set_mempolicy");
}

static int node_of(void *address)
{
	int node;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0, address, MPOL_F_NODE | MPOL_F_ADDR) < 0)
		die("get_mempolicy");
	return node;
}

static void begin(void)
{
	for (int node = 0; node < 2; node++)
		cpus[node] = cpu_of(node);
	run_on(0);
}

static char *new_area(void)
{
	char *new = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (new == MAP_FAILED || madvise(new, PAGES * PAGE, MADV_NOHUGEPAGE) < 0)
		die("mmap");
	turn = 0;
	return new;
}

static void free_area(void)
{
	if (munmap(area, PAGES * PAGE) < 0)
		die("munmap");
}

/* ---- anonymous memory ---- */

static void area_begin(const struct kt_row *row)
{
	area = new_area();
	take_from((int)row->size);
}

static void area_end(const struct kt_row *row)
{
	if (node_of(area) != (int)row->size)
		die("the memory is on node %d", node_of(area));
	take_from(-1);
	free_area();
}

/* After the area's last page the first is new again. */
static void fault_one(const struct kt_row *row)
{
	unsigned long at = turn++ % PAGES;

	(void)row;
	if (at == 0 && madvise(area, PAGES * PAGE, MADV_DONTNEED) < 0)
		die("madvise");
	area[at * PAGE] = 1;
}

static void touched_begin(const struct kt_row *row)
{
	area_begin(row);
	for (unsigned long at = 0; at < PAGES; at++)
		area[at * PAGE] = 1;
}

static void touch_one(const struct kt_row *row)
{
	const volatile char *at = area + turn++ % PAGES * PAGE;

	(void)row;
	for (size_t line = 0; line < PAGE; line += LINE)
		(void)at[line];
}

static void migrate_begin(const struct kt_row *row)
{
	area_begin(row);
	for (unsigned long at = 0; at < PAGES; at++)
		area[at * PAGE] = 1;
}

static void migrate_one(const struct kt_row *row)
{
	void *which = area + turn % PAGES * PAGE;
	int to = turn / PAGES % 2 == 0, status = -1;

	(void)row;
	turn++;
	if (syscall(SYS_move_pages, 0, 1ul, &which, &to, &status, MPOL_MF_MOVE) != 0 || status != to)
		die("move_pages gave %d", status);
}

static void migrate_end(const struct kt_row *row)
{
	(void)row;
	take_from(-1);
	free_area();
}

/* ---- a file on tmpfs ---- */

static void file_begin(const struct kt_row *row)
{
	void *there;

	turn = 0;
	take_from((int)row->size);
	file = open(kt_path("file"), O_RDWR | O_CREAT | O_EXCL, 0600);
	if (file < 0)
		die("open");
	for (unsigned long at = 0; at < PAGES; at++)
		put_all(file, page, PAGE);
	take_from(-1);
	there = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
	if (there == MAP_FAILED)
		die("mmap");
	if (node_of(there) != (int)row->size)
		die("the file is on node %d", node_of(there));
	if (munmap(there, PAGE) < 0)
		die("munmap");
}

static void file_end(const struct kt_row *row)
{
	(void)row;
	close_all(file, file);
	if (unlink(kt_path("file")) < 0)
		die("unlink");
}

static void read_one(const struct kt_row *row)
{
	(void)row;
	if (pread(file, page, PAGE, (off_t)(turn++ % PAGES * PAGE)) != (ssize_t)PAGE)
		die("read");
}

static void write_one(const struct kt_row *row)
{
	(void)row;
	if (pwrite(file, page, PAGE, (off_t)(turn++ % PAGES * PAGE)) != (ssize_t)PAGE)
		die("write");
}

/* ---- two processes ---- */

static void pipe_begin(const struct kt_row *row)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		run_on(row->data != NULL);
		close_all(there[1], back[0]);
		echo(there[0], back[1], row->size);
	}
	close_all(there[0], back[1]);
	kt_out = there[1];
	kt_in = back[0];
}

#define ROW .needs = "CONFIG_NUMA", .missing = missing
#define AREA_ROW(node) ROW, .size = (node), .begin = area_begin, .end = area_end
#define TOUCHED_ROW(node) ROW, .size = (node), .begin = touched_begin, .end = area_end, .one = touch_one, .warm_up = PAGES
#define FILE_ROW(node) ROW, .size = (node), .begin = file_begin, .end = file_end, .bytes = PAGE, .unit = "MB/s", .warm_up = PAGES

static const struct kt_row rows[] = {
	{ .name = "fault_local", .operations = 2000, AREA_ROW(0), .one = fault_one },
	{ .name = "fault_remote", .operations = 2000, AREA_ROW(1), .one = fault_one },
	{ .name = "read_local", .operations = 5000, FILE_ROW(0), .one = read_one },
	{ .name = "read_remote", .operations = 5000, FILE_ROW(1), .one = read_one },
	{ .name = "write_local", .operations = 5000, FILE_ROW(0), .one = write_one },
	{ .name = "write_remote", .operations = 5000, FILE_ROW(1), .one = write_one },
	{ .name = "touch_local", .operations = 20000, TOUCHED_ROW(0) },
	{ .name = "touch_remote", .operations = 20000, TOUCHED_ROW(1) },
	{ .name = "pipe_local", .operations = 500, ROW, .size = PAGE, .begin = pipe_begin, .one = exchange_one, .end = peer_end },
	{ .name = "pipe_remote", .operations = 500, ROW, .size = PAGE, .data = cpus, .begin = pipe_begin, .one = exchange_one,
	  .end = peer_end },
	{ .name = "migrate_page", .operations = 500, ROW, .size = 0, .begin = migrate_begin, .one = migrate_one,
	  .end = migrate_end },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "numa", .rows = rows, .count = sizeof(rows) / sizeof(rows[0]),
					       .begin = begin };

	return kt_main(&suite, argc, argv);
}
