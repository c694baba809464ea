/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * tunings: what a database's administrator or a kernel's developer may choose between, a row for each choice.
 * Arguments and output: kt_suite.h; docs/suites.md.
 *
 * pread_raw                          a read of 4 KiB from the disk itself, past the page cache, by pread
 * aio_raw                            the same by io_submit and io_getevents
 * aio_16_each, aio_16_group          sixteen reads by one io_submit; waited for one by one, or all at once
 * shared_small, shared_huge          a page of shared memory that a process touches for the first time, and reads all over it,
 *                                    in pages of 4 KiB and of 2 MiB
 * text_small, text_huge              a function, each in another page of a program's text, is called for the first time
 * stack_small, stack_huge            a page of a stack is used for the first time
 * anonymous                          a page of memory of one's own is touched for the first time
 * group_other, group_rr              eight processes that wait are woken and answer, under SCHED_OTHER and SCHED_RR
 * group_free, group_bound            two such groups, which may run anywhere, or each on a CPU of its own
 * transaction                        what a server does: attach to shared memory, read, wake a group. KT_SHARED=huge, KT_READS=aio
 *                                    and KT_POLICY=rr in the environment choose how
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/tunings.toml` and `tunings-disk.toml` run it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <linux/aio_abi.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <ucontext.h>

#define DISK "/dev/kt-disk"
#define PAGE 4096UL
#define HUGE (2UL << 20)
#define AREA (16UL << 20) /* more than a second-level TLB reaches in small pages */
#define AREA_PAGES (AREA / PAGE)
#define SMALL_AREA (4UL << 20) /* of text and stacks */
#define SMALL_PAGES (SMALL_AREA / PAGE)
#define DISK_PAGES 4096
#define DEPTH 16
#define MEMBERS 8
#define LOOKS 8 /* reads anywhere in shared memory, for each page that is touched */

static const char huge[] = "huge", rr[] = "rr";

static int asked(const char *variable, const char *value)
{
	const char *text = getenv(variable);

	return text && strcmp(text, value) == 0;
}

/* ---- the disk ---- */

static _Alignas(PAGE) char buffers[DEPTH][PAGE];
static struct iocb control[DEPTH], *controls[DEPTH];
static aio_context_t ring;

static const char *disk_missing(void)
{
	return access(DISK, R_OK) < 0 ? "there is no " DISK : NULL;
}

static off_t somewhere(void)
{
	return (off_t)((kt_random() % DISK_PAGES) * PAGE);
}

static void disk_begin(const struct kt_row *row)
{
	(void)row;
	kt_in = open(DISK, O_RDONLY | O_DIRECT);
	if (kt_in < 0)
		die("open %s", DISK);
	memset(buffers, 0, sizeof(buffers));
	ring = 0;
	if (syscall(SYS_io_setup, DEPTH, &ring) < 0)
		die("io_setup");
	for (int i = 0; i < DEPTH; i++)
		controls[i] = &control[i];
}

static void disk_end(const struct kt_row *row)
{
	(void)row;
	if (syscall(SYS_io_destroy, ring) < 0 || close(kt_in) < 0)
		die("io_destroy");
}

static void pread_one(const struct kt_row *row)
{
	(void)row;
	if (pread(kt_in, buffers[0], PAGE, somewhere()) != (ssize_t)PAGE)
		die("pread");
}

static void submit(long count)
{
	for (long i = 0; i < count; i++)
		control[i] = (struct iocb){ .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (unsigned)kt_in,
					    .aio_buf = (unsigned long)buffers[i], .aio_nbytes = PAGE,
					    .aio_offset = somewhere() };
	if (syscall(SYS_io_submit, ring, count, controls) != count)
		die("io_submit");
}

static void collect(long count, long at_once)
{
	struct io_event events[DEPTH];

	while (count > 0) {
		long got = syscall(SYS_io_getevents, ring, at_once, count, events, NULL);

		if (got < at_once)
			die("io_getevents");
		for (long i = 0; i < got; i++)
			if (events[i].res != (long long)PAGE)
				die("a read gave %lld", (long long)events[i].res);
		count -= got;
	}
}

static void aio_one(const struct kt_row *row)
{
	(void)row;
	submit(1);
	collect(1, 1);
}

static void aio_all(const struct kt_row *row, unsigned long operations)
{
	for (unsigned long done = 0; done < operations; done += DEPTH) {
		submit(DEPTH);
		collect(DEPTH, (long)row->size);
		for (int i = 0; i < DEPTH; i++)
			kt_op();
	}
}

static void aio_begin(const struct kt_row *row)
{
	disk_begin(row);
	submit(DEPTH);
	collect(DEPTH, (long)row->size);
}

/* ---- memory ---- */

static int segment = -1;
static volatile unsigned long sink;

static const char *huge_missing(void)
{
	char line[128];
	long free_pages = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "HugePages_Free: %ld", &free_pages) == 1)
			break;
	if (file)
		fclose(file);
	return free_pages * HUGE < AREA ? "it needs 8 free huge pages: sysctl vm.nr_hugepages=8" : NULL;
}

/* The buffer of a database: whole before anybody attaches. */
static void segment_begin(int is_huge)
{
	char *area;

	segment = shmget(IPC_PRIVATE, AREA, 0600 | (is_huge ? SHM_HUGETLB : 0));
	if (segment < 0)
		die("shmget");
	area = shmat(segment, NULL, 0);
	if (area == (void *)-1)
		die("shmat");
	memset(area, 1, AREA);
	if (shmdt(area) < 0)
		die("shmdt");
}

static void segment_end(void)
{
	if (shmctl(segment, IPC_RMID, NULL) < 0)
		die("shmctl");
}

static void shared_begin(const struct kt_row *row)
{
	segment_begin(row->data == huge);
}

/* Each server that comes attaches, and touches all of it. */
static void shared_all(const struct kt_row *row, unsigned long operations)
{
	(void)row;
	for (unsigned long done = 0; done < operations; done += AREA_PAGES) {
		volatile unsigned long *area = shmat(segment, NULL, 0);

		if (area == (void *)-1)
			die("shmat");
		for (unsigned long page = 0; page < AREA_PAGES; page++) {
			area[page * PAGE / sizeof(*area)]++;
			for (int i = 0; i < LOOKS; i++)
				sink += area[kt_random() % (AREA / sizeof(*area))];
			kt_op();
		}
		if (shmdt((const void *)area) < 0)
			die("shmdt");
	}
}

static void shared_end(const struct kt_row *row)
{
	(void)row;
	segment_end();
}

static char *map(unsigned long size, int protection, int flags, int fd)
{
	char *area = mmap(NULL, size, protection, flags, fd, 0);

	if (area == MAP_FAILED)
		die("mmap");
	return area;
}

static void unmap(void *area, unsigned long size)
{
	if (munmap(area, size) < 0)
		die("munmap");
}

/* A program: a function that returns, at the beginning of each page. In huge pages it is one file of hugetlbfs, as a loader makes
 * it; each process maps the file. */
static int text = -1;

static void text_begin(const struct kt_row *row)
{
	unsigned flags = row->data == huge ? MFD_HUGETLB : 0;
	char *area;

	text = memfd_create("text", flags);
	if (text < 0 || ftruncate(text, (off_t)SMALL_AREA) < 0)
		die("memfd_create");
	area = map(SMALL_AREA, PROT_READ | PROT_WRITE, MAP_SHARED, text);
	for (unsigned long page = 0; page < SMALL_PAGES; page++)
		area[page * PAGE] = (char)0xc3; /* ret */
	unmap(area, SMALL_AREA);
}

static void text_all(const struct kt_row *row, unsigned long operations)
{
	(void)row;
	for (unsigned long done = 0; done < operations; done += SMALL_PAGES) {
		char *area = map(SMALL_AREA, PROT_READ | PROT_EXEC, MAP_PRIVATE, text);

		for (unsigned long page = 0; page < SMALL_PAGES; page++) {
			/* Not in a row: no program calls its functions in the order of its text. */
			char *function = area + (page * 509 % SMALL_PAGES) * PAGE;

			((void (*)(void))(void *)function)();
			kt_op();
		}
		unmap(area, SMALL_AREA);
	}
}

static void text_end(const struct kt_row *row)
{
	(void)row;
	if (close(text) < 0)
		die("close");
}

static char *stack;
static ucontext_t above, below;

/* On the stack: a page after the other, from its top. */
static void use_stack(void)
{
	for (unsigned long page = 1; page < SMALL_PAGES - 4; page++) {
		((volatile char *)stack)[SMALL_AREA - page * PAGE - 2 * PAGE] = 1;
		kt_op();
	}
}

static void one_stack(int flags)
{
	stack = map(SMALL_AREA, PROT_READ | PROT_WRITE, flags, -1);
	if (getcontext(&below) < 0)
		die("getcontext");
	below.uc_stack.ss_sp = stack;
	below.uc_stack.ss_size = SMALL_AREA;
	below.uc_link = &above;
	makecontext(&below, use_stack, 0);
	if (swapcontext(&above, &below) < 0)
		die("swapcontext");
	for (int i = 0; i < 5; i++)
		kt_op(); /* those that the context used itself */
	unmap(stack, SMALL_AREA);
}

static void stack_all(const struct kt_row *row, unsigned long operations)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (row->data == huge ? MAP_HUGETLB : MAP_STACK);

	for (unsigned long done = 0; done < operations; done += SMALL_PAGES)
		one_stack(flags);
}

/* Aligned to huge pages, as an allocator of large areas gets it. */
static void anonymous_all(const struct kt_row *row, unsigned long operations)
{
	(void)row;
	for (unsigned long done = 0; done < operations; done += AREA_PAGES) {
		char *area = map(AREA + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		volatile char *pages = (char *)(((unsigned long)area + HUGE - 1) & ~(HUGE - 1));

		for (unsigned long page = 0; page < AREA_PAGES; page++) {
			pages[page * PAGE] = 1;
			kt_op();
		}
		unmap(area, AREA + HUGE);
	}
}

/* ---- groups of processes ---- */

struct group {
	int wake[MEMBERS], answers;
	pid_t members[MEMBERS];
};

static struct group ours, theirs;
static int ask_theirs, theirs_done;

static void policy(int which)
{
	struct sched_param priority = { .sched_priority = which == SCHED_RR };

	if (sched_setscheduler(0, which, &priority) < 0)
		die("sched_setscheduler");
}

static const char *rr_missing(void)
{
	struct sched_param before, priority = { .sched_priority = 1 };
	int which = sched_getscheduler(0);

	if (which < 0 || sched_getparam(0, &before) < 0 || sched_setscheduler(0, SCHED_RR, &priority) < 0)
		return "it may not use SCHED_RR";
	return sched_setscheduler(0, which, &before) < 0 ? "it may not leave SCHED_RR" : NULL;
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
}

static void bind_nowhere(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
}

/* The members wait, each at a pipe of its own, as processes of a database for the one that writes the log. */
static void group_of(struct group *group)
{
	int answers[2];

	if (pipe(answers) < 0)
		die("pipe");
	for (int i = 0; i < MEMBERS; i++) {
		int ends[2];

		if (pipe(ends) < 0)
			die("pipe");
		group->members[i] = fork_peer();
		if (group->members[i] == 0) {
			close(ends[1]);
			/* Those of the members before are ours, too. */
			for (int before = 0; before < i; before++)
				close(group->wake[before]);
			echo(ends[0], answers[1], 1);
		}
		close(ends[0]);
		group->wake[i] = ends[1];
	}
	close(answers[1]);
	group->answers = answers[0];
}

static void round_of(struct group *group)
{
	char bytes[MEMBERS];

	for (int i = 0; i < MEMBERS; i++)
		put_all(group->wake[i], kt_message, 1);
	if (!get_all(group->answers, bytes, MEMBERS))
		die("a member is gone");
}

static void group_gone(struct group *group)
{
	for (int i = 0; i < MEMBERS; i++)
		close(group->wake[i]);
	for (int i = 0; i < MEMBERS; i++)
		wait_child(group->members[i]);
	close(group->answers);
}

static void group_begin(const struct kt_row *row)
{
	policy(row->data == rr ? SCHED_RR : SCHED_OTHER);
	group_of(&ours);
}

static void group_one(const struct kt_row *row)
{
	(void)row;
	round_of(&ours);
}

static void group_end(const struct kt_row *row)
{
	(void)row;
	group_gone(&ours);
	kt_no_preemption();
}

/* A second process has a group of its own, and does a round whenever it is asked to. */
static void two_begin(const struct kt_row *row)
{
	int there[2], back[2], bound = row->size != 0;

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	if (bound)
		bind_to(0);
	policy(SCHED_OTHER);
	kt_peer = fork_peer();
	if (kt_peer == 0) {
		char byte;

		close_all(there[1], back[0]);
		if (bound)
			bind_to(1);
		group_of(&theirs);
		while (get_all(there[0], &byte, 1)) {
			round_of(&theirs);
			put_all(back[1], &byte, 1);
		}
		group_gone(&theirs);
		_exit(0);
	}
	close_all(there[0], back[1]);
	ask_theirs = there[1];
	theirs_done = back[0];
	group_of(&ours);
}

static void two_one(const struct kt_row *row)
{
	char byte;

	(void)row;
	put_all(ask_theirs, kt_message, 1);
	round_of(&ours);
	if (!get_all(theirs_done, &byte, 1))
		die("the second group is gone");
}

static void two_end(const struct kt_row *row)
{
	(void)row;
	/* Our members have this end as well, so they go first. */
	group_gone(&ours);
	close_all(ask_theirs, theirs_done);
	wait_child(kt_peer);
	bind_nowhere();
	kt_no_preemption();
}

/* ---- all of it ---- */

static int reads_are_aio;

#define TOUCHED 64
#define READS 4

static const char *transaction_missing(void)
{
	const char *why = disk_missing();

	if (!why && asked("KT_SHARED", "huge"))
		why = huge_missing();
	if (!why && asked("KT_POLICY", "rr"))
		why = rr_missing();
	return why;
}

static void transaction_begin(const struct kt_row *row)
{
	reads_are_aio = asked("KT_READS", "aio");
	disk_begin(row);
	segment_begin(asked("KT_SHARED", "huge"));
	policy(asked("KT_POLICY", "rr") ? SCHED_RR : SCHED_OTHER);
	group_of(&ours);
}

static void transaction_one(const struct kt_row *row)
{
	volatile char *area = shmat(segment, NULL, 0);

	if (area == (void *)-1)
		die("shmat");
	for (int i = 0; i < TOUCHED; i++)
		area[(kt_random() % AREA_PAGES) * PAGE]++;
	if (reads_are_aio) {
		submit(READS);
		collect(READS, READS);
	} else {
		for (int i = 0; i < READS; i++)
			pread_one(row);
	}
	round_of(&ours);
	if (shmdt((const void *)area) < 0)
		die("shmdt");
}

static void transaction_end(const struct kt_row *row)
{
	group_end(row);
	segment_end();
	disk_end(row);
}

#define DISK_ROW .needs = "CONFIG_AIO", .missing = disk_missing, .end = disk_end

static const struct kt_row rows[] = {
	{ .name = "pread_raw", .operations = 1000, .begin = disk_begin, .one = pread_one, DISK_ROW },
	{ .name = "aio_raw", .operations = 1000, .begin = disk_begin, .one = aio_one, DISK_ROW },
	{ .name = "aio_16_each", .operations = 1600, .multiple = DEPTH, .size = 1, .begin = aio_begin, .all = aio_all,
	  DISK_ROW },
	{ .name = "aio_16_group", .operations = 1600, .multiple = DEPTH, .size = DEPTH, .begin = aio_begin, .all = aio_all,
	  DISK_ROW },
	{ .name = "shared_small", .operations = 2 * AREA_PAGES, .multiple = AREA_PAGES, .needs = "CONFIG_SYSVIPC",
	  .begin = shared_begin, .all = shared_all, .end = shared_end },
	{ .name = "shared_huge", .operations = 2 * AREA_PAGES, .multiple = AREA_PAGES,
	  .needs = "CONFIG_SYSVIPC,CONFIG_HUGETLBFS", .missing = huge_missing, .begin = shared_begin, .all = shared_all,
	  .end = shared_end, .data = huge },
	{ .name = "text_small", .operations = 4 * SMALL_PAGES, .multiple = SMALL_PAGES, .begin = text_begin, .all = text_all,
	  .end = text_end },
	{ .name = "text_huge", .operations = 4 * SMALL_PAGES, .multiple = SMALL_PAGES, .needs = "CONFIG_HUGETLBFS",
	  .missing = huge_missing, .begin = text_begin, .all = text_all, .end = text_end, .data = huge },
	{ .name = "stack_small", .operations = 2 * SMALL_PAGES, .multiple = SMALL_PAGES, .all = stack_all },
	{ .name = "stack_huge", .operations = 2 * SMALL_PAGES, .multiple = SMALL_PAGES, .needs = "CONFIG_HUGETLBFS",
	  .missing = huge_missing, .all = stack_all, .data = huge },
	{ .name = "anonymous", .operations = 2 * AREA_PAGES, .multiple = AREA_PAGES, .all = anonymous_all },
	{ .name = "group_other", .operations = 200, .begin = group_begin, .one = group_one, .end = group_end },
	{ .name = "group_rr", .operations = 200, .missing = rr_missing, .begin = group_begin, .one = group_one,
	  .end = group_end, .data = rr },
	{ .name = "group_free", .operations = 200, .begin = two_begin, .one = two_one, .end = two_end },
	{ .name = "group_bound", .operations = 200, .size = 1, .begin = two_begin, .one = two_one, .end = two_end },
	{ .name = "transaction", .operations = 200, .needs = "CONFIG_AIO,CONFIG_SYSVIPC", .missing = transaction_missing,
	  .begin = transaction_begin, .one = transaction_one, .end = transaction_end },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "tunings", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
