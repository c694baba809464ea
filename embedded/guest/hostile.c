/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A workload that tries to change the host: what `--machine host` has to stand. No workload of ours runs it.
 *
 *     hostile try FILE PID PORT NAME   each way out that there is, once: `kept WHAT: why` or `ESCAPED WHAT`, one a line.
 *                                      Of the host: a file, a process, a TCP port, an abstract socket.
 *     hostile steal FILE WORD PUBLIC   each way to read a file that begins with this word; PUBLIC is one that may be read
 *     hostile stay MARK                leaves a process behind that ignores signals and has a session of its own
 *     hostile forks | memory | disk | dump
 *
 * What succeeds is undone or harmless: files of the kernel's are opened for writing and not written.
 * Talks to: crates/cli/tests/contain.rs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_alg.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/ioctl.h>
#include <sys/io.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Says how an attempt went; `worked` is evaluated first, and errno is its. */
#define TRY(what, worked) (errno = 0, say(what, worked))

static void say(const char *what, int worked)
{
	if (worked)
		printf("ESCAPED %s\n", what);
	else
		printf("kept %s: %s\n", what, strerror(errno));
	fflush(stdout);
}

static int can_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return 0;
	close(fd);
	return 1;
}

static void kernel_files(void)
{
	static const char *const files[] = {
		"/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/ns_last_pid", "/proc/sys/fs/file-max",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/irq/0/smp_affinity",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/kernel/debug/sched/features", "/sys/kernel/tracing/tracing_on", "/sys/fs/cgroup/cgroup.procs",
		"/sys/class/net/lo/mtu", "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda", "/dev/console", "/dev/loop-control",
		"/proc/1/mem", "/proc/1/fd/3", "/proc/1/fd/4", "/proc/1/environ",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int reads = strncmp(files[i], "/proc/k", 7) == 0 || strcmp(files[i], "/proc/1/environ") == 0;

		TRY(files[i], can_open(files[i], reads ? O_RDONLY : O_WRONLY));
	}
}

static int write_own(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), done;

	if (fd < 0)
		return 0;
	done = write(fd, text, strlen(text)) > 0;
	close(fd);
	return done;
}

static int host_file(const char *prefix, const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", prefix, file);
	return can_open(path, O_RDWR);
}

/* Out of a chroot by a directory that was opened before, as far up as it goes; in a process of its own. */
static int leave_chroot(const char *file, int twice)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		int up = open("/", O_RDONLY | O_DIRECTORY);

		mkdir("/tmp/cage", 0755);
		mkdir("/tmp/cage/cage", 0755);
		if (chroot("/tmp/cage") < 0 || (twice && chroot("cage") < 0) || fchdir(up) < 0)
			_exit(1);
		for (int i = 0; i < 64; i++)
			if (chdir("..") < 0)
				_exit(1);
		if (chroot(".") < 0)
			_exit(1);
		_exit(can_open(file, O_RDWR) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	errno = ENOENT;
	return status == 0;
}

static void files(const char *file)
{
	int count = 0;
	struct dirent *entry;
	DIR *open_files = opendir("/proc/self/fd");

	TRY("a file by its path", host_file("", file));
	TRY("a file by /proc/1/root", host_file("/proc/1/root", file));
	TRY("a file by /proc/1/cwd", host_file("/proc/1/cwd/../../../../../../..", file));
	TRY("a file by dots", host_file("/../../../../../../../..", file));
	TRY("a file out of a chroot", leave_chroot(file, 0));
	TRY("a file out of two", leave_chroot(file, 1));
	while (open_files && (entry = readdir(open_files)))
		count += atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(open_files);
	if (open_files)
		closedir(open_files);
	TRY("a descriptor that was left open", count);
	TRY("the mode of a device", chmod("/dev/null", 0644) == 0);
	TRY("the owner of a device", chown("/dev/null", 1, 1) == 0);
	TRY("the times of a device", utimensat(AT_FDCWD, "/dev/null", NULL, 0) == 0);
	TRY("mknod of a disk", mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)) == 0);
	TRY("mknod of kmsg", mknod("/tmp/kmsg", S_IFCHR | 0600, makedev(1, 11)) == 0);
	TRY("mknod of mem", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)) == 0);
}

static int mounts_as(const char *type)
{
	return mount(type, "/tmp", type, 0, NULL) == 0;
}

static int enters(const char *namespace)
{
	int fd = open(namespace, O_RDONLY | O_CLOEXEC), entered;

	if (fd < 0)
		return 0;
	entered = setns(fd, 0) == 0;
	close(fd);
	return entered;
}

