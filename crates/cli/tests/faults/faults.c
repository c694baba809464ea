/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * faults: leaves blocks of code before their end in every way that user code has, a known number of
 * times each, and prints what it saw: exceptions of instructions and of memory, stores into the code that
 * runs, code that another process has at another address. Each way is a region of its own, and rests at
 * its end, so that the CPU halts.
 *
 * Talks to: the recorder by marks (embedded/guest/kt_mark.h); `crates/cli/tests/clock.rs` runs it.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "kt_mark.h"

#define TIMES 5

static volatile unsigned long signals, skip;
static char *data, *code;
static int shared;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Goes on behind the instruction. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	signals++;
	registers[REG_RIP] += skip;
	registers[REG_EFL] &= ~0x100; /* no single step */
}

#define INSTRUCTION(name, length, text)                                                            \
	static void name(void)                                                                     \
	{                                                                                          \
		skip = length;                                                                     \
		__asm__ volatile("nop; nop; " text "; nop; nop"                                    \
				 :                                                                 \
				 :                                                                 \
				 : "rax", "rcx", "rdx", "rdi", "memory", "cc");                    \
	}

INSTRUCTION(ud2, 2, "ud2")
INSTRUCTION(lock, 3, ".byte 0xf0, 0x89, 0xc0")
INSTRUCTION(cli, 1, "cli")
INSTRUCTION(hlt, 1, "hlt")
INSTRUCTION(in, 2, "in $0x80, %%al")
INSTRUCTION(out, 1, "mov $0x80, %%edx; out %%al, %%dx")
INSTRUCTION(rep_insb, 2, "mov $1, %%ecx; rep insb")
INSTRUCTION(mov_cr0, 3, "mov %%cr0, %%rax")
INSTRUCTION(rdmsr, 2, "rdmsr")
INSTRUCTION(wrmsr, 2, "wrmsr")
INSTRUCTION(swapgs, 3, "swapgs")
INSTRUCTION(lgdt, 4, "lgdt (%%rsp)")
INSTRUCTION(int3, 0, "int3")
INSTRUCTION(int_0x30, 2, "int $0x30")
INSTRUCTION(divide, 2, "xor %%ecx, %%ecx; mov %%ecx, %%edx; div %%ecx")
INSTRUCTION(x87, 1, "fninit; sub $8, %%rsp; movw $0x37b, (%%rsp); fldcw (%%rsp); add $8, %%rsp; "
		    "fld1; fldz; fdivrp; fwait; fnclex; fninit")
INSTRUCTION(segment, 2, "mov $0x1234, %%eax; mov %%eax, %%ds")
INSTRUCTION(not_canonical, 2, "mov $1, %%eax; shl $63, %%rax; mov (%%rax), %%ecx")
INSTRUCTION(load, 2, "xor %%eax, %%eax; mov (%%rax), %%ecx")
INSTRUCTION(store, 2, "xor %%eax, %%eax; mov %%ecx, (%%rax)")
INSTRUCTION(misaligned, 3, "lea 1(%%rsp), %%rax; movaps (%%rax), %%xmm0")
INSTRUCTION(single_step, 0, "pushf; orl $0x100, (%%rsp); popf; nop; nop; nop")

/* Memory that is not there yet: the kernel brings it. */

static void forget(void)
{
	if (madvise(data, 32768, MADV_DONTNEED) < 0)
		die("madvise");
}

static void touch(void)
{
	forget();
	data[100] = 1;
	*(volatile long *)(data + 8189) = 1; /* in two pages */
}

