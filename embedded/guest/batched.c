/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * batched: micro-operations through io_uring, thousands of them linked in one chain per system call, so that
 * the time is that of the kernel's own code even where entering the kernel is dear.
 *
 * Its arguments and its lines are those of every suite (kt_suite.h), with iterations: sockets and files are set up before the
 * first row, and one chain is done before a row's first iteration.
 *
 * All of it is one thread: a chain's operations come one after the other, and what a socket is sent waits
 * there when its turn comes to receive.
 * Talks to: as every suite (kt_suite.h); `data/workloads/batched.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define CHAIN 4096       /* entries of the longest chain */
#define PIPE_BYTES 20    /* McRae's and Chen's message */
#define SMALL 64
#define PAGE 4096
#define PAGES 64         /* of the file in memory */
#define SLOT 1           /* of a descriptor that never leaves the ring, counted from 1 */
#define NO_RING "io_uring_setup (Linux 6.1 or later with CONFIG_IO_URING is needed, and /proc/sys/kernel/" \
		"io_uring_disabled to be 0)"

static char received[PAGE];

/* ---- the ring ---- */

static struct {
	int fd;
	unsigned *sq_tail, *cq_head, *cq_tail, sq_mask, cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	unsigned filled; /* entries of the chain that is being made */
} ring;

static void *map_ring(size_t size, off_t what)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);

	if (at == MAP_FAILED)
		die("mmap of the ring");
	return at;
}

/* Links go on in the system call that waits, and nowhere else. */
#define RING_FLAGS (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

static void ring_open(void)
{
	struct io_uring_params params = { .flags = RING_FLAGS };
	struct io_uring_rsrc_register slots = { .nr = SLOT, .flags = IORING_RSRC_REGISTER_SPARSE };
	unsigned *array;
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, CHAIN, &params);
	if (ring.fd < 0)
		die(NO_RING);
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES2, &slots, sizeof(slots)) < 0)
		die("io_uring_register");
	sq = map_ring(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = map_ring(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqe = map_ring(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.cqe = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
	ring.sq_tail = (unsigned *)(sq + params.sq_off.tail);
	ring.cq_head = (unsigned *)(cq + params.cq_off.head);
	ring.cq_tail = (unsigned *)(cq + params.cq_off.tail);
	ring.sq_mask = *(unsigned *)(sq + params.sq_off.ring_mask);
	ring.cq_mask = *(unsigned *)(cq + params.cq_off.ring_mask);
	array = (unsigned *)(sq + params.sq_off.array);
	for (unsigned i = 0; i < params.sq_entries; i++)
		array[i] = i;
}

/* The next entry of the chain, which must give `result`. */
static struct io_uring_sqe *entry(unsigned char operation, int fd, int result)
{
	struct io_uring_sqe *sqe = &ring.sqe[(*ring.sq_tail + ring.filled++) & ring.sq_mask];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = operation;
	sqe->flags = IOSQE_IO_LINK;
	sqe->fd = fd;
	sqe->user_data = (unsigned)result;
	return sqe;
}

/* `size` bytes that move at once. Offset -1: where the file stands, or a stream. */
static void transfer(unsigned char operation, int fd, void *bytes, unsigned size, uint64_t offset)
{
	struct io_uring_sqe *sqe = entry(operation, fd, (int)size);

	sqe->addr = (uint64_t)(uintptr_t)bytes;
	sqe->len = size;
	sqe->off = offset;
}

static void send_to(int fd, unsigned size)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_SEND, fd, (int)size);

	sqe->addr = (uint64_t)(uintptr_t)kt_message;
	sqe->len = size;
}

static void receive(int fd, unsigned size)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_RECV, fd, (int)size);

	sqe->addr = (uint64_t)(uintptr_t)received;
	sqe->len = size;
	sqe->msg_flags = MSG_WAITALL;
}

/* One system call: the whole chain, to its end. */
static void submit(void)
{
	unsigned tail = *ring.sq_tail + ring.filled, done = 0;
	long taken;

	/* The last of a chain is linked to nothing. */
	ring.sqe[(tail - 1) & ring.sq_mask].flags = 0;
	__atomic_store_n(ring.sq_tail, tail, __ATOMIC_RELEASE);
	taken = syscall(SYS_io_uring_enter, ring.fd, ring.filled, ring.filled, IORING_ENTER_GETEVENTS, NULL, 0);
	if (taken != (long)ring.filled)
		die("io_uring_enter took %ld of %u", taken, ring.filled);
	while (done < ring.filled) {
		unsigned head = *ring.cq_head, end = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);

		for (; head != end; head++, done++) {
			const struct io_uring_cqe *cqe = &ring.cqe[head & ring.cq_mask];

			if (cqe->res != (int)cqe->user_data) {
				errno = cqe->res < 0 ? -cqe->res : 0;
				die("entry %u gave %d and not %d", done, cqe->res, (int)cqe->user_data);
			}
		}
		__atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
		/* A signal may end the wait early. */
		if (done < ring.filled && syscall(SYS_io_uring_enter, ring.fd, 0, ring.filled - done,
						  IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			die("io_uring_enter");
	}
	ring.filled = 0;
}

/* ---- what the operations work on: all of it is there before the first row ---- */

static int tcp[2], udp[2], pair[2], ends[2], page_file, directory;
static unsigned page_of[PAGES];
static struct statx status;

static int listening(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, size) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &size) < 0)
		die("tcp server socket");
	return fd;
}

static void open_tcp(void)
{
	struct sockaddr_in address;
	int one = 1, server = listening(&address);

	tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (tcp[0] < 0 || connect(tcp[0], (struct sockaddr *)&address, sizeof(address)) < 0)
		die("tcp connect");
	tcp[1] = accept(server, NULL, NULL);
	if (tcp[1] < 0)
		die("accept");
	for (int i = 0; i < 2; i++)
		if (setsockopt(tcp[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
			die("TCP_NODELAY");
	close(server);
}

static void open_udp(void)
{
	struct sockaddr_in address[2];
	socklen_t size = sizeof(address[0]);

	for (int i = 0; i < 2; i++) {
		memset(&address[i], 0, size);
		address[i].sin_family = AF_INET;
		address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		udp[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (udp[i] < 0 || bind(udp[i], (struct sockaddr *)&address[i], size) < 0 ||
		    getsockname(udp[i], (struct sockaddr *)&address[i], &size) < 0)
			die("udp socket");
	}
	for (int i = 0; i < 2; i++)
		if (connect(udp[i], (struct sockaddr *)&address[1 - i], size) < 0)
			die("udp connect");
}

static void open_files(void)
{
	directory = open(kt_dir, O_RDONLY | O_DIRECTORY);
	if (directory < 0)
		die("open %s", kt_dir);
	/* io_uring leaves buffered writes to a worker thread, except of files that are open like this. Data on tmpfs
	 * goes the same way with O_DIRECT as without; before Linux 6.6 it refuses the word. */
	page_file = openat(directory, "pages", O_RDWR | O_CREAT | O_DIRECT | O_NONBLOCK, 0600);
	if (page_file < 0 && errno == EINVAL)
		page_file = openat(directory, "pages", O_RDWR | O_CREAT, 0600);
	if (page_file < 0)
		die("create %s", kt_path("pages"));
	for (unsigned i = 0; i < PAGES; i++) {
		unsigned other = (unsigned)(kt_random() % (i + 1));

		if (pwrite(page_file, kt_message, PAGE, (off_t)i * PAGE) != PAGE)
			die("pwrite");
		/* Every page once, in an order of the seed's. */
		page_of[i] = page_of[other];
		page_of[other] = i;
	}
}

static void open_all(void)
{
	ring_open();
	open_tcp();
	open_udp();
	open_files();
	if (pipe(ends) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		die("pipe and socketpair");
}

static void remove_all(void)
{
	if (unlinkat(directory, "pages", 0) < 0)
		die("remove %s", kt_path("pages"));
}

/* ---- rows: each adds the entries of the n-th operation ---- */

static void ping_pong(const int *fd, unsigned size)
{
	send_to(fd[0], size);
	receive(fd[1], size);
	send_to(fd[1], size);
	receive(fd[0], size);
}

static void nop(unsigned long n)
{
	(void)n;
	entry(IORING_OP_NOP, -1, 0);
}

static void tcp_rr_1(unsigned long n)
{
	(void)n;
	ping_pong(tcp, 1);
}

static void tcp_rr_64(unsigned long n)
{
	(void)n;
	ping_pong(tcp, SMALL);
}

static void udp_rr_1(unsigned long n)
{
	(void)n;
	ping_pong(udp, 1);
}

static void unix_rr_1(unsigned long n)
{
	(void)n;
	ping_pong(pair, 1);
}

static void pipe_20(unsigned long n)
{
	(void)n;
	transfer(IORING_OP_WRITE, ends[1], kt_message, PIPE_BYTES, (uint64_t)-1);
	transfer(IORING_OP_READ, ends[0], received, PIPE_BYTES, (uint64_t)-1);
}

static void tmpfs_write_20(unsigned long n)
{
	(void)n;
	transfer(IORING_OP_WRITE, page_file, kt_message, PIPE_BYTES, 0);
}

static void tmpfs_pages_64(unsigned long n)
{
	uint64_t offset = (uint64_t)page_of[n % PAGES] * PAGE;

	transfer(IORING_OP_WRITE, page_file, kt_message, SMALL, offset);
	transfer(IORING_OP_READ, page_file, received, SMALL, offset);
}

static void tmpfs_read_4096(unsigned long n)
{
	transfer(IORING_OP_READ, page_file, received, PAGE, (uint64_t)page_of[n % PAGES] * PAGE);
}

static void tmpfs_write_4096(unsigned long n)
{
	transfer(IORING_OP_WRITE, page_file, kt_message, PAGE, (uint64_t)page_of[n % PAGES] * PAGE);
}

static void close_slot(void)
{
	entry(IORING_OP_CLOSE, 0, 0)->file_index = SLOT;
}

static void openat_close(unsigned long n)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_OPENAT, directory, 0);

	(void)n;
	sqe->addr = (uint64_t)(uintptr_t)"pages";
	sqe->open_flags = O_RDONLY;
	sqe->file_index = SLOT;
	close_slot();
}

static void socket_close(unsigned long n)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_SOCKET, AF_INET, 0);

	(void)n;
	sqe->off = SOCK_DGRAM;
	sqe->file_index = SLOT;
	close_slot();
}

/* io_uring leaves this one to a worker thread: a thread is woken, and wakes us. */
static void statx_worker(unsigned long n)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_STATX, directory, 0);

	(void)n;
	sqe->addr = (uint64_t)(uintptr_t)"pages";
	sqe->len = STATX_BASIC_STATS;
	sqe->off = (uint64_t)(uintptr_t)&status;
}

static void poll_ready(unsigned long n)
{
	(void)n;
	entry(IORING_OP_POLL_ADD, ends[1], POLLOUT)->poll32_events = POLLOUT;
}

/* A little of everything, so that no code stays warm by itself. */
static void mix(unsigned long n)
{
	tcp_rr_1(n);
	pipe_20(n);
	tmpfs_pages_64(n);
	udp_rr_1(n);
	openat_close(n);
	unix_rr_1(n);
	tmpfs_read_4096(n);
}

/* ---- chains ---- */

struct chain {
	unsigned entries; /* of one operation */
	void (*add)(unsigned long n);
};

/* So many operations, in as few chains as they fit in. */
static void operate(const struct kt_row *row, unsigned long operations)
{
	const struct chain *chain = row->data;
	unsigned long longest = CHAIN / chain->entries;

	for (unsigned long n = 0; n < operations;) {
		unsigned long end = operations - n < longest ? operations : n + longest;

		for (; n < end; n++)
			chain->add(n);
		submit();
	}
}

/* The longest chain that the row will have. */
static void one_chain(const struct kt_row *row)
{
	unsigned long longest = CHAIN / ((const struct chain *)row->data)->entries;

	operate(row, kt_operations < longest ? kt_operations : longest);
}

/* All rows need a ring, and no more. */
static const char *no_ring(void)
{
	static char reason[256];
	struct io_uring_params params = { .flags = RING_FLAGS };
	int fd = (int)syscall(SYS_io_uring_setup, CHAIN, &params);

	if (fd < 0) {
		snprintf(reason, sizeof(reason), NO_RING ": %s", strerror(errno));
		return reason;
	}
	close(fd);
	return NULL;
}

/* `count` operations at scale 1: about 3 to 12 million kernel instructions each. */
#define ROW(operation, entries, count)                                                                    \
	{                                                                                                 \
		.name = #operation, .operations = count, .needs = "CONFIG_IO_URING", .missing = no_ring,  \
		.begin = one_chain, .all = operate, .data = &(const struct chain){ entries, operation }   \
	}

static const struct kt_row rows[] = {
	ROW(nop, 1, 16384),
	ROW(tcp_rr_1, 4, 1024),
	ROW(tcp_rr_64, 4, 1024),
	ROW(udp_rr_1, 4, 1024),
	ROW(unix_rr_1, 4, 2048),
	ROW(pipe_20, 2, 4096),
	ROW(tmpfs_write_20, 1, 8192),
	ROW(tmpfs_pages_64, 2, 4096),
	ROW(tmpfs_read_4096, 1, 8192),
	ROW(tmpfs_write_4096, 1, 8192),
	ROW(openat_close, 2, 2048),
	ROW(socket_close, 2, 2048),
	ROW(poll_ready, 1, 8192),
	ROW(statx_worker, 1, 1024),
	ROW(mix, 19, 512),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = {
		.name = "batched", .rows = rows, .count = sizeof(rows) / sizeof(rows[0]), .timed = 1,
		/* /tmp of a running system may be on a disk. */
		.scratch = "/dev/shm", .begin = open_all, .end = remove_all,
	};

	return kt_main(&suite, argc, argv);
}
