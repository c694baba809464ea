/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * selftest: does this kernel do what a kernel has to do? Each check is small, runs in a process of its
 * own with a time limit, and says what it found:
 *
 *   {"check":"pipe_order","group":"ipc","result":"ok"}
 *   {"check":"aio","group":"files","result":"unsupported","why":"io_setup: Function not implemented"}
 *   {"check":"futex_wake","group":"futex","result":"failed","why":"selftest.c:412: woken == 1"}
 *
 * A kernel that was compiled another way has to give the same lines. The status is 1 if any check failed,
 * with --report only if results cannot be written; what the kernel was not configured for is unsupported,
 * which is no failure.
 *
 *   selftest [--list] [--report] [NAME…]
 *
 * Talks to: nobody; crates/tune/src/selftest.rs runs it on the base and on the tuned kernel.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20 /* for one check */
#define PAGE 4096

/* What a check's process ends with. */
enum { OK = 0, FAILED = 1, UNSUPPORTED = 2 };

static int report; /* where the check's process writes why */

static _Noreturn void end(int result, const char *why)
{
	if (write(report, why, strlen(why)) < 0)
		_exit(FAILED);
	_exit(result);
}

static _Noreturn void failed(int line, const char *what)
{
	char why[200];
	int error = errno;

	snprintf(why, sizeof(why), "selftest.c:%d: %s (%s)", line, what, strerror(error));
	end(FAILED, why);
}

/* Ends the check if it does not hold. */
#define MUST(condition)                                  \
	do {                                             \
		if (!(condition))                        \
			failed(__LINE__, #condition);    \
	} while (0)

/* The call's value; ends the check as unsupported if the kernel does not have the call or the type. */
#define HAVE(call)                                                                                    \
	({                                                                                            \
		errno = 0;                                                                            \
		long value_ = (long)(call);                                                           \
		if (value_ < 0 && (errno == ENOSYS || errno == ENODEV || errno == EAFNOSUPPORT ||     \
				   errno == EOPNOTSUPP || errno == EPROTONOSUPPORT)) {                \
			char why_[200];                                                               \
			snprintf(why_, sizeof(why_), "%s: %s", #call, strerror(errno));               \
			end(UNSUPPORTED, why_);                                                       \
		}                                                                                     \
		if (value_ < 0)                                                                       \
			failed(__LINE__, #call);                                                      \
		value_;                                                                               \
	})

static char dir[64]; /* of this check, on tmpfs in the guest */

static const char *in_dir(const char *name)
{
	static char path[4][160];
	static int turn;
	char *mine = path[turn++ % 4];

	snprintf(mine, sizeof(path[0]), "%s/%s", dir, name);
	return mine;
}

static int create(const char *name)
{
	int fd = open(in_dir(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	return fd;
}

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 2654435761u >> 13);
}

static void fill(unsigned char *bytes, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = pattern(from + i);
}

static int is_filled(const unsigned char *bytes, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != pattern(from + i))
			return 0;
	return 1;
}

static void await(pid_t child, int status)
{
	int seen = -1;

	MUST(waitpid(child, &seen, 0) == child);
	MUST(seen == status);
}

/* ---- processes ---- */

static void fork_wait(void)
{
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(i);
		MUST(child > 0);
		await(child, i << 8);
	}
	MUST(wait(NULL) == -1 && errno == ECHILD);
}

static void exec_arguments(void)
{
	static char *arguments[302], *environment[102];
	static char text[300][8];
	pid_t child;

	arguments[0] = "selftest";
	arguments[1] = "--count";
	for (int i = 0; i < 299; i++) {
		snprintf(text[i], sizeof(text[i]), "a%d", i);
		arguments[i + 2] = text[i];
	}
	for (int i = 0; i < 100; i++)
		environment[i] = text[i];
	child = fork();
	if (child == 0) {
		execve("/proc/self/exe", arguments, environment);
		_exit(99);
	}
	await(child, 42 << 8); /* main counts them */
}

static void exec_missing(void)
{
	char *arguments[] = { "x", NULL };

	MUST(execve(in_dir("nothing"), arguments, NULL) == -1 && errno == ENOENT);
	close(create("text"));
	MUST(execve(in_dir("text"), arguments, NULL) == -1 && errno == EACCES);
}

static void exec_script(void)
{
	char *arguments[] = { "script", NULL }, *environment[] = { NULL }, self[256], text[300];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int fd = create("script");
	pid_t child;

	MUST(length > 0);
	self[length] = '\0';
	snprintf(text, sizeof(text), "#!%s --count\n", self);
	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	MUST(fchmod(fd, 0700) == 0 && close(fd) == 0);
	child = fork();
	if (child == 0) {
		execve(in_dir("script"), arguments, environment);
		_exit(99);
	}
	await(child, 43 << 8); /* main counts other numbers than exec_arguments gives it */
}

static void *add_up(void *start)
{
	unsigned long sum = 0;

	for (unsigned long i = (unsigned long)start; i < (unsigned long)start + 10000; i++)
		sum += i;
	return (void *)sum;
}

static void threads(void)
{
	pthread_t thread[8];
	unsigned long sum = 0;

	for (unsigned long i = 0; i < 8; i++)
		MUST(pthread_create(&thread[i], NULL, add_up, (void *)(i * 10000)) == 0);
	for (int i = 0; i < 8; i++) {
		void *part;

		MUST(pthread_join(thread[i], &part) == 0);
		sum += (unsigned long)part;
	}
	MUST(sum == 80000UL * 79999 / 2);
}

static void sessions(void)
{
	pid_t child = fork();

	if (child == 0) {
		MUST(setsid() == getpid() && getpgrp() == getpid() && getsid(0) == getpid());
		_exit(0);
	}
	await(child, 0);
	MUST(kill(child, 0) == -1 && errno == ESRCH);
}

static void limits(void)
{
	struct rlimit limit = { 16, 16 };
	int last = -1, fd;

	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while ((fd = dup(0)) >= 0)
		last = fd;
	MUST(last == 15);
	MUST(dup(0) == -1 && errno == EMFILE);
}

static void priorities(void)
{
	struct sched_param none = { 0 };
	cpu_set_t set;

	MUST(setpriority(PRIO_PROCESS, 0, 7) == 0 && getpriority(PRIO_PROCESS, 0) == 7);
	MUST(sched_setscheduler(0, SCHED_BATCH, &none) == 0 && sched_getscheduler(0) == SCHED_BATCH);
	MUST(sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 1);
	MUST(sched_yield() == 0);
}

static void subreaper(void)
{
	pid_t child;
	int status;

	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			_exit(5);
		_exit(0);
	}
	MUST(child > 0);
	for (int sum = 0, i = 0; i < 2; i++) {
		MUST(wait(&status) > 0);
		sum += WEXITSTATUS(status);
		MUST(i == 0 || sum == 5);
	}
}

