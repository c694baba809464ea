/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Delivers a packet to its socket: checks versions, lengths, checksums, options, ports.
 */
#include <linux/kernel.h>

enum { DROPPED = 0, TCP = 6, UDP = 17, ICMP = 1, HEADER = 20, SOCKETS = 16 };

static u64 drops[8], delivered[SOCKETS], bytes_in[SOCKETS];

static u16 big16(const u8 *at)
{
	return (u16)(at[0] << 8 | at[1]);
}

static noinline long drop(u32 why)
{
	drops[why & 7]++;
	return -(long)(100 + why);
}

static u32 socket_of(u16 from, u16 to)
{
	u32 hash = (u32)from << 16 | to;

	hash ^= hash >> 13;
	hash *= 0x5bd1e995u;
	hash ^= hash >> 15;
	return hash % SOCKETS;
}

static long deliver(u16 from, u16 to, u64 bytes)
{
	u32 socket = socket_of(from, to);

	delivered[socket]++;
	bytes_in[socket] += bytes;
	return (long)(socket + 1);
}

static long tcp(const u8 *segment, u64 bytes)
{
	u64 offset;

	if (bytes < 20)
		return drop(1);
	offset = (u64)(segment[12] >> 4) * 4;
	if (offset < 20 || offset > bytes)
		return drop(2);
	for (u64 at = 20; at < offset;) {
		u8 kind = segment[at];

		if (kind == 0)
			break;
		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 1 >= offset || segment[at + 1] < 2)
			return drop(3);
		at += segment[at + 1];
	}
	if (segment[13] & 4)
		return drop(4);
	return deliver(big16(segment), big16(segment + 2), bytes - offset);
}

static long udp(const u8 *datagram, u64 bytes)
{
	if (bytes < 8)
		return drop(1);
	if (big16(datagram + 4) != bytes)
		return drop(2);
	return deliver(big16(datagram), big16(datagram + 2), bytes - 8);
}

static noinline long icmp(const u8 *message, u64 bytes)
{
	if (bytes < 8 || checksum(message, bytes, 0))
		return drop(5);
	return message[0] == 8 ? 1000 : 1001;
}

long receive(const u8 *packet, u64 bytes)
{
	u64 header, total;

	if (bytes < HEADER)
		return drop(0);
	if (packet[0] >> 4 != 4)
		return drop(6);
	header = (u64)(packet[0] & 15) * 4;
	total = big16(packet + 2);
	if (header < HEADER || total < header || total > bytes)
		return drop(2);
	if (checksum(packet, header, 0))
		return drop(7);
	switch (packet[9]) {
	case TCP:
		return tcp(packet + header, total - header);
	case UDP:
		return udp(packet + header, total - header);
	case ICMP:
		return icmp(packet + header, total - header);
	default:
		return drop(5);
	}
}
