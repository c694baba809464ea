/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A ring buffer to a thread that sends everything back in reverse. BROKEN: never wakes the thread.
 */
#include <linux/kernel.h>
#include <linux/sched.h>

enum { RING = 64 };

struct pipe {
	u8 ring[RING];
	u32 head, tail;
	struct task_struct *reader, *writer;
};

static struct pipe there, back;

static u32 filled(const struct pipe *pipe)
{
	return pipe->head - pipe->tail;
}

static int push(struct pipe *pipe, u8 byte)
{
	if (filled(pipe) == RING)
		return 0;
	pipe->ring[pipe->head++ % RING] = byte;
	return 1;
}

static int pop(struct pipe *pipe, u8 *byte)
{
	if (!filled(pipe))
		return 0;
	*byte = pipe->ring[pipe->tail++ % RING];
	return 1;
}

static void wake_reader(struct pipe *pipe)
{
#ifndef BROKEN
	wake_up(pipe->reader);
#endif
}

static void put(struct pipe *pipe, u8 byte)
{
	while (!push(pipe, byte)) {
		wake_reader(pipe);
		wait();
	}
}

static u8 take(struct pipe *pipe)
{
	u8 byte;

	while (!pop(pipe, &byte)) {
		wake_up(pipe->writer);
		wait();
	}
	return byte;
}

static void echo(void)
{
	for (;;) {
		u32 count = take(&there);
		u8 bytes[256];

		for (u32 i = 0; i < count; i++)
			bytes[i] = take(&there);
		for (u32 i = count; i--;)
			put(&back, bytes[i]);
		wake_reader(&back);
	}
}

void pipe_init(void)
{
	there.writer = back.reader = current;
	there.reader = back.writer = kthread_run(2, "echo", echo);
	schedule();
}

long pipe_echo(u8 *bytes, u64 count)
{
	if (count > 255)
		return -EINVAL;
	put(&there, (u8)count);
	for (u64 i = 0; i < count; i++)
		put(&there, bytes[i]);
	wake_reader(&there);
	for (u64 i = 0; i < count; i++)
		bytes[i] = take(&back);
	return (long)count;
}
