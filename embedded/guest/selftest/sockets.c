/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Sockets, and waiting for them.
 */
#include "selftest.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static void tcp_pair(int *a, int *b)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int server = (int)HAVE(socket(AF_INET, SOCK_STREAM, 0));

	MUST(bind(server, (struct sockaddr *)&address, size) == 0 && listen(server, 4) == 0);
	MUST(getsockname(server, (struct sockaddr *)&address, &size) == 0);
	*a = socket(AF_INET, SOCK_STREAM, 0);
	MUST(*a >= 0 && connect(*a, (struct sockaddr *)&address, size) == 0);
	*b = accept(server, NULL, NULL);
	MUST(*b >= 0 && close(server) == 0);
}

static void tcp_stream(void)
{
	unsigned char bytes[8192];
	size_t at = 0;
	int a, b;
	pid_t child;

	tcp_pair(&a, &b);
	child = fork();
	if (child == 0) {
		close(b);
		for (size_t sent = 0; sent < 2 << 20; sent += 8000) {
			fill(bytes, sent, 8000);
			MUST(send(a, bytes, 8000, 0) == 8000);
		}
		_exit(0);
	}
	close(a);
	for (ssize_t size; (size = recv(b, bytes, sizeof(bytes), 0)) > 0; at += (size_t)size)
		MUST(is_filled(bytes, at, (size_t)size));
	MUST(at == 2104000);
	await(child, 0);
}

static void tcp_half_close(void)
{
	char byte;
	int a, b;

	tcp_pair(&a, &b);
	MUST(shutdown(a, SHUT_WR) == 0 && recv(b, &byte, 1, 0) == 0);
	MUST(send(b, "k", 1, 0) == 1 && recv(a, &byte, 1, 0) == 1 && byte == 'k');
	signal(SIGPIPE, SIG_IGN);
	MUST(send(a, "k", 1, 0) == -1 && errno == EPIPE);
	MUST(send(b, "urgent", 6, MSG_OOB) == 6);
}

static void tcp_refused(void)
{
	struct sockaddr_in address = loopback(1);
	int fd = (int)HAVE(socket(AF_INET, SOCK_STREAM, 0));

	MUST(connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1 && errno == ECONNREFUSED);
}

static void udp_datagrams(void)
{
	struct sockaddr_in address = loopback(0), from;
	socklen_t size = sizeof(address);
	char bytes[64];
	int a = (int)HAVE(socket(AF_INET, SOCK_DGRAM, 0)), b = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(bind(a, (struct sockaddr *)&address, size) == 0);
	MUST(getsockname(a, (struct sockaddr *)&address, &size) == 0);
	MUST(sendto(b, "one", 3, 0, (struct sockaddr *)&address, size) == 3);
	MUST(sendto(b, "", 0, 0, (struct sockaddr *)&address, size) == 0);
	MUST(recvfrom(a, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size) == 3);
	MUST(recv(a, bytes, sizeof(bytes), 0) == 0);
	MUST(from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	MUST(recv(a, bytes, sizeof(bytes), MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void socket_timeout(void)
{
	struct timeval soon = { 0, 3000 };
	char byte;
	int a, b;

	tcp_pair(&a, &b);
	MUST(setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)) == 0);
	MUST(recv(b, &byte, 1, 0) == -1 && errno == EAGAIN);
}

static void unix_passes_files(void)
{
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec data = { "f", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int pair[2], fd = create("passed"), got;
	char bytes[8] = "";

	HAVE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MUST(write(fd, "passed", 6) == 6);
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	MUST(sendmsg(pair[0], &message, 0) == 1);
	data.iov_base = bytes;
	MUST(recvmsg(pair[1], &message, 0) == 1);
	memcpy(&got, CMSG_DATA(&control.header), sizeof(got));
	MUST(got != fd && pread(got, bytes, 6, 0) == 6 && memcmp(bytes, "passed", 6) == 0);
}

static void unix_datagrams(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0kt-selftest" };
	struct ucred who;
	socklen_t size = sizeof(who);
	char bytes[8];
	int a = (int)HAVE(socket(AF_UNIX, SOCK_SEQPACKET, 0)), b = socket(AF_UNIX, SOCK_SEQPACKET, 0), c;

	MUST(bind(a, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(a, 1) == 0);
	MUST(connect(b, (struct sockaddr *)&address, sizeof(address)) == 0);
	c = accept(a, NULL, NULL);
	MUST(c >= 0 && send(b, "ab", 2, 0) == 2 && send(b, "cde", 3, 0) == 3);
	MUST(recv(c, bytes, 8, 0) == 2 && recv(c, bytes, 8, 0) == 3);
	MUST(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == getpid());
}

static void netlink_links(void)
{
	struct { struct nlmsghdr header; struct ifinfomsg link; } ask = {
		.header = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};
	char answer[16384] __attribute__((aligned(8)));
	int fd = (int)HAVE(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), found = 0;
	ssize_t size;

	MUST(send(fd, &ask, sizeof(ask), 0) == sizeof(ask));
	size = recv(fd, answer, sizeof(answer), 0);
	MUST(size > 0);
	for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, (unsigned)size); at = NLMSG_NEXT(at, size))
		found += at->nlmsg_type == RTM_NEWLINK;
	MUST(found >= 1);
}

static void waiting_calls(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 77 };
	struct timeval none = { 0, 0 };
	struct pollfd poll_one;
	fd_set set;
	int a, b, epoll = (int)HAVE(epoll_create1(0));

	tcp_pair(&a, &b);
	poll_one = (struct pollfd){ .fd = b, .events = POLLIN };
	FD_ZERO(&set);
	FD_SET(b, &set);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, b, &event) == 0);
	MUST(poll(&poll_one, 1, 0) == 0 && epoll_wait(epoll, &event, 1, 0) == 0);
	MUST(select(b + 1, &set, NULL, NULL, &none) == 0);
	MUST(send(a, "k", 1, 0) == 1);
	MUST(epoll_wait(epoll, &event, 1, 1000) == 1 && event.data.u32 == 77 && event.events == EPOLLIN);
	FD_SET(b, &set);
	MUST(poll(&poll_one, 1, 1000) == 1 && select(b + 1, &set, NULL, NULL, &none) == 1);
}

static void epoll_edges(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int pair[2], epoll = (int)HAVE(epoll_create1(0));

	MUST(pipe(pair) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0);
	MUST(write(pair[1], "a", 1) == 1);
	MUST(epoll_wait(epoll, &event, 1, 0) == 1 && epoll_wait(epoll, &event, 1, 0) == 0);
	MUST(write(pair[1], "b", 1) == 1 && epoll_wait(epoll, &event, 1, 0) == 1);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event) == -1 && errno == EINVAL);
}

const struct group group_sockets = { "sockets", {
	CHECK(tcp_stream), CHECK(tcp_half_close), CHECK(tcp_refused), CHECK(udp_datagrams),
	CHECK(socket_timeout), CHECK(unix_passes_files), CHECK(unix_datagrams), CHECK(netlink_links),
	CHECK(waiting_calls), CHECK(epoll_edges),
} };
