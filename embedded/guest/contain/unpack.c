/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The image: newc, uncompressed, sorted, so that a directory comes before what is in it. crates/guest/src/image.rs writes it.
 */
#include "contain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER 110 /* bytes: a magic number of 6, and 13 numbers of 8 hexadecimal digits */

enum { MODE = 1, SIZE = 6, NAME_SIZE = 11 };

static char buffer[1 << 20];

static bool take(int archive, void *to, size_t size)
{
	char *at = to;

	while (size > 0) {
		ssize_t got = read(archive, at, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return refuse("the image is damaged: it ends too early");
		at += got;
		size -= (size_t)got;
	}
	return true;
}

static bool cannot(const char *what, const char *path)
{
	return refuse("cannot %s %s of the image: %s%s", what, path, strerror(errno),
		      errno == ENOSPC ? "; give the workload more memory (`memory_mb`)" : "");
}

static bool unpack_file(int archive, const char *path, mode_t mode, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 07777);

	if (fd < 0)
		return cannot("make", path);
	while (size > 0) {
		size_t part = size < sizeof(buffer) ? size : sizeof(buffer);

		if (!take(archive, buffer, part))
			return false;
		for (size_t done = 0; done < part;) {
			ssize_t now = write(fd, buffer + done, part - done);

			if (now < 0 && errno == EINTR)
				continue;
			if (now <= 0)
				return cannot("write", path);
			done += (size_t)now;
		}
		size -= part;
	}
	if (fchmod(fd, mode & 07777) < 0 || close(fd) < 0)
		return cannot("write", path);
	return true;
}

static bool unpack_entry(int archive, const char *path, mode_t mode, size_t size)
{
	if (S_ISREG(mode))
		return unpack_file(archive, path, mode, size);
	if (S_ISDIR(mode)) {
		if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, mode & 07777) < 0)
			return cannot("make", path);
	} else if (S_ISLNK(mode)) {
		char target[PATH_MAX];

		if (size >= sizeof(target))
			return refuse("the image is damaged: %s leads too far", path);
		if (!take(archive, target, size))
			return false;
		target[size] = '\0';
		if (symlink(target, path) < 0)
			return cannot("make", path);
	}
	/* Devices are the host's: root.c brings those that are harmless. */
	return true;
}

bool unpack(int archive, const char *directory)
{
	static const char magic[] = "070701";
	char path[PATH_MAX], header[HEADER];
	size_t before = (size_t)snprintf(path, sizeof(path), "%s/", directory);

	for (;;) {
		unsigned long field[13];

		if (!take(archive, header, sizeof(header)))
			return false;
		if (memcmp(header, magic, 6) != 0)
			return refuse("the image is damaged: it is no newc archive");
		for (int i = 0; i < 13; i++) {
			char digits[9] = { 0 };

			memcpy(digits, header + 6 + 8 * i, 8);
			field[i] = strtoul(digits, NULL, 16);
		}
		if (field[NAME_SIZE] < 2 || field[NAME_SIZE] > sizeof(path) - before)
			return refuse("the image is damaged: a name of %lu bytes", field[NAME_SIZE]);
		/* Header and name together, and contents, are filled up to multiples of 4. */
		if (!take(archive, path + before, field[NAME_SIZE]) ||
		    !take(archive, buffer, -(HEADER + field[NAME_SIZE]) & 3))
			return false;
		path[before + field[NAME_SIZE] - 1] = '\0';
		if (strcmp(path + before, "TRAILER!!!") == 0)
			return true;
		if (!unpack_entry(archive, path, (mode_t)field[MODE], field[SIZE]) ||
		    !take(archive, buffer, -field[SIZE] & 3))
			return false;
	}
}
