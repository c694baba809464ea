/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Programs: starting them, waiting for them without disturbing them, telling how they ended.
 *
 * While a program runs, init blocks in one sigtimedwait with one far timeout: no periodic wake-up
 * shows in what is measured.
 */
#include "init.h"

#include "../kt_mark.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVICES_MAX 32
#define LINE_MAX_TOLD 160 /* bytes of each output line in a failure */
#define READY_PAUSE_NS 10000000 /* between two looks at a service that is not ready */

static struct service {
	const char *name;
	pid_t pid;
	bool ended;
	int status;
} services[SERVICES_MAX];
static int service_count;

enum outcome { ENDED, TIME_IS_UP, SERVICE_ENDED };

static struct timespec now(void)
{
	struct timespec time = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time;
}

static struct timespec after(unsigned long seconds)
{
	struct timespec time = now();

	time.tv_sec += (time_t)seconds;
	return time;
}

/* What is left until the deadline; false when nothing is. */
static bool left(const struct timespec *deadline, struct timespec *rest)
{
	struct timespec time = now();

	rest->tv_sec = deadline->tv_sec - time.tv_sec;
	rest->tv_nsec = deadline->tv_nsec - time.tv_nsec;
	if (rest->tv_nsec < 0) {
		rest->tv_sec--;
		rest->tv_nsec += 1000000000;
	}
	return rest->tv_sec >= 0;
}

/* Blocks until a child changes state, at most until the time given has passed. */
static void sleep_until_child(const struct timespec *time)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, time); /* all its outcomes send the caller to look again */
}

/* Takes what has ended, orphans of others included, until `wanted` is among it. */
static bool reap(pid_t wanted, int *status)
{
	int how;
	pid_t pid;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
		if (pid == wanted) {
			*status = how;
			return true;
		}
		for (int i = 0; i < service_count; i++) {
			if (services[i].pid == pid && !services[i].ended) {
				services[i].ended = true;
				services[i].status = how;
			}
		}
	}
	return false;
}

static const struct service *ended_service(void)
{
	for (int i = 0; i < service_count; i++)
		if (services[i].ended)
			return &services[i];
	return NULL;
}

static enum outcome wait_for(pid_t pid, const struct timespec *deadline, int *status)
{
	struct timespec rest;

	for (;;) {
		if (reap(pid, status))
			return ENDED;
		if (ended_service())
			return SERVICE_ENDED;
		if (!left(deadline, &rest))
			return TIME_IS_UP;
		sleep_until_child(&rest);
	}
}

/* Whether the kernel's log says that something was killed for want of memory. */
static bool out_of_memory(void)
{
	int size = is_contained() ? 0 : klogctl(10, NULL, 0), got; /* SYSLOG_ACTION_SIZE_BUFFER */
	char *text = size > 0 ? malloc((size_t)size + 1) : NULL;
	bool found;

	if (!text)
		return false;
	got = klogctl(3, text, size); /* SYSLOG_ACTION_READ_ALL */
	text[got > 0 ? got : 0] = '\0';
	found = strstr(text, "Out of memory: Killed process") != NULL;
	free(text);
	return found;
}

static bool lacked_memory(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && out_of_memory();
}

static const char *told(int status, char *text, size_t size)
{
	if (lacked_memory(status))
		snprintf(text, size, "was killed (signal 9) because the guest ran out of memory");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "ended with status %d%s", WEXITSTATUS(status),
			 out_of_memory() ? "; the guest ran out of memory" : "");
	return text;
}

/* ": " and the last three lines of a log, clipped and joined with " | "; empty if it has none. */
static const char *last_lines(const char *log, char *text, size_t size)
{
	static char tail[1024];
	char path[512];
	ssize_t got = 0;
	char *start, *at, *out = text;
	int lines = 0, width = 0, fd;
	off_t end;

	text[0] = '\0';
	snprintf(path, sizeof(path), OUT_DIR "/%s", log);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return text;
	end = lseek(fd, 0, SEEK_END);
	if (end > 0)
		got = pread(fd, tail, sizeof(tail) - 1,
			    end > (off_t)sizeof(tail) - 1 ? end - ((off_t)sizeof(tail) - 1) : 0);
	close(fd);
	while (got > 0 && (tail[got - 1] == '\n' || tail[got - 1] == '\r' || tail[got - 1] == ' '))
		got--;
	if (got <= 0)
		return text;
	tail[got] = '\0';
	for (start = tail + got; start > tail; start--)
		if (start[-1] == '\n' && ++lines == 3)
			break;
	out += snprintf(out, size, ": ");
	for (at = start; *at && out + 4 < text + size; at++) {
		if (*at == '\n') {
			out += sprintf(out, " | ");
			width = 0;
		} else if ((unsigned char)*at >= ' ' && *at != 0x7f && width++ < LINE_MAX_TOLD) {
			*out++ = *at;
		}
	}
	*out = '\0';
	return text;
}

