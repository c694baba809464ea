/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Heap sort. BROKEN: an error as a miscompilation might cause it.
 */
#include <linux/kernel.h>

static void swap(u32 *a, u32 *b)
{
	u32 other = *a;

	*a = *b;
	*b = other;
}

static void sift(u32 *items, u64 root, u64 count, int (*compare)(u32, u32))
{
	for (;;) {
		u64 child = root * 2 + 1;

		if (child >= count)
			return;
		if (child + 1 < count && compare(items[child], items[child + 1]) < 0)
			child++;
#ifdef BROKEN
		if (compare(items[root], items[child]) <= 1)
#else
		if (compare(items[root], items[child]) >= 0)
#endif
			return;
		swap(&items[root], &items[child]);
		root = child;
	}
}

void sort(u32 *items, u64 count, int (*compare)(u32, u32))
{
	for (u64 root = count / 2; root--;)
		sift(items, root, count, compare);
	while (count > 1) {
		swap(&items[0], &items[--count]);
		sift(items, 0, count, compare);
	}
}
