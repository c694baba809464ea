/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * See command.h.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STUBS_FILE "/kt/stubs" /* lines of crates/guest/src/plan.rs: size, `watched` or `free`, path */

static const char *input = "/dev/null";
static bool keeps_going;
static char **user;
static int user_count;
static long file_mask = -1; /* init's own */
static mode_t own_mask;
static struct {
	__rlimit_resource_t resource;
	struct rlimit value, own;
} limits[16];
static size_t limit_count;

bool command_unescape(char *field)
{
	char *to = field;

	for (; *field; field++) {
		if (*field != '\\') {
			*to++ = *field;
			continue;
		}
		switch (*++field) {
		case '\\':
			*to++ = '\\';
			break;
		case 't':
			*to++ = '\t';
			break;
		case 'n':
			*to++ = '\n';
			break;
		default:
			return false;
		}
	}
	*to = '\0';
	return true;
}

void command_input_is(const char *path)
{
	input = path;
}

const char *command_input(void)
{
	return input;
}

void command_user_is(char **ids, int count)
{
	user = ids;
	user_count = count;
}

bool command_limit_is(char **numbers)
{
	if (limit_count == sizeof(limits) / sizeof(limits[0]))
		return fail("plan: too many limits of resources");
	limits[limit_count].resource = (__rlimit_resource_t)strtoul(numbers[0], NULL, 10);
	limits[limit_count].value.rlim_cur = strtoul(numbers[1], NULL, 10);
	limits[limit_count++].value.rlim_max = strtoul(numbers[2], NULL, 10);
	return true;
}

void command_umask_is(const char *mask)
{
	file_mask = strtol(mask, NULL, 8);
}

bool command_enter(void)
{
	gid_t groups[NGROUPS_MAX];
	size_t count = 0;

	for (int i = 2; i < user_count && count < NGROUPS_MAX; i++)
		groups[count++] = (gid_t)strtoul(user[i], NULL, 10);
	if (user && setgroups(count, groups) < 0)
		return fail("cannot take the command's groups: %s", strerror(errno));
	/* The directory that KT_OUT names. */
	if (user && chown(OUT_DIR, (uid_t)strtoul(user[0], NULL, 10), (gid_t)strtoul(user[1], NULL, 10)) < 0)
		return fail("cannot give " OUT_DIR " to the command: %s", strerror(errno));
	if (file_mask >= 0)
		own_mask = umask((mode_t)file_mask);
	for (size_t i = 0; i < limit_count; i++)
		if (prlimit(0, limits[i].resource, &limits[i].value, &limits[i].own) < 0)
			return fail("cannot take limit %d of the command: %s", (int)limits[i].resource, strerror(errno));
	return true;
}

bool command_leave(void)
{
	if (file_mask >= 0)
		umask(own_mask);
	for (size_t i = 0; i < limit_count; i++)
		if (prlimit(0, limits[i].resource, &limits[i].own, NULL) < 0)
			return fail("cannot give limit %d of the command back: %s", (int)limits[i].resource,
				    strerror(errno));
	return true;
}

