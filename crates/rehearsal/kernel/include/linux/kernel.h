/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Declarations shared by the parts of the stand-in kernel.
 */
#ifndef LINUX_KERNEL_H
#define LINUX_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define EBADF 9
#define ENOMEM 12
#define EFAULT 14
#define EINVAL 22
#define ENFILE 23
#define ENOSPC 28
#define ENOSYS 38

#define noinline __attribute__((noinline))
#define USER_END 0x800000000000ul

/* lib */
void *memcpy(void *to, const void *from, u64 bytes);
void *memset(void *to, int value, u64 bytes);
int memcmp(const void *a, const void *b, u64 bytes);
u64 strlen(const char *text);
void sort(u32 *items, u64 count, int (*compare)(u32, u32));

/* kernel/printk.c */
void printk(const char *text);
void __attribute__((noreturn, cold)) panic(const char *what);
void result(const char *name, const void *bytes, u64 size);
void __attribute__((noreturn)) power_off(void);

/* mm/slab.c */
void *kmalloc(u64 bytes);
void kfree(void *object);

/* fs */
long do_open(const char *name);
long do_close(u64 fd);
long do_read(u64 fd, void *to, u64 bytes);
long do_write(u64 fd, const void *from, u64 bytes);
long do_list(u32 *to, u64 count);
void pipe_init(void);
long pipe_echo(u8 *bytes, u64 count);

/* net */
u16 checksum(const u8 *bytes, u64 count, u32 sum);
long receive(const u8 *packet, u64 bytes);

/* kernel/gcov/gcov.c */
long sys_gcov(u64 what);

static inline void outb(u16 port, u8 value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 inb(u16 port)
{
	u8 value;

	asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline u64 rdtsc(void)
{
	u32 low, high;

	asm volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

#endif
