/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * contain USERS MEMORY_MB IMAGE|probe OPTION...
 * contain USERS MEMORY_MB discover ROOT HIDDEN USER DIRECTORY [SHOWN...] -- WORD...
 *
 * USERS is `range:UID`, `subids:UID:GID`, `one` or `same` (enum users). Runs /init of the image as process 1 of namespaces of its own:
 * users, processes, mounts, network, IPC, host name, cgroups. Lines go out on descriptor 1, results on 0, a socket whose
 * other end is kerntune's. `probe` stops before it runs anything. `discover` runs a command over the files of the host's directory ROOT, in its
 * own environment and with its own input, and tells what it uses (discover.c); the directory HIDDEN inside is empty for it,
 * and the paths SHOWN are no secrets.
 *
 * Two processes: the watcher, which stays outside, and the one that becomes init. All that runs inside ends with init, since
 * it is process 1 there. Init ends with the watcher (PR_SET_PDEATHSIG). The watcher ends both when init does, on a signal
 * (SIGTERM, which kerntune's death sends, too), and when kerntune's end of the socket is gone.
 *
 * Talks to: crates/machine/src/host.rs, which starts it; embedded/guest/init, which it becomes.
 */
#include "contain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMESPACES                                                                                           \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static bool number(const char *text, unsigned long *value)
{
	char *rest;

	errno = 0;
	*value = strtoul(text, &rest, 10);
	return *text >= '0' && *text <= '9' && errno == 0 && *rest == '\0';
}

static bool read_users(char *text, struct request *request)
{
	char *first = strchr(text, ':'), *second = NULL;

	if (first) {
		*first++ = '\0';
		second = strchr(first, ':');
		if (second)
			*second++ = '\0';
	}
	if ((strcmp(text, "one") == 0 || strcmp(text, "same") == 0) && !first) {
		request->users = text[0] == 'o' ? USERS_ONE : USERS_SAME;
		return true;
	}
	if (strcmp(text, "range") == 0 && first && !second) {
		request->users = USERS_RANGE;
		second = first;
	} else if (strcmp(text, "subids") == 0 && second) {
		request->users = USERS_SUBIDS;
	} else {
		return false;
	}
	return number(first, &request->first_uid) && number(second, &request->first_gid);
}

/* Waits for a byte of the other process; false if that is gone. */
static bool heard(int channel)
{
	char byte;
	ssize_t got;

	do
		got = read(channel, &byte, 1);
	while (got < 0 && errno == EINTR);
	return got == 1;
}

static bool say(int channel)
{
	return send(channel, "", 1, MSG_NOSIGNAL) == 1;
}

/* Runs a command, which is what follows `discover`. */
static int discover_all(const struct request *request, char **command)
{
	char **asked = command + 4, **end = asked;

	while (*end && strcmp(*end, "--") != 0)
		end++;
	if (!*end || !end[1])
		return EXIT_REFUSED;
	*end = NULL;
	return discover(request->users == USERS_ONE, command[2], command[3], asked, end + 1);
}

/* Becomes init, or runs the command if there is one: what follows `discover`. `image` is -1 for both it and a probe. */
static _Noreturn void inside(const struct request *request, int channel, int image, char **options, char **command)
{
	static char *environment[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	/* No terminal of the host's, and out of the reach of signals to its process groups. */
	if (setsid() < 0 || !heard(channel))
		_exit(EXIT_REFUSED);
	if (!users_become_root(request))
		_exit(EXIT_REFUSED);
	/* After the change of user, which would undo it. The watcher may be gone by now: it has to answer. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || !say(channel) || !heard(channel))
		_exit(EXIT_REFUSED);
	umask(022);
	if (command) {
		if (!root_of_host(request->memory_mb, command[0], command[1]) || !root_system())
			_exit(EXIT_REFUSED);
		_exit(discover_all(request, command));
	}
	if (!root_enter(image, request->memory_mb) || !root_system() || !rights_drop())
		_exit(EXIT_REFUSED);
	if (image < 0)
		_exit(0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve("/init", options, environment);
	refuse("cannot execute /init of the image: %s", strerror(errno));
	_exit(EXIT_REFUSED);
}

/* As fork, in new namespaces. */
static pid_t start(const struct request *request, int *pidfd)
{
	pid_t pid;

	if (!users_leave_root(request))
		return -1;
	pid = (pid_t)syscall(SYS_clone, NAMESPACES | CLONE_PIDFD | SIGCHLD, NULL, pidfd, NULL, NULL);
	if (pid < 0)
		refuse("the kernel makes no user namespaces: %s%s", strerror(errno),
		       errno == ENOSPC ? " (see the setting user.max_user_namespaces)" :
		       errno == EPERM  ? " (a container's filter, a chroot, or the setting "
					 "kernel.unprivileged_userns_clone, may forbid them)" :
					 "");
	if (pid != 0 && !users_return(request)) {
		if (pid > 0)
			kill(pid, SIGKILL);
		return -1;
	}
	return pid;
}

/* Until init ends, or has to. `results` is the socket, or -1. */
static void watch(int pidfd, int signals, int results)
{
	struct pollfd fds[] = { { pidfd, POLLIN, 0 }, { signals, POLLIN, 0 }, { results, POLLRDHUP, 0 } };
	int ready;

	for (;;) {
		ready = poll(fds, 3, limits_pause());
		if (ready < 0 && errno != EINTR)
			return;
		if (ready > 0 && (fds[0].revents || fds[1].revents || fds[2].revents & (POLLRDHUP | POLLHUP | POLLERR)))
			return;
		if (limits_exceeded()) {
			dprintf(1, "Out of memory: the machine has hardly any left, so the workload was ended\n");
			return;
		}
	}
}

static int outside(const struct request *request, pid_t pid, int pidfd, int channel, int signals, int results)
{
	bool ready = users_map(request, pid) && limits_apply(pid, request->memory_mb);
	int status = 0;

	/* If init is gone it said why. */
	if (ready && say(channel) && heard(channel) && say(channel))
		watch(pidfd, signals, results);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (limits_remove())
		dprintf(1, "Out of memory: the workload wanted more than its %lu MB\n", request->memory_mb);
	if (!ready)
		return EXIT_REFUSED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct request request = { .users = USERS_ONE };
	int channel[2], signals, image = -1, pidfd = -1;
	char **command = NULL;
	sigset_t ends;
	pid_t pid;

	/* Who reads our lines may be gone. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 4 || !read_users(argv[1], &request) || !number(argv[2], &request.memory_mb)) {
		fprintf(stderr, "usage: contain USERS MEMORY_MB IMAGE|probe OPTION... | discover ROOT HIDDEN USER DIRECTORY [SHOWN...] -- WORD...\n");
		return 2;
	}
	/* A descriptor of the host's would be a way out. */
	if (syscall(SYS_close_range, 3u, ~0u, 0u) < 0) {
		refuse("cannot close the descriptors that kerntune was started with: %s", strerror(errno));
		return EXIT_REFUSED;
	}
	if (strcmp(argv[3], "discover") == 0 && argc > 8) {
		command = argv + 4;
	} else if (strcmp(argv[3], "probe") != 0) {
		image = open(argv[3], O_RDONLY | O_CLOEXEC);
		if (image < 0) {
			refuse("cannot open %s: %s", argv[3], strerror(errno));
			return EXIT_REFUSED;
		}
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	signals = -1;
	if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0 || (signals = signalfd(-1, &ends, SFD_CLOEXEC)) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0) {
		refuse("cannot watch over the workload: %s", strerror(errno));
		return EXIT_REFUSED;
	}
	if (!limits_of_processes())
		return EXIT_REFUSED;
	pid = start(&request, &pidfd);
	if (pid < 0)
		return EXIT_REFUSED;
	if (pid == 0) {
		close(channel[0]);
		argv[2] = "init";
		argv[3] = "contained";
		inside(&request, channel[1], image, argv + 2, command);
	}
	/* Leaving root undid it. If kerntune is gone already, so is its end of the socket. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close(channel[1]);
	if (image >= 0)
		close(image);
	return outside(&request, pid, pidfd, channel[0], signals, command ? -1 : 0);
}