/* ---- signals ---- */

static volatile sig_atomic_t seen_signal, seen_value, nested;
static void *volatile seen_address;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	seen_signal = number;
	seen_value = info->si_value.sival_int;
	seen_address = info->si_addr;
	nested++;
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

	action.sa_sigaction = on_signal;
	MUST(sigaction(number, &action, NULL) == 0);
}

static void signal_handler(void)
{
	union sigval value = { .sival_int = 4711 };

	handle(SIGUSR1, 0);
	MUST(sigqueue(getpid(), SIGUSR1, value) == 0);
	MUST(seen_signal == SIGUSR1 && seen_value == 4711);
	handle(SIGUSR2, SA_RESETHAND);
	MUST(raise(SIGUSR2) == 0 && seen_signal == SIGUSR2);
}

static void signal_mask(void)
{
	sigset_t set, pending;

	handle(SIGUSR1, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	MUST(raise(SIGUSR1) == 0 && seen_signal == 0);
	MUST(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
	MUST(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && seen_signal == SIGUSR1);
}

/* Real-time signals queue, in the order of their numbers. */
static void signal_queue(void)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	for (int i = 0; i < 4; i++)
		sigaddset(&set, SIGRTMIN + i);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	for (int i = 3; i >= 0; i--)
		for (int n = 0; n < 3; n++)
			MUST(sigqueue(getpid(), SIGRTMIN + i, (union sigval){ .sival_int = n }) == 0);
	for (int i = 0; i < 12; i++) {
		MUST(sigwaitinfo(&set, &info) == SIGRTMIN + i / 3);
		MUST(info.si_value.sival_int == i % 3 && info.si_pid == getpid());
	}
}

static char alternative[64 * 1024];
static volatile int on_alternative;

static void on_fault(int number, siginfo_t *info, void *context)
{
	char here;

	(void)number;
	(void)context;
	on_alternative = &here >= alternative && &here < alternative + sizeof(alternative);
	seen_address = info->si_addr;
	MUST(mprotect((void *)((unsigned long)info->si_addr & -(unsigned long)PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void fault_and_go_on(void)
{
	stack_t stack = { .ss_sp = alternative, .ss_size = sizeof(alternative) };
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	volatile char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
	action.sa_sigaction = on_fault;
	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	page[100] = 7;
	MUST(page[100] == 7 && seen_address == page + 100 && on_alternative);
}

static void deadly_signals(void)
{
	static const int numbers[] = { SIGTERM, SIGKILL, SIGABRT, SIGPIPE, SIGFPE };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct rlimit none = { 0, 0 };

			setrlimit(RLIMIT_CORE, &none);
			raise(numbers[i]);
			_exit(0);
		}
		await(child, numbers[i]);
	}
}

static void stop_and_continue(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		raise(SIGSTOP);
		_exit(3);
	}
	MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	MUST(kill(child, SIGCONT) == 0);
	MUST(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
	await(child, 3 << 8);
}

static void interval_timer(void)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };

	handle(SIGALRM, 0);
	MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (nested < 3)
		pause();
}

static void posix_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec soon = { .it_value = { 0, 2000000 } };
	sigset_t set;
	siginfo_t info;
	timer_t timer;

	event.sigev_value.sival_int = 99;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	HAVE(timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(timer_settime(timer, 0, &soon, NULL) == 0);
	MUST(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_value.sival_int == 99);
}

static void signal_fd(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = (int)HAVE(signalfd(-1, &set, SFD_NONBLOCK));
	MUST(read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
	MUST(raise(SIGUSR2) == 0);
	MUST(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR2);
}

/* ---- memory ---- */

static void anonymous_memory(void)
{
	size_t size = 8 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	for (size_t i = 0; i < size; i += PAGE)
		MUST(memory[i] == 0);
	fill(memory, 0, size);
	MUST(is_filled(memory, 0, size));
	MUST(madvise(memory, size / 2, MADV_DONTNEED) == 0);
	MUST(memory[0] == 0 && memory[size / 2 - 1] == 0 && is_filled(memory + size / 2, size / 2, size / 2));
	MUST(munmap(memory, size) == 0);
}

static void copy_on_write(void)
{
	size_t size = 1 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	MUST(memory != MAP_FAILED);
	fill(memory, 0, size);
	child = fork();
	if (child == 0) {
		MUST(is_filled(memory, 0, size));
		memset(memory, 1, size);
		_exit(memory[size - 1]);
	}
	await(child, 1 << 8);
	MUST(is_filled(memory, 0, size));
}

static void shared_memory(void)
{
	unsigned char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	MUST(memory != MAP_FAILED);
	child = fork();
	if (child == 0) {
		fill(memory, 5, PAGE);
		_exit(0);
	}
	await(child, 0);
	MUST(is_filled(memory, 5, PAGE));
}

static void file_mapping(void)
{
	int fd = create("mapped");
	unsigned char *memory, bytes[PAGE];

	MUST(ftruncate(fd, 4 * PAGE) == 0);
	memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(memory != MAP_FAILED);
	fill(memory, 0, 4 * PAGE);
	MUST(msync(memory, 4 * PAGE, MS_SYNC) == 0);
	MUST(pread(fd, bytes, PAGE, 2 * PAGE) == PAGE && is_filled(bytes, 2 * PAGE, PAGE));
	memset(bytes, 9, PAGE);
	MUST(pwrite(fd, bytes, PAGE, PAGE) == PAGE && memory[PAGE] == 9 && memory[2 * PAGE - 1] == 9);
}

static void remap(void)
{
	unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *larger;

	MUST(memory != MAP_FAILED);
	fill(memory, 0, 2 * PAGE);
	larger = mremap(memory, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	MUST(larger != MAP_FAILED && is_filled(larger, 0, 2 * PAGE) && larger[64 * PAGE - 1] == 0);
}

static void program_break(void)
{
	unsigned char *start = sbrk(0);

	MUST(sbrk(64 * PAGE) == start);
	fill(start, 0, 64 * PAGE);
	MUST(is_filled(start, 0, 64 * PAGE) && sbrk(-64 * PAGE) == start + 64 * PAGE);
}

static void sealed_memory(void)
{
	int fd = (int)HAVE(memfd_create("seal", MFD_ALLOW_SEALING));

	MUST(ftruncate(fd, PAGE) == 0);
	MUST(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0);
	MUST(write(fd, "x", 1) == -1 && errno == EPERM);
	MUST(ftruncate(fd, 0) == -1 && errno == EPERM);
}

static void other_memory(void)
{
	static char word[16] = "here";
	char got[16] = "";
	struct iovec ours = { got, sizeof(got) }, theirs = { word, sizeof(word) };
	int up[2];
	char byte;
	pid_t child;

	MUST(pipe(up) == 0);
	child = fork();
	if (child == 0) {
		strcpy(word, "there");
		if (write(up[1], "k", 1) == 1)
			pause();
		_exit(1);
	}
	MUST(read(up[0], &byte, 1) == 1);
	HAVE(process_vm_readv(child, &ours, 1, &theirs, 1, 0));
	MUST(strcmp(got, "there") == 0 && kill(child, SIGKILL) == 0);
	await(child, SIGKILL);
}

static void resident_pages(void)
{
	unsigned char there[4] = { 0 };
	char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	memory[PAGE] = 1;
	MUST(mlock(memory + 2 * PAGE, PAGE) == 0);
	MUST(mincore(memory, 4 * PAGE, there) == 0);
	MUST(!(there[0] & 1) && (there[1] & 1) && (there[2] & 1) && !(there[3] & 1));
}

/* ---- files ---- */

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

/* ---- talking to others ---- */

static void pipe_order(void)
{
	unsigned char bytes[PAGE];
	size_t at = 0;
	int pair[2];
	pid_t child;

	MUST(pipe(pair) == 0);
	child = fork();
	if (child == 0) {
		close(pair[0]);
		for (size_t sent = 0; sent < 1 << 20; sent += 1000) {
			fill(bytes, sent, 1000);
			MUST(write(pair[1], bytes, 1000) == 1000);
		}
		_exit(0);
	}
	close(pair[1]);
	for (ssize_t size; (size = read(pair[0], bytes, sizeof(bytes))) > 0; at += (size_t)size)
		MUST(is_filled(bytes, at, (size_t)size));
	MUST(at == 1049000);
	await(child, 0);
}

static void pipe_ends(void)
{
	int pair[2];
	char byte;

	MUST(pipe2(pair, O_NONBLOCK) == 0);
	MUST(read(pair[0], &byte, 1) == -1 && errno == EAGAIN);
	MUST(fcntl(pair[1], F_SETPIPE_SZ, 2 * PAGE) == 2 * PAGE);
	while (write(pair[1], "x", 1) == 1)
		;
	MUST(errno == EAGAIN);
	close(pair[0]);
	signal(SIGPIPE, SIG_IGN);
	MUST(write(pair[1], "x", 1) == -1 && errno == EPIPE);
}

static void event_fd(void)
{
	uint64_t value = 3;
	int fd = (int)HAVE(eventfd(4, EFD_NONBLOCK));

	MUST(write(fd, &value, 8) == 8 && read(fd, &value, 8) == 8 && value == 7);
	MUST(read(fd, &value, 8) == -1 && errno == EAGAIN);
}

static void timer_fd(void)
{
	struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	uint64_t times = 0, sum = 0;
	int fd = (int)HAVE(timerfd_create(CLOCK_MONOTONIC, 0));

	MUST(timerfd_settime(fd, 0, &often, NULL) == 0);
	while (sum < 5) {
		MUST(read(fd, &times, 8) == 8 && times >= 1);
		sum += times;
	}
}

static void shm_sysv(void)
{
	int id = (int)HAVE(shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600));
	char *memory = shmat(id, NULL, 0);
	pid_t child;

	MUST(memory != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	child = fork();
	if (child == 0) {
		memory[7] = 8;
		_exit(0);
	}
	await(child, 0);
	MUST(memory[7] == 8 && shmdt(memory) == 0);
}

static void sem_sysv(void)
{
	struct sembuf down = { 0, -1, 0 }, up = { 0, 1, 0 };
	int id = (int)HAVE(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
	pid_t child = fork();

	if (child == 0) {
		MUST(semop(id, &down, 1) == 0);
		_exit(0);
	}
	usleep(2000);
	MUST(semop(id, &up, 1) == 0);
	await(child, 0);
	MUST(semctl(id, 0, IPC_RMID) == 0);
}

static void msg_sysv(void)
{
	struct { long type; char text[16]; } message = { 2, "second" }, got;
	int id = (int)HAVE(msgget(IPC_PRIVATE, IPC_CREAT | 0600));

	MUST(msgsnd(id, &message, sizeof(message.text), 0) == 0);
	message.type = 1;
	strcpy(message.text, "first");
	MUST(msgsnd(id, &message, sizeof(message.text), 0) == 0);
	MUST(msgrcv(id, &got, sizeof(got.text), 1, 0) == sizeof(got.text) && strcmp(got.text, "first") == 0);
	MUST(msgrcv(id, &got, sizeof(got.text), 0, 0) == sizeof(got.text) && strcmp(got.text, "second") == 0);
	MUST(msgctl(id, IPC_RMID, NULL) == 0);
}

static void mq_posix(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	char got[16];
	unsigned priority;
	mqd_t queue = (mqd_t)HAVE(mq_open("/kt-selftest", O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));

	MUST(mq_unlink("/kt-selftest") == 0);
	MUST(mq_send(queue, "low", 4, 1) == 0 && mq_send(queue, "high", 5, 9) == 0);
	MUST(mq_receive(queue, got, 16, &priority) == 5 && priority == 9 && strcmp(got, "high") == 0);
	MUST(mq_receive(queue, got, 16, &priority) == 4 && priority == 1);
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static void tcp_pair(int *a, int *b)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int server = (int)HAVE(socket(AF_INET, SOCK_STREAM, 0));

	MUST(bind(server, (struct sockaddr *)&address, size) == 0 && listen(server, 4) == 0);
	MUST(getsockname(server, (struct sockaddr *)&address, &size) == 0);
	*a = socket(AF_INET, SOCK_STREAM, 0);
	MUST(*a >= 0 && connect(*a, (struct sockaddr *)&address, size) == 0);
	*b = accept(server, NULL, NULL);
	MUST(*b >= 0 && close(server) == 0);
}

static void tcp_stream(void)
{
	unsigned char bytes[8192];
	size_t at = 0;
	int a, b;
	pid_t child;

	tcp_pair(&a, &b);
	child = fork();
	if (child == 0) {
		close(b);
		for (size_t sent = 0; sent < 2 << 20; sent += 8000) {
			fill(bytes, sent, 8000);
			MUST(send(a, bytes, 8000, 0) == 8000);
		}
		_exit(0);
	}
	close(a);
	for (ssize_t size; (size = recv(b, bytes, sizeof(bytes), 0)) > 0; at += (size_t)size)
		MUST(is_filled(bytes, at, (size_t)size));
	MUST(at == 2104000);
	await(child, 0);
}

static void tcp_half_close(void)
{
	char byte;
	int a, b;

	tcp_pair(&a, &b);
	MUST(shutdown(a, SHUT_WR) == 0 && recv(b, &byte, 1, 0) == 0);
	MUST(send(b, "k", 1, 0) == 1 && recv(a, &byte, 1, 0) == 1 && byte == 'k');
	signal(SIGPIPE, SIG_IGN);
	MUST(send(a, "k", 1, 0) == -1 && errno == EPIPE);
	MUST(send(b, "urgent", 6, MSG_OOB) == 6);
}

static void tcp_refused(void)
{
	struct sockaddr_in address = loopback(1);
	int fd = (int)HAVE(socket(AF_INET, SOCK_STREAM, 0));

	MUST(connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1 && errno == ECONNREFUSED);
}

static void udp_datagrams(void)
{
	struct sockaddr_in address = loopback(0), from;
	socklen_t size = sizeof(address);
	char bytes[64];
	int a = (int)HAVE(socket(AF_INET, SOCK_DGRAM, 0)), b = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(bind(a, (struct sockaddr *)&address, size) == 0);
	MUST(getsockname(a, (struct sockaddr *)&address, &size) == 0);
	MUST(sendto(b, "one", 3, 0, (struct sockaddr *)&address, size) == 3);
	MUST(sendto(b, "", 0, 0, (struct sockaddr *)&address, size) == 0);
	MUST(recvfrom(a, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size) == 3);
	MUST(recv(a, bytes, sizeof(bytes), 0) == 0);
	MUST(from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	MUST(recv(a, bytes, sizeof(bytes), MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void socket_timeout(void)
{
	struct timeval soon = { 0, 3000 };
	char byte;
	int a, b;

	tcp_pair(&a, &b);
	MUST(setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)) == 0);
	MUST(recv(b, &byte, 1, 0) == -1 && errno == EAGAIN);
}

static void unix_passes_files(void)
{
	union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec data = { "f", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int pair[2], fd = create("passed"), got;
	char bytes[8] = "";

	HAVE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MUST(write(fd, "passed", 6) == 6);
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	MUST(sendmsg(pair[0], &message, 0) == 1);
	data.iov_base = bytes;
	MUST(recvmsg(pair[1], &message, 0) == 1);
	memcpy(&got, CMSG_DATA(&control.header), sizeof(got));
	MUST(got != fd && pread(got, bytes, 6, 0) == 6 && memcmp(bytes, "passed", 6) == 0);
}

static void unix_datagrams(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0kt-selftest" };
	struct ucred who;
	socklen_t size = sizeof(who);
	char bytes[8];
	int a = (int)HAVE(socket(AF_UNIX, SOCK_SEQPACKET, 0)), b = socket(AF_UNIX, SOCK_SEQPACKET, 0), c;

	MUST(bind(a, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(a, 1) == 0);
	MUST(connect(b, (struct sockaddr *)&address, sizeof(address)) == 0);
	c = accept(a, NULL, NULL);
	MUST(c >= 0 && send(b, "ab", 2, 0) == 2 && send(b, "cde", 3, 0) == 3);
	MUST(recv(c, bytes, 8, 0) == 2 && recv(c, bytes, 8, 0) == 3);
	MUST(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == getpid());
}

static void netlink_links(void)
{
	struct { struct nlmsghdr header; struct ifinfomsg link; } ask = {
		.header = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};
	char answer[16384] __attribute__((aligned(8)));
	int fd = (int)HAVE(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), found = 0;
	ssize_t size;

	MUST(send(fd, &ask, sizeof(ask), 0) == sizeof(ask));
	size = recv(fd, answer, sizeof(answer), 0);
	MUST(size > 0);
	for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, (unsigned)size); at = NLMSG_NEXT(at, size))
		found += at->nlmsg_type == RTM_NEWLINK;
	MUST(found >= 1);
}

static void waiting_calls(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 77 };
	struct timeval none = { 0, 0 };
	struct pollfd poll_one;
	fd_set set;
	int a, b, epoll = (int)HAVE(epoll_create1(0));

	tcp_pair(&a, &b);
	poll_one = (struct pollfd){ .fd = b, .events = POLLIN };
	FD_ZERO(&set);
	FD_SET(b, &set);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, b, &event) == 0);
	MUST(poll(&poll_one, 1, 0) == 0 && epoll_wait(epoll, &event, 1, 0) == 0);
	MUST(select(b + 1, &set, NULL, NULL, &none) == 0);
	MUST(send(a, "k", 1, 0) == 1);
	MUST(epoll_wait(epoll, &event, 1, 1000) == 1 && event.data.u32 == 77 && event.events == EPOLLIN);
	FD_SET(b, &set);
	MUST(poll(&poll_one, 1, 1000) == 1 && select(b + 1, &set, NULL, NULL, &none) == 1);
}

static void epoll_edges(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int pair[2], epoll = (int)HAVE(epoll_create1(0));

	MUST(pipe(pair) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0);
	MUST(write(pair[1], "a", 1) == 1);
	MUST(epoll_wait(epoll, &event, 1, 0) == 1 && epoll_wait(epoll, &event, 1, 0) == 0);
	MUST(write(pair[1], "b", 1) == 1 && epoll_wait(epoll, &event, 1, 0) == 1);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event) == -1 && errno == EINVAL);
}

/* ---- futex ---- */

static long futex(int *word, int operation, int value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

static int *shared_words(void)
{
	int *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(words != MAP_FAILED);
	return words;
}

static void futex_ping_pong(void)
{
	int *word = shared_words();
	pid_t child = fork();

	for (int turn = 0; turn < 500; turn++) {
		int mine = child == 0;

		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) % 2 != mine)
			futex(word, FUTEX_WAIT, !mine + (__atomic_load_n(word, __ATOMIC_ACQUIRE) & ~1), NULL);
		__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
		futex(word, FUTEX_WAKE, 1, NULL);
	}
	if (child == 0)
		_exit(0);
	await(child, 0);
	MUST(*word == 1000);
}

