/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Shared by the user programs of the stand-in guest: system calls and output.
 */
#ifndef INIT_H
#define INIT_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

/* Numbers of system calls, as in kernel/kernel/sys.c. */
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

/* Adds text to the step's output. */
void print(const char *text);

/* Makes a packet with a valid header in `bytes`; returns its size. */
u64 packet(u8 *bytes, u8 protocol, u32 seed);

void fill(u8 *bytes, u64 count, u32 seed);
int same(const void *a, const void *b, u64 count);

/* Programs; `words` is the command line after the name. */
void rr(const char *words);
void selftest(const char *words);

#endif
