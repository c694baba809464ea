/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How a check ends, and what checks work on.
 */
#include "selftest.h"

int report;
char dir[64];

_Noreturn void end(int result, const char *why)
{
	if (write(report, why, strlen(why)) < 0)
		_exit(FAILED);
	_exit(result);
}

_Noreturn void failed(const char *file, int line, const char *what)
{
	char why[200];
	int error = errno;

	snprintf(why, sizeof(why), "%s:%d: %s (%s)", file, line, what, strerror(error));
	end(FAILED, why);
}

const char *in_dir(const char *name)
{
	static char path[4][160];
	static int turn;
	char *mine = path[turn++ % 4];

	snprintf(mine, sizeof(path[0]), "%s/%s", dir, name);
	return mine;
}

int create(const char *name)
{
	int fd = open(in_dir(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	return fd;
}

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 2654435761u >> 13);
}

void fill(unsigned char *bytes, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = pattern(from + i);
}

int is_filled(const unsigned char *bytes, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != pattern(from + i))
			return 0;
	return 1;
}

void await(pid_t child, int status)
{
	int seen = -1;

	MUST(waitpid(child, &seen, 0) == child);
	MUST(seen == status);
}

struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}
