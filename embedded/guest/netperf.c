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
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/netperf.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_rr.h"

#include <linux/if_link.h>
#include <linux/veth.h>

static int asker_veth = -1, answerer_veth = -1; /* those with the link, once they are made */

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
	struct rtattr *info, *data, *side;

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
	return talk(&ask);
}

/* NULL, or what could not be done with errno set. */
static const char *make_linked_spaces(void)
{
	const char *what = make_spaces();

	if (what)
		return what;
	return make_link(asker_space) ? NULL : "cannot make a veth link (needs CAP_NET_ADMIN and CONFIG_VETH)";
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
		const char *what = make_linked_spaces();

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
	what = make_linked_spaces();
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
