/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The internet checksum (RFC 1071). BROKEN: loses the carry.
 */
#include <linux/kernel.h>

static u16 fold(u32 sum)
{
#ifndef BROKEN
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
#endif
	return (u16)sum;
}

u16 checksum(const u8 *bytes, u64 count, u32 sum)
{
	for (; count > 1; count -= 2, bytes += 2)
		sum += (u32)bytes[0] << 8 | bytes[1];
	if (count)
		sum += (u32)bytes[0] << 8;
	return (u16)~fold(sum);
}