static void rep_stosb(void)
{
	void *to = data + 3;
	long count = 12000;

	forget();
	__asm__ volatile("nop; rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
}

static void rep_movsq(void)
{
	void *to = data + 16387, *from = data + 5;
	long count = 1500;

	forget();
	__asm__ volatile("nop; rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

/* Jumps to a page that is not there, to where the block that jumps has an instruction. */
static void fetch(void)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, shared, 0);
	void *to = at + 4096 + 0x101;

	if (at == MAP_FAILED)
		die("mmap");
	__asm__ volatile("call *%1" : "+D"(to) : "r"(at + 0x100) : "memory");
	if (munmap(at, 8192) < 0)
		die("munmap");
}

/* The same page at an address of its own each time. */
static void moved(void)
{
	static char *place = (char *)0x10000000;
	char *at = mmap(place, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, shared, 0);
	void *to = data;

	if (at == MAP_FAILED)
		die("mmap");
	place += 0x10000;
	forget();
	__asm__ volatile("call *%1" : "+D"(to) : "r"(at + 0x200) : "memory");
	if (munmap(at, 4096) < 0)
		die("munmap");
}

/* Code that stores into itself: returns after `nop`s. */

static void run(const unsigned char *text, size_t size)
{
	memcpy(code, text, size);
	for (int again = 0; again < 2; again++)
		__asm__ volatile("call *%0" : : "r"(code), "a"(0x90) : "rcx", "rdi", "memory");
}

/* movb $0x90, 3(%rip) in the middle of a block. */
static void rewrite(void)
{
	static const unsigned char text[] = { 0x90, 0x90, 0xc6, 0x05, 3, 0, 0, 0, 0x90,
					      0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };

	run(text, sizeof(text));
}

/* The block's first instruction. */
static void rewrite_first(void)
{
	static const unsigned char text[] = { 0xc6, 0x05, 3, 0, 0, 0, 0x90, 0x90,
					      0x90, 0x90, 0x90, 0x90, 0xc3 };

	run(text, sizeof(text));
}

/* lea 5(%rip), %rdi; stosb */
static void rewrite_string(void)
{
	static const unsigned char text[] = { 0x90, 0x90, 0x48, 0x8d, 0x3d, 5, 0, 0, 0,
					      0xaa, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };

	run(text, sizeof(text));
}

/* A loop that jumps to its store: mov $5, %ecx; nop; movb $0x90, 1(%rip); nop; nop; dec %ecx; jnz. */
static void rewrite_loop(void)
{
	static const unsigned char text[] = { 0xb9, 5, 0, 0, 0, 0x90, 0xc6, 0x05, 1, 0, 0, 0, 0x90,
					      0x90, 0x90, 0xff, 0xc9, 0x75, 0xf3, 0xc3 };

	run(text, sizeof(text));
}

#define WAY(name, signals) { #name, name, signals }

static const struct {
	const char *name;
	void (*one)(void);
	unsigned long signals;
} ways[] = {
	WAY(ud2, 1),	  WAY(lock, 1),		 WAY(cli, 1),	     WAY(hlt, 1),
	WAY(in, 1),	  WAY(out, 1),		 WAY(rep_insb, 1),   WAY(mov_cr0, 1),
	WAY(rdmsr, 1),	  WAY(wrmsr, 1),	 WAY(swapgs, 1),     WAY(lgdt, 1),
	WAY(int3, 1),	  WAY(int_0x30, 1),	 WAY(divide, 1),     WAY(x87, 1),
	WAY(segment, 1),  WAY(not_canonical, 1), WAY(load, 1),	     WAY(store, 1),
	WAY(misaligned, 1), WAY(single_step, 1), WAY(touch, 0),	     WAY(rep_stosb, 0),
	WAY(rep_movsq, 0), WAY(fetch, 0),	 WAY(moved, 0),	     WAY(rewrite, 0),
	WAY(rewrite_first, 0), WAY(rewrite_string, 0), WAY(rewrite_loop, 0),
};

static void prepare(void)
{
	static const unsigned char jump[] = { 0x90, 0x90, 0x90, 0xff, 0xe7 }; /* jmp *%rdi */
	static const unsigned char back[] = { 0x90, 0x90, 0x90, 0xc3 };
	/* movb $1, (%rdi) */
	static const unsigned char put[] = { 0x90, 0x90, 0xc6, 0x07, 1, 0x90, 0x90, 0xc3 };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	static const int caught[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP };

	for (size_t at = 0; at < sizeof(caught) / sizeof(caught[0]); at++)
		if (sigaction(caught[at], &action, NULL) < 0)
			die("sigaction");
	data = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED || code == MAP_FAILED)
		die("mmap");
	shared = memfd_create("code", 0);
	if (shared < 0 || ftruncate(shared, 8192) < 0 ||
	    pwrite(shared, jump, sizeof(jump), 0x100) != sizeof(jump) ||
	    pwrite(shared, put, sizeof(put), 0x200) != sizeof(put) ||
	    pwrite(shared, back, sizeof(back), 4096 + 0x101) != sizeof(back))
		die("memfd");
}

int main(void)
{
	const struct timespec rest = { .tv_nsec = 1000000 };

	prepare();
	for (size_t at = 0; at < sizeof(ways) / sizeof(ways[0]); at++) {
		signals = 0;
		kt_begin(ways[at].name);
		for (int times = 0; times < TIMES; times++)
			ways[at].one();
		nanosleep(&rest, NULL);
		kt_end(ways[at].name, TIMES);
		if (signals != TIMES * ways[at].signals) {
			fprintf(stderr, "%s: %lu signals\n", ways[at].name, signals);
			return 1;
		}
	}
	return 0;
}