static void futex_time_limit(void)
{
	struct timespec soon = { 0, 2000000 };
	int word = 5;

	MUST(futex(&word, FUTEX_WAIT, 4, NULL) == -1 && errno == EAGAIN);
	MUST(futex(&word, FUTEX_WAIT, 5, &soon) == -1 && errno == ETIMEDOUT);
	MUST(futex(&word, FUTEX_WAKE, 1, NULL) == 0);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long guarded;

static void *guarded_work(void *unused)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&mutex);
		guarded++;
		if (i == 1999)
			pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void mutexes(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&thread[i], NULL, guarded_work, NULL) == 0);
	pthread_mutex_lock(&mutex);
	while (guarded < 8000)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(thread[i], NULL) == 0);
	MUST(guarded == 8000);
}

static void robust_mutex(void)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)shared_words();
	pthread_mutexattr_t attributes;
	pid_t child;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	MUST(pthread_mutex_init(lock, &attributes) == 0);
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(lock);
		_exit(0);
	}
	await(child, 0);
	MUST(pthread_mutex_lock(lock) == EOWNERDEAD && pthread_mutex_consistent(lock) == 0);
}

/* ---- io_uring ---- */

struct ring {
	int fd;
	unsigned *tail, *head, *array, mask, *done_tail, *done_head, done_mask;
	struct io_uring_sqe *entries;
	struct io_uring_cqe *done;
};

