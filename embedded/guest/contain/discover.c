/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Runs a command and writes what files it uses to descriptor 1, a line for each at its first use, `KIND PATH`: bytes that are not
 * printable ASCII and backslashes are \xHH, paths are absolute. A path is as the command gave it, and another line has the one
 * without links if that is different. The last line is `exit STATUS` or `signal NUMBER`.
 *
 *     r  contents may be read      x  is executed            l  is looked at: type, mode, size, or that it is there
 *     d  names in it are listed    w  is made or emptied     s  a socket is connected to
 *     -  a secret: for the command there is no such file
 *
 * The command stops at system calls that take paths, or sleep, and at no others: a seccomp filter chooses them. Its output goes to a file
 * in memory, as in a guest: some programs (tar, grep) do less if it is /dev/null.
 *
 * Talks to: crates/guest/src/discovered.rs, which reads the lines.
 */
#include "contain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NONE (-1)
#define FCHMODAT2 452

enum follows { FOLLOW, NOFOLLOW, OPEN_FLAGS, OPEN_HOW, AT_FLAGS };

/* Arguments of a system call, counted from 0. A call with two paths has two entries. */
static const struct call {
	short number, directory, path;
	char kind;
	unsigned char follows;
	short flags; /* of OPEN_FLAGS, OPEN_HOW and AT_FLAGS */
} calls[] = {
	{ SYS_open, NONE, 0, 'r', OPEN_FLAGS, 1 },
	{ SYS_openat, 0, 1, 'r', OPEN_FLAGS, 2 },
	{ SYS_openat2, 0, 1, 'r', OPEN_HOW, 2 },
	{ SYS_creat, NONE, 0, 'w', FOLLOW, 0 },
	{ SYS_execve, NONE, 0, 'x', FOLLOW, 0 },
	{ SYS_execveat, 0, 1, 'x', AT_FLAGS, 4 },
	{ SYS_stat, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_lstat, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_newfstatat, 0, 1, 'l', AT_FLAGS, 3 },
	{ SYS_statx, 0, 1, 'l', AT_FLAGS, 2 },
	{ SYS_access, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_faccessat, 0, 1, 'l', FOLLOW, 0 },
	{ SYS_faccessat2, 0, 1, 'l', AT_FLAGS, 3 },
	{ SYS_readlink, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_readlinkat, 0, 1, 'l', NOFOLLOW, 0 },
	{ SYS_chdir, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_chroot, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_statfs, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_inotify_add_watch, NONE, 1, 'l', FOLLOW, 0 },
	{ SYS_getxattr, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_lgetxattr, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_listxattr, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_llistxattr, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_setxattr, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_chmod, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_fchmodat, 0, 1, 'l', FOLLOW, 0 },
	{ FCHMODAT2, 0, 1, 'l', AT_FLAGS, 3 },
	{ SYS_chown, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_lchown, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_fchownat, 0, 1, 'l', AT_FLAGS, 4 },
	{ SYS_utime, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_utimes, NONE, 0, 'l', FOLLOW, 0 },
	{ SYS_futimesat, 0, 1, 'l', FOLLOW, 0 },
	{ SYS_utimensat, 0, 1, 'l', AT_FLAGS, 3 },
	{ SYS_truncate, NONE, 0, 'r', FOLLOW, 0 },
	{ SYS_mkdir, NONE, 0, 'w', NOFOLLOW, 0 },
	{ SYS_mkdirat, 0, 1, 'w', NOFOLLOW, 0 },
	{ SYS_mknod, NONE, 0, 'w', NOFOLLOW, 0 },
	{ SYS_mknodat, 0, 1, 'w', NOFOLLOW, 0 },
	{ SYS_symlink, NONE, 1, 'w', NOFOLLOW, 0 },
	{ SYS_symlinkat, 1, 2, 'w', NOFOLLOW, 0 },
	{ SYS_rmdir, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_unlink, NONE, 0, 'l', NOFOLLOW, 0 },
	{ SYS_unlinkat, 0, 1, 'l', NOFOLLOW, 0 },
	/* The file is read by its new name, which the host does not have. */
	{ SYS_rename, NONE, 0, 'r', NOFOLLOW, 0 },
	{ SYS_rename, NONE, 1, 'l', NOFOLLOW, 0 },
	{ SYS_renameat, 0, 1, 'r', NOFOLLOW, 0 },
	{ SYS_renameat, 2, 3, 'l', NOFOLLOW, 0 },
	{ SYS_renameat2, 0, 1, 'r', NOFOLLOW, 0 },
	{ SYS_renameat2, 2, 3, 'l', NOFOLLOW, 0 },
	{ SYS_link, NONE, 0, 'r', NOFOLLOW, 0 },
	{ SYS_link, NONE, 1, 'l', NOFOLLOW, 0 },
	{ SYS_linkat, 0, 1, 'r', NOFOLLOW, 0 },
	{ SYS_linkat, 2, 3, 'l', NOFOLLOW, 0 },
	/* No path: the directory that a descriptor is of. */
	{ SYS_getdents, 0, NONE, 'd', FOLLOW, 0 },
	{ SYS_getdents64, 0, NONE, 'd', FOLLOW, 0 },
	/* A path in an address. */
	{ SYS_connect, NONE, 1, 's', FOLLOW, 0 },
	{ SYS_bind, NONE, 1, 'w', FOLLOW, 0 },
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* ---- lines that are written already ---- */

static struct told {
	char *text; /* kind, space, path */
	bool is_secret;
} *table;
static size_t table_size, table_used;

static struct told *slot(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (const char *at = text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	for (size_t i = hash & (table_size - 1);; i = (i + 1) & (table_size - 1))
		if (!table[i].text || strcmp(table[i].text, text) == 0)
			return &table[i];
}

/* The entry of a line, new if its text is NULL. */
static struct told *find(const char *text)
{
	if (table_used * 2 >= table_size) {
		struct told *before = table;
		size_t size = table_size;

		table_size = size ? size * 2 : 4096;
		table = calloc(table_size, sizeof(*table));
		if (!table)
			abort();
		for (size_t i = 0; i < size; i++)
			if (before[i].text)
				*slot(before[i].text) = before[i];
		free(before);
	}
	return slot(text);
}

static void print(const char *line)
{
	static char escaped[4 * (PATH_MAX * 2 + 16)];
	char *to = escaped;

	for (; *line; line++) {
		unsigned char byte = (unsigned char)*line;

		if (byte < ' ' || byte >= 0x7f || byte == '\\')
			to += sprintf(to, "\\x%02x", byte);
		else
			*to++ = (char)byte;
	}
	*to++ = '\n';
	for (const char *at = escaped; at < to;) {
		ssize_t now = write(1, at, (size_t)(to - at));

		if (now < 0 && errno != EINTR)
			_exit(EXIT_REFUSED);
		at += now > 0 ? now : 0;
	}
}

/* ---- secrets ---- */

static char **shown; /* files and directories that the caller asked for, which are no secrets then; ended by NULL */

static bool is_shown(const char *path)
{
	for (char **at = shown; *at; at++) {
		size_t length = strlen(*at);

		if (strncmp(path, *at, length) == 0 && (path[length] == '/' || !path[length]))
			return true;
	}
	return false;
}

static bool ends(const char *path, const char *with)
{
	size_t length = strlen(path), end = strlen(with);

	return length >= end && strcmp(path + length - end, with) == 0;
}

/* `meta` may be NULL. */
static bool is_secret(const char *path, const struct stat *meta)
{
	static const char *const files[] = { "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-" };
	static const char *const tails[] = { "/.netrc",	       "/.git-credentials", "/.aws/credentials",    "/.docker/config.json",
					     "/.kube/config", "/.pgpass",	    "/.config/gh/hosts.yml" };
	static const char *const within[] = { "/etc/ssl/private/", "/.gnupg/private-keys-v1.d/", "/.password-store/",
					      "/.local/share/keyrings/" };
	const char *ssh = strstr(path, "/.ssh/"), *name = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(path, files[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		if (ends(path, tails[i]))
			return true;
	for (size_t i = 0; i < sizeof(within) / sizeof(within[0]); i++)
		if (strstr(path, within[i]))
			return true;
	if (ends(path, ".pub"))
		return false;
	if (strncmp(path, "/etc/ssh/ssh_host_", 18) == 0 || (ssh && strncmp(ssh, "/.ssh/id_", 9) == 0))
		return true;
	/* A private key is for its owner alone, whatever it is called. */
	return meta && S_ISREG(meta->st_mode) && (meta->st_mode & 077) == 0 &&
	       (ends(path, ".key") || ends(path, ".pem") ||
		(ssh && strncmp(name, "/known_hosts", 12) != 0 && strcmp(name, "/config") != 0 &&
		 strcmp(name, "/authorized_keys") != 0));
}

/* Puts an empty file over each secret whose place is known, so that threads that change a path while it is looked at do not get
 * it. */
static bool cover_secrets(void)
{
	static const char *const places[] = { "/etc/shadow*", "/etc/gshadow*", "/etc/ssh/ssh_host_*", "~/.ssh/*", "~/.netrc",
					      "~/.git-credentials", "~/.aws/credentials", "~/.docker/config.json", "~/.kube/config",
					      "~/.pgpass", "~/.config/gh/hosts.yml" };
	static const char empty[] = "/run/empty";
	const char *home = getenv("HOME");
	int fd = open(empty, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	glob_t found = { 0 };
	bool good = fd >= 0 && close(fd) == 0;
	static char real[PATH_MAX], place[PATH_MAX];
	struct stat meta;

	for (size_t i = 0; good && i < sizeof(places) / sizeof(places[0]); i++) {
		bool in_home = places[i][0] == '~';

		/* GLOB_TILDE would load what /etc/nsswitch.conf of the root names. */
		if (in_home && (!home || home[0] != '/'))
			continue;
		snprintf(place, sizeof(place), "%s%s", in_home ? home : "", places[i] + in_home);
		good = glob(place, 0, NULL, &found) != GLOB_NOSPACE;
		for (size_t j = 0; good && j < found.gl_pathc; j++) {
			const char *path = found.gl_pathv[j];

			if (stat(path, &meta) == 0 && S_ISREG(meta.st_mode) && is_secret(path, &meta) &&
			    !(realpath(path, real) && is_shown(real)))
				good = mount(empty, path, NULL, MS_BIND, NULL) == 0;
		}
		globfree(&found);
	}
	if (fd >= 0)
		unlink(empty);
	return good || refuse("cannot hide secrets: %s", strerror(errno));
}

/* ---- the command's memory and paths ---- */

/* A string of the command's; false if it cannot be read or is too long. Reads up to the ends of pages. */
static bool read_string(pid_t pid, uint64_t from, char *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		size_t part = 4096 - ((from + done) & 4095);
		struct iovec here = { to + done, part < size - done ? part : size - done };
		struct iovec there = { (void *)(uintptr_t)(from + done), here.iov_len };
		ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (got <= 0)
			return false;
		if (memchr(to + done, '\0', (size_t)got))
			return true;
		done += (size_t)got;
	}
	return false;
}

static bool read_bytes(pid_t pid, uint64_t from, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)from, size };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* What a link in /proc/PID leads to; false unless that is a path. */
static bool read_proc(pid_t pid, const char *what, char *path, size_t size)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/%s", (int)pid, what);
	length = readlink(link, path, size - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	return true;
}

/* The directory that relative paths of a call begin at. */
static bool read_base(pid_t pid, int fd, char *path, size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return read_proc(pid, fd == AT_FDCWD ? "cwd" : name, path, size);
}

/* The path in the address of a Unix socket. */
static bool read_address(pid_t pid, const uint64_t *args, char *path, size_t size)
{
	struct sockaddr_un address = { 0 };
	size_t length = args[2] < sizeof(address) ? args[2] : sizeof(address);

	if (length <= sizeof(address.sun_family) || !read_bytes(pid, args[1], &address, length) ||
	    address.sun_family != AF_UNIX || !address.sun_path[0])
		return false;
	snprintf(path, size, "%.*s", (int)sizeof(address.sun_path), address.sun_path);
	return true;
}

/* /proc/self is of who looks, which here is the command. */
static void whose_proc(pid_t pid, char *path, size_t size)
{
	static const char *const own[] = { "/proc/self", "/proc/thread-self" };
	char number[16];

	for (size_t i = 0; i < 2; i++) {
		size_t length = strlen(own[i]), digits;

		if (strncmp(path, own[i], length) != 0 || (path[length] != '/' && path[length]))
			continue;
		digits = (size_t)snprintf(number, sizeof(number), "%d", (int)pid);
		if (strlen(path) + digits >= size)
			return;
		memmove(path + 6 + digits, path + length, strlen(path + length) + 1);
		memcpy(path + 6, number, digits);
		return;
	}
}

/* The absolute path of a call, without a look at links in it. */
static bool path_of(pid_t pid, const struct call *call, const uint64_t *args, char *path, size_t size)
{
	static char given[PATH_MAX];
	int fd = call->directory == NONE ? AT_FDCWD : (int)args[call->directory];
	size_t length;

	if (call->path == NONE)
		return read_base(pid, fd, path, size);
	if (call->number == SYS_connect || call->number == SYS_bind ?
		    !read_address(pid, args, given, sizeof(given)) :
		    !read_string(pid, args[call->path], given, sizeof(given)))
		return false;
	/* With no path, it is about the descriptor, and that has been opened before. */
	if (!given[0])
		return call->kind == 'x' && read_base(pid, fd, path, size);
	if (given[0] == '/') {
		/* Inside of another root. */
		if (!read_proc(pid, "root", path, size))
			return false;
		if (!path[1])
			path[0] = '\0';
	} else if (!read_base(pid, fd, path, size)) {
		return false;
	} else {
		strncat(path, "/", size - strlen(path) - 1);
	}
	length = strlen(path);
	if (snprintf(path + length, size - length, "%s", given) >= (int)(size - length))
		return false;
	whose_proc(pid, path, size);
	return true;
}

/* ---- calls ---- */

/* What an open means for the file, from its flags. */
static char kind_of_open(uint64_t flags)
{
	if (flags & (O_PATH | O_DIRECTORY))
		return 'l';
	if (flags & O_TRUNC || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return 'w';
	return 'r';
}

static void flags_of(pid_t pid, const struct call *call, const uint64_t *args, char *kind, bool *follows)
{
	uint64_t flags = args[call->flags];
	struct open_how how;

	*kind = call->kind;
	*follows = call->follows != NOFOLLOW;
	if (call->follows == OPEN_HOW) {
		if (!read_bytes(pid, flags, &how, sizeof(how)))
			return;
		flags = how.flags;
	}
	if (call->follows == OPEN_FLAGS || call->follows == OPEN_HOW) {
		*kind = kind_of_open(flags);
		*follows = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	} else if (call->follows == AT_FLAGS) {
		*follows = !(flags & AT_SYMLINK_NOFOLLOW);
	}
}

/* Tells of a path; true if it is a secret. `line` is kind, space, path, and has room for PATH_MAX more. */
static bool tell(char *line, bool follows)
{
	static char real[PATH_MAX * 2];
	struct told *told = find(line);
	struct stat meta;
	char link[32];
	ssize_t length = -1;
	int fd;

	if (told->text)
		return told->is_secret;
	told->text = strdup(line);
	table_used++;
	fd = open(line + 2, O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, real + 2, sizeof(real) - 3);
	}
	real[length > 0 ? length + 2 : 2] = '\0';
	told->is_secret = !is_shown(line + 2) && !is_shown(real + 2) &&
			  (is_secret(line + 2, fd >= 0 && fstat(fd, &meta) == 0 ? &meta : NULL) ||
			   (real[2] && is_secret(real + 2, &meta)));
	if (fd >= 0)
		close(fd);
	if (told->is_secret) {
		line[0] = '-';
		if (!find(line)->text) {
			*find(line) = (struct told){ strdup(line), true };
			table_used++;
			print(line);
		}
		return true;
	}
	print(line);
	real[0] = line[0];
	real[1] = ' ';
	if (real[2] == '/' && !find(real)->text) {
		find(real)->text = strdup(real);
		table_used++;
		print(real);
	}
	return false;
}

static void on_call(pid_t pid)
{
	static char line[PATH_MAX * 2 + 16];
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		return;
	for (size_t i = 0; i < CALLS; i++) {
		uint64_t args[] = { regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9 };
		bool follows;

		if ((uint64_t)calls[i].number != regs.orig_rax || !path_of(pid, &calls[i], args, line + 2, sizeof(line) - 2))
			continue;
		flags_of(pid, &calls[i], args, &line[0], &follows);
		line[1] = ' ';
		if (tell(line, follows)) {
			regs.orig_rax = (uint64_t)-1;
			regs.rax = (uint64_t)-ENOENT;
			ptrace(PTRACE_SETREGS, pid, NULL, &regs);
			return;
		}
	}
}

static unsigned short stop_at(struct sock_filter *program, unsigned short length, long number)
{
	program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	return length;
}

static bool stop_at_calls(void)
{
	static struct sock_filter program[CALLS * 2 + 6];
	struct sock_fprog filter = { .filter = program };
	unsigned short length = 0;

	/* The filter of rights.c lets no other kind of call through. */
	program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < CALLS; i++)
		length = stop_at(program, length, calls[i].number);
	length = stop_at(program, length, SYS_nanosleep);
	length = stop_at(program, length, SYS_clock_nanosleep);
	program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = length;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0 ||
	       refuse("cannot filter system calls: %s", strerror(errno));
}

/* A user of whom there is one only: a namespace in which its ids are those that it has outside. */
static bool rename_root(uid_t uid, gid_t gid)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u 0 1\n", uid);
	snprintf(groups, sizeof(groups), "%u 0 1\n", gid);
	return (unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", users) &&
		write_file("/proc/self/gid_map", groups) && prctl(PR_SET_DUMPABLE, 1) == 0) ||
	       refuse("cannot become user %u: %s", uid, strerror(errno));
}

/* UID:GID[:GROUP...]; root stays what it is. */
static bool become(bool alone, char *user)
{
	gid_t groups[NGROUPS_MAX];
	uid_t uid = (uid_t)strtoul(strsep(&user, ":"), NULL, 10);
	size_t count = 0;

	while (user && count < NGROUPS_MAX)
		groups[count++] = (gid_t)strtoul(strsep(&user, ":"), NULL, 10);
	if (count == 0 || (uid == 0 && count == 1 && groups[0] == 0))
		return true;
	if (alone)
		return rename_root(uid, groups[0]);
	/* Another user's memory and /proc could not be read by who follows it, until it executes a program. */
	return (setgroups(count - 1, groups + 1) == 0 && setresgid(groups[0], groups[0], groups[0]) == 0 &&
		setresuid(uid, uid, uid) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0) ||
	       refuse("cannot become user %u: %s", uid, strerror(errno));
}

static _Noreturn void command(int go, bool alone, char *user, const char *directory, char **words)
{
	int output = memfd_create("output", 0);
	sigset_t none;
	char byte;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) != 1 || (alone && !become(alone, user)) || !rights_drop() ||
	    !stop_at_calls() || (!alone && !become(alone, user)))
		_exit(EXIT_REFUSED);
	if (chdir(directory) < 0 || output < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		_exit(EXIT_REFUSED);
	close(output);
	close(go);
	execvp(words[0], words);
	_exit(errno == ENOENT ? 127 : 126);
}

