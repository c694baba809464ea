/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Control groups, version 2.
 */
#include "selftest.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int read_text(const char *path, char *text, int size)
{
	int fd = open(path, O_RDONLY);
	ssize_t got;

	MUST(fd >= 0);
	got = read(fd, text, (size_t)size - 1);
	MUST(got >= 0);
	text[got] = '\0';
	close(fd);
	return (int)got;
}

static void mount_cgroups(void)
{
	MUST(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mkdir(in_dir("groups"), 0700) == 0);
	HAVE(mount("cgroup2", in_dir("groups"), "cgroup2", 0, NULL));
	MUST(mkdir(in_dir("groups/kt"), 0700) == 0);
}

static void cgroup_members(void)
{
	char text[256];
	pid_t child;
	int status;

	mount_cgroups();
	child = fork();
	if (child == 0) {
		write_text(in_dir("groups/kt/cgroup.procs"), "0");
		read_text("/proc/self/cgroup", text, sizeof(text));
		_exit(strstr(text, "/kt\n") ? 0 : 9);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
	MUST(read_text(in_dir("groups/kt/cgroup.events"), text, sizeof(text)) > 0 && strstr(text, "populated 0"));
	MUST(rmdir(in_dir("groups/kt")) == 0 && umount(in_dir("groups")) == 0);
}

static void cgroup_freezer(void)
{
	char text[256], pid[16];
	pid_t child;

	mount_cgroups();
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	snprintf(pid, sizeof(pid), "%d", child);
	write_text(in_dir("groups/kt/cgroup.procs"), pid);
	write_text(in_dir("groups/kt/cgroup.freeze"), "1");
	for (int i = 0; i < 200; i++) {
		read_text(in_dir("groups/kt/cgroup.events"), text, sizeof(text));
		if (strstr(text, "frozen 1"))
			break;
		usleep(1000);
	}
	MUST(strstr(text, "frozen 1"));
	write_text(in_dir("groups/kt/cgroup.freeze"), "0");
	write_text(in_dir("groups/kt/cgroup.kill"), "1");
	await(child, SIGKILL);
	for (int i = 0; i < 200 && rmdir(in_dir("groups/kt")) != 0; i++)
		usleep(1000);
	MUST(umount(in_dir("groups")) == 0);
}

const struct group group_cgroups = { "cgroups", {
	CHECK(cgroup_members), CHECK(cgroup_freezer),
} };
