/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the programs of the stand-in's user side share: system calls, and where they print.
 */
#ifndef INIT_H
#define INIT_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

/* The numbers are those of kernel/kernel/sys.c. */
enum { READ, WRITE, OPEN, CLOSE, GETPID, LIST, ECHO, SEND, CONSOLE, RESULT, GCOV, CLOCK, POWER_OFF };

static inline long call(long number, u64 a, u64 b, u64 c)
{
	long value;

	__asm__ volatile("syscall"
			 : "=a"(value)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return value;
}

/* Into what the step prints. */
void print(const char *text);

/* A packet with a header that is right, in `bytes`: its size. */
u64 packet(u8 *bytes, u8 protocol, u32 seed);

void fill(u8 *bytes, u64 count, u32 seed);
int same(const void *a, const void *b, u64 count);

/* Programs: given the words of the command line behind the name. */
void rr(const char *words);
void selftest(const char *words);

#endif
