/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * netperf: request and response of 1 byte, as the netperf tables of Speer, Kumar and Partridge: TCP and
 * UDP, 1 to 16 processes that ask at once, each with a process of its own that answers, over the
 * loopback (tcp_rr_N, udp_rr_N) and over a link between two network namespaces (veth_tcp_rr_N,
 * veth_udp_rr_N), which stands for the wire to another host. An operation is one request and its
 * response. Arguments and output: kt_suite.h; what differs from the tables: docs/suites.md.
 *
 * The veth rows need CAP_SYS_ADMIN and CAP_NET_ADMIN; nothing of them is seen in the namespace that the
 * program was started in.
 * Talks to: the recorder by marks (kt_mark.h); `workloads/netperf.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>

#define PROCESSES 16
#define WARM_UP 4 /* of each process */

/* Where the askers' and the answerers' sockets are: the same place, or two namespaces. */
static const char *asker_address, *answerer_address;
static int here = -1, asker_space = -1, answerer_space = -1; /* /proc/self/ns/net */
static int asker_veth = -1, answerer_veth = -1; /* those with the link, once they are made */

/* ---- two namespaces and a link ---- */

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

static void nested_end(struct ask *ask, struct rtattr *at)
{
	at->rta_len = (unsigned short)((char *)ask + ask->header.nlmsg_len - (char *)at);
}

/* RTM_NEWLINK of a pair kt0, kt1, the latter in the other namespace. False with errno set. */
static int make_link(int other_space)
{
	static const struct ifinfomsg peer = { .ifi_family = AF_UNSPEC };
	struct ask ask = { .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
				       .nlmsg_type = RTM_NEWLINK,
				       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL } };
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	struct rtattr *info, *data, *side;
	int fd, good;

	attribute(&ask, IFLA_IFNAME, "kt0", 4);
	info = attribute(&ask, IFLA_LINKINFO, NULL, 0);
	attribute(&ask, IFLA_INFO_KIND, "veth", 4);
	data = attribute(&ask, IFLA_INFO_DATA, NULL, 0);
	side = attribute(&ask, VETH_INFO_PEER, &peer, sizeof(peer));
	attribute(&ask, IFLA_IFNAME, "kt1", 4);
	attribute(&ask, IFLA_NET_NS_FD, &other_space, sizeof(other_space));
	nested_end(&ask, side);
	nested_end(&ask, data);
	nested_end(&ask, info);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	good = fd >= 0 && send(fd, &ask, ask.header.nlmsg_len, 0) == (ssize_t)ask.header.nlmsg_len &&
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
	if (!make_link(asker_space))
		return "cannot make a veth link (needs CAP_NET_ADMIN and CONFIG_VETH)";
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

/* Tried by doing, in a process of its own. */
static const char *veth_missing(void)
{
	static char reason[160];
	int answer[2];
	pid_t child;

	if (reason[0])
		return reason;
	if (pipe(answer) < 0)
		die("pipe");
	child = fork_peer();
	if (child == 0) {
		const char *what = make_spaces();

		if (what)
			dprintf(answer[1], "%s: %s", what, strerror(errno));
		_exit(0);
	}
	close(answer[1]);
	if (!get_all(answer[0], reason, 1))
		reason[0] = '\0';
	else if (read(answer[0], reason + 1, sizeof(reason) - 2) < 0)
		die("read");
	close(answer[0]);
	wait_child(child);
	return reason[0] ? reason : NULL;
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
	static const char text[] = "netperf: a process ended before its time\n";

	(void)number;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(1);
}

static _Noreturn void ask(int fd, unsigned long operations)
{
	char byte = 'k';

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
		if (answerers[i] == 0)
			echo(ends[1], ends[1], 1);
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

static void loopback(void)
{
	asker_address = answerer_address = "127.0.0.1";
}

static void tcp_begin(const struct kt_row *row)
{
	loopback();
	begin(row, tcp_pair);
}

static void udp_begin(const struct kt_row *row)
{
	loopback();
	begin(row, udp_pair);
}

/* Once for all rows: the kernel takes long to remove a namespace, and would do it during the next row. */
static void veth_setup(void)
{
	const char *what;
	int ends[2];

	asker_address = "10.77.1.1";
	answerer_address = "10.77.1.2";
	asker_space = asker_veth;
	answerer_space = answerer_veth;
	if (asker_space >= 0)
		return;
	what = make_spaces();
	if (what)
		die("%s", what);
	asker_veth = asker_space;
	answerer_veth = answerer_space;
	configure(asker_space, "kt1", asker_address);
	configure(answerer_space, "kt0", answerer_address);
	/* A connection that stands has outwaited the link and the address resolution; a datagram would not. */
	tcp_pair(ends);
	close_all(ends[0], ends[1]);
}

static void veth_tcp_begin(const struct kt_row *row)
{
	veth_setup();
	begin(row, tcp_pair);
}

static void veth_udp_begin(const struct kt_row *row)
{
	veth_setup();
	begin(row, udp_pair);
}

static void veth_end(const struct kt_row *row)
{
	end(row);
	if (enter(here) < 0)
		die("setns");
	asker_space = answerer_space = -1;
}

#define ROW(prefix, processes, count, begins, ends, need, test)                                          \
	{ .name = prefix "_" #processes, .operations = count, .size = processes, .multiple = processes,  \
	  .unit = "transactions/s", .needs = need, .missing = test, .begin = begins, .all = all,         \
	  .end = ends }
#define ROWS(prefix, count, begins, ends, need, test)                                                    \
	ROW(prefix, 1, count, begins, ends, need, test), ROW(prefix, 2, count, begins, ends, need, test),\
		ROW(prefix, 4, count, begins, ends, need, test),                                         \
		ROW(prefix, 8, count, begins, ends, need, test),                                         \
		ROW(prefix, 16, count, begins, ends, need, test)

#define VETH "CONFIG_NET_NS,CONFIG_VETH"

static const struct kt_row rows[] = {
	ROWS("tcp_rr", 320, tcp_begin, end, NULL, NULL),
	ROWS("udp_rr", 400, udp_begin, end, NULL, NULL),
	ROWS("veth_tcp_rr", 320, veth_tcp_begin, veth_end, VETH, veth_missing),
	ROWS("veth_udp_rr", 400, veth_udp_begin, veth_end, VETH, veth_missing),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "netperf", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