static struct ring open_ring(unsigned size)
{
	struct io_uring_params params = { 0 };
	struct ring ring = { .fd = (int)HAVE(syscall(SYS_io_uring_setup, size, &params)) };
	char *at = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			IORING_OFF_SQ_RING);
	char *done = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(*ring.done), PROT_READ | PROT_WRITE,
			  MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);

	ring.entries = mmap(NULL, params.sq_entries * sizeof(*ring.entries), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			    IORING_OFF_SQES);
	MUST(at != MAP_FAILED && done != MAP_FAILED && ring.entries != MAP_FAILED);
	ring.tail = (unsigned *)(at + params.sq_off.tail);
	ring.head = (unsigned *)(at + params.sq_off.head);
	ring.array = (unsigned *)(at + params.sq_off.array);
	ring.mask = params.sq_entries - 1;
	ring.done_tail = (unsigned *)(done + params.cq_off.tail);
	ring.done_head = (unsigned *)(done + params.cq_off.head);
	ring.done_mask = params.cq_entries - 1;
	ring.done = (struct io_uring_cqe *)(done + params.cq_off.cqes);
	return ring;
}

static struct io_uring_sqe *next_entry(struct ring *ring, unsigned char operation, unsigned long data)
{
	unsigned tail = *ring->tail;
	struct io_uring_sqe *entry = &ring->entries[tail & ring->mask];