struct files {
	int in, out;
};

static bool files_open(const char *log, struct files *files)
{
	char path[512];

	snprintf(path, sizeof(path), OUT_DIR "/%s", log);
#ifdef KT_COMMAND
	files->in = open(command_input(), O_RDONLY | O_CLOEXEC);
#else
	files->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
#endif
	if (files->in < 0)
		return fail("cannot open /dev/null: %s", strerror(errno));
	files->out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (files->out < 0) {
		close(files->in);
		return fail("cannot open %s: %s", path, strerror(errno));
	}
	return true;
}

static void files_close(const struct files *files)
{
	close(files->in);
	close(files->out);
}

static _Noreturn void become(char **command, const struct files *files)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ||
	    signal(SIGPIPE, SIG_DFL) == SIG_ERR || dup2(files->in, 0) < 0 || dup2(files->out, 1) < 0 ||
	    dup2(files->out, 2) < 0 || !(is_contained() || write_text("/proc/self/oom_score_adj", "0"))) {
		dprintf(files->out, "init: cannot set up the process: %s\n", strerror(errno));
		_exit(126);
	}
#ifdef KT_COMMAND
	if (!command_become(1)) {
		dprintf(1, "init: cannot become the command's user: %s\n", strerror(errno));
		_exit(126);
	}
#endif
	execvp(command[0], command);
	error = errno;
	dprintf(2, "init: cannot execute %s: %s\n", command[0], strerror(error));
#ifdef KT_COMMAND
	/* As in shells, which distinguish what cannot be executed from what is missing. */
	if (error != ENOENT && error != ENOTDIR)
		_exit(126);
#endif
	_exit(127);
}

/* Ends a program and all that it started, unless those left its session. */
static void end_group(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL); /* it may not have reached setsid() */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool fail_service(const struct service *service, const char *when)
{
	char how[96], log[128], tail[640];

	snprintf(log, sizeof(log), "service-%s.log", service->name);
	return fail("service %s %s %s%s", service->name, told(service->status, how, sizeof(how)), when,
		    last_lines(log, tail, sizeof(tail)));
}

bool program_run(const struct program *program)
{
	char how[96], tail[640], when[128];
	struct timespec deadline;
	struct files files;
	enum outcome outcome;
	int status = 0;
	pid_t pid;

	if (ended_service()) {
		snprintf(when, sizeof(when), "before %s", program->what);
		return fail_service(ended_service(), when);
	}
	if (!files_open(program->log, &files))
		return false;
	deadline = after(program->limit);
#ifdef KT_PROC
	if (program->proc && !proc_before()) {
		files_close(&files);
		return false;
	}
#endif
#ifdef KT_COMMAND
	if (!command_enter()) {
		files_close(&files);
		return false;
	}
#endif
#ifdef KT_TIMES
	if (program->region && !times_begin()) {
		files_close(&files);
		return false;
	}
#endif
	if (program->region)
		kt_begin(program->region);
	pid = fork();
	if (pid == 0)
		become(program->command, &files);
	outcome = pid < 0 ? ENDED : wait_for(pid, &deadline, &status);
#ifdef KT_TIMES
	if (program->region)
		times_end();
#endif
	if (program->region)
		kt_end(program->region, program->operations);
#ifdef KT_COMMAND
	if (!command_leave()) {
		files_close(&files);
		return false;
	}
#endif
#ifdef KT_PROC
	if (program->proc)
		proc_after();
#endif
	files_close(&files);
	if (pid < 0)
		return fail("%s (%s): cannot fork: %s", program->what, program->command[0], strerror(errno));
	if (outcome != ENDED)
		end_group(pid);
	if (outcome == SERVICE_ENDED) {
		snprintf(when, sizeof(when), "during %s", program->what);
		return fail_service(ended_service(), when);
	}
	if (outcome == TIME_IS_UP)
		return fail("%s (%s) did not end within its %lu s%s", program->what, program->command[0],
			    program->limit, last_lines(program->log, tail, sizeof(tail)));
#ifdef KT_COMMAND
	if (status != 0 && program->region && !lacked_memory(status) && command_status(status))
		status = 0;
#endif
	if (status != 0)
		return fail("%s (%s) %s%s", program->what, program->command[0],
			    told(status, how, sizeof(how)), last_lines(program->log, tail, sizeof(tail)));
#ifdef KT_TIMES
	if (program->region && !times_save(program->region, program->operations))
		return false;
#endif
#ifdef KT_PROC
	if (program->proc)
		return proc_save(program->proc);
#endif
	return true;
}

