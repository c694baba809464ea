/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the checks share. Each file of them is a group; main.c runs them.
 */
#ifndef KT_SELFTEST_H
#define KT_SELFTEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* What a check's process ends with. */
enum { OK = 0, FAILED = 1, UNSUPPORTED = 2 };

/* A check ends its process, or returns if all is well. */
struct check {
	const char *name;
	void (*run)(void);
};

#define CHECK(name) { #name, name }
#define MOST_CHECKS 16

/* Checks of one kind, up to the first without a name. */
struct group {
	const char *name;
	struct check checks[MOST_CHECKS];
};

extern const struct group group_processes, group_signals, group_memory, group_files, group_ipc, group_sockets,
	group_futex, group_io_uring, group_cgroups, group_namespaces, group_time;

/* ---- support.c ---- */

extern int report;	/* where the check's process writes why */
extern char dir[64];	/* of this check, on tmpfs in the guest */

/* End the check with a reason. */
_Noreturn void end(int result, const char *why);
_Noreturn void failed(const char *file, int line, const char *what);

/* Ends the check if it does not hold. */
#define MUST(condition)                                            \
	do {                                                       \
		if (!(condition))                                  \
			failed(__FILE__, __LINE__, #condition);    \
	} while (0)

/* The call's value; ends the check as unsupported if the kernel does not have the call or the type. */
#define HAVE(call)                                                                                    \
	({                                                                                            \
		errno = 0;                                                                            \
		long value_ = (long)(call);                                                           \
		if (value_ < 0 && (errno == ENOSYS || errno == ENODEV || errno == EAFNOSUPPORT ||     \
				   errno == EOPNOTSUPP || errno == EPROTONOSUPPORT)) {                \
			char why_[200];                                                               \
			snprintf(why_, sizeof(why_), "%s: %s", #call, strerror(errno));               \
			end(UNSUPPORTED, why_);                                                       \
		}                                                                                     \
		if (value_ < 0)                                                                       \
			failed(__FILE__, __LINE__, #call);                                            \
		value_;                                                                               \
	})

/* The path of a name in the check's directory; four are kept. */
const char *in_dir(const char *name);
/* A new file there, open to read and write. */
int create(const char *name);
/* Fills bytes with a pattern that depends on their place, counted from `from`; and asks for it. */
void fill(unsigned char *bytes, size_t from, size_t size);
int is_filled(const unsigned char *bytes, size_t from, size_t size);
/* The child must end with this status of waitpid. */
void await(pid_t child, int status);
struct sockaddr_in loopback(int port);

#endif
