/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Request and response of 1 byte over TCP and UDP: the rows of netperf and remote. So many processes ask at once, each with
 * a process of its own that answers. Askers and answerers are in the same network namespace or in two, and on whatever CPU
 * or each on one.
 * Talks to: nobody but its own children. After kt_peer.h, in the one file of a program.
 */
#ifndef KT_RR_H
#define KT_RR_H

#include "kt_peer.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>

#define PROCESSES 16
#define WARM_UP 4 /* of each process */

/* Where the askers' and the answerers' sockets are: the same place, or two namespaces. */
static const char *asker_address, *answerer_address;
static int here = -1, asker_space = -1, answerer_space = -1; /* /proc/self/ns/net */
static int asker_cpu = -1, answerer_cpu = -1; /* where they run; -1: anywhere */

/* ---- namespaces and links ---- */

static void run_on(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("CPU %d", cpu);
}

static int this_space(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int enter(int space)
{
	return space < 0 ? 0 : setns(space, CLONE_NEWNET);
}

struct ask {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[256];
};

static struct rtattr *attribute(struct ask *ask, unsigned short type, const void *value, size_t size)
{
	struct rtattr *at = (struct rtattr *)((char *)ask + NLMSG_ALIGN(ask->header.nlmsg_len));

	at->rta_type = type;
	at->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(at), value, size);
	ask->header.nlmsg_len = NLMSG_ALIGN(ask->header.nlmsg_len) + RTA_ALIGN(at->rta_len);
	return at;
}

/* Asks the kernel for a change of links, see rtnetlink(7). False with errno set. */
static int talk(const struct ask *ask)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int good, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	good = fd >= 0 && send(fd, ask, ask->header.nlmsg_len, 0) == (ssize_t)ask->header.nlmsg_len &&
	       recv(fd, &answer, sizeof(answer), 0) > 0;
	if (good && (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error != 0)) {
		errno = answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
		good = 0;
	}
	if (fd >= 0) {
		int error = errno;

		close(fd);
		errno = error;
	}
	return good;
}

/* We are then in the answerers' namespace. NULL, or what could not be done with errno set. */
static const char *make_spaces(void)
{
	here = this_space();
	if (here < 0 || unshare(CLONE_NEWNET) < 0)
		return "cannot make a network namespace (needs CAP_SYS_ADMIN and CONFIG_NET_NS)";
	asker_space = this_space();
	if (asker_space < 0 || unshare(CLONE_NEWNET) < 0)
		return "cannot make a second network namespace";
	answerer_space = this_space();
	if (answerer_space < 0)
		return "cannot open a network namespace";
	return NULL;
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		die("%s is no address", text);
	return address;
}

static void configure(int space, const char *link, const char *text)
{
	struct sockaddr_in address = address_of(text), mask = address_of("255.255.255.0");
	struct ifreq request = { 0 };
	int fd;

	if (enter(space) < 0)
		die("setns");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(request.ifr_name, link, IFNAMSIZ - 1);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	if (fd < 0 || ioctl(fd, SIOCSIFADDR, &request) < 0)
		die("address of %s", link);
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	if (ioctl(fd, SIOCSIFNETMASK, &request) < 0)
		die("netmask of %s", link);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("switch on %s", link);
	close(fd);
}

/* ---- one pair ---- */

static int bound(int space, int kind, const char *text, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd;

	if (enter(space) < 0)
		die("setns");
	*address = address_of(text);
	fd = socket(AF_INET, kind, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &size) < 0)
		die("socket at %s", text);
	return fd;
}

static void connect_to(int fd, const struct sockaddr_in *address)
{
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		die("connect");
}