bool service_start(const char *name, char **command)
{
	struct service *service = &services[service_count];
	struct files files;
	char log[128];
	pid_t pid;

	if (service_count == SERVICES_MAX)
		return fail("service %s: more than %d services", name, SERVICES_MAX);
	snprintf(log, sizeof(log), "service-%s.log", name);
	if (!files_open(log, &files))
		return false;
	pid = fork();
	if (pid == 0)
		become(command, &files);
	files_close(&files);
	if (pid < 0)
		return fail("service %s: cannot fork: %s", name, strerror(errno));
	*service = (struct service){ .name = name, .pid = pid };
	service_count++;
	return true;
}

static bool answers(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answered;

	if (fd < 0)
		return false;
	answered = connect(fd, address, size) == 0;
	close(fd);
	return answered;
}

/* One look. `how` is what follows the name in the plan: tcp PORT, unix PATH, file PATH, command. */
static bool is_ready(char **how, const char *log, const struct timespec *deadline)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	unsigned long port = 0;
	struct files files;
	int status = 1;
	pid_t pid;

	if (strcmp(how[0], "tcp") == 0) {
		plan_number(how[1], &port);
		tcp.sin_port = htons((unsigned short)port);
		tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return answers(AF_INET, (const struct sockaddr *)&tcp, sizeof(tcp));
	}
	if (strcmp(how[0], "unix") == 0) {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s", how[1]);
		return answers(AF_UNIX, (const struct sockaddr *)&local, sizeof(local));
	}
	if (strcmp(how[0], "file") == 0)
		return access(how[1], F_OK) == 0;
	if (!files_open(log, &files))
		return false;
	pid = fork();
	if (pid == 0)
		become(how + 2, &files);
	files_close(&files);
	if (pid < 0)
		return false;
	if (wait_for(pid, deadline, &status) != ENDED) {
		end_group(pid);
		return false;
	}
	return status == 0;
}

bool service_ready(const char *name, char **how)
{
	static const struct timespec pause = { 0, READY_PAUSE_NS };
	bool command = strcmp(how[0], "command") == 0;
	struct timespec deadline, rest;
	char log[128], tail[640];
	unsigned long seconds = 0;
	int status;

	plan_number(how[command ? 1 : 2], &seconds);
	deadline = after(seconds);
	snprintf(log, sizeof(log), "%s-%s.log", command ? "ready" : "service", name);
	for (;;) {
		bool ready = is_ready(how, log, &deadline);

		reap(0, &status);
		if (ended_service()) {
			bool own = strcmp(ended_service()->name, name) == 0;
			char when[128];

			snprintf(when, sizeof(when), own ? "before it was ready" : "before %s was ready", name);
			return fail_service(ended_service(), when);
		}
		if (ready)
			return true;
		if (!left(&deadline, &rest))
			return fail("service %s not ready after %lu s%s", name, seconds,
				    last_lines(log, tail, sizeof(tail)));
		sleep_until_child(&pause);
	}
}

void kill_everything(void)
{
	static const struct timespec pause = { 0, 1000000 };

	kill(-1, SIGKILL); /* all but us */
	for (int tries = 0; tries < 1000; tries++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0 && errno == ECHILD)
			return;
		if (pid == 0)
			nanosleep(&pause, NULL);
	}
}
