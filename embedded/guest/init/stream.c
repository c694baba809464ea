/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The result stream: POSIX ustar with regular files only (a GNU `L` entry precedes a member whose
 * name does not fit), all with mode 0644, owner 0 and time 0, ended by two zero blocks.
 * Talks to: crates/machine, over the virtio-serial port PORT_NAME or else the second serial line; without a machine of
 * our own, over the descriptor that we were given.
 */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 512
#define PORTS_DIR "/sys/class/virtio-ports"

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

static int stream = -1;
static bool serial, given;
static char buffer[32 * 1024]; /* as much as the port takes at once */
static size_t filled;

/* The device of the port named PORT_NAME, e.g. /dev/vport0p1. */
static bool find_port(char *device, size_t size)
{
	char path[384], name[64];
	struct dirent *entry;
	bool found = false;
	DIR *ports = opendir(PORTS_DIR);

	if (!ports)
		return false;
	while (!found && (entry = readdir(ports))) {
		snprintf(path, sizeof(path), PORTS_DIR "/%s/name", entry->d_name);
		if (entry->d_name[0] == '.' || read_text(path, name, sizeof(name)) < 0)
			continue;
		name[strcspn(name, "\n")] = '\0';
		found = strcmp(name, PORT_NAME) == 0;
		if (found)
			snprintf(device, size, "/dev/%s", entry->d_name);
	}
	closedir(ports);
	return found;
}

void stream_given(int descriptor)
{
	stream = descriptor;
	given = true;
}

bool stream_open(void)
{
	static const struct timespec pause = { 0, 50000000 };
	struct termios mode;
	char device[288];

	if (given)
		return true;
	/* The port's name arrives by a message from the host some time after boot. */
	for (int tries = 0; tries < 20; tries++) {
		if (find_port(device, sizeof(device))) {
			stream = open(device, O_WRONLY | O_CLOEXEC);
			if (stream < 0)
				return fail("results: cannot open %s: %s", device, strerror(errno));
			return true;
		}
		nanosleep(&pause, NULL);
	}
	stream = open("/dev/ttyS1", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (stream < 0 || tcgetattr(stream, &mode) < 0)
		return fail("results: the machine has neither a virtio-serial port named %s nor /dev/ttyS1 (%s)",
			    PORT_NAME, strerror(errno));
	cfmakeraw(&mode);
	cfsetspeed(&mode, B115200);
	if (tcsetattr(stream, TCSANOW, &mode) < 0)
		return fail("results: cannot set /dev/ttyS1 to raw mode: %s", strerror(errno));
	serial = true;
	return true;
}

static bool flush(void)
{
	size_t done = 0;

	while (done < filled) {
		ssize_t now = write(stream, buffer + done, filled - done);

		if (now < 0 && (errno == EINTR || errno == EAGAIN)) {
			struct pollfd ready = { .fd = stream, .events = POLLOUT };

			poll(&ready, 1, -1);
			continue;
		}
		if (now <= 0)
			return fail("results: cannot send: %s", now < 0 ? strerror(errno) : "port closed");
		done += (size_t)now;
	}
	filled = 0;
	return true;
}

static bool put(const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size > 0) {
		size_t now = sizeof(buffer) - filled < size ? sizeof(buffer) - filled : size;

		memcpy(buffer + filled, from, now);
		filled += now;
		from += now;
		size -= now;
		if (filled == sizeof(buffer) && !flush())
			return false;
	}
	return true;
}

static bool pad(size_t size)
{
	static const char zero[BLOCK];

	return size % BLOCK == 0 || put(zero, BLOCK - size % BLOCK);
}

