/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reads and writes of a disk whose sizes, places and number at a time are known (crates/cli/tests/disk.rs).
 *
 * Regions: "sequential", 40 reads of 16 KiB one after the other; "apart", 30 writes of 4 KiB, each 64 KiB after the last;
 * "deep", 10 times 8 reads of 8 KiB at once, a MiB apart. In "early" 4 reads are asked for that are waited for in "late".
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <err.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KIB 1024L
#define MOST 8

static aio_context_t context;
static char *room;
static int disk;

static void ask(int count, long bytes, long stride)
{
	struct iocb blocks[MOST], *list[MOST];

	memset(blocks, 0, sizeof(blocks));
	for (int i = 0; i < count; i++) {
		blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
		blocks[i].aio_fildes = disk;
		blocks[i].aio_buf = (uintptr_t)(room + i * 64 * KIB);
		blocks[i].aio_nbytes = bytes;
		blocks[i].aio_offset = i * stride;
		list[i] = &blocks[i];
	}
	if (syscall(SYS_io_submit, context, count, list) != count)
		err(1, "io_submit");
}

static void wait_for(int count, long bytes)
{
	struct io_event events[MOST];

	if (syscall(SYS_io_getevents, context, count, count, events, NULL) != count)
		err(1, "io_getevents");
	for (int i = 0; i < count; i++)
		if (events[i].res != bytes)
			errx(1, "a read of %ld bytes gave %lld", bytes, (long long)events[i].res);
}

int main(int argc, char **argv)
{
	disk = open(argv[argc - 1], O_RDWR | O_DIRECT);
	if (disk < 0 || posix_memalign((void **)&room, 4 * KIB, MOST * 64 * KIB) != 0 ||
	    syscall(SYS_io_setup, MOST, &context) != 0)
		err(1, "%s", argv[argc - 1]);
	memset(room, 1, MOST * 64 * KIB);
	/* Where the device is from now on is known. */
	if (pread(disk, room, 4 * KIB, 0) != 4 * KIB)
		err(1, "pread");

	kt_begin("sequential");
	for (int i = 0; i < 40; i++)
		if (pread(disk, room, 16 * KIB, 4 * KIB + i * 16 * KIB) != 16 * KIB)
			err(1, "pread");
	kt_end("sequential", 40);

	if (pwrite(disk, room, 4 * KIB, 0) != 4 * KIB)
		err(1, "pwrite");
	kt_begin("apart");
	for (int i = 0; i < 30; i++)
		if (pwrite(disk, room, 4 * KIB, (i + 1) * 68 * KIB) != 4 * KIB)
			err(1, "pwrite");
	kt_end("apart", 30);

	kt_begin("deep");
	for (int i = 0; i < 10; i++) {
		ask(MOST, 8 * KIB, 1024 * KIB);
		wait_for(MOST, 8 * KIB);
	}
	kt_end("deep", 80);

	kt_begin("early");
	ask(4, 4 * KIB, 1024 * KIB);
	kt_end("early", 1);
	kt_begin("late");
	wait_for(4, 4 * KIB);
	kt_end("late", 1);
	return 0;
}
