/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * tagged: a program with McRae's triggers in it (kt_tags.h), as his modified compiler placed them:
 * at the entry and at every exit of each function, and one inline trigger.
 *
 *   tagged [REQUESTS]
 *
 * Each request is a checksum of 1 to 4 KiB, a copy, and for every eighth one a resend, and a
 * recursive function at the end; all in one region `requests`. The window is memory at
 * KT_TAGS_MEMORY, which the program maps; on a PC with a profiler in an EPROM socket it would map
 * that from /dev/mem.
 * Talks to: the recorder by marks (kt_mark.h) and, if it was started with
 * `record --tags memory:0x4b540000`, by tags; names in tagged.names. data/workloads/tagged.toml runs it.
 */
#define _GNU_SOURCE
#include "kt_mark.h"
#define KT_TAGS_MEMORY 0x4b540000
#include "kt_tags.h"
#include "tagged_tags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW 0x10000 /* bytes: one for each tag */
#define PAGE 4096

/* Each a function of its own for who counts calls from outside. */
#define ALONE __attribute__((noipa))

static unsigned char message[PAGE], copy[PAGE];
static unsigned long resends;

ALONE unsigned checksum(const unsigned char *bytes, size_t size)
{
	KT_FUNCTION(checksum);
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++) {
		sum = (sum << 1 | sum >> 31) ^ bytes[i];
		if (sum == 0xffffffff) /* never: a way out of its own */
			return 1;
	}
	return sum;
}

ALONE void duplicate(unsigned char *to, const unsigned char *from, size_t size)
{
	KT_FUNCTION(duplicate);

	for (size_t i = 0; i < size; i++) {
		to[i] = from[i];
		__asm__ volatile("" : : : "memory"); /* a loop, not memcpy */
	}
}

ALONE unsigned request(unsigned long number)
{
	KT_FUNCTION(request);
	size_t size = PAGE / 4 * (number % 4 + 1);
	unsigned sum = checksum(message, size);

	duplicate(copy, message, size);
	if (number % 8 == 0) {
		KT_INLINE(resend);
		resends++;
		return sum + checksum(copy, size);
	}
	return sum;
}

ALONE unsigned long fibonacci(unsigned n)
{
	KT_FUNCTION(fibonacci);

	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main(int count, char **arguments)
{
	unsigned long requests = count > 1 ? strtoul(arguments[1], NULL, 10) : 400;
	unsigned sum = 0;
	unsigned long number;

	/* Resident from the beginning: a page fault would be measured. */
	if (mmap((void *)KT_TAGS_MEMORY, WINDOW, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0) !=
	    (void *)KT_TAGS_MEMORY) {
		perror("tagged: cannot map the window of tags");
		return 1;
	}
	for (size_t i = 0; i < PAGE; i++)
		message[i] = (unsigned char)(i * 7);
	memset(copy, 1, PAGE);
	request(1);
	kt_begin("requests");
	for (unsigned long i = 0; i < requests; i++)
		sum += request(i);
	number = fibonacci(15);
	kt_end("requests", requests);
	printf("{\"requests\":%lu,\"resends\":%lu,\"sum\":%u,\"fibonacci\":%lu}\n", requests, resends,
	       sum, number);
	return 0;
}
