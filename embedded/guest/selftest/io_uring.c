/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * io_uring, by its system calls.
 */
#include "selftest.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct ring {
	int fd;
	unsigned *tail, *head, *array, mask, *done_tail, *done_head, done_mask;
	struct io_uring_sqe *entries;
	struct io_uring_cqe *done;
};

static struct ring open_ring(unsigned size)
{
	struct io_uring_params params = { 0 };
	struct ring ring = { .fd = (int)HAVE(syscall(SYS_io_uring_setup, size, &params)) };
	char *at = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			IORING_OFF_SQ_RING);
	char *done = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(*ring.done), PROT_READ | PROT_WRITE,
			  MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);

	ring.entries = mmap(NULL, params.sq_entries * sizeof(*ring.entries), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			    IORING_OFF_SQES);
	MUST(at != MAP_FAILED && done != MAP_FAILED && ring.entries != MAP_FAILED);
	ring.tail = (unsigned *)(at + params.sq_off.tail);
	ring.head = (unsigned *)(at + params.sq_off.head);
	ring.array = (unsigned *)(at + params.sq_off.array);
	ring.mask = params.sq_entries - 1;
	ring.done_tail = (unsigned *)(done + params.cq_off.tail);
	ring.done_head = (unsigned *)(done + params.cq_off.head);
	ring.done_mask = params.cq_entries - 1;
	ring.done = (struct io_uring_cqe *)(done + params.cq_off.cqes);
	return ring;
}

static struct io_uring_sqe *next_entry(struct ring *ring, unsigned char operation, unsigned long data)
{
	unsigned tail = *ring->tail;
	struct io_uring_sqe *entry = &ring->entries[tail & ring->mask];

	memset(entry, 0, sizeof(*entry));
	entry->opcode = operation;
	entry->user_data = data;
	ring->array[tail & ring->mask] = tail & ring->mask;
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
	return entry;
}

static void submit(struct ring *ring, unsigned count)
{
	MUST(syscall(SYS_io_uring_enter, ring->fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0) == count);
}

struct done {
	int res;
	unsigned long user_data;
};

static struct done take(struct ring *ring)
{
	unsigned head = *ring->done_head;
	const struct io_uring_cqe *entry = &ring->done[head & ring->done_mask];
	struct done done;

	MUST(head != __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE));
	done = (struct done){ entry->res, entry->user_data };
	__atomic_store_n(ring->done_head, head + 1, __ATOMIC_RELEASE);
	return done;
}

static void uring_batch(void)
{
	struct ring ring = open_ring(64);

	for (int round = 0; round < 20; round++) {
		for (unsigned long i = 0; i < 64; i++)
			next_entry(&ring, IORING_OP_NOP, i);
		submit(&ring, 64);
		for (unsigned long i = 0; i < 64; i++) {
			struct done done = take(&ring);

			MUST(done.res == 0 && done.user_data == i);
		}
	}
}

static void uring_files(void)
{
	static unsigned char out[PAGE], in[PAGE];
	struct ring ring = open_ring(4);
	struct io_uring_sqe *entry;
	int fd = create("ring");

	fill(out, 3, PAGE);
	entry = next_entry(&ring, IORING_OP_WRITE, 1);
	entry->fd = fd;
	entry->addr = (unsigned long)out;
	entry->len = PAGE;
	entry->flags = IOSQE_IO_LINK;
	entry = next_entry(&ring, IORING_OP_READ, 2);
	entry->fd = fd;
	entry->addr = (unsigned long)in;
	entry->len = PAGE;
	submit(&ring, 2);
	MUST(take(&ring).res == PAGE && take(&ring).res == PAGE && is_filled(in, 3, PAGE));
}

static void uring_broken_link(void)
{
	struct ring ring = open_ring(4);
	struct io_uring_sqe *entry = next_entry(&ring, IORING_OP_READ, 1);
	struct done done;

	entry->fd = 1000;
	entry->flags = IOSQE_IO_LINK;
	next_entry(&ring, IORING_OP_NOP, 2);
	submit(&ring, 2);
	done = take(&ring);
	MUST(done.user_data == 1 && done.res == -EBADF);
	done = take(&ring);
	MUST(done.user_data == 2 && done.res == -ECANCELED);
}

const struct group group_io_uring = { "io_uring", {
	CHECK(uring_batch), CHECK(uring_files), CHECK(uring_broken_link),
} };
