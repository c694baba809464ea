/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * See command.h.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *input = "/dev/null";
static bool keeps_going;

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

void command_keeps_going(void)
{
	keeps_going = true;
}

bool command_status(int status)
{
	int fd;
	bool good;

	/* The kernel kills what takes too much memory with this signal. */
	if (!keeps_going || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
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
	good = good && fchmod(out, meta->st_mode & 07777) == 0;
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