bool command_become(int out)
{
	uid_t uid = user ? (uid_t)strtoul(user[0], NULL, 10) : 0;
	gid_t gid = user ? (gid_t)strtoul(user[1], NULL, 10) : 0;

	if (uid == 0 && gid == 0)
		return true;
	/* It may open its output once more, by /dev/stdout. */
	return fchown(out, uid, gid) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

void command_keeps_going(void)
{
	keeps_going = true;
}

bool command_clock(const char *days)
{
	struct timespec now, start = { 0 };
	unsigned long count;

	if (!plan_number(days, &count))
		return fail("clock: %s is not a number of days", days);
	start.tv_sec = (time_t)count * 86400;
	if (clock_gettime(CLOCK_REALTIME, &now) == 0 &&
	    (now.tv_sec >= start.tv_sec || clock_settime(CLOCK_REALTIME, &start) == 0 || errno == EPERM))
		return true;
	return fail("clock: cannot set it: %s", strerror(errno));
}

bool command_status(int status)
{
	int fd;
	bool good;

	if (!keeps_going)
		return false;
	fd = open(OUT_DIR "/" STATUS_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	good = fd >= 0 &&
	       dprintf(fd, "%d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)) > 0;
	return fd >= 0 && close(fd) == 0 && good;
}

void command_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

int command_packed_tmp(void)
{
	return open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Most images have only files of root. */
static bool keep_owner(int fd, const struct stat *meta)
{
	return (meta->st_uid == 0 && meta->st_gid == 0) || fchown(fd, meta->st_uid, meta->st_gid) == 0;
}

static bool move_file(int from, int to, const char *name, const struct stat *meta)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC);
	int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	off_t left = meta->st_size;
	bool good = in >= 0 && out >= 0;

	while (good && left > 0) {
		ssize_t moved = sendfile(out, in, NULL, (size_t)left);

		good = moved > 0;
		left -= moved;
	}
	good = good && keep_owner(out, meta) && fchmod(out, meta->st_mode & 07777) == 0 &&
	       futimens(out, (struct timespec[]){ meta->st_atim, meta->st_mtim }) == 0;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return good && unlinkat(from, name, 0) == 0;
}

static bool move_link(int from, int to, const char *name)
{
	char target[4096];
	ssize_t size = readlinkat(from, name, target, sizeof(target) - 1);

	if (size < 0)
		return false;
	target[size] = '\0';
	return symlinkat(target, to, name) == 0;
}

/* Takes over the descriptors. */
static bool move_directory(int from, int to)
{
	DIR *dir = from >= 0 && to >= 0 ? fdopendir(from) : NULL;
	struct dirent *entry;
	bool good = dir != NULL;

	while (good && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		struct stat meta;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (fstatat(from, name, &meta, AT_SYMLINK_NOFOLLOW) < 0)
			good = false;
		else if (S_ISDIR(meta.st_mode))
			good = mkdirat(to, name, 0700) == 0 &&
			       move_directory(openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					      openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) &&
			       fchmodat(to, name, meta.st_mode & 07777, 0) == 0;
		else if (S_ISLNK(meta.st_mode))
			good = move_link(from, to, name);
		else
			good = move_file(from, to, name, &meta);
	}
	if (dir)
		closedir(dir);
	else if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return good;
}

bool command_fill_tmp(int packed)
{
	if (packed < 0 || move_directory(packed, open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
		return true;
	return fail("boot: cannot move the packed files of /tmp: %s", strerror(errno));
}

/* A file without contents. */
static struct stub {
	char *path;
	ino_t inode;
	bool is_watched;
} *stubs;
static size_t stub_count;

/* The time of the last access that a stub has until it is read. */
#define UNREAD 0

static bool make_stub(struct stub *stub, char *line)
{
	const struct timespec unread = { UNREAD, 0 };
	char *kind = strchr(line, '\t'), *path = kind ? strchr(kind + 1, '\t') : NULL;
	struct stat meta;

	if (!path)
		return fail("boot: " STUBS_FILE " is damaged");
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (!command_unescape(path) || lstat(path, &meta) < 0 || truncate(path, atoll(line)) < 0 ||
	    utimensat(AT_FDCWD, path, (struct timespec[]){ unread, meta.st_mtim }, AT_SYMLINK_NOFOLLOW) < 0)
		return fail("boot: cannot make %s: %s", path, strerror(errno));
	*stub = (struct stub){ strdup(path), meta.st_ino, strncmp(kind + 1, "watched", 7) == 0 };
	return stub->path || fail("boot: out of memory");
}

bool command_make_stubs(void)
{
	FILE *file = fopen(STUBS_FILE, "re");
	char *line = NULL;
	size_t size = 0;
	bool good = true;

	while (file && good && getline(&line, &size, file) > 0) {
		if ((stub_count & (stub_count - 1)) == 0) {
			struct stub *more = realloc(stubs, (stub_count ? stub_count * 2 : 1) * sizeof(*stubs));

			if (!more)
				return fail("boot: out of memory");
			stubs = more;
		}
		good = make_stub(&stubs[stub_count++], line);
	}
	free(line);
	if (file)
		fclose(file);
	return good;
}

const char *command_read_stub(void)
{
	for (size_t i = 0; i < stub_count; i++) {
		struct stat meta;

		if (stubs[i].is_watched && lstat(stubs[i].path, &meta) == 0 && S_ISREG(meta.st_mode) &&
		    meta.st_ino == stubs[i].inode && meta.st_atim.tv_sec != UNREAD)
			return stubs[i].path;
	}
	return NULL;
}