	memset(entry, 0, sizeof(*entry));
	entry->opcode = operation;
	entry->user_data = data;
	ring->array[tail & ring->mask] = tail & ring->mask;
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
	return entry;
}

static void submit(struct ring *ring, unsigned count)
{
	MUST(syscall(SYS_io_uring_enter, ring->fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0) == count);
}

struct done {
	int res;
	unsigned long user_data;
};

static struct done take(struct ring *ring)
{
	unsigned head = *ring->done_head;
	const struct io_uring_cqe *entry = &ring->done[head & ring->done_mask];
	struct done done;

	MUST(head != __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE));
	done = (struct done){ entry->res, entry->user_data };
	__atomic_store_n(ring->done_head, head + 1, __ATOMIC_RELEASE);
	return done;
}

static void uring_batch(void)
{
	struct ring ring = open_ring(64);

	for (int round = 0; round < 20; round++) {
		for (unsigned long i = 0; i < 64; i++)
			next_entry(&ring, IORING_OP_NOP, i);
		submit(&ring, 64);
		for (unsigned long i = 0; i < 64; i++) {
			struct done done = take(&ring);

			MUST(done.res == 0 && done.user_data == i);
		}
	}
}

static void uring_files(void)
{
	static unsigned char out[PAGE], in[PAGE];
	struct ring ring = open_ring(4);
	struct io_uring_sqe *entry;
	int fd = create("ring");

	fill(out, 3, PAGE);
	entry = next_entry(&ring, IORING_OP_WRITE, 1);
	entry->fd = fd;
	entry->addr = (unsigned long)out;
	entry->len = PAGE;
	entry->flags = IOSQE_IO_LINK;
	entry = next_entry(&ring, IORING_OP_READ, 2);
	entry->fd = fd;
	entry->addr = (unsigned long)in;
	entry->len = PAGE;
	submit(&ring, 2);
	MUST(take(&ring).res == PAGE && take(&ring).res == PAGE && is_filled(in, 3, PAGE));
}

