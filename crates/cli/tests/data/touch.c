/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Touches known pages and lines of memory in pages of known sizes (crates/cli/tests/data.rs).
 *
 * Memory is there before a region begins, so that none of them has a page fault. Regions: "small_300" and "small_500" read a
 * byte in each of so many pages of 4 KiB; "lines" reads each line of 100 of them; "huge" reads a byte in every 4 KiB of 6
 * pages of 2 MiB, "both" does the first and the last; "across" reads 8 bytes across the ends of 100 pages, every other one.
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <err.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL 4096L
#define HUGE (2L << 20)
#define PAGES 500
#define HUGE_PAGES 6

static char *make(long bytes, int advice)
{
	char *area = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		err(1, "mmap");
	area = (char *)(((uintptr_t)area + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(area, bytes, advice) < 0)
		err(1, "madvise");
	memset(area, 1, bytes);
	return area;
}

static void touch(const volatile char *area, long bytes, long step)
{
	for (long at = 0; at < bytes; at += step)
		(void)area[at];
}

int main(void)
{
	char *small = make(PAGES * SMALL, MADV_NOHUGEPAGE), *huge = make(HUGE_PAGES * HUGE, MADV_HUGEPAGE);

	kt_begin("small_300");
	touch(small, 300 * SMALL, SMALL);
	kt_end("small_300", 1);
	kt_begin("small_500");
	touch(small, 500 * SMALL, SMALL);
	kt_end("small_500", 1);
	kt_begin("lines");
	touch(small, 100 * SMALL, 64);
	kt_end("lines", 1);
	kt_begin("huge");
	touch(huge, HUGE_PAGES * HUGE, SMALL);
	kt_end("huge", 1);
	kt_begin("both");
	touch(small, 300 * SMALL, SMALL);
	touch(huge, HUGE_PAGES * HUGE, SMALL);
	kt_end("both", 1);
	kt_begin("across");
	for (long at = SMALL - 4; at < 200 * SMALL; at += 2 * SMALL)
		(void)*(const volatile uint64_t *)(small + at);
	kt_end("across", 1);
	return 0;
}
