/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * remote: request and response of 1 byte between two hosts, as the netperf table with a remote host of Speer, Kumar and
 * Partridge: TCP and UDP, 1 to 16 processes that ask at once, each with a process of its own that answers. The two hosts
 * are two CPUs of one: the askers, eth0 and its interrupts are on CPU 0, the answerers, eth1 and its interrupts on CPU 1,
 * with a network namespace each. So what a CPU counts is one host's part of the work. An operation is one request and its
 * response. Arguments and output: kt_suite.h; what differs from the table: docs/suites.md.
 *
 * Needs two CPUs, eth0 and eth1 on one wire that nobody uses, and the right to configure them.
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/remote.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_rr.h"

static const char *const cards[] = { "eth0", "eth1" };

/* The line on which a PCI device's card raises interrupts, or -1. */
static int interrupt_of(const char *card)
{
	char path[80];
	int line = -1;
	FILE *file;

	/* The card is the virtio device's, and that the PCI device's. */
	snprintf(path, sizeof(path), "/sys/class/net/%s/device/../irq", card);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &line) != 1)
		line = -1;
	fclose(file);
	return line;
}

static int in_use(const char *card)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };
	int used;

	strncpy(request.ifr_name, card, IFNAMSIZ - 1);
	used = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0 || request.ifr_flags & IFF_UP;
	if (fd >= 0)
		close(fd);
	return used;
}

static const char *remote_missing(void)
{
	static char reason[80];

	if (asker_space >= 0)
		return NULL; /* all of it is made */
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return "needs two CPUs";
	for (int i = 0; i < 2; i++) {
		const char *why = if_nametoindex(cards[i]) == 0 ? "there is no" : in_use(cards[i]) ? "somebody uses" : NULL;

		if (why) {
			snprintf(reason, sizeof(reason), "%s %s", why, cards[i]);
			return reason;
		}
	}
	if (interrupt_of(cards[0]) < 0 || interrupt_of(cards[0]) == interrupt_of(cards[1]))
		return "eth0 and eth1 have no interrupt lines of their own";
	return NULL;
}

static void give_interrupts(const char *card, int cpu)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", interrupt_of(card));
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d\n", cpu) < 0 || fclose(file) != 0)
		die("%s", path);
}

static void move_card(const char *card, int space)
{
	struct ask ask = { .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
				       .nlmsg_type = RTM_NEWLINK,
				       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
			   .link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(card) } };

	attribute(&ask, IFLA_NET_NS_FD, &space, sizeof(space));
	if (!talk(&ask))
		die("cannot move %s to a network namespace", card);
}

/* Once for all rows. */
static void hosts(void)
{
	const char *what;
	int ends[2];

	if (asker_space >= 0)
		return;
	asker_cpu = 0;
	answerer_cpu = 1;
	/* Whoever starts the askers and waits for them is on their side. */
	run_on(asker_cpu);
	give_interrupts(cards[0], asker_cpu);
	give_interrupts(cards[1], answerer_cpu);
	what = make_spaces();
	if (what)
		die("%s", what);
	if (enter(here) < 0)
		die("setns");
	move_card(cards[0], asker_space);
	move_card(cards[1], answerer_space);
	asker_address = "10.77.1.1";
	answerer_address = "10.77.1.2";
	configure(asker_space, cards[0], asker_address);
	configure(answerer_space, cards[1], answerer_address);
	/* A connection that stands has outwaited the address resolution; a datagram would not. */
	tcp_pair(ends);
	close_all(ends[0], ends[1]);
}

static void tcp_begin(const struct kt_row *row)
{
	hosts();
	begin(row, tcp_pair);
}

static void udp_begin(const struct kt_row *row)
{
	hosts();
	begin(row, udp_pair);
}

static const struct kt_row rows[] = {
	ROWS("remote_tcp_rr", 320, tcp_begin, end, "CONFIG_NET_NS,CONFIG_VIRTIO_NET", remote_missing),
	ROWS("remote_udp_rr", 400, udp_begin, end, "CONFIG_NET_NS,CONFIG_VIRTIO_NET", remote_missing),
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "remote", .rows = rows,
					       .count = sizeof(rows) / sizeof(rows[0]) };

	return kt_main(&suite, argc, argv);
}
