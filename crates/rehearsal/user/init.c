/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Init of the stand-in guest: runs the steps of one run in its own process. Its input has a line `RUN GCOV`,
 * then for each step a line `LOG REGION OPERATIONS COMMAND…`, with tabs between fields. Console messages and
 * results are those of embedded/guest/init.
 */
#include "init.h"
#include "../../../embedded/guest/kt_mark.h"

static char output[1 << 16];
static u64 printed;

void *memcpy(void *to, const void *from, u64 count)
{
	for (u64 i = 0; i < count; i++)
		((volatile u8 *)to)[i] = ((const u8 *)from)[i];
	return to;
}

void *memset(void *to, int value, u64 count)
{
	for (u64 i = 0; i < count; i++)
		((volatile u8 *)to)[i] = (u8)value;
	return to;
}

void print(const char *text)
{
	while (*text && printed < sizeof(output))
		output[printed++] = *text++;
}

void fill(u8 *bytes, u64 count, u32 seed)
{
	for (u64 i = 0; i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (u8)(seed >> 24);
	}
}

int same(const void *a, const void *b, u64 count)
{
	for (u64 i = 0; i < count; i++)
		if (((const u8 *)a)[i] != ((const u8 *)b)[i])
			return 0;
	return 1;
}

static void put16(u8 *at, u32 value)
{
	at[0] = (u8)(value >> 8);
	at[1] = (u8)value;
}

u64 packet(u8 *bytes, u8 protocol, u32 seed)
{
	u64 payload = 24 + seed % 40, total = 40 + payload;
	u32 sum = 0;

	fill(bytes, total, seed);
	bytes[0] = 0x45;
	put16(bytes + 2, (u32)total);
	bytes[9] = protocol;
	put16(bytes + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += (u32)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(bytes + 10, ~sum);
	/* To one of two ports; TCP with padding options and without reset flag, UDP with its length. */
	put16(bytes + 22, 80 + seed % 2);
	if (protocol == 6) {
		bytes[32] = 6 << 4;
		bytes[33] = 0x10;
		bytes[40] = bytes[41] = bytes[42] = bytes[43] = 1;
	} else {
		put16(bytes + 24, (u32)total - 20);
	}
	return total;
}

static void say(const char *text)
{
	call(CONSOLE, (u64)text, 0, 0);
}

/* Terminates the field; returns the next one. */
static char *next(char *field, char end)
{
	while (*field && *field != end)
		field++;
	if (*field)
		*field++ = 0;
	return field;
}

static int is(const char *word, const char *name)
{
	while (*word && *word == *name) {
		word++;
		name++;
	}
	return *word == *name;
}

static void step(const char *run, char number, char *line)
{
	char *log = line, *region = next(log, '\t'), *operations = next(region, '\t');
	char *program = next(operations, '\t'), *words = next(program, '\t');
	const char count[3] = { ' ', number, 0 };
	u64 done = 0;

	say("kt: phase ");
	say(run);
	say(" step");
	say(count);
	say(" ");
	say(is(region, "-") ? program : region);
	say("\n");
	while (*operations)
		done = done * 10 + (u64)(*operations++ - '0');
	printed = 0;
	if (!is(region, "-"))
		kt_begin(region);
	if (is(program, "rr"))
		rr(words);
	else if (is(program, "selftest"))
		selftest(words);
	else {
		say("kt: failed: the stand-in guest has no such program\n");
		call(POWER_OFF, 0, 0, 0);
	}
	if (!is(region, "-"))
		kt_end(region, done);
	call(RESULT, (u64)log, (u64)output, printed);
}

__attribute__((section(".text.start"))) void _start(char *run)
{
	char *gcov = next(run, '\t'), *line = next(gcov, '\n');

	say("kt: phase boot\n");
	if (*gcov == '1')
		call(GCOV, 0, 0, 0);
	for (char number = '1'; *line; number++) {
		char *rest = next(line, '\n');

		step(run, number, line);
		line = rest;
	}
	if (*gcov == '1') {
		say("kt: phase collecting\n");
		call(GCOV, 1, 0, 0);
	}
	say("kt: done\n");
	call(POWER_OFF, 0, 0, 0);
}