/* A child in new namespaces, by the one call or the other. */
static int clones(unsigned long flags, int newer)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	long pid = newer ? syscall(SYS_clone3, &args, sizeof(args)) : syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return 0;
	waitpid((pid_t)pid, NULL, 0);
	return 1;
}

static void mounts(void)
{
	static const char *const types[] = { "tmpfs", "proc",	 "sysfs", "cgroup", "cgroup2", "debugfs",
					     "tracefs", "bpf",	 "devpts", "mqueue", "overlay", "securityfs" };
	static const char *const namespaces[] = { "/proc/1/ns/mnt", "/proc/1/ns/user", "/proc/1/ns/net",
						  "/proc/1/ns/pid", "/proc/self/ns/mnt", "/proc/self/ns/net" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		TRY(types[i], mounts_as(types[i]));
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		TRY(namespaces[i], enters(namespaces[i]));
	TRY("a bind mount", mount("/kt", "/tmp", NULL, MS_BIND, NULL) == 0);
	TRY("/proc/sys writable", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
	TRY("/proc writable", mount("proc", "/proc", "proc", MS_REMOUNT, NULL) == 0);
	TRY("/sys writable", mount("sysfs", "/sys", "sysfs", MS_REMOUNT, NULL) == 0);
	TRY("umount of /proc/sys", umount2("/proc/sys", MNT_DETACH) == 0);
	TRY("umount of /", umount2("/", MNT_DETACH) == 0);
	TRY("pivot_root", syscall(SYS_pivot_root, ".", ".") == 0);
	TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1) >= 0);
	TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0) >= 0);
	TRY("unshare of mounts", unshare(CLONE_NEWNS) == 0);
	TRY("unshare of users", unshare(CLONE_NEWUSER) == 0);
	TRY("clone with new users", clones(CLONE_NEWUSER, 0));
	TRY("clone with new mounts", clones(CLONE_NEWUSER | CLONE_NEWNS, 0));
	TRY("clone3 with new users", clones(CLONE_NEWUSER, 1));
}

static void processes(pid_t host)
{
	struct rlimit dumps = { 0, 0 }, many = { RLIM_INFINITY, RLIM_INFINITY };
	struct sched_param first = { .sched_priority = 1 };
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };

	TRY("a signal to the host's process", kill(host, 0) == 0);
	TRY("ptrace of the host's process", ptrace(PTRACE_ATTACH, host, 0, 0) == 0);
	TRY("memory of the host's process", process_vm_readv(host, &here, 1, &there, 1, 0) == 1);
	TRY("pidfd_open of the host's process", syscall(SYS_pidfd_open, host, 0) >= 0);
	TRY("ptrace of init", ptrace(PTRACE_SEIZE, 1, 0, 0) == 0);
	TRY("pidfd_getfd of init", syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 3, 0) >= 0);
	TRY("a negative niceness", setpriority(PRIO_PROCESS, 0, -20) == 0);
	TRY("real-time priority", sched_setscheduler(0, SCHED_FIFO, &first) == 0);
	TRY("safety from the OOM killer", write_own("/proc/self/oom_score_adj", "-1000"));
	TRY("any number of processes", setrlimit(RLIMIT_NPROC, &many) == 0);
	TRY("core dumps by setrlimit", syscall(SYS_setrlimit, RLIMIT_CORE, &dumps) == 0);
	TRY("core dumps by prlimit", prlimit(0, RLIMIT_CORE, &dumps, NULL) == 0);
	TRY("new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	TRY("capabilities of old", prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */, 0, 0, 0) == 1);
}

static int reaches(int family, const void *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), reached;

	if (fd < 0)
		return 0;
	reached = connect(fd, address, size) == 0;
	close(fd);
	return reached;
}

static void network(int port, const char *name)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	size_t length = strlen(name);

	tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (length > sizeof(local.sun_path) - 1)
		length = sizeof(local.sun_path) - 1;
	memcpy(local.sun_path + 1, name, length);
	TRY("the host's port", reaches(AF_INET, &tcp, sizeof(tcp)));
	TRY("the host's abstract socket",
	    reaches(AF_UNIX, &local, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)));
	TRY("a packet socket", socket(AF_PACKET, SOCK_RAW, 0) >= 0);
	TRY("a raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
	TRY("a socket of the hypervisor", socket(AF_VSOCK, SOCK_STREAM, 0) >= 0);
	TRY("a socket that loads a module", socket(AF_INET, SOCK_STREAM, 132 /* SCTP */) >= 0);
	TRY("a socket of the kernel's crypto", socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0);
	TRY("netlink of the audit", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT) >= 0);
	TRY("netlink of uevents", socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) >= 0);
	/* Allowed, and not the host's: contain.rs looks for the key there. */
	printf("made shared memory: %d\n", shmget(0x4b74, 4096, IPC_CREAT | 0600) >= 0);
}

