/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Files, directories and what is mounted.
 */
#include "selftest.h"

#include <dirent.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static void read_back(void)
{
	unsigned char bytes[10000], again[10000];
	int fd = create("data");

	for (size_t at = 0; at < 1 << 20; at += sizeof(bytes)) {
		fill(bytes, at, sizeof(bytes));
		MUST(write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	}
	MUST(lseek(fd, 123457, SEEK_SET) == 123457);
	MUST(read(fd, again, sizeof(again)) == sizeof(again) && is_filled(again, 123457, sizeof(again)));
	MUST(lseek(fd, 0, SEEK_END) == 1050000 && read(fd, again, 1) == 0);
}

static void holes(void)
{
	struct stat status;
	char bytes[16];
	int fd = create("sparse");

	MUST(pwrite(fd, "end", 3, 10 << 20) == 3);
	MUST(fstat(fd, &status) == 0 && status.st_size == (10 << 20) + 3 && status.st_blocks < 64);
	MUST(pread(fd, bytes, 16, 5 << 20) == 16 && bytes[0] == 0 && bytes[15] == 0);
	MUST(lseek(fd, 0, SEEK_DATA) == 10 << 20 && lseek(fd, 10 << 20, SEEK_HOLE) >= (10 << 20) + 3);
	MUST(ftruncate(fd, 5) == 0 && fstat(fd, &status) == 0 && status.st_size == 5);
}

static void names(void)
{
	struct stat status;
	char target[64] = "";

	close(create("a"));
	MUST(link(in_dir("a"), in_dir("b")) == 0 && stat(in_dir("b"), &status) == 0 && status.st_nlink == 2);
	MUST(rename(in_dir("b"), in_dir("c")) == 0 && access(in_dir("b"), F_OK) == -1 && errno == ENOENT);
	MUST(symlink("c", in_dir("s")) == 0 && readlink(in_dir("s"), target, 63) == 1 && target[0] == 'c');
	MUST(stat(in_dir("s"), &status) == 0 && S_ISREG(status.st_mode));
	MUST(symlink("loop", in_dir("loop")) == 0 && open(in_dir("loop"), O_RDONLY) == -1 && errno == ELOOP);
	MUST(unlink(in_dir("a")) == 0 && stat(in_dir("c"), &status) == 0 && status.st_nlink == 1);
	MUST(mkdir(in_dir("d"), 0700) == 0 && rename(in_dir("c"), in_dir("d/c")) == 0);
	MUST(rmdir(in_dir("d")) == -1 && errno == ENOTEMPTY);
	MUST(syscall(SYS_renameat2, AT_FDCWD, in_dir("d"), AT_FDCWD, in_dir("s"), 2) == 0); /* exchange */
	MUST(stat(in_dir("s/c"), &status) == 0);
}

static void directories(void)
{
	char name[32], seen[300] = { 0 };
	struct dirent *entry;
	DIR *list;
	int count = 0;

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		close(create(name));
	}
	list = opendir(dir);
	MUST(list);
	while ((entry = readdir(list))) {
		if (entry->d_name[0] != 'f')
			continue;
		int number = atoi(entry->d_name + 1);

		MUST(number < 300 && !seen[number]);
		seen[number] = 1;
		count++;
	}
	closedir(list);
	MUST(count == 300);
}

static void vectors(void)
{
	char a[3], b[5], c[9] = "";
	struct iovec out[3] = { { "one", 3 }, { "", 0 }, { "three", 5 } }, in[3] = { { a, 3 }, { b, 5 }, { c, 8 } };
	int fd = create("vectors");

	MUST(writev(fd, out, 3) == 8 && preadv(fd, in, 3, 0) == 8);
	MUST(memcmp(a, "one", 3) == 0 && memcmp(b, "three", 5) == 0);
}

static void append(void)
{
	int a, b;
	char bytes[8] = "";

	close(create("log"));
	a = open(in_dir("log"), O_WRONLY | O_APPEND);
	b = open(in_dir("log"), O_RDWR | O_APPEND);
	MUST(a >= 0 && b >= 0);
	MUST(write(a, "1", 1) == 1 && write(b, "2", 1) == 1 && write(a, "3", 1) == 1);
	MUST(pread(b, bytes, 7, 0) == 3 && strcmp(bytes, "123") == 0);
}

static void locks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };
	int fd = create("locked");
	pid_t child;

	MUST(fcntl(fd, F_SETLK, &lock) == 0);
	child = fork();
	if (child == 0) {
		struct flock other = lock;

		MUST(fcntl(fd, F_SETLK, &other) == -1 && (errno == EAGAIN || errno == EACCES));
		other.l_start = 20;
		MUST(fcntl(fd, F_SETLK, &other) == 0);
		other.l_start = 15;
		MUST(fcntl(fd, F_GETLK, &other) == 0 && other.l_pid == getppid());
		_exit(0);
	}
	await(child, 0);
	MUST(flock(fd, LOCK_EX | LOCK_NB) == 0);
}

