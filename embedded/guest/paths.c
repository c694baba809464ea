/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * paths: ways through the kernel that are worth reading, each a row of operations between marks.
 *
 *   paths [--operations N] [--list]
 *
 * nic_rr        1 byte over TCP to a process in a network namespace of its own and back: each byte leaves
 *               by one network card's driver and arrives by the other's interrupt. Needs eth0 and eth1 on
 *               one wire, and the right to configure them.
 * epoll_nested  an event at the bottom of a chain of epoll instances; the chain is cut and joined again,
 *               for which the kernel walks it by recursion.
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/paths.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_mark.h"

#include <arpa/inet.h>
#include <err.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM_UP 16 /* operations before the region */
#define PORT 7
#define DEPTH 4    /* of the chain; the kernel allows 5 */

static const char here[] = "10.77.0.1", there[] = "10.77.0.2";

static void put_byte(int fd)
{
	if (write(fd, "k", 1) != 1)
		err(1, "write");
}

/* False at the end of the stream. */
static int get_byte(int fd)
{
	char byte;
	ssize_t size = read(fd, &byte, 1);

	if (size < 0)
		err(1, "read");
	return size == 1;
}

/* ---- network ---- */

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		errx(1, "%s is no address", text);
	return address;
}

static void configure(const char *card, const char *text)
{
	struct sockaddr_in address = address_of(text), mask = address_of("255.255.255.0");
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };

	strncpy(request.ifr_name, card, IFNAMSIZ - 1);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	if (fd < 0 || ioctl(fd, SIOCSIFADDR, &request) < 0)
		err(1, "address of %s", card);
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	if (ioctl(fd, SIOCSIFNETMASK, &request) < 0)
		err(1, "netmask of %s", card);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		err(1, "switch on %s", card);
	close(fd);
}

/* RTM_NEWLINK with IFLA_NET_NS_PID, see rtnetlink(7). */
static void move_card(const char *card, pid_t owner)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		unsigned pid;
	} ask = {
		.header = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(card) },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = IFLA_NET_NS_PID },
		.pid = (unsigned)owner,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (ask.link.ifi_index == 0)
		errx(1, "there is no %s: the workload needs network_cards = 2", card);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) != sizeof(ask) || recv(fd, &answer, sizeof(answer), 0) < 0)
		err(1, "netlink");
	if (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error != 0)
		errx(1, "cannot move %s: %s", card, strerror(-answer.error.error));
	close(fd);
}

static void no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		err(1, "TCP_NODELAY");
}

/* The other side: says when its namespace is there, waits for its card, says when it listens, echoes. */
static _Noreturn void echo(int from, int to)
{
	struct sockaddr_in address = address_of(there);
	int server, fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) < 0)
		err(1, "unshare");
	put_byte(to);
	if (!get_byte(from))
		_exit(1);
	configure("eth1", there);
	server = socket(AF_INET, SOCK_STREAM, 0);
	if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(server, 1) < 0)
		err(1, "server");
	put_byte(to);
	fd = accept(server, NULL, NULL);
	if (fd < 0)
		err(1, "accept");
	no_delay(fd);
	while (get_byte(fd))
		put_byte(fd);
	_exit(0);
}

static pid_t peer;
static int ours;

static void nic_begin(void)
{
	struct sockaddr_in address = address_of(there);
	int down[2], up[2];

	if (pipe(down) < 0 || pipe(up) < 0)
		err(1, "pipe");
	peer = fork();
	if (peer < 0)
		err(1, "fork");
	if (peer == 0) {
		close(down[1]);
		close(up[0]);
		echo(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	if (!get_byte(up[0]))
		errx(1, "the peer is gone");
	move_card("eth1", peer);
	configure("eth0", here);
	put_byte(down[1]);
	if (!get_byte(up[0]))
		errx(1, "the peer is gone");
	close(down[1]);
	close(up[0]);
	ours = socket(AF_INET, SOCK_STREAM, 0);
	if (ours < 0 || connect(ours, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1, "connect to %s", there);
	no_delay(ours);
}

static void nic_one(void)
{
	put_byte(ours);
	if (!get_byte(ours))
		errx(1, "the peer is gone");
}

static void nic_end(void)
{
	int status;

	close(ours);
	if (waitpid(peer, &status, 0) != peer || status != 0)
		errx(1, "the peer ended with status %#x", (unsigned)status);
}

/* ---- epoll ---- */

static int chain[DEPTH], bell[2];

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll_ctl");
}

static void epoll_begin(void)
{
	if (pipe(bell) < 0)
		err(1, "pipe");
	for (int at = 0; at < DEPTH; at++) {
		chain[at] = epoll_create1(EPOLL_CLOEXEC);
		if (chain[at] < 0)
			err(1, "epoll_create1");
	}
	for (int at = 0; at < DEPTH; at++)
		watch(chain[at], at + 1 < DEPTH ? chain[at + 1] : bell[0]);
}

static void epoll_one(void)
{
	struct epoll_event event;

	put_byte(bell[1]);
	if (epoll_wait(chain[0], &event, 1, 0) != 1)
		errx(1, "the event did not arrive");
	if (!get_byte(bell[0]))
		errx(1, "the pipe is closed");
	if (epoll_ctl(chain[0], EPOLL_CTL_DEL, chain[1], NULL) < 0)
		err(1, "epoll_ctl");
	watch(chain[0], chain[1]);
}

static void epoll_end(void)
{
	for (int at = 0; at < DEPTH; at++)
		close(chain[at]);
	close(bell[0]);
	close(bell[1]);
}

static const struct row {
	const char *name;
	void (*begin)(void), (*one)(void), (*end)(void);
} rows[] = {
	{ "nic_rr", nic_begin, nic_one, nic_end },
	{ "epoll_nested", epoll_begin, epoll_one, epoll_end },
};

static void run(const struct row *row, unsigned long operations)
{
	row->begin();
	for (int i = 0; i < WARM_UP; i++)
		row->one();
	kt_begin(row->name);
	for (unsigned long i = 0; i < operations; i++) {
		row->one();
		kt_op();
	}
	kt_end(row->name, operations);
	row->end();
	printf("{\"row\":\"%s\",\"operations\":%lu}\n", row->name, operations);
}

int main(int argc, char **argv)
{
	unsigned long operations = 300;
	char *rest = "";

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t at = 0; at < sizeof(rows) / sizeof(rows[0]); at++)
			printf("%s\t%lu\n", rows[at].name, operations);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--operations") == 0)
		operations = strtoul(argv[2], &rest, 10);
	if ((argc != 1 && argc != 3) || *rest || operations == 0 || operations > 1000000) {
		fputs("usage: paths [--operations N] [--list], N from 1 to 1000000\n", stderr);
		return 2;
	}
	for (size_t at = 0; at < sizeof(rows) / sizeof(rows[0]); at++)
		run(&rows[at], operations);
	return fflush(stdout) == 0 ? 0 : 1;
}