/* ends[0] asks, ends[1] answers. */
static void tcp_pair(int ends[2])
{
	struct sockaddr_in to, from;
	int one = 1, server = bound(answerer_space, SOCK_STREAM, answerer_address, &to);

	if (listen(server, 1) < 0)
		die("listen");
	ends[0] = bound(asker_space, SOCK_STREAM, asker_address, &from);
	connect_to(ends[0], &to);
	ends[1] = accept(server, NULL, NULL);
	if (ends[1] < 0 || close(server) < 0)
		die("accept");
	for (int i = 0; i < 2; i++)
		if (setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
			die("TCP_NODELAY");
}

static void udp_pair(int ends[2])
{
	struct sockaddr_in to, from;

	ends[1] = bound(answerer_space, SOCK_DGRAM, answerer_address, &to);
	ends[0] = bound(asker_space, SOCK_DGRAM, asker_address, &from);
	connect_to(ends[0], &to);
	connect_to(ends[1], &from);
}

/* ---- a row: row->size processes on either side ---- */

static pid_t askers[PROCESSES], answerers[PROCESSES];
static int start[2], done[2];

/* Async-signal-safe: whoever waits for an asker that is gone would wait for ever. */
static void on_child(int number)
{
	static const char text[] = "a process ended before its time\n";

	(void)number;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(1);
}

static _Noreturn void ask(int fd, unsigned long operations)
{
	char byte = 'k';

	run_on(asker_cpu);
	for (unsigned long i = 0; i < WARM_UP + operations; i++) {
		if (i == WARM_UP) {
			put_all(done[1], &byte, 1);
			if (!get_all(start[0], &byte, 1))
				_exit(1);
		}
		put_all(fd, &byte, 1);
		if (!get_all(fd, &byte, 1))
			die("the answerer is gone");
		if (i >= WARM_UP)
			kt_op();
	}
	put_all(done[1], &byte, 1);
	for (;;)
		pause(); /* its exit is no part of the region */
}

static void await_all(unsigned long count)
{
	char byte;

	for (unsigned long i = 0; i < count; i++)
		if (!get_all(done[0], &byte, 1))
			die("the askers are gone");
}

static void begin(const struct kt_row *row, void (*pair)(int ends[2]))
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };
	int ends[2];

	if (pipe(start) < 0 || pipe(done) < 0)
		die("pipe");
	if (sigaction(SIGCHLD, &action, NULL) < 0)
		die("sigaction");
	for (unsigned long i = 0; i < row->size; i++) {
		pair(ends);
		answerers[i] = fork_peer();
		if (answerers[i] == 0) {
			run_on(answerer_cpu);
			echo(ends[1], ends[1], 1);
		}
		askers[i] = fork_peer();
		if (askers[i] == 0)
			ask(ends[0], kt_operations / row->size);
		close_all(ends[0], ends[1]);
	}
	await_all(row->size);
}

static void all(const struct kt_row *row, unsigned long operations)
{
	(void)operations;
	for (unsigned long i = 0; i < row->size; i++)
		put_all(start[1], "k", 1);
	await_all(row->size);
}

static void end_process(pid_t process)
{
	int status;

	if (kill(process, SIGKILL) < 0 || waitpid(process, &status, 0) != process)
		die("end of a process");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("a process ended with status %#x", (unsigned)status);
}

static void end(const struct kt_row *row)
{
	signal(SIGCHLD, SIG_DFL);
	for (unsigned long i = 0; i < row->size; i++) {
		end_process(askers[i]);
		end_process(answerers[i]);
	}
	close_all(start[0], start[1]);
	close_all(done[0], done[1]);
}

/* A row of so many processes, and the rows of 1 to 16. */
#define ROW(prefix, processes, count, begins, ends, need, test)                                          \
	{ .name = prefix "_" #processes, .operations = count, .size = processes, .multiple = processes,  \
	  .unit = "transactions/s", .needs = need, .missing = test, .begin = begins, .all = all,         \
	  .end = ends }
#define ROWS(prefix, count, begins, ends, need, test)                                                    \
	ROW(prefix, 1, count, begins, ends, need, test), ROW(prefix, 2, count, begins, ends, need, test),\
		ROW(prefix, 4, count, begins, ends, need, test),                                         \
		ROW(prefix, 8, count, begins, ends, need, test),                                         \
		ROW(prefix, 16, count, begins, ends, need, test)

#endif
