/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * How much of the machine the processes inside may take: as much memory as the guest of the same workload has, and a number
 * of processes that no server needs and every machine bears.
 *
 * A cgroup bounds both for all processes together, its page cache and tmpfs included. Where none is to be had, which is so for
 * most who are not root, the kernel counts processes for the user namespace (Linux 5.14), memory is bounded process by process, and
 * the watcher ends the workload before the machine has none left.
 */
#include "contain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 4096
#define GROUPS "/sys/fs/cgroup"
#define GROUP_NAME "kerntune."
#define PAUSE_MS 200
#define LEFT_PART 16 /* of the machine's memory one part in so many has to be left */

enum value { NOTHING, MEMORY, TASKS, NO_SWAP };

/* A hierarchy of cgroups: how /proc/self/cgroup calls it, where it is, and what to write. */
static const struct hierarchy {
	const char *name, *mount;
	bool bounds_memory;
	const char *kills; /* the file that counts what was killed for want of memory */
	struct {
		const char *file;
		enum value value;
		bool needed; /* a kernel without swap lacks the others */
	} limits[4];
} hierarchies[] = {
	{ "",
	  GROUPS,
	  true,
	  "memory.events",
	  { { "memory.max", MEMORY, true }, { "pids.max", TASKS, true }, { "memory.swap.max", NO_SWAP, false } } },
	{ "memory",
	  GROUPS "/memory",
	  true,
	  "memory.oom_control",
	  { { "memory.limit_in_bytes", MEMORY, true }, { "memory.memsw.limit_in_bytes", MEMORY, false } } },
	{ "pids", GROUPS "/pids", false, NULL, { { "pids.max", TASKS, true } } },
};

#define HIERARCHIES (sizeof(hierarchies) / sizeof(hierarchies[0]))

static char joined[HIERARCHIES][PATH_MAX]; /* empty if not */
static bool bounded;

/* Whether dumps are files, and of no program's business. */
static bool dumps_are_files(void)
{
	FILE *pattern = fopen("/proc/sys/kernel/core_pattern", "re");
	int first = pattern ? fgetc(pattern) : '|';

	if (pattern)
		fclose(pattern);
	return first != '|' && first != '@';
}

static bool no_dumps(void)
{
	struct rlimit dumps = { 1, 1 };

	/* No byte of a dump fits in 1; 0 would still start the program that core_pattern names. */
	if (setrlimit(RLIMIT_CORE, &dumps) == 0)
		return true;
	/* A hard limit of 0 cannot be raised (`ulimit -c 0`). */
	if (getrlimit(RLIMIT_CORE, &dumps) < 0 || dumps.rlim_max != 0)
		return refuse("cannot switch core dumps off: %s", strerror(errno));
	if (!dumps_are_files())
		return refuse("the hard limit of core dumps is 0 (ulimit -Hc), with which the program in "
			      "/proc/sys/kernel/core_pattern would be started: it has to be 1 or more");
	return true;
}

bool limits_of_processes(void)
{
	struct rlimit processes;

	if (getrlimit(RLIMIT_NPROC, &processes) < 0)
		return refuse("cannot read the limit of processes: %s", strerror(errno));
	if (processes.rlim_max > PROCESSES)
		processes.rlim_max = PROCESSES;
	processes.rlim_cur = processes.rlim_max;
	if (setrlimit(RLIMIT_NPROC, &processes) < 0)
		return refuse("cannot limit processes: %s", strerror(errno));
	return no_dumps();
}

/* The cgroup that we are in, from /proc/self/cgroup: ID:CONTROLLERS:PATH. */
static bool own_group(const struct hierarchy *hierarchy, char *path, size_t size)
{
	static char line[PATH_MAX + 128];
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *names = strchr(line, ':'), *own = names ? strchr(names + 1, ':') : NULL;

		if (!own)
			continue;
		*own++ = '\0';
		own[strcspn(own, "\n")] = '\0';
		/* With `..` it is outside of what a container shows of the hierarchy. */
		found = strcmp(names + 1, hierarchy->name) == 0 && !strstr(own, "..") &&
			snprintf(path, size, "%s%s", hierarchy->mount, own) < (int)size;
	}
	if (file)
		fclose(file);
	return found;
}

