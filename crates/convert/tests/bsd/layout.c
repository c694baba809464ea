/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Writes files as the headers of BSD systems lay them out; no BSD system was at hand to write one.
 *
 *   layout KIND FILE
 *
 * 4.2bsd        sys/gmon.h (struct phdr, struct rawarc) and etc/kgmon.c on a VAX: 32-bit words, the counters
 *               `unsigned short`, HISTFRACTION 2: one for two counters' worth of text
 * 4.4bsd        struct gmonhdr, 32-bit words
 * 4.4bsd-64     the same where a long has 64 bits
 * freebsd-16    FreeBSD's struct gmonhdr on amd64 with histcounter_type 16
 * freebsd-32    … 32
 * freebsd--64   … -64: `int64_t`, as in a kernel for GUPROF
 *
 * Talks to: crates/convert/tests/bsd.rs, which compiles it and knows the numbers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GMONVERSION 0x00051879

struct phdr32 {
	uint32_t lpc, hpc;
	int32_t ncnt;
};

struct gmonhdr32 {
	uint32_t lpc, hpc;
	int32_t ncnt, version, profrate, spare[3];
};

struct gmonhdr64 {
	uint64_t lpc, hpc;
	int32_t ncnt, version, profrate, histcounter_type, spare[2];
};

struct rawarc32 {
	uint32_t raw_frompc, raw_selfpc;
	int32_t raw_count;
};

struct rawarc64 {
	uint64_t raw_frompc, raw_selfpc;
	int64_t raw_count;
};

#define LOW 0x80001000u
#define COUNTERS 16
#define HISTFRACTION 2
/* With counters of two bytes: each stands for four bytes of text. */
#define HIGH(size) (LOW + COUNTERS * (size) * HISTFRACTION)

static FILE *out;

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, size, 1, out) != 1) {
		perror("layout: cannot write");
		exit(1);
	}
}

static uint64_t ticks(int number)
{
	/* The last but one does not fit into 16 bits. */
	return number == COUNTERS - 2 ? 70000 : number % 3 == 0 ? (uint64_t)number + 1 : 0;
}

static void counters(int size)
{
	for (int number = 0; number < COUNTERS; number++) {
		uint64_t value = ticks(number);
		uint16_t narrow = (uint16_t)(value > 0xffff ? 0xffff : value);
		uint32_t middle = (uint32_t)value;

		put(size == 2 ? (void *)&narrow : size == 4 ? (void *)&middle : (void *)&value, (size_t)size);
	}
}

static void arcs(int wide)
{
	static const uint32_t all[][3] = {
		{ LOW + 4, LOW + 0x20, 9 },
		{ LOW + 6, LOW + 0x20, 70000 },
		{ 0, LOW, 1 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct rawarc32 narrow = { all[i][0], all[i][1], (int32_t)all[i][2] };
		struct rawarc64 broad = { all[i][0], all[i][1], all[i][2] };

		if (wide)
			put(&broad, sizeof(broad));
		else
			put(&narrow, sizeof(narrow));
	}
}

int main(int count, char **arguments)
{
	const char *kind = count == 3 ? arguments[1] : "";
	int bits = 0;

	if (count != 3 || !(out = fopen(arguments[2], "wb"))) {
		fprintf(stderr, "layout KIND FILE\n");
		return 2;
	}
	if (!strcmp(kind, "4.2bsd")) {
		struct phdr32 header = { LOW, HIGH(2), COUNTERS * 2 + sizeof(header) };

		put(&header, sizeof(header));
	} else if (!strcmp(kind, "4.4bsd")) {
		struct gmonhdr32 header = {
			LOW, HIGH(2), COUNTERS * 2 + sizeof(header), GMONVERSION, 1024, { 0 },
		};

		put(&header, sizeof(header));
	} else if (!strcmp(kind, "4.4bsd-64") || sscanf(kind, "freebsd-%d", &bits) == 1) {
		int size = bits ? abs(bits) / 8 : 2;
		struct gmonhdr64 header = {
			LOW, HIGH(size), COUNTERS * size + (int)sizeof(header), GMONVERSION, 1024, bits, { 0 },
		};

		put(&header, sizeof(header));
		counters(size);
		arcs(1);
		return fclose(out) != 0;
	} else {
		fprintf(stderr, "layout: no such kind: %s\n", kind);
		return 2;
	}
	counters(2);
	arcs(0);
	return fclose(out) != 0;
}
