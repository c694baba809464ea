/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Brings the bare kernel to the state of a small running system: file systems, loopback network,
 * console, options; and ends it. In namespaces of a kernel that others use, too, embedded/guest/contain has done that before.
 * Talks to: the kernel; the host through lines on /dev/console, or on the descriptor given (crates/machine/src/host.rs).
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int console = -1;
static bool contained;
/* A machine without ACPI does not switch itself off: QEMU ends at a restart (-no-reboot), and User-Mode Linux is not. */
static bool ends_by_power_off;

bool is_contained(void)
{
	return contained;
}

void announce(const char *format, ...)
{
	char text[REASON_MAX + 64];
	size_t done = 0, size;
	va_list list;

	if (console < 0)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text) - 1, format, list);
	va_end(list);
#ifdef KT_COMMAND
	command_one_line(text);
#endif
	size = strlen(text);
	text[size++] = '\n';
	while (done < size) {
		ssize_t now = write(console, text + done, size - done);

		if (now < 0 && errno == EINTR)
			continue;
		if (now <= 0)
			return; /* there is no other place to say it */
		done += (size_t)now;
	}
	while (tcdrain(console) < 0 && errno == EINTR)
		;
}

void power_off(void)
{
	if (contained)
		_exit(0); /* all else in our namespace ends with us */
	if (reboot(ends_by_power_off ? RB_POWER_OFF : RB_AUTOBOOT) < 0)
		announce("kt: cannot end the machine: %s", strerror(errno));
	for (;;)
		pause();
}

bool write_text(const char *path, const char *text)
{
	size_t size = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, size) == (ssize_t)size;
	return close(fd) == 0 && done;
}

ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;

	if (fd < 0)
		return -1;
	while (done + 1 < size) {
		ssize_t now = read(fd, text + done, size - 1 - done);

		if (now < 0 && errno == EINTR)
			continue;
		if (now < 0) {
			close(fd);
			return -1;
		}
		if (now == 0)
			break;
		done += (size_t)now;
	}
	close(fd);
	text[done] = '\0';
	return (ssize_t)done;
}

static bool make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return fail("boot: cannot make %s: %s", path, strerror(errno));
	return true;
}

static bool mount_own(void)
{
	static const struct {
		const char *type, *where, *data;
		bool needed; /* a lean kernel may lack the others */
	} mounts[] = {
		{ "devtmpfs", "/dev", "mode=0755", true },
		{ "proc", "/proc", NULL, true },
		{ "sysfs", "/sys", NULL, true },
		{ "tmpfs", "/tmp", "mode=1777", true },
		{ "tmpfs", "/run", "mode=0755", true },
		{ "tmpfs", OUT_DIR, "mode=0755", true },
		{ "tmpfs", "/dev/shm", "mode=1777", true },
		{ "devpts", "/dev/pts", "mode=0620,ptmxmode=0666", false },
		{ "debugfs", "/sys/kernel/debug", NULL, false },
		{ "tracefs", "/sys/kernel/tracing", NULL, false },
	};

#ifdef KT_COMMAND
	int packed = command_packed_tmp();
#endif
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		/* In sysfs the kernel makes the mount points, or has none. */
		bool in_sys = strncmp(mounts[i].where, "/sys/", 5) == 0;

		if (!in_sys && !make_dir(mounts[i].where, 0755))
			return false;
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].data) < 0 &&
		    errno != EBUSY && mounts[i].needed)
			return fail("boot: cannot mount %s at %s: %s", mounts[i].type, mounts[i].where,
				    strerror(errno));
	}
#ifdef KT_COMMAND
	/* The kernel lets everybody write there. */
	if (chmod("/", 0755) < 0)
		return fail("boot: cannot change the mode of /: %s", strerror(errno));
	return command_fill_tmp(packed) && command_make_stubs();
#else
	return true;
#endif
}

/* Makes the kernel's random numbers ready. An exact machine gives the guest no entropy (no RDRAND, a
 * fixed clock), and until they are ready the kernel takes a slow path for each of them: creating a
 * file on tmpfs then costs twice as much. The seed is fixed: nothing here is secret. */