/* Removes what watchers left that were killed. */
static void clean(const char *parent)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *groups = opendir(parent);

	while (groups && (entry = readdir(groups))) {
		const char *process = entry->d_name + strlen(GROUP_NAME);

		if (strncmp(entry->d_name, GROUP_NAME, strlen(GROUP_NAME)) != 0 || atoi(process) <= 0 ||
		    kill(atoi(process), 0) == 0 || errno != ESRCH)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) < (int)sizeof(path))
			rmdir(path);
	}
	if (groups)
		closedir(groups);
}

static bool write_in(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", group, file) < (int)sizeof(path) && write_file(path, text);
}

static bool fill(const struct hierarchy *hierarchy, const char *group, pid_t pid, unsigned long memory_mb)
{
	char text[32];

	for (size_t i = 0; i < sizeof(hierarchy->limits) / sizeof(hierarchy->limits[0]); i++) {
		enum value value = hierarchy->limits[i].value;

		if (value == NOTHING)
			break;
		snprintf(text, sizeof(text), "%lu",
			 value == MEMORY ? memory_mb << 20 :
			 value == TASKS	 ? PROCESSES :
					   0ul);
		if (!write_in(group, hierarchy->limits[i].file, text) && hierarchy->limits[i].needed)
			return false;
	}
	snprintf(text, sizeof(text), "%d", (int)pid);
	return write_in(group, "cgroup.procs", text);
}

/* A group of its own below ours, or below the first above it where that can be: groups with processes of their own have no
 * controllers for those below them. */
static bool join(const struct hierarchy *hierarchy, char *group, pid_t pid, unsigned long memory_mb)
{
	char parent[PATH_MAX];

	if (!own_group(hierarchy, parent, sizeof(parent)))
		return false;
	while (strlen(parent) >= strlen(hierarchy->mount)) {
		int size = snprintf(group, PATH_MAX, "%s/" GROUP_NAME "%d", parent, (int)getpid());

		clean(parent);
		if (size < PATH_MAX && mkdir(group, 0755) == 0) {
			if (fill(hierarchy, group, pid, memory_mb))
				return true;
			rmdir(group);
		}
		*strrchr(parent, '/') = '\0';
	}
	group[0] = '\0';
	return false;
}

bool limits_apply(pid_t pid, unsigned long memory_mb)
{
	struct rlimit memory = { memory_mb << 20, memory_mb << 20 };
	char path[64];

	/* Should memory run out all the same, the workload is what has to go. */
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	if (!write_file(path, "1000"))
		return refuse("cannot write %s: %s", path, strerror(errno));
	/* Version 2 is there if its root is; in its place, version 1 has a directory for each controller. */
	for (size_t i = 0; i < HIERARCHIES; i++) {
		bool second = hierarchies[i].name[0] == '\0';

		if (second != (access(GROUPS "/cgroup.controllers", F_OK) == 0))
			continue;
		if (join(&hierarchies[i], joined[i], pid, memory_mb))
			bounded = bounded || hierarchies[i].bounds_memory;
	}
	if (!bounded && prlimit(pid, RLIMIT_DATA, &memory, NULL) < 0)
		return refuse("cannot limit the memory of processes: %s", strerror(errno));
	return true;
}

int limits_pause(void)
{
	return bounded ? -1 : PAUSE_MS;
}

bool limits_exceeded(void)
{
	unsigned long total = 0, left = 0;
	char line[128];
	FILE *file;

	if (bounded)
		return false;
	file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "MemTotal: %lu", &total);
		sscanf(line, "MemAvailable: %lu", &left);
	}
	if (file)
		fclose(file);
	return left < total / LEFT_PART;
}

static bool killed(const struct hierarchy *hierarchy, const char *group)
{
	char path[PATH_MAX], line[128];
	unsigned long count = 0;
	FILE *file;

	if (!hierarchy->kills || snprintf(path, sizeof(path), "%s/%s", group, hierarchy->kills) >= (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	while (file && count == 0 && fgets(line, sizeof(line), file))
		sscanf(line, "oom_kill %lu", &count);
	if (file)
		fclose(file);
	return count > 0;
}

bool limits_remove(void)
{
	static const struct timespec pause = { 0, 10000000 };
	bool want = false;

	for (size_t i = 0; i < HIERARCHIES; i++) {
		if (!joined[i][0])
			continue;
		want = killed(&hierarchies[i], joined[i]) || want;
		/* The last process may still be on its way out. */
		for (int tries = 0; rmdir(joined[i]) < 0 && errno == EBUSY && tries < 100; tries++)
			nanosleep(&pause, NULL);
	}
	return want;
}
