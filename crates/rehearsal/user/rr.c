/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The workload: one region for each feature of the stand-in kernel. `--seed N` changes the data.
 */
#include "init.h"
#include "../../../embedded/guest/kt_mark.h"

static void getpid_rr(u32 seed)
{
	(void)seed;
	call(GETPID, 0, 0, 0);
}

static void file_rr(u32 seed)
{
	static char names[4][64] = { "passwd", "index.html", "libc.so.6", "journal" };
	u8 bytes[300];
	long fd = call(OPEN, (u64)names[seed % 4], 0, 0);

	fill(bytes, 32, seed);
	call(WRITE, (u64)fd, (u64)bytes, 200 + seed % 100);
	call(CLOSE, (u64)fd, 0, 0);
	fd = call(OPEN, (u64)names[seed % 4], 0, 0);
	call(READ, (u64)fd, (u64)bytes, 300);
	call(CLOSE, (u64)fd, 0, 0);
}

static void pipe_rr(u32 seed)
{
	u8 bytes[16];

	fill(bytes, 16, seed);
	call(ECHO, (u64)bytes, 16, 0);
}

static void list_rr(u32 seed)
{
	u32 items[64];

	call(LIST, (u64)items, 24 + seed % 16, 0);
}

static void packet_rr(u32 seed)
{
	u8 bytes[128];

	call(SEND, (u64)bytes, packet(bytes, seed % 8 ? 6 : 17, seed), 0);
}

void rr(const char *words)
{
	static const struct {
		const char *name;
		void (*operation)(u32);
		u32 operations;
	} rows[] = {
		{ "getpid", getpid_rr, 200 },  { "file_rr", file_rr, 60 },	 { "pipe_rr", pipe_rr, 60 },
		{ "list_rr", list_rr, 20 },    { "packet_rr", packet_rr, 200 },
	};
	u32 seed = 1;

	for (; *words; words++) {
		if (words[0] == '-' && words[1] == '-' && words[3] == 'e' && words[7] >= '0') {
			seed = 0;
			for (words += 7; *words >= '0' && *words <= '9'; words++)
				seed = seed * 10 + (u32)(*words - '0');
			break;
		}
	}
	for (u64 row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		kt_begin(rows[row].name);
		for (u32 i = 0; i < rows[row].operations; i++) {
			seed = seed * 1664525u + 1013904223u;
			rows[row].operation(seed >> 8);
			kt_op();
		}
		kt_end(rows[row].name, 0);
	}
	print("rr: done\n");
}
