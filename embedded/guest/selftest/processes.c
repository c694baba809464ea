/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Processes, their programs, and what they inherit.
 */
#include "selftest.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

const struct group group_processes = { "processes", {
	CHECK(fork_wait), CHECK(exec_arguments), CHECK(exec_missing), CHECK(exec_script), CHECK(threads),
	CHECK(sessions), CHECK(limits), CHECK(priorities), CHECK(subreaper),
} };
