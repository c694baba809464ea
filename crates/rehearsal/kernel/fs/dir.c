/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Lists the entries of a directory, sorted. The entries are generated, as data for the sort.
 */
#include <linux/kernel.h>

static int by_number(u32 a, u32 b)
{
	if (a == b)
		return 0;
	return a < b ? -1 : 1;
}

static int by_age(u32 a, u32 b)
{
	if ((a & 255) != (b & 255))
		return (a & 255) < (b & 255) ? -1 : 1;
	return by_number(a, b);
}

long do_list(u32 *to, u64 count)
{
	u32 seed = 12345;

	for (u64 i = 0; i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		to[i] = seed >> 8;
	}
	sort(to, count, count > 60 ? by_age : by_number);
	return (long)count;
}
