/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the processes inside see: a root on tmpfs, process numbers, a loopback and a host name of their own, the kernel's
 * settings to be read only, and of the host's devices those that keep nothing.
 */
#include "contain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As on the root of a guest: half of the memory, and a file for each of its pages there. */
#define FILES_PER_MB 128

static bool make_directory(const char *path, mode_t mode)
{
	if ((mkdir(path, mode) < 0 && errno != EEXIST) || chmod(path, mode) < 0)
		return refuse("cannot make %s: %s", path, strerror(errno));
	return true;
}

static bool mount_root(unsigned long memory_mb)
{
	char data[128];

	/* What is mounted here is not mounted on the host, and the other way round. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return refuse("cannot make mounts private: %s", strerror(errno));
	snprintf(data, sizeof(data), "mode=0755,size=%luM,nr_inodes=%lu", memory_mb / 2,
		 memory_mb * FILES_PER_MB);
	if (mount("kerntune", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, data) < 0)
		return refuse("cannot mount a tmpfs: %s", strerror(errno));
	return true;
}

/* Reading and writing a device of a read-only mount works; changing its owner, mode or times does not. */
static bool bind_device(const char *device)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), ROOT "%s", device);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || close(fd) < 0)
		return refuse("cannot make %s: %s", path, strerror(errno));
	if (mount(device, path, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0)
		return refuse("cannot take the host's %s along: %s", device, strerror(errno));
	return true;
}

static bool mount_devices(void)
{
	static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					       "/dev/random", "/dev/urandom", "/dev/tty" };

	if (!make_directory(ROOT "/dev", 0755) || !make_directory(ROOT "/dev/shm", 01777) ||
	    !make_directory(ROOT "/dev/pts", 0755))
		return false;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (!bind_device(devices[i]))
			return false;
	if (mount("devpts", ROOT "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,mode=0620,ptmxmode=0666,max=256") < 0)
		return refuse("cannot mount devpts: %s", strerror(errno));
	if (symlink("pts/ptmx", ROOT "/dev/ptmx") < 0)
		return refuse("cannot make /dev/ptmx: %s", strerror(errno));
	return true;
}

/* The kernel grants new ones only where the host's own are seen whole, which many a container's are not. */
static bool mount_kernel_files(void)
{
	static const char *const settings[] = { "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus",
						"/proc/fs" };
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (!make_directory(ROOT "/proc", 0755) || !make_directory(ROOT "/sys", 0755))
		return false;
	if (mount("proc", ROOT "/proc", "proc", flags, NULL) < 0)
		return refuse("cannot mount a /proc: %s", strerror(errno));
	if (mount("sysfs", ROOT "/sys", "sysfs", flags | MS_RDONLY, NULL) < 0)
		return refuse("cannot mount a /sys: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), ROOT "%s", settings[i]);
		if (access(path, F_OK) < 0 && errno == ENOENT)
			continue;
		if (mount(path, path, NULL, MS_BIND, NULL) < 0 ||
		    mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | flags, NULL) < 0)
			return refuse("cannot keep %s as it is: %s", settings[i], strerror(errno));
	}
	return true;
}

/* The old root is put on top of the new one, and taken away with all that is mounted in it. */
static bool leave_host(void)
{
	if (chdir(ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return refuse("cannot leave the host's root: %s", strerror(errno));
	return true;
}

bool root_enter(int image, unsigned long memory_mb)
{
	if (!mount_root(memory_mb) || (image >= 0 && !unpack(image, ROOT)))
		return false;
	if (image >= 0)
		close(image);
	return make_directory(ROOT "/tmp", 01777) && make_directory(ROOT "/run", 0755) && mount_devices() &&
	       mount_kernel_files() && leave_host();
}

bool root_of_host(unsigned long memory_mb, const char *root, const char *hidden)
{
	char path[PATH_MAX];

	if (!overlay_prepare(memory_mb, root) || !mount_root(memory_mb) || !overlay_fill())
		return false;
	if (*hidden && snprintf(path, sizeof(path), ROOT "%s", hidden) < (int)sizeof(path) && access(path, F_OK) == 0 &&
	    mount("kerntune", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1M") < 0)
		return refuse("cannot hide %s: %s", hidden, strerror(errno));
	if (access(ROOT "/tmp", F_OK) < 0 && !make_directory(ROOT "/tmp", 01777))
		return false;
	return make_directory(ROOT "/run", 0755) && mount_devices() && mount_kernel_files() && leave_host();
}

bool root_system(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return refuse("cannot bring up a loopback device: %s", strerror(errno));
	close(fd);
	if (sethostname("kerntune", 8) < 0)
		return refuse("cannot set the host name: %s", strerror(errno));
	/* Not the keys of whoever started kerntune. A kernel without keys has none. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return refuse("cannot leave the session's keys: %s", strerror(errno));
	return true;
}