/* ---- threads that want to sleep ---- */

#define SLEEPERS_MAX 256
#define PAUSE_NS 10000000 /* between two looks at the other threads */
#define QUIET 3 /* looks at which none of them runs */
#define LOOKS_MAX 500 /* after which a sleeper sleeps all the same */

/* A shell that starts a server and sleeps for a second wants it to be ready then. How far it is depends on how busy this machine
 * is; so what it reads would, too. A thread that is about to sleep is held until no other one runs. */
static pid_t sleepers[SLEEPERS_MAX];
static int sleeper_count, looks, quiet;

static bool is_asleep(const char *process, const char *thread)
{
	char path[64], text[512], *state;
	ssize_t size = 0;
	int fd;

	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i] == atoi(thread))
			return true;
	snprintf(path, sizeof(path), "/proc/%.15s/task/%.15s/stat", process, thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		size = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	/* One that is gone by now does not run. */
	text[size > 0 ? size : 0] = '\0';
	state = strrchr(text, ')');
	return !state || strchr("SZTX", state[2]);
}

static bool others_run(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *process, *thread;
	bool run = false;

	while (processes && !run && (process = readdir(processes))) {
		char path[64];
		DIR *threads;

		/* The first process is this one. */
		if (atoi(process->d_name) <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%.15s/task", process->d_name);
		threads = opendir(path);
		while (threads && !run && (thread = readdir(threads)))
			run = atoi(thread->d_name) > 0 && !is_asleep(process->d_name, thread->d_name);
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
	return run;
}

/* Waits for a moment or an event, and lets the sleepers go if it is time. */
static void mind_sleepers(void)
{
	static const struct timespec pause = { 0, PAUSE_NS };
	sigset_t events;

	sigemptyset(&events);
	sigaddset(&events, SIGCHLD);
	if (sigtimedwait(&events, NULL, &pause) >= 0)
		return;
	quiet = others_run() ? 0 : quiet + 1;
	if (quiet < QUIET && ++looks < LOOKS_MAX)
		return;
	while (sleeper_count > 0)
		ptrace(PTRACE_CONT, sleepers[--sleeper_count], NULL, NULL);
	looks = quiet = 0;
}

/* A thread that is gone. */
static void forget_sleeper(pid_t pid)
{
	for (int i = 0; i < sleeper_count; i++)
		if (sleepers[i] == pid)
			sleepers[i] = sleepers[--sleeper_count];
}

static bool wants_to_sleep(pid_t pid)
{
	struct user_regs_struct regs;

	return ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0 &&
	       (regs.orig_rax == SYS_nanosleep || regs.orig_rax == SYS_clock_nanosleep);
}

/* Until the command ends. Processes that it leaves end with this one. */
static int follow(pid_t first)
{
	char line[32];
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL | (sleeper_count > 0 ? WNOHANG : 0));
		int event = status >> 16, stop = WSTOPSIG(status), give = 0;

		if (pid < 0 && errno != EINTR)
			return refuse("lost the command: %s", strerror(errno)) ? 0 : EXIT_REFUSED;
		if (pid < 0)
			continue;
		if (pid == 0) {
			mind_sleepers();
			continue;
		}
		quiet = 0;
		if (!WIFSTOPPED(status)) {
			forget_sleeper(pid);
			if (pid != first)
				continue;
			snprintf(line, sizeof(line), WIFEXITED(status) ? "exit %d" : "signal %d",
				 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
			print(line);
			return 0;
		}
		if (event == PTRACE_EVENT_SECCOMP && sleeper_count < SLEEPERS_MAX && wants_to_sleep(pid)) {
			sleepers[sleeper_count++] = pid;
			continue;
		}
		if (event == PTRACE_EVENT_SECCOMP)
			on_call(pid);
		else if (event == PTRACE_EVENT_STOP && stop != SIGTRAP) {
			ptrace(PTRACE_LISTEN, pid, NULL, NULL);
			continue;
		} else if (event == 0)
			give = stop;
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)give);
	}
}

int discover(bool alone, char *user, const char *directory, char **asked, char **words)
{
	const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	sigset_t events;
	int go[2];
	pid_t pid;

	shown = asked;
	sigemptyset(&events);
	sigaddset(&events, SIGCHLD);
	sigprocmask(SIG_BLOCK, &events, NULL);
	if (!cover_secrets())
		return EXIT_REFUSED;
	if (pipe2(go, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		refuse("cannot start the command: %s", strerror(errno));
		return EXIT_REFUSED;
	}
	if (pid == 0) {
		close(go[1]);
		command(go[0], alone, user, directory, words);
	}
	close(go[0]);
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0 || write(go[1], "", 1) != 1) {
		refuse("cannot follow the command (ptrace): %s", strerror(errno));
		return EXIT_REFUSED;
	}
	close(go[1]);
	close(0);
	return follow(pid);
}