static void uring_broken_link(void)
{
	struct ring ring = open_ring(4);
	struct io_uring_sqe *entry = next_entry(&ring, IORING_OP_READ, 1);
	struct done done;

	entry->fd = 1000;
	entry->flags = IOSQE_IO_LINK;
	next_entry(&ring, IORING_OP_NOP, 2);
	submit(&ring, 2);
	done = take(&ring);
	MUST(done.user_data == 1 && done.res == -EBADF);
	done = take(&ring);
	MUST(done.user_data == 2 && done.res == -ECANCELED);
}

/* ---- groups and namespaces ---- */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int read_text(const char *path, char *text, int size)
{
	int fd = open(path, O_RDONLY);
	ssize_t got;

	MUST(fd >= 0);
	got = read(fd, text, (size_t)size - 1);
	MUST(got >= 0);
	text[got] = '\0';
	close(fd);
	return (int)got;
}

static void mount_cgroups(void)
{
	MUST(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	MUST(mkdir(in_dir("groups"), 0700) == 0);
	HAVE(mount("cgroup2", in_dir("groups"), "cgroup2", 0, NULL));
	MUST(mkdir(in_dir("groups/kt"), 0700) == 0);
}

static void cgroup_members(void)
{
	char text[256];
	pid_t child;
	int status;

	mount_cgroups();
	child = fork();
	if (child == 0) {
		write_text(in_dir("groups/kt/cgroup.procs"), "0");
		read_text("/proc/self/cgroup", text, sizeof(text));
		_exit(strstr(text, "/kt\n") ? 0 : 9);
	}
	MUST(waitpid(child, &status, 0) == child && status == 0);
	MUST(read_text(in_dir("groups/kt/cgroup.events"), text, sizeof(text)) > 0 && strstr(text, "populated 0"));
	MUST(rmdir(in_dir("groups/kt")) == 0 && umount(in_dir("groups")) == 0);
}

static void cgroup_freezer(void)
{
	char text[256], pid[16];
	pid_t child;

	mount_cgroups();
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	snprintf(pid, sizeof(pid), "%d", child);
	write_text(in_dir("groups/kt/cgroup.procs"), pid);
	write_text(in_dir("groups/kt/cgroup.freeze"), "1");
	for (int i = 0; i < 200; i++) {
		read_text(in_dir("groups/kt/cgroup.events"), text, sizeof(text));
		if (strstr(text, "frozen 1"))
			break;
		usleep(1000);
	}
	MUST(strstr(text, "frozen 1"));
	write_text(in_dir("groups/kt/cgroup.freeze"), "0");
	write_text(in_dir("groups/kt/cgroup.kill"), "1");
	await(child, SIGKILL);
	for (int i = 0; i < 200 && rmdir(in_dir("groups/kt")) != 0; i++)
		usleep(1000);
	MUST(umount(in_dir("groups")) == 0);
}

static void net_namespace(void)
{
	struct sockaddr_in address = loopback(9);
	int fd;

	HAVE(unshare(CLONE_NEWNET));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	/* Its loopback is down. */
	MUST(fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) == -1);
	MUST(errno == ENETUNREACH);
}

