/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A directory of the host's, or its root, as the root inside: each directory in it is the lower layer of an overlay whose upper layer is on a tmpfs, so what
 * is written goes there, and away with it.
 *
 * A user namespace may take no directory as a layer below which something else is mounted. So such directories, `/` first of
 * all, are made on the tmpfs of the root, and their entries are taken one by one.
 */
#include "contain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTS_MAX 4096 /* of the host's */
#define LAYERS_MAX 512

static char *mounted[MOUNTS_MAX];
static size_t mounts;
static int upper = -1; /* the tmpfs of the upper layers */
static int source = -1; /* the directory that becomes the root */
static char source_path[PATH_MAX]; /* without links; empty if it is the host's root */
static int host_tmp = -1; /* the host's /tmp, which ours hides */
static unsigned layers;

/* In place: \040 and the like. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		unsigned byte;

		if (*path == '\\' && sscanf(path + 1, "%3o", &byte) == 1) {
			*to++ = (char)byte;
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = '\0';
}

static bool read_mounts(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *point;
	size_t size = 0;

	if (!file)
		return refuse("cannot read /proc/self/mountinfo: %s", strerror(errno));
	while (getline(&line, &size, file) > 0) {
		point = NULL;
		if (sscanf(line, "%*d %*d %*s %*s %ms", &point) != 1)
			continue;
		unescape(point);
		if (mounts == MOUNTS_MAX) {
			fclose(file);
			return refuse("more than %d mounts are on this machine", MOUNTS_MAX);
		}
		mounted[mounts++] = point;
	}
	free(line);
	fclose(file);
	return true;
}

/* `path` is inside, as all paths from here on are. */
static bool is_mounted_below(const char *path)
{
	size_t above = strlen(source_path), length = strlen(path);

	for (size_t i = 0; i < mounts; i++)
		if (strncmp(mounted[i], source_path, above) == 0 && strncmp(mounted[i] + above, path, length) == 0 &&
		    mounted[i][above + length] == '/')
			return true;
	return false;
}

/* A layer of the directory `fd` at its place below ROOT. */
static bool overlay(int fd, const char *path)
{
	char data[256], place[PATH_MAX], name[32];

	if (layers == LAYERS_MAX)
		return refuse("too much is mounted on this machine: below %s, too", path);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%c%u", "uw"[i], layers);
		if (mkdirat(upper, name, 0755) < 0)
			return refuse("cannot make a layer for %s: %s", path, strerror(errno));
	}
	snprintf(data, sizeof(data),
		 "userxattr,lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/u%u,workdir=/proc/self/fd/%d/w%u", fd, upper,
		 layers, upper, layers);
	layers++;
	if (snprintf(place, sizeof(place), ROOT "%s", path) >= (int)sizeof(place))
		return refuse("the path %s is too long", path);
	if (mount("kerntune", place, "overlay", MS_NOSUID | MS_NODEV, data) == 0)
		return true;
	/* Some file systems cannot be a layer; what is on them is not there, then. */
	dprintf(1, "hidden %s: %s\n", path, strerror(errno));
	return errno == EINVAL || errno == EACCES || errno == EPERM || refuse("cannot mount an overlay: %s", strerror(errno));
}

static bool copy_link(int directory, const char *name, const char *place)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(directory, name, target, sizeof(target) - 1);

	if (size < 0)
		return true;
	target[size] = '\0';
	return symlink(target, place) == 0 || refuse("cannot make %s: %s", place, strerror(errno));
}

/* A file in a directory of ours is the host's own, and cannot be written. */
static bool bind_file(int fd, const char *place)
{
	char from[32];
	int made = open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (made < 0 || close(made) < 0)
		return refuse("cannot make %s: %s", place, strerror(errno));
	if (mount(from, place, NULL, MS_BIND, NULL) < 0)
		return true;
	return mount(NULL, place, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0 ||
	       umount2(place, MNT_DETACH) == 0;
}

static bool split(int fd, const char *path);

static bool take_entry(int directory, const char *path, const char *name)
{
	char entry[PATH_MAX], place[PATH_MAX];
	struct stat meta;
	bool good = true;
	int fd;

	if (snprintf(entry, sizeof(entry), "%s/%s", path, name) >= (int)sizeof(entry) ||
	    snprintf(place, sizeof(place), ROOT "%s", entry) >= (int)sizeof(place))
		return true;
	fd = !*source_path && strcmp(entry, ROOT) == 0 ? dup(host_tmp) :
							 openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &meta) < 0)
		return true;
	if (S_ISLNK(meta.st_mode)) {
		good = copy_link(directory, name, place);
	} else if (S_ISREG(meta.st_mode)) {
		good = bind_file(fd, place);
	} else if (S_ISDIR(meta.st_mode)) {
		good = mkdir(place, meta.st_mode & 07777) == 0 || refuse("cannot make %s: %s", place, strerror(errno));
		if (good && is_mounted_below(entry))
			good = split(fd, entry) && chmod(place, meta.st_mode & 07777) == 0;
		else if (good)
			good = overlay(fd, entry);
	}
	close(fd);
	return good;
}

/* The entries of the directory `path`; "" is the root. */
static bool split(int fd, const char *path)
{
	static const char *const own[] = { "/dev", "/proc", "/sys", "/run" };
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *entry;
	bool good = true;

	/* What cannot be listed is empty. */
	while (directory && good && (entry = readdir(directory))) {
		bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;

		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			is_own = is_own || (!*path && strcmp(entry->d_name, own[i] + 1) == 0);
		good = is_own || take_entry(dirfd(directory), path, entry->d_name);
	}
	if (directory)
		closedir(directory);
	return good;
}

bool overlay_prepare(unsigned long memory_mb, const char *root)
{
	char data[64];

	source = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (source < 0 || !realpath(root, source_path))
		return refuse("cannot open %s: %s", root, strerror(errno));
	if (!source_path[1])
		source_path[0] = '\0';
	host_tmp = open(ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(data, sizeof(data), "mode=0755,size=%luM", memory_mb / 2);
	if (!read_mounts())
		return false;
	if (host_tmp < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("kerntune", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, data) < 0 ||
	    (upper = open(ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return refuse("cannot mount a tmpfs for what is written: %s", strerror(errno));
	return true;
}

bool overlay_fill(void)
{
	bool good = split(source, "");

	close(source);
	close(upper);
	close(host_tmp);
	return good;
}
