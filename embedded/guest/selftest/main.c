/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * selftest: does this kernel do what a kernel has to do? Each check is small, runs in a process of its
 * own with a time limit, and says what it found:
 *
 *   {"check":"pipe_order","group":"ipc","result":"ok"}
 *   {"check":"aio","group":"files","result":"unsupported","why":"io_setup: Function not implemented"}
 *   {"check":"futex_wake","group":"futex","result":"failed","why":"selftest/futex.c:41: woken == 1"}
 *
 * A kernel that was compiled another way has to give the same lines. The status is 1 if any check failed,
 * with --report only if results cannot be written; what the kernel was not configured for is unsupported,
 * which is no failure.
 *
 *   selftest [--list] [--report] [NAME…]
 *
 * Talks to: nobody; crates/tune/src/runs/selftest.rs runs it on the base and on the tuned kernel.
 */
#include "selftest.h"

#include <dirent.h>
#include <sys/stat.h>

#define SECONDS 20 /* for one check */

static const struct group *const groups[] = {
	&group_processes, &group_signals, &group_memory, &group_files, &group_ipc, &group_sockets,
	&group_futex, &group_io_uring, &group_cgroups, &group_namespaces, &group_time, NULL,
};

/* All checks, in their order. */
#define EACH(group, check)                                                                              \
	for (const struct group *const *group = groups; *group; group++)                                \
		for (const struct check *check = (*group)->checks;                                      \
		     check < (*group)->checks + MOST_CHECKS && check->name; check++)

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

static int run(const struct group *group, const struct check *check)
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
	printf("{\"check\":\"%s\",\"group\":\"%s\",\"result\":\"%s\"", check->name, group->name, words[result]);
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
		EACH (group, check)
			printf("%s\t%s\n", (*group)->name, check->name);
		return 0;
	}
	argc -= report_only;
	argv += report_only;
	EACH (group, check) {
		if (!wanted(check, argc - 1, argv + 1))
			continue;
		found++;
		if (run(*group, check) == FAILED)
			status = 1;
	}
	if (found == 0 || (argc > 1 && found != argc - 1)) {
		fputs("selftest: `selftest --list` shows what there is\n", stderr);
		return 2;
	}
	return fflush(stdout) == 0 ? status && !report_only : 1;
}