static void pid_namespace(void)
{
	pid_t child;

	HAVE(unshare(CLONE_NEWPID));
	child = fork();
	if (child == 0)
		_exit(getpid() == 1 ? 0 : 1);
	await(child, 0);
}

static void uts_namespace(void)
{
	struct utsname name;

	HAVE(unshare(CLONE_NEWUTS));
	MUST(sethostname("kt-selftest", 11) == 0 && uname(&name) == 0);
	MUST(strcmp(name.nodename, "kt-selftest") == 0 && strcmp(name.sysname, "Linux") == 0);
}

/* ---- time and the rest ---- */

static void clocks(void)
{
	struct timespec before, asleep = { 0, 5000000 }, after, raw;

	MUST(clock_gettime(CLOCK_MONOTONIC, &before) == 0 && nanosleep(&asleep, NULL) == 0);
	MUST(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
	MUST((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >= 5000000);
	/* The vDSO and the system call tell the same time. */
	MUST(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &raw) == 0);
	MUST((raw.tv_sec - after.tv_sec) * 1000000000L + raw.tv_nsec - after.tv_nsec >= 0);
	MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after) == 0 && clock_gettime(CLOCK_BOOTTIME, &raw) == 0);
}

static void randomness(void)
{
	unsigned char a[64], b[64];

	MUST(getrandom(a, sizeof(a), 0) == sizeof(a) && getrandom(b, sizeof(b), GRND_NONBLOCK) == sizeof(b));
	MUST(memcmp(a, b, sizeof(a)) != 0);
}

static void barrier(void)
{
	HAVE(syscall(SYS_membarrier, 0, 0, 0));
	MUST(syscall(SYS_membarrier, 1, 0, 0) == 0);
}

