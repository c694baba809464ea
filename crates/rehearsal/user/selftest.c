/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Functional tests of the stand-in kernel. Output has the format of embedded/guest/selftest.c.
 */
#include "init.h"

static const char *why;

#define MUST(condition)                 \
	do {                            \
		if (!(condition)) {     \
			why = #condition; \
			return;         \
		}                       \
	} while (0)

static void getpid(void)
{
	MUST(call(GETPID, 0, 0, 0) == 1);
}

static void no_such_call(void)
{
	MUST(call(77, 0, 0, 0) == -38);
}

static void clock_advances(void)
{
	long first = call(CLOCK, 0, 0, 0);

	MUST(call(CLOCK, 0, 0, 0) > first);
}

static void file_keeps(void)
{
	static char name[64] = "kept";
	u8 written[3000], read[3000];
	long fd = call(OPEN, (u64)name, 0, 0);

	fill(written, sizeof(written), 7);
	MUST(fd >= 0);
	MUST(call(WRITE, (u64)fd, (u64)written, sizeof(written)) == sizeof(written));
	MUST(call(CLOSE, (u64)fd, 0, 0) == 0);
	fd = call(OPEN, (u64)name, 0, 0);
	MUST(call(READ, (u64)fd, (u64)read, sizeof(read)) == sizeof(read));
	MUST(call(READ, (u64)fd, (u64)read, 1) == 0);
	MUST(same(written, read, sizeof(read)));
	MUST(call(CLOSE, (u64)fd, 0, 0) == 0);
	MUST(call(CLOSE, (u64)fd, 0, 0) == -9);
}

static void file_is_full(void)
{
	static char name[64] = "full";
	u8 bytes[256];
	long fd = call(OPEN, (u64)name, 0, 0);

	fill(bytes, sizeof(bytes), 8);
	for (int i = 0; i < 16; i++)
		MUST(call(WRITE, (u64)fd, (u64)bytes, 256) == 256);
	MUST(call(WRITE, (u64)fd, (u64)bytes, 256) == -28);
	MUST(call(CLOSE, (u64)fd, 0, 0) == 0);
}

static void pipe_turns(void)
{
	for (u32 count = 1; count < 200; count += 33) {
		u8 bytes[200], right[200];

		fill(bytes, count, count);
		for (u32 i = 0; i < count; i++)
			right[i] = bytes[count - 1 - i];
		MUST(call(ECHO, (u64)bytes, count, 0) == count);
		MUST(same(bytes, right, count));
	}
}

static void list_is_sorted(void)
{
	u32 items[64];

	MUST(call(LIST, (u64)items, 60, 0) == 60);
	for (int i = 1; i < 60; i++)
		MUST(items[i - 1] <= items[i]);
	MUST(call(LIST, (u64)items, 64, 0) == 64);
	for (int i = 1; i < 64; i++)
		MUST((items[i - 1] & 255) <= (items[i] & 255));
	MUST(call(LIST, (u64)items, 65, 0) == -22);
}

static void packets_arrive(void)
{
	u8 bytes[128];

	for (u32 seed = 0; seed < 40; seed++) {
		MUST(call(SEND, (u64)bytes, packet(bytes, 6, seed * 77773), 0) > 0);
		MUST(call(SEND, (u64)bytes, packet(bytes, 17, seed * 77773), 0) > 0);
	}
}

static void packets_are_dropped(void)
{
	u8 bytes[128];
	u64 size = packet(bytes, 6, 99);

	MUST(call(SEND, (u64)bytes, 19, 0) == -100);
	MUST(call(SEND, (u64)bytes, size - 1, 0) == -102);
	bytes[8] ^= 1;
	MUST(call(SEND, (u64)bytes, size, 0) == -107);
	bytes[0] = 0x65;
	MUST(call(SEND, (u64)bytes, size, 0) == -106);
	MUST(call(SEND, (u64)bytes, packet(bytes, 99, 1), 0) == -105);
}

void selftest(const char *words)
{
	static const struct {
		const char *name, *group;
		void (*check)(void);
	} checks[] = {
		{ "getpid", "processes", getpid },
		{ "no_such_call", "processes", no_such_call },
		{ "clock_advances", "time", clock_advances },
		{ "file_keeps", "files", file_keeps },
		{ "file_is_full", "files", file_is_full },
		{ "pipe_turns", "ipc", pipe_turns },
		{ "list_is_sorted", "files", list_is_sorted },
		{ "packets_arrive", "network", packets_arrive },
		{ "packets_are_dropped", "network", packets_are_dropped },
	};

	(void)words;
	for (u64 i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		why = 0;
		checks[i].check();
		print("{\"check\":\"");
		print(checks[i].name);
		print("\",\"group\":\"");
		print(checks[i].group);
		print(why ? "\",\"result\":\"failed\",\"why\":\"" : "\",\"result\":\"ok");
		if (why)
			print(why);
		print("\"}\n");
	}
}
