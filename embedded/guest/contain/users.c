/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Who the processes inside are: a user namespace whose ids are nobody's outside, or the caller's alone. Root inside is never
 * root outside, so what belongs to the host's root stays out of reach even where it can be seen.
 */
#include "contain.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDS 65536

bool users_leave_root(const struct request *request)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uid_t uid = (uid_t)request->first_uid;

	if (request->users != USERS_RANGE)
		return true;
	if (setresuid(uid, uid, 0) < 0)
		return refuse("root may not use the user ids from %u on (%s): a container may have no more ids of its own, "
			      "or no CAP_SETUID",
			      uid, strerror(errno));
	/* Some kernels let only CAP_SYS_ADMIN make user namespaces; leaving root took it out of use, and not away. */
	if (syscall(SYS_capget, &header, data) < 0)
		return refuse("cannot read capabilities: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted;
	if (syscall(SYS_capset, &header, data) < 0)
		return refuse("cannot keep capabilities: %s", strerror(errno));
	return true;
}

bool users_return(const struct request *request)
{
	if (request->users == USERS_RANGE && setresuid(0, 0, 0) < 0)
		return refuse("cannot become root again: %s", strerror(errno));
	return true;
}

static bool write_map(pid_t pid, const char *name, unsigned long first, unsigned long count)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	snprintf(text, sizeof(text), "0 %lu %lu\n", first, count);
	return write_file(path, text) || refuse("cannot write %s (%s): root here may not hand out user ids", path,
						strerror(errno));
}

/* What this process has, as it is. */
static bool map_same(pid_t pid, const char *name)
{
	unsigned long first = 0, count = 0;
	char own[64], path[64], text[64];
	FILE *file;

	snprintf(own, sizeof(own), "/proc/self/%s", name);
	file = fopen(own, "re");
	if (!file || fscanf(file, "%lu %*u %lu", &first, &count) != 2)
		refuse("cannot read %s", own);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	snprintf(text, sizeof(text), "%lu %lu %lu\n", first, first, count);
	return count > 0 && (write_file(path, text) || refuse("cannot write %s: %s", path, strerror(errno)));
}

static bool ask(char *program, pid_t pid, unsigned long first)
{
	char process[16], start[24], count[16];
	char *command[] = { program, process, "0", start, count, NULL };
	int status = 0;
	pid_t child;

	snprintf(process, sizeof(process), "%d", (int)pid);
	snprintf(start, sizeof(start), "%lu", first);
	snprintf(count, sizeof(count), "%d", IDS);
	child = fork();
	if (child == 0) {
		execvp(program, command);
		refuse("cannot run %s: %s", program, strerror(errno));
		_exit(127);
	}
	if (child < 0)
		return refuse("cannot fork: %s", strerror(errno));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 || refuse("%s does not hand out the ids %s to %lu", program, start, first + IDS - 1);
}

bool users_map(const struct request *request, pid_t pid)
{
	char path[64];

	switch (request->users) {
	case USERS_RANGE:
		return write_map(pid, "uid_map", request->first_uid, IDS) &&
		       write_map(pid, "gid_map", request->first_gid, IDS);
	case USERS_SUBIDS:
		return ask("newuidmap", pid, request->first_uid) && ask("newgidmap", pid, request->first_gid);
	case USERS_SAME:
		return map_same(pid, "uid_map") && map_same(pid, "gid_map");
	case USERS_ONE:
		break;
	}
	snprintf(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	if (!write_file(path, "deny"))
		return refuse("cannot write %s: %s", path, strerror(errno));
	return write_map(pid, "uid_map", geteuid(), 1) && write_map(pid, "gid_map", getegid(), 1);
}

bool users_become_root(const struct request *request)
{
	if (setresgid(0, 0, 0) < 0 || (request->users != USERS_ONE && setgroups(0, NULL) < 0) ||
	    setresuid(0, 0, 0) < 0)
		return refuse("cannot become root of a user namespace: %s", strerror(errno));
	return true;
}
