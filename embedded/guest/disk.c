/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * kt-disk: sets the workload's disk up before anything else of it runs: the device, a file system that comes out the
 * same each time, and the files that are on it when the run begins.
 * Talks to: crates/guest (disk.rs), which writes its arguments into the plan; the kernel. docs/disk.md describes it.
 *
 *   kt-disk null_blk|brd|pmem|virtio size_mb=N [latency_us=N queue_depth=N queues=N block_bytes=N] [scheduler=NAME]
 *           [filesystem=NAME mount=PATH options=LIST mkfs=WORD... file=PATH...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "/dev/kt-disk" /* the same name whatever the kind; crates/guest/src/disk.rs says it, too */
#define CONFIGFS "/sys/kernel/config"
#define WAIT_MS 10000 /* of guest time for the device to come */
#define CHUNK (1 << 20)
#define OPEN_FILES 16

struct disk {
	const char *kind;
	unsigned long size_mb;
	const char *latency_us, *queue_depth, *queues, *block_bytes, *scheduler;
	const char *filesystem, *mount, *options;
	char **mkfs; /* NULL-terminated; the device is to be added */
	char **file; /* NULL-terminated */
	int mkfs_count;
};

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void fail(const char *format, ...)
{
	va_list list;

	fputs("kt-disk: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

static _Noreturn void usage(const char *word)
{
	fprintf(stderr, "kt-disk: cannot use \"%s\": see embedded/guest/disk.c\n", word);
	exit(2);
}

static void *allocate(size_t count, size_t size)
{
	void *all = calloc(count, size);

	if (!all)
		fail("out of memory");
	return all;
}

/* What follows KEY= in a word, or NULL. */
static const char *value_of(const char *word, const char *key)
{
	size_t length = strlen(key);

	return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static struct disk read_arguments(int argc, char **argv)
{
	struct disk disk = { .kind = argc > 1 ? argv[1] : "", .options = "" };
	const struct {
		const char *key, **to;
	} texts[] = {
		{ "latency_us", &disk.latency_us }, { "queue_depth", &disk.queue_depth },
		{ "queues", &disk.queues },	    { "scheduler", &disk.scheduler },
		{ "filesystem", &disk.filesystem }, { "mount", &disk.mount },
		{ "options", &disk.options },	    { "block_bytes", &disk.block_bytes },
	};
	int files = 0;

	/* One more for the device, one for the end. */
	disk.mkfs = allocate((size_t)argc + 2, sizeof(*disk.mkfs));
	disk.file = allocate((size_t)argc + 1, sizeof(*disk.file));
	for (int i = 2; i < argc; i++) {
		const char *value = value_of(argv[i], "size_mb");
		bool known = value != NULL;

		if (known)
			disk.size_mb = strtoul(value, NULL, 10);
		for (size_t at = 0; !known && at < sizeof(texts) / sizeof(texts[0]); at++) {
			value = value_of(argv[i], texts[at].key);
			known = value != NULL;
			if (known)
				*texts[at].to = value;
		}
		if (!known && value_of(argv[i], "mkfs"))
			disk.mkfs[disk.mkfs_count++] = argv[i] + strlen("mkfs=");
		else if (!known && value_of(argv[i], "file"))
			disk.file[files++] = argv[i] + strlen("file=");
		else if (!known)
			usage(argv[i]);
	}
	if (disk.size_mb == 0)
		usage("size_mb");
	if (disk.filesystem && (!disk.mount || disk.mkfs_count == 0))
		usage(disk.filesystem);
	return disk;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail("cannot write \"%s\" into %s: %s", text, path, strerror(errno));
	close(fd);
}

/* ---- the device ---- */

static void set(const char *attribute, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), CONFIGFS "/nullb/nullb0/%s", attribute);
	write_text(path, value);
}

/* Through configfs and not by parameters: the same words in all versions of Linux, and errors where they happen. */
static void make_null_blk(const struct disk *disk)
{
	char size[32], nanoseconds[32];

	if (mount("configfs", CONFIGFS, "configfs", 0, NULL) < 0 && errno != EBUSY)
		fail("cannot mount configfs at " CONFIGFS ": %s (CONFIG_CONFIGFS_FS)", strerror(errno));
	if (mkdir(CONFIGFS "/nullb/nullb0", 0755) < 0)
		fail("cannot make a device of null_blk: %s (CONFIG_BLK_DEV_NULL_BLK)", strerror(errno));
	snprintf(size, sizeof(size), "%lu", disk->size_mb);
	snprintf(nanoseconds, sizeof(nanoseconds), "%lu000", strtoul(disk->latency_us, NULL, 10));
	set("size", size);
	set("blocksize", disk->block_bytes);
	set("queue_mode", "2"); /* blk-mq */
	set("submit_queues", disk->queues);
	set("hw_queue_depth", disk->queue_depth);
	/* 2: completed by a timer, as if by an interrupt of the device; 0: at once, by who submits. */
	set("irqmode", strcmp(disk->latency_us, "0") == 0 ? "0" : "2");
	set("completion_nsec", nanoseconds);
	set("memory_backed", "1");
	set("power", "1");
}

static const char *device_of(const struct disk *disk)
{
	if (strcmp(disk->kind, "null_blk") == 0) {
		if (!disk->latency_us || !disk->queue_depth || !disk->queues || !disk->block_bytes)
			usage(disk->kind);
		make_null_blk(disk);
		return "nullb0";
	}
	if (strcmp(disk->kind, "brd") == 0)
		return "ram0";
	if (strcmp(disk->kind, "pmem") == 0)
		return "pmem0";
	if (strcmp(disk->kind, "virtio") == 0)
		return "vda";
	usage(disk->kind);
}

/* Opens the device, waiting for it: some drivers probe in a thread of their own. */
static void check_device(const char *path, unsigned long size_mb)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned long long bytes = 0;
	int fd, waited = 0;

	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		if (errno != ENOENT || waited++ == WAIT_MS)
			fail("the disk %s does not come: %s", path, strerror(errno));
		nanosleep(&pause, NULL);
	}
	if (ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		fail("cannot ask for the size of %s: %s", path, strerror(errno));
	close(fd);
	if (bytes != (unsigned long long)size_mb << 20)
		fail("%s has %llu bytes, which are not %lu MiB", path, bytes, size_mb);
}

/* ---- the file system ---- */

static void run(char **command)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	if (pid == 0) {
		execvp(command[0], command);
		fail("cannot execute %s: %s", command[0], strerror(errno));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("cannot wait for %s: %s", command[0], strerror(errno));
	if (WIFSIGNALED(status))
		fail("%s was killed by signal %d", command[0], WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		fail("%s ended with status %d", command[0], WEXITSTATUS(status));
}

/* Options that mount(2) takes as flags; all others go to the file system. */
static unsigned long flags_of(const char *options, char *rest, size_t size)
{
	static const struct {
		const char *word;
		unsigned long flag;
	} flags[] = {
		{ "ro", MS_RDONLY },	 { "noatime", MS_NOATIME },	  { "nodiratime", MS_NODIRATIME },
		{ "sync", MS_SYNCHRONOUS }, { "relatime", MS_RELATIME },  { "strictatime", MS_STRICTATIME },
		{ "dirsync", MS_DIRSYNC }, { "lazytime", MS_LAZYTIME },   { "nosuid", MS_NOSUID },
		{ "nodev", MS_NODEV },	 { "noexec", MS_NOEXEC },	  { "rw", 0 },
		{ "defaults", 0 },
	};
	unsigned long all = 0;
	char *copy = strdup(options), *next, *word;

	if (!copy)
		fail("out of memory");
	rest[0] = '\0';
	for (word = strtok_r(copy, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		size_t at = 0, count = sizeof(flags) / sizeof(flags[0]);

		while (at < count && strcmp(word, flags[at].word) != 0)
			at++;
		if (at < count) {
			all |= flags[at].flag;
		} else {
			if (strlen(rest) + strlen(word) + 2 > size)
				fail("too many mount options: %s", options);
			strcat(strcat(rest, rest[0] ? "," : ""), word);
		}
	}
	free(copy);
	return all;
}

static void mount_disk(const struct disk *disk, bool to_fill)
{
	char rest[4096];
	unsigned long flags = flags_of(disk->options, rest, sizeof(rest));

	if (to_fill)
		flags &= ~(unsigned long)MS_RDONLY;
	if (mount(DEVICE, disk->mount, disk->filesystem, flags, rest) < 0)
		fail("cannot mount %s at %s with the options \"%s\": %s", disk->filesystem, disk->mount,
		     disk->options, strerror(errno));
}

static void make_directories(const char *path)
{
	char copy[4096];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		fail("%s is too long", path);
	for (char *at = copy + 1;; at++) {
		if (*at == '/' || *at == '\0') {
			char end = *at;

			*at = '\0';
			if (mkdir(copy, 0755) < 0 && errno != EEXIST)
				fail("cannot make %s: %s", copy, strerror(errno));
			*at = end;
			if (end == '\0')
				return;
		}
	}
}

/* ---- the files ---- */

/* nftw hands no argument on. */
static const char *copied_from, *copied_to;

static void copy_contents(const char *from, const char *to, mode_t mode)
{
	static char chunk[CHUNK];
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	ssize_t got;

	if (in < 0)
		fail("cannot open %s: %s", from, strerror(errno));
	if (out < 0)
		fail("cannot make %s: %s", to, strerror(errno));
	while ((got = read(in, chunk, sizeof(chunk))) > 0)
		for (ssize_t done = 0; done < got;) {
			ssize_t now = write(out, chunk + done, (size_t)(got - done));

			if (now < 0)
				fail("cannot write %s: %s; `size_mb` says how large the disk is", to,
				     strerror(errno));
			done += now;
		}
	if (got < 0)
		fail("cannot read %s: %s", from, strerror(errno));
	close(in);
	if (close(out) < 0)
		fail("cannot write %s: %s", to, strerror(errno));
}

static int copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char to[4096], target[4096];
	ssize_t length;

	(void)ftw;
	if (snprintf(to, sizeof(to), "%s%s", copied_to, path + strlen(copied_from)) >= (int)sizeof(to))
		fail("%s is too long", path);
	if (type == FTW_D) {
		if (mkdir(to, st->st_mode & 07777) < 0)
			fail("cannot make %s: %s", to, strerror(errno));
	} else if (type == FTW_SL || type == FTW_SLN) {
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			fail("cannot read the link %s: %s", path, strerror(errno));
		target[length] = '\0';
		if (symlink(target, to) < 0)
			fail("cannot make %s: %s", to, strerror(errno));
		return 0;
	} else if (type == FTW_F) {
		copy_contents(path, to, st->st_mode & 07777);
	} else {
		fail("cannot look at %s", path);
	}
	/* The mask took some of the mode away. */
	if (chmod(to, st->st_mode & 07777) < 0)
		fail("cannot set the mode of %s: %s", to, strerror(errno));
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if ((type == FTW_DP ? rmdir(path) : unlink(path)) < 0)
		fail("cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* Moves a file or directory from the image, which is in memory, to the disk. */
static void move(const char *file, const char *mount)
{
	char to[4096];
	const char *name = strrchr(file, '/');

	if (!name || name[1] == '\0' || snprintf(to, sizeof(to), "%s%s", mount, name) >= (int)sizeof(to))
		usage(file);
	copied_from = file;
	copied_to = to;
	if (nftw(file, copy_one, OPEN_FILES, FTW_PHYS) < 0)
		fail("cannot copy %s: %s", file, strerror(errno));
	if (nftw(file, remove_one, OPEN_FILES, FTW_PHYS | FTW_DEPTH) < 0)
		fail("cannot remove %s: %s", file, strerror(errno));
}

int main(int argc, char **argv)
{
	struct disk disk = read_arguments(argc, argv);
	const char *name = device_of(&disk);
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", name);
	check_device(path, disk.size_mb);
	if (symlink(path, DEVICE) < 0)
		fail("cannot make " DEVICE ": %s", strerror(errno));
	if (disk.scheduler) {
		char setting[128];

		snprintf(setting, sizeof(setting), "/sys/block/%s/queue/scheduler", name);
		write_text(setting, disk.scheduler);
	}
	if (!disk.filesystem)
		return 0;
	disk.mkfs[disk.mkfs_count] = (char *)DEVICE;
	run(disk.mkfs);
	make_directories(disk.mount);
	if (disk.file[0]) {
		mount_disk(&disk, true);
		for (char **file = disk.file; *file; file++)
			move(*file, disk.mount);
		/* Mounted anew, its journal is empty and nothing of it is in memory: as a machine finds it that starts. */
		if (umount(disk.mount) < 0)
			fail("cannot unmount %s: %s", disk.mount, strerror(errno));
	}
	mount_disk(&disk, false);
	return 0;
}