static void bad_calls(void)
{
	MUST(syscall(9999) == -1 && errno == ENOSYS);
	MUST(write(1000, "x", 1) == -1 && errno == EBADF);
	MUST(open((const char *)8, O_RDONLY) == -1 && errno == EFAULT);
	MUST(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
	MUST(lseek(create("f"), -1, SEEK_SET) == -1 && errno == EINVAL);
}

static const struct check {
	const char *name, *group;
	void (*run)(void);
} checks[] = {
#define C(name, group) { #name, group, name }
	C(fork_wait, "processes"), C(exec_arguments, "processes"), C(exec_missing, "processes"),
	C(exec_script, "processes"), C(threads, "processes"), C(sessions, "processes"), C(limits, "processes"),
	C(priorities, "processes"), C(subreaper, "processes"),
	C(signal_handler, "signals"), C(signal_mask, "signals"), C(signal_queue, "signals"),
	C(fault_and_go_on, "signals"), C(deadly_signals, "signals"), C(stop_and_continue, "signals"),
	C(interval_timer, "signals"), C(posix_timer, "signals"), C(signal_fd, "signals"),
	C(anonymous_memory, "memory"), C(copy_on_write, "memory"), C(shared_memory, "memory"),
	C(file_mapping, "memory"), C(remap, "memory"), C(program_break, "memory"), C(sealed_memory, "memory"),
	C(other_memory, "memory"), C(resident_pages, "memory"),
	C(read_back, "files"), C(holes, "files"), C(names, "files"), C(directories, "files"), C(vectors, "files"),
	C(append, "files"), C(locks, "files"), C(send_file, "files"), C(splices, "files"), C(watches, "files"),
	C(status_of_files, "files"), C(full_file_system, "files"), C(bind_mount, "files"), C(proc, "files"),
	C(pipe_order, "ipc"), C(pipe_ends, "ipc"), C(event_fd, "ipc"), C(timer_fd, "ipc"), C(shm_sysv, "ipc"),
	C(sem_sysv, "ipc"), C(msg_sysv, "ipc"), C(mq_posix, "ipc"),
	C(tcp_stream, "sockets"), C(tcp_half_close, "sockets"), C(tcp_refused, "sockets"),
	C(udp_datagrams, "sockets"), C(socket_timeout, "sockets"), C(unix_passes_files, "sockets"),
	C(unix_datagrams, "sockets"), C(netlink_links, "sockets"), C(waiting_calls, "sockets"),
	C(epoll_edges, "sockets"),
	C(futex_ping_pong, "futex"), C(futex_time_limit, "futex"), C(mutexes, "futex"), C(robust_mutex, "futex"),
	C(uring_batch, "io_uring"), C(uring_files, "io_uring"), C(uring_broken_link, "io_uring"),
	C(cgroup_members, "cgroups"), C(cgroup_freezer, "cgroups"), C(net_namespace, "namespaces"),
	C(pid_namespace, "namespaces"), C(uts_namespace, "namespaces"),
	C(clocks, "time"), C(randomness, "time"), C(barrier, "time"), C(bad_calls, "time"),
#undef C
};
#define CHECKS (sizeof(checks) / sizeof(checks[0]))

static void clean(const char *path)
{
	DIR *list = opendir(path);
	struct dirent *entry;
	char inner[512];

	while (list && (entry = readdir(list))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
		if (unlink(inner) != 0)
			clean(inner);
	}
	if (list)
		closedir(list);
	rmdir(path);
}

/* Text for between quotes in JSON. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
}

static int run(const struct check *check)
{
	static const char *const words[] = { "ok", "failed", "unsupported" };
	char why[256] = "";
	int pair[2], status, result;
	ssize_t size;
	pid_t child;

	snprintf(dir, sizeof(dir), "/tmp/selftest.%d", getpid());
	if (mkdir(dir, 0700) != 0 || pipe2(pair, O_CLOEXEC) != 0)
		return FAILED;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		report = fcntl(pair[1], F_DUPFD_CLOEXEC, 200);
		close(pair[0]);
		close(pair[1]);
		alarm(SECONDS);
		check->run();
		_exit(OK);
	}
	close(pair[1]);
	size = read(pair[0], why, sizeof(why) - 1);
	why[size > 0 ? size : 0] = '\0';
	close(pair[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return FAILED;
	result = WIFEXITED(status) && WEXITSTATUS(status) <= UNSUPPORTED ? WEXITSTATUS(status) : FAILED;
	if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), WTERMSIG(status) == SIGALRM ? "no end within the time limit" : "killed by signal %d",
			 WTERMSIG(status));
	clean(dir);
	printf("{\"check\":\"%s\",\"group\":\"%s\",\"result\":\"%s\"", check->name, check->group, words[result]);
	if (result != OK) {
		printf(",\"why\":\"");
		print_text(why);
		putchar('"');
	}
	puts("}");
	return result;
}

static int wanted(const struct check *check, int count, char **names_)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names_[i], check->name) == 0)
			return 1;
	return count == 0;
}

int main(int argc, char **argv)
{
	int status = 0, found = 0, report_only = argc > 1 && strcmp(argv[1], "--report") == 0;

	if (argc > 1 && strcmp(argv[1], "--count") == 0) { /* what exec_arguments and exec_script execute */
		int variables = 0;

		while (environ[variables])
			variables++;
		return argc == 301 && variables == 100 ? 42 : 43;
	}
	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < CHECKS; i++)
			printf("%s\t%s\n", checks[i].group, checks[i].name);
		return 0;
	}
	argc -= report_only;
	argv += report_only;
	for (size_t i = 0; i < CHECKS; i++) {
		if (!wanted(&checks[i], argc - 1, argv + 1))
			continue;
		found++;
		if (run(&checks[i]) == FAILED)
			status = 1;
	}
	if (found == 0 || (argc > 1 && found != argc - 1)) {
		fputs("selftest: `selftest --list` shows what there is\n", stderr);
		return 2;
	}
	return fflush(stdout) == 0 ? status && !report_only : 1;
}
