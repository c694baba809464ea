/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * nfs: operations on files of an NFS mount, most of which ask the server. Arguments and output: kt_suite.h; docs/suites.md.
 *
 * Files are below /mnt/nfs, where `data/workloads/nfs.toml` mounts what the guest's own server exports.
 *
 * stat             attributes of a file, asked of the server (AT_STATX_FORCE_SYNC)
 * lookup_missing   open of a name that is not there
 * create_remove    a new file, closed, removed
 * mkdir_rmdir      a directory
 * rename_list      a file of a directory gets another name, then all 64 of it are listed
 * lock             a byte locked and unlocked by fcntl: the client does it itself, as the server delegates the file
 * write_fsync_4k   4 KiB to the same place of a file, and fsync
 * write_64k        64 KiB after another, and fsync
 * read_direct_4k   4 KiB without the page cache
 * read_64k         64 KiB that the page cache no longer has
 * read_cached_4k   4 KiB that it has
 *
 * Talks to: the recorder by marks (kt_mark.h); `data/workloads/nfs.toml` runs it.
 */
#define _GNU_SOURCE
#include "kt_peer.h"

#include <dirent.h>
#include <sys/vfs.h>

#define MOUNT "/mnt/nfs"
#define NFS_MAGIC 0x6969
#define SMALL 4096
#define LARGE 65536
#define LISTED 64
#define PLACES 16

static int file = -1;
static char *bytes; /* LARGE of them, at the beginning of a page */
static unsigned long turn;

static const char *missing(void)
{
	struct statfs at;

	return statfs(MOUNT, &at) == 0 && at.f_type == NFS_MAGIC ? NULL : MOUNT " is no NFS mount";
}

static void begin(void)
{
	bytes = aligned_alloc(SMALL, LARGE);
	if (!bytes)
		die("no memory");
	for (size_t i = 0; i < LARGE; i++)
		bytes[i] = kt_message[i % KT_MESSAGE];
}

static void end(void)
{
	free(bytes);
}

/* A file of row->size bytes, which the server has. */
static void file_begin(const struct kt_row *row)
{
	const char *path = kt_path("file");
	const int *flags = row->data;

	file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (file < 0)
		die("%s", path);
	for (unsigned long done = 0; done < row->size; done += LARGE)
		put_all(file, bytes, LARGE);
	if (fsync(file) < 0)
		die("fsync");
	turn = 0;
	if (!flags)
		return;
	close_all(file, file);
	file = open(path, *flags);
	if (file < 0)
		die("%s again", path);
}

static void file_end(const struct kt_row *row)
{
	(void)row;
	close_all(file, file);
	if (unlink(kt_path("file")) < 0)
		die("unlink");
}

static void stat_one(const struct kt_row *row)
{
	struct statx stat;

	(void)row;
	if (statx(file, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stat) < 0)
		die("statx");
}

/* Each time another name: the client remembers what is missing. */
static void lookup_missing_one(const struct kt_row *row)
{
	char name[32];

	(void)row;
	snprintf(name, sizeof(name), "none%lu", turn++);
	if (open(kt_path(name), O_RDONLY) >= 0 || errno != ENOENT)
		die("%s", name);
}

static void create_remove_one(const struct kt_row *row)
{
	const char *path = kt_path("new");
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	(void)row;
	if (fd < 0 || close(fd) < 0 || unlink(path) < 0)
		die("%s", path);
}

static void mkdir_rmdir_one(const struct kt_row *row)
{
	const char *path = kt_path("dir");

	(void)row;
	if (mkdir(path, 0700) < 0 || rmdir(path) < 0)
		die("%s", path);
}

/* ---- a directory ---- */

static const char *entry(unsigned long number)
{
	char name[32];

	snprintf(name, sizeof(name), "list/%lu", number);
	return kt_path(name);
}

static void list_begin(const struct kt_row *row)
{
	(void)row;
	turn = 0;
	if (mkdir(kt_path("list"), 0700) < 0)
		die("mkdir");
	for (unsigned long i = 0; i < LISTED; i++) {
		int fd = open(entry(i), O_WRONLY | O_CREAT | O_EXCL, 0600);

		if (fd < 0 || close(fd) < 0)
			die("%s", entry(i));
	}
}

