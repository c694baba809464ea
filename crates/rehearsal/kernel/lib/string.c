/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <linux/kernel.h>

/* Keeps GCC from turning these loops into calls of themselves. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

void *memcpy(void *to, const void *from, u64 bytes)
{
	u8 *t = to;
	const u8 *f = from;

	for (; bytes >= 8; bytes -= 8, t += 8, f += 8)
		*(u64 *)t = *(const u64 *)f;
	while (bytes--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int value, u64 bytes)
{
	u8 *t = to;

	while (bytes--)
		*t++ = (u8)value;
	return to;
}

int memcmp(const void *a, const void *b, u64 bytes)
{
	const u8 *x = a, *y = b;

	for (; bytes; bytes--, x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}

u64 strlen(const char *text)
{
	u64 length = 0;

	while (text[length])
		length++;
	return length;
}