/* `name` is at most 100 bytes, `prefix` at most 155; neither need end in NUL when full. */
static bool put_header(const char *prefix, size_t prefix_size, const char *name, size_t size, char type)
{
	struct header h;
	unsigned sum = 0;

	memset(&h, 0, sizeof(h));
	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.prefix, prefix, prefix_size);
	memcpy(h.mode, "0000644", 8);
	memcpy(h.uid, "0000000", 8);
	memcpy(h.gid, "0000000", 8);
	snprintf(h.size, sizeof(h.size), "%011zo", size);
	memcpy(h.mtime, "00000000000", 12);
	memset(h.checksum, ' ', sizeof(h.checksum));
	h.type = type;
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum);
	return put(&h, sizeof(h));
}

static bool put_member(const char *member, size_t size)
{
	size_t length = strlen(member);

	if (length <= 100)
		return put_header("", 0, member, size, '0');
	/* The last slash that leaves at most 100 bytes behind it, if at most 155 are before it. */
	const char *cut = strchr(member + length - 101, '/');

	if (cut && cut > member && cut - member <= 155 && cut[1])
		return put_header(member, (size_t)(cut - member), cut + 1, size, '0');
	return put_header("", 0, "././@LongLink", length + 1, 'L') && put(member, length + 1) &&
	       pad(length + 1) && put_header("", 0, member, size, '0');
}

bool stream_bytes(const char *bytes, size_t size, const char *member)
{
	return put_member(member, size) && put(bytes, size) && pad(size);
}

/* Files in debugfs have size 0, and others may still grow: read to the end first. */
bool stream_file(const char *path, const char *member)
{
	static char *bytes;
	static size_t room;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t got;

	if (fd < 0)
		return fail("results: cannot open %s: %s", path, strerror(errno));
	for (;;) {
		if (size == room) {
			size_t more = room ? room * 2 : 256 * 1024;
			char *bigger = realloc(bytes, more);

			if (!bigger) {
				close(fd);
				return fail("results: no memory for %s (more than %zu bytes)", path, size);
			}
			bytes = bigger;
			room = more;
		}
		got = read(fd, bytes + size, room - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	if (got < 0)
		fail("results: cannot read %s: %s", path, strerror(errno));
	close(fd);
	/* What was read is sent even then. */
	return stream_bytes(bytes, size, member) && got == 0;
}

bool stream_tree(const char *dir, const char *prefix, const char *suffix)
{
	struct dirent **entries;
	int count = scandir(dir, &entries, NULL, alphasort);
	bool good = true;

	if (count < 0)
		return fail("results: cannot list %s: %s", dir, strerror(errno));
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		size_t length = strlen(name), end = suffix ? strlen(suffix) : 0;
		char *path = NULL, *member = NULL;
		struct stat status;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
			free(entries[i]);
			continue;
		}
		if (asprintf(&path, "%s/%s", dir, name) < 0 || asprintf(&member, "%s%s", prefix, name) < 0) {
			good = fail("results: out of memory");
		} else if (lstat(path, &status) < 0) {
			good = fail("results: cannot look at %s: %s", path, strerror(errno));
		} else if (S_ISDIR(status.st_mode)) {
			char *below = NULL;

			if (asprintf(&below, "%s/", member) < 0)
				good = fail("results: out of memory");
			else
				good = stream_tree(path, below, suffix) && good;
			free(below);
		} else if (S_ISREG(status.st_mode) &&
			   (!suffix || (length >= end && strcmp(name + length - end, suffix) == 0))) {
			good = stream_file(path, member) && good;
		}
		free(path);
		free(member);
		free(entries[i]);
	}
	free(entries);
	return good;
}

bool stream_close(void)
{
	static const char zero[2 * BLOCK];
	static const struct timespec pause = { 0, 20000000 };
	struct pollfd ready = { .fd = stream, .events = POLLOUT };
	bool good = put(zero, sizeof(zero)) && flush();

	if (serial) {
		good = tcdrain(stream) == 0 && good;
	} else if (!given) {
		/* The port has no drain. Its queue is worked off by the host while we sleep. */
		for (int i = 0; i < 5; i++) {
			poll(&ready, 1, 1000);
			nanosleep(&pause, NULL);
		}
	}
	return close(stream) == 0 && good;
}