/* The last name goes from one to the next. */
static void rename_list_one(const struct kt_row *row)
{
	char old[128];
	unsigned long count = 0;
	DIR *dir;

	(void)row;
	snprintf(old, sizeof(old), "%s", entry(LISTED - 1 + turn));
	turn++;
	if (rename(old, entry(LISTED - 1 + turn)) < 0)
		die("rename");
	dir = opendir(kt_path("list"));
	if (!dir)
		die("opendir");
	while (readdir(dir))
		count++;
	if (closedir(dir) < 0 || count != LISTED + 2)
		die("%lu entries are listed", count);
}

static void list_end(const struct kt_row *row)
{
	(void)row;
	for (unsigned long i = 0; i < LISTED - 1; i++)
		if (unlink(entry(i)) < 0)
			die("unlink");
	if (unlink(entry(LISTED - 1 + turn)) < 0 || rmdir(kt_path("list")) < 0)
		die("rmdir");
}

/* ---- contents ---- */

static void lock_one(const struct kt_row *row)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	(void)row;
	if (fcntl(file, F_SETLK, &lock) < 0)
		die("F_WRLCK");
	lock.l_type = F_UNLCK;
	if (fcntl(file, F_SETLK, &lock) < 0)
		die("F_UNLCK");
}

static void write_fsync_one(const struct kt_row *row)
{
	(void)row;
	bytes[0]++;
	if (pwrite(file, bytes, SMALL, 0) != SMALL || fsync(file) < 0)
		die("write");
}

static void write_64k_one(const struct kt_row *row)
{
	off_t at = (off_t)(turn++ % PLACES) * LARGE;

	(void)row;
	if (pwrite(file, bytes, LARGE, at) != LARGE || fsync(file) < 0)
		die("write");
}

/* From another of the file's places each time. */
static void read_one(const struct kt_row *row)
{
	size_t size = row->bytes;
	off_t at = (off_t)(turn++ % (row->size / size)) * (off_t)size;

	if (pread(file, bytes, size, at) != (ssize_t)size)
		die("read");
}

static void read_64k_one(const struct kt_row *row)
{
	off_t at = (off_t)(turn % PLACES) * LARGE;

	if (posix_fadvise(file, at, LARGE, POSIX_FADV_DONTNEED) != 0)
		die("fadvise");
	read_one(row);
}

#define NEEDS "CONFIG_NFSD_V4,CONFIG_NFS_V4"
#define ROW .needs = NEEDS, .missing = missing
#define FILE_ROW(kilobytes) ROW, .size = (kilobytes) * 1024, .begin = file_begin, .end = file_end

static const int direct = O_RDONLY | O_DIRECT, cached = O_RDONLY;

static const struct kt_row rows[] = {
	{ .name = "stat", .operations = 200, FILE_ROW(64), .one = stat_one },
	{ .name = "lookup_missing", .operations = 200, ROW, .one = lookup_missing_one },
	{ .name = "create_remove", .operations = 60, ROW, .one = create_remove_one },
	{ .name = "mkdir_rmdir", .operations = 100, ROW, .one = mkdir_rmdir_one },
	{ .name = "rename_list", .operations = 20, ROW, .begin = list_begin, .one = rename_list_one, .end = list_end },
	{ .name = "lock", .operations = 1000, FILE_ROW(64), .one = lock_one },
	{ .name = "write_fsync_4k", .operations = 100, FILE_ROW(64), .bytes = SMALL, .unit = "MB/s",
	  .one = write_fsync_one },
	{ .name = "write_64k", .operations = 50, FILE_ROW(PLACES * 64), .bytes = LARGE, .unit = "MB/s",
	  .one = write_64k_one },
	{ .name = "read_direct_4k", .operations = 150, FILE_ROW(PLACES * 64), .bytes = SMALL, .unit = "MB/s",
	  .data = &direct, .one = read_one },
	{ .name = "read_64k", .operations = 50, FILE_ROW(PLACES * 64), .bytes = LARGE, .unit = "MB/s",
	  .data = &cached, .one = read_64k_one },
	{ .name = "read_cached_4k", .operations = 3000, FILE_ROW(PLACES * 64), .bytes = SMALL, .unit = "MB/s",
	  .data = &cached, .one = read_one, .warm_up = PLACES * 16 },
};

int main(int argc, char **argv)
{
	static const struct kt_suite suite = { .name = "nfs", .rows = rows, .count = sizeof(rows) / sizeof(rows[0]),
					       .scratch = MOUNT, .begin = begin, .end = end };

	return kt_main(&suite, argc, argv);
}
