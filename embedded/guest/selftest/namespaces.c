/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Namespaces of their own.
 */
#include "selftest.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/utsname.h>

static void net_namespace(void)
{
	struct sockaddr_in address = loopback(9);
	int fd;

	HAVE(unshare(CLONE_NEWNET));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	/* Its loopback is down. */
	MUST(fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) == -1);
	MUST(errno == ENETUNREACH);
}

static void pid_namespace(void)
{
	pid_t child;

	HAVE(unshare(CLONE_NEWPID));
	child = fork();
	if (child == 0)
		_exit(getpid() == 1 ? 0 : 1);
	await(child, 0);
}

static void uts_namespace(void)
{
	struct utsname name;

	HAVE(unshare(CLONE_NEWUTS));
	MUST(sethostname("kt-selftest", 11) == 0 && uname(&name) == 0);
	MUST(strcmp(name.nodename, "kt-selftest") == 0 && strcmp(name.sysname, "Linux") == 0);
}

const struct group group_namespaces = { "namespaces", {
	CHECK(net_namespace), CHECK(pid_namespace), CHECK(uts_namespace),
} };