static void send_file(void)
{
	unsigned char bytes[PAGE];
	int from = create("from"), to = create("to"), copy = create("copy");
	off_t at = 100;
	loff_t zero = 0;

	for (int i = 0; i < 16; i++) {
		fill(bytes, (size_t)i * PAGE, PAGE);
		MUST(write(from, bytes, PAGE) == PAGE);
	}
	MUST(sendfile(to, from, &at, 3 * PAGE) == 3 * PAGE && at == 100 + 3 * PAGE);
	MUST(pread(to, bytes, PAGE, PAGE) == PAGE && is_filled(bytes, 100 + PAGE, PAGE));
	MUST(copy_file_range(from, &zero, copy, NULL, 16 * PAGE, 0) == 16 * PAGE);
	MUST(pread(copy, bytes, PAGE, 9 * PAGE) == PAGE && is_filled(bytes, 9 * PAGE, PAGE));
}

static void splices(void)
{
	unsigned char bytes[PAGE];
	int from = create("from"), to = create("to"), pair[2];
	loff_t zero = 0;

	fill(bytes, 0, PAGE);
	MUST(write(from, bytes, PAGE) == PAGE && pipe(pair) == 0);
	MUST(splice(from, &zero, pair[1], NULL, PAGE, 0) == PAGE);
	MUST(splice(pair[0], NULL, to, NULL, PAGE, 0) == PAGE);
	memset(bytes, 0, PAGE);
	MUST(pread(to, bytes, PAGE, 0) == PAGE && is_filled(bytes, 0, PAGE));
}

static void watches(void)
{
	char buffer[1024] __attribute__((aligned(8)));
	struct inotify_event *event = (void *)buffer;
	int fd = (int)HAVE(inotify_init1(IN_NONBLOCK));

	MUST(inotify_add_watch(fd, dir, IN_CREATE | IN_DELETE) >= 0);
	close(create("seen"));
	MUST(read(fd, buffer, sizeof(buffer)) >= (ssize_t)sizeof(*event));
	MUST(event->mask == IN_CREATE && strcmp(event->name, "seen") == 0);
	MUST(unlink(in_dir("seen")) == 0 && read(fd, buffer, sizeof(buffer)) > 0 && event->mask == IN_DELETE);
}

static void status_of_files(void)
{
	struct timespec times[2] = { { 1000000000, 5 }, { 1100000000, 7 } };
	struct statx status;
	int fd = create("status");

	MUST(write(fd, "abc", 3) == 3 && fchmod(fd, 0640) == 0 && futimens(fd, times) == 0);
	MUST(statx(AT_FDCWD, in_dir("status"), 0, STATX_BASIC_STATS, &status) == 0);
	MUST(status.stx_size == 3 && (status.stx_mode & 07777) == 0640);
	MUST(status.stx_mtime.tv_sec == 1100000000 && status.stx_atime.tv_sec == 1000000000);
	MUST(faccessat(AT_FDCWD, in_dir("status"), R_OK | W_OK, 0) == 0);
}

static void full_file_system(void)
{
	static char block[PAGE];
	int fd;
	ssize_t last = PAGE;

	MUST(mkdir(in_dir("small"), 0700) == 0);
	HAVE(mount("tmpfs", in_dir("small"), "tmpfs", 0, "size=256k"));
	fd = create("small/file");
	for (int i = 0; i < 100 && last == PAGE; i++)
		last = write(fd, block, PAGE);
	MUST(last != PAGE && errno == ENOSPC);
	close(fd);
	MUST(umount(in_dir("small")) == 0);
}

static void bind_mount(void)
{
	MUST(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mkdir(in_dir("one"), 0700) == 0 && mkdir(in_dir("two"), 0700) == 0);
	close(create("one/file"));
	MUST(mount(in_dir("one"), in_dir("two"), NULL, MS_BIND, NULL) == 0);
	MUST(access(in_dir("two/file"), F_OK) == 0);
	MUST(mount(NULL, in_dir("two"), NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
	MUST(open(in_dir("two/new"), O_CREAT | O_WRONLY, 0600) == -1 && errno == EROFS);
	MUST(umount(in_dir("two")) == 0 && access(in_dir("two/file"), F_OK) == -1);
}

static void proc(void)
{
	char text[4096] = "", wanted[64];
	int fd = open("/proc/self/stat", O_RDONLY);

	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	snprintf(wanted, sizeof(wanted), "%d (", getpid());
	MUST(strncmp(text, wanted, strlen(wanted)) == 0);
	close(fd);
	fd = open("/proc/self/maps", O_RDONLY);
	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "r-xp"));
	close(fd);
	fd = open("/sys/kernel/mm", O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0);
	fd = open("/dev/null", O_RDWR);
	MUST(fd >= 0 && write(fd, "x", 1) == 1 && read(fd, text, 1) == 0);
	fd = open("/dev/zero", O_RDONLY);
	text[5] = 1;
	MUST(fd >= 0 && read(fd, text, 10) == 10 && text[5] == 0);
}

const struct group group_files = { "files", {
	CHECK(read_back), CHECK(holes), CHECK(names), CHECK(directories), CHECK(vectors), CHECK(append),
	CHECK(locks), CHECK(send_file), CHECK(splices), CHECK(watches), CHECK(status_of_files),
	CHECK(full_file_system), CHECK(bind_mount), CHECK(proc),
} };