/* A system call of another architecture's, which has other numbers. */
static long call_32(long number)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory");
	return result;
}

static void kernel(void)
{
	union bpf_attr bpf = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };
	struct perf_event_attr perf = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(perf) };
	struct io_uring_params ring = { 0 };
	struct timex clock = { .modes = ADJ_OFFSET_SINGLESHOT };
	struct timespec time;
	struct timeval also;

	clock_gettime(CLOCK_REALTIME, &time);
	also.tv_sec = time.tv_sec;
	also.tv_usec = time.tv_nsec / 1000;
	TRY("clock_settime", clock_settime(CLOCK_REALTIME, &time) == 0);
	TRY("settimeofday", settimeofday(&also, NULL) == 0);
	TRY("adjtimex", adjtimex(&clock) >= 0);
	TRY("sethostname", sethostname("hostile", 7) == 0);
	TRY("setdomainname", setdomainname("hostile", 7) == 0);
	TRY("init_module", syscall(SYS_init_module, "", 0, "") == 0 || errno != EPERM);
	TRY("delete_module", syscall(SYS_delete_module, "kt_no_such_module", 0) == 0 || errno != EPERM);
	TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0) == 0 || errno != EPERM);
	TRY("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, 0) == 0 ||
			      errno != EPERM);
	TRY("swapon", swapon("/tmp", 0) == 0 || errno != EPERM);
	TRY("acct", acct(NULL) == 0);
	TRY("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL) == 0 || errno != EPERM);
	TRY("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &bpf, sizeof(bpf)) >= 0);
	TRY("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0) >= 0);
	TRY("userfaultfd", syscall(SYS_userfaultfd, 1) >= 0);
	TRY("io_uring", syscall(SYS_io_uring_setup, 1, &ring) >= 0);
	TRY("add_key", syscall(SYS_add_key, "user", "kt_hostile", "x", 1, KEY_SPEC_USER_KEYRING) >= 0);
	TRY("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0);
	TRY("request_key", syscall(SYS_request_key, "user", "kt_hostile", NULL, 0) >= 0 || errno != EPERM);
	TRY("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0) == 0 || errno != EPERM);
	TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0) >= 0 || errno != EPERM);
	TRY("iopl", iopl(3) == 0);
	TRY("the kernel's log", klogctl(10, NULL, 0) >= 0);
	TRY("fanotify", syscall(SYS_fanotify_init, 0, 0) >= 0);
	TRY("typing on a terminal", ioctl(0, TIOCSTI, "x") == 0 || errno != EPERM);
	errno = ENOSYS;
	say("system calls of 32 bits", call_32(20 /* getpid */) != -ENOSYS);
	TRY("system calls of the x32 kind", syscall(0x40000000 | SYS_getpid) >= 0);
	TRY("system calls to come", syscall(1000) == 0 || errno != ENOSYS);
}

static const char *word;

/* Whether a descriptor reads the secret; closes it. */
static int tells(int fd)
{
	char text[256] = { 0 };
	ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	return got > 0 && strncmp(text, word, strlen(word)) == 0;
}

static int reads(const char *prefix, const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", prefix, file);
	return tells(open(path, O_RDONLY | O_CLOEXEC));
}

static char racing[2][4096], raced[4096];
static volatile int over;

static int race_writer(void *unused)
{
	(void)unused;
	for (unsigned turn = 0; !over; turn++)
		memcpy(raced, racing[turn & 1], sizeof(raced));
	return 0;
}

/* Opens a path that another thread keeps changing. */
static int race(const char *file, const char *other)
{
	static char stack[65536];
	int found = 0;
	time_t end = time(NULL) + 3;

	snprintf(racing[0], sizeof(racing[0]), "%s", other);
	snprintf(racing[1], sizeof(racing[1]), "%s", file);
	if (clone(race_writer, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) < 0)
		return 0;
	while (!found && time(NULL) < end)
		found = tells(open(raced, O_RDONLY | O_CLOEXEC));
	over = 1;
	usleep(10000);
	return found;
}

static void steal(const char *file, const char *public)
{
	char directory[4096], beside[4200];
	const char *name = strrchr(file, '/') + 1;
	struct open_how how = { .flags = O_RDONLY };
	int fd;

	snprintf(directory, sizeof(directory), "%.*s", (int)(name - file), file);
	TRY("a secret by its path", reads("", file));
	TRY("a secret by slashes", reads("//", file));
	TRY("a secret by dots", reads("/usr/../..", file));
	TRY("a secret by /proc/self/root", reads("/proc/self/root", file));
	TRY("a secret by /proc/1/root", reads("/proc/1/root", file));
	TRY("a secret by a link", symlink(file, "/tmp/link") == 0 && reads("", "/tmp/link"));
	TRY("a secret by a hard link", link(file, "/tmp/hard") == 0 && reads("", "/tmp/hard"));
	snprintf(beside, sizeof(beside), "%sbeside", directory);
	TRY("a secret by a hard link beside", link(file, beside) == 0 && reads("", beside));
	TRY("a secret by another name", rename(file, beside) == 0 && reads("", beside));
	TRY("a secret by another mode", chmod(file, 0644) == 0 && reads("", file));
	fd = open(directory, O_PATH | O_DIRECTORY);
	TRY("a secret from its directory", tells(openat(fd, name, O_RDONLY)));
	TRY("a secret by openat2", tells((int)syscall(SYS_openat2, fd, name, &how, sizeof(how))));
	TRY("a secret in the working directory", fchdir(fd) == 0 && reads("", name));
	fd = open(file, O_PATH);
	snprintf(beside, sizeof(beside), "/proc/self/fd/%d", fd);
	TRY("a secret by a descriptor", fd >= 0 && reads("", beside));
	TRY("a secret that is made", tells(open(file, O_RDWR | O_CREAT, 0600)));
	TRY("a secret by a race", race(file, public));
	snprintf(directory, sizeof(directory), "%.*s", (int)(name - file) - 1, file);
	snprintf(beside, sizeof(beside), "%s-moved/%s", directory, name);
	fd = (int)strlen(directory);
	TRY("a secret in a directory of another name",
	    snprintf(raced, sizeof(raced), "%s-moved", directory) > fd && rename(directory, raced) == 0 && reads("", beside));
	if (chroot(directory) == 0)
		TRY("a secret in a root of our own", reads("/", name));
}

/* How many processes there can be; they end with us. */
static int forks(void)
{
	int count = 0;
	pid_t pid;

	while (count < 20000 && (pid = fork()) >= 0) {
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		count++;
	}
	printf("%d processes: %s\n", count, strerror(errno));
	return 0;
}

/* 16 processes, each as much as it gets up to a GiB. */
static int memory(void)
{
	for (int i = 0; i < 16; i++)
		if (fork() == 0) {
			for (int j = 0; j < 1024; j++) {
				char *room = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

				if (room == MAP_FAILED)
					break;
				memset(room, 1, 1 << 20);
			}
			pause();
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int disk(void)
{
	static char block[1 << 20];
	int fd = open("/var/tmp/hog", O_WRONLY | O_CREAT, 0600), mb = 0, why;

	/* The last block may go in by half. */
	while (mb < 65536 && write(fd, block, sizeof(block)) > 0)
		mb++;
	why = errno;
	close(fd);
	unlink("/var/tmp/hog");
	/* What is printed needs room, too. */
	printf("%d MB: %s\n", mb, strerror(why));
	return 0;
}

static int dump(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		abort();
	waitpid(pid, &status, 0);
	printf("%s\n", WIFSIGNALED(status) && !WCOREDUMP(status) ? "no dump" : "DUMPED");
	return 0;
}

static int stay(void)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		return 1;
	if (fork() > 0) {
		close(ready[1]);
		return read(ready[0], &byte, 1) == 1 ? 0 : 1;
	}
	setsid();
	if (fork() > 0)
		_exit(0);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	if (write(ready[1], "", 1) != 1)
		return 1;
	for (;;)
		sleep(1000);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 6 && strcmp(argv[1], "try") == 0) {
		kernel_files();
		files(argv[2]);
		mounts();
		processes((pid_t)atoi(argv[3]));
		network(atoi(argv[4]), argv[5]);
		kernel();
		printf("tried all\n");
		return 0;
	}
	if (argc == 5 && strcmp(argv[1], "steal") == 0) {
		word = argv[3];
		steal(argv[2], argv[4]);
		printf("tried all\n");
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "stay") == 0)
		return stay();
	if (argc == 2 && strcmp(argv[1], "forks") == 0)
		return forks();
	if (argc == 2 && strcmp(argv[1], "memory") == 0)
		return memory();
	if (argc == 2 && strcmp(argv[1], "disk") == 0)
		return disk();
	if (argc == 2 && strcmp(argv[1], "dump") == 0)
		return dump();
	fprintf(stderr, "usage: hostile try FILE PID PORT NAME | steal FILE WORD PUBLIC | stay MARK | forks | memory | disk | dump\n");
	return 2;
}
