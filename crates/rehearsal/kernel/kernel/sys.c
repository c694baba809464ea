/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * System calls; the numbers are those of user/init.h.
 */
#include <linux/kernel.h>
#include <linux/sched.h>

enum { NAME = 64, CHUNK = 256 };

static int outside(u64 address, u64 bytes)
{
	return address >= USER_END || bytes > USER_END - address;
}

static noinline long refuse(u64 number, long error)
{
	static u64 refused;

	refused += number;
	return -error;
}

/* Copies through a kernel buffer, as in Linux. */
static long copy_in(void *to, u64 from, u64 bytes)
{
	if (outside(from, bytes))
		return -EFAULT;
	memcpy(to, (const void *)from, bytes);
	return 0;
}

static long copy_out(u64 to, const void *from, u64 bytes)
{
	if (outside(to, bytes))
		return -EFAULT;
	memcpy((void *)to, from, bytes);
	return 0;
}

static long sys_read(u64 fd, u64 to, u64 bytes)
{
	u8 chunk[CHUNK];
	long done = 0;

	while (bytes) {
		u64 part = bytes < CHUNK ? bytes : CHUNK;
		long got = do_read(fd, chunk, part);

		if (got < 0)
			return got;
		if (copy_out(to, chunk, (u64)got))
			return refuse(0, EFAULT);
		done += got;
		to += (u64)got;
		bytes -= (u64)got;
		if ((u64)got < part)
			break;
	}
	return done;
}

static long sys_write(u64 fd, u64 from, u64 bytes)
{
	u8 chunk[CHUNK];
	long done = 0;

	while (bytes) {
		u64 part = bytes < CHUNK ? bytes : CHUNK;
		long put;

		if (copy_in(chunk, from, part))
			return refuse(1, EFAULT);
		put = do_write(fd, chunk, part);
		if (put < 0)
			return put;
		done += put;
		from += part;
		bytes -= part;
	}
	return done;
}

static long sys_open(u64 name)
{
	char text[NAME];

	if (copy_in(text, name, NAME))
		return refuse(2, EFAULT);
	text[NAME - 1] = 0;
	return do_open(text);
}

static long sys_list(u64 to, u64 count)
{
	u32 items[64];
	long found;

	if (count > 64)
		return refuse(5, EINVAL);
	found = do_list(items, count);
	if (found > 0 && copy_out(to, items, (u64)found * 4))
		return refuse(5, EFAULT);
	return found;
}

static long sys_echo(u64 bytes, u64 count)
{
	u8 chunk[CHUNK];
	long got;

	if (count > CHUNK || copy_in(chunk, bytes, count))
		return refuse(6, EFAULT);
	got = pipe_echo(chunk, count);
	if (got > 0 && copy_out(bytes, chunk, (u64)got))
		return refuse(6, EFAULT);
	return got;
}

static long sys_send(u64 packet, u64 bytes)
{
	u8 *copy;
	long verdict;

	if (bytes > 2048)
		return refuse(7, EINVAL);
	copy = kmalloc(bytes);
	if (!copy)
		return refuse(7, ENOMEM);
	verdict = copy_in(copy, packet, bytes);
	if (!verdict)
		verdict = receive(copy, bytes);
	kfree(copy);
	return verdict;
}

/* For kernels without gcov counters. */
long __attribute__((weak)) sys_gcov(u64 what)
{
	return refuse(what, ENOSYS);
}

long do_syscall_64(u64 a, u64 b, u64 c, u64 d, u64 number)
{
	switch (number) {
	case 0:
		return sys_read(a, b, c);
	case 1:
		return sys_write(a, b, c);
	case 2:
		return sys_open(a);
	case 3:
		return do_close(a);
	case 4:
		return current->pid;
	case 5:
		return sys_list(a, b);
	case 6:
		return sys_echo(a, b);
	case 7:
		return sys_send(a, b);
	case 8:
		printk((const char *)a);
		return 0;
	case 9:
		result((const char *)a, (const void *)b, c);
		return 0;
	case 10:
		return sys_gcov(a);
	case 11:
		return (long)rdtsc();
	case 12:
		power_off();
	default:
		return refuse(number, ENOSYS);
	}
}