static bool seed_random(void)
{
	struct {
		struct rand_pool_info info;
		char bytes[64];
	} seed = { .info = { .entropy_count = 512, .buf_size = 64 },
		   .bytes = "kerntune guest: a fixed seed, so that two runs do the same work" };
	int fd = open("/dev/random", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return fail("boot: cannot open /dev/random: %s", strerror(errno));
	if (ioctl(fd, RNDADDENTROPY, &seed) < 0) {
		close(fd);
		return fail("boot: cannot seed /dev/random: %s", strerror(errno));
	}
	close(fd);
	return true;
}

static bool loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		if (errno == EAFNOSUPPORT)
			return true; /* a kernel without a network: what needs one will say so */
		return fail("boot: cannot open a socket: %s", strerror(errno));
	}
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0) {
		close(fd);
		return fail("boot: cannot bring up the loopback device: %s", strerror(errno));
	}
	close(fd);
	return true;
}

static bool read_option(const char *word, struct options *options)
{
	if (strncmp(word, "kt.run=", 7) == 0) {
		if (strlen(word + 7) >= sizeof(options->run))
			return fail("boot: the name in %s is too long", word);
		strcpy(options->run, word + 7);
	} else if (strcmp(word, "kt.gcov=1") == 0) {
		options->gcov = true;
	} else if (strcmp(word, "kt.ftrace=1") == 0) {
		options->ftrace = true;
#ifdef KT_PROC
	} else if (strcmp(word, "kt.proc=1") == 0) {
		options->proc = true;
#endif
	} else if (strncmp(word, "kt.cpus=", 8) == 0) {
		if (!plan_number(word + 8, &options->cpus))
			return fail("boot: %s is not a number of CPUs", word);
	} else if (strcmp(word, "kt.poweroff=1") == 0) {
		ends_by_power_off = true;
	}
	return true;
}

static bool read_options(struct options *options)
{
	static char line[4096];
	char *rest, *word;
	bool good = true;

	if (read_text("/proc/cmdline", line, sizeof(line)) < 0)
		return fail("boot: cannot read /proc/cmdline: %s", strerror(errno));
	for (word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
		good = read_option(word, options) && good;
	return good;
}

/* What is mounted may hide the console that the kernel opened for us: take it again. */
static bool open_console(void)
{
	console = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (console < 0)
		return fail("boot: cannot open /dev/console: %s", strerror(errno));
	for (int fd = 0; fd < 3; fd++)
		if (fd != console && dup2(console, fd) < 0)
			return fail("boot: cannot set up file descriptor %d: %s", fd, strerror(errno));
	return true;
}

/* Messages go to descriptor 1, and results to where 0 does; programs get neither. */
static bool take_descriptors(void)
{
	int results = fcntl(0, F_DUPFD_CLOEXEC, 3), nothing;

	console = fcntl(1, F_DUPFD_CLOEXEC, 3);
	if (console < 0 || results < 0)
		return fail("boot: no descriptors for lines and results: %s", strerror(errno));
	stream_given(results);
	/* Else the programs could open them by way of /proc/1/fd. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail("boot: cannot keep descriptors from programs: %s", strerror(errno));
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			return fail("boot: cannot set up file descriptor %d: %s", fd, strerror(errno));
	return true;
}

/* Without CTRL-ALT-DEL handling, and with random numbers: of a kernel that is ours alone. */
static bool own_kernel(struct options *options)
{
	reboot(RB_DISABLE_CAD);
	return seed_random() && read_options(options);
}

/* Where the kernel was there before us, and the system too. */
static bool contained_options(struct options *options, int argc, char **argv)
{
	bool good = true;

	for (int i = 2; i < argc; i++)
		good = read_option(argv[i], options) && good;
	return good;
}

bool system_start(struct options *options, int argc, char **argv)
{
	sigset_t child;

	umask(022);
	contained = argc > 1 && strcmp(argv[1], "contained") == 0;
	if (contained) {
		if (!take_descriptors())
			return false;
	} else {
		console = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (!mount_own() || !open_console())
			return false;
	}
	announce("kt: phase boot");
	/* Children end while we block in sigtimedwait. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return fail("boot: cannot set up signals: %s", strerror(errno));
	/* Out of the reach of the OOM killer, where it is ours. */
	if (!contained && !write_text("/proc/self/oom_score_adj", "-1000"))
		return fail("boot: cannot write /proc/self/oom_score_adj: %s", strerror(errno));
	if (contained)
		return contained_options(options, argc, argv);
	if (sethostname("kerntune", 8) < 0)
		return fail("boot: cannot set the host name: %s", strerror(errno));
	return own_kernel(options) && loopback_up();
}
