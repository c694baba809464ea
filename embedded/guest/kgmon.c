/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * kgmon: loads the kernel module of that name, gives it commands, and runs programs in between, all in one process, so
 * that little else happens around them.
 * Talks to: embedded/kernel/kgmon by /dev/kgmon; the recorder by marks; crates/cli/tests by files in KT_OUT.
 *
 * Its arguments are steps, separated by "," as a word of its own:
 *
 *	load FILE [WORD...]  loads a module with parameters; kgmon itself gets the addresses of the kernel's code
 *	unload NAME          unloads one
 *	start [WORD...]      | stop | reset: commands for the module
 *	dump NAME            the module's dump goes to KT_OUT/NAME
 *	take NAME            the same, and what is in it is in no later one
 *	refuse ERRNO WORD... a command that has to fail with this number; what the module says goes to standard output
 *	status               the module's status goes to standard output
 *	begin REGION         | end REGION [OPERATIONS]: marks
 *	run PROGRAM [WORD..] runs one to its end, which must be status 0
 *	fork PROGRAM [WORD.] starts one; `join` waits for all of them, `kill` kills the last
 *	write FILE TEXT      writes to a file of the kernel's
 *	repeat N FILE TEXT   the same so many times
 *	refuse-write ERRNO FILE TEXT  has to fail with this number
 *	start-and-hang WORD. starts, and sleeps for ever
 *	read-into FILE       reads the module's status into a mapping of this file
 *	save FILE NAME       copies one to KT_OUT/NAME
 *	sleep MILLISECONDS
 */
#include "kt_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "/dev/kgmon"

static char buffer[1 << 16];
static int device = -1;

_Noreturn static void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

_Noreturn static void die(const char *format, ...)
{
	va_list list;

	fputs("kgmon: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

static unsigned long number(const char *text)
{
	char *rest;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &rest, 10);
	if (errno || rest == text || *rest)
		die("\"%s\" is not a number", text);
	return value;
}

/* All words but the first, with blanks in between. */
static char *joined(int count, char **word, int from)
{
	static char text[1 << 15];
	size_t size = 0;

	text[0] = '\0';
	for (int i = from; i < count; i++) {
		int more = snprintf(text + size, sizeof(text) - size, "%s%s", i > from ? " " : "", word[i]);

		if (more < 0 || size + (size_t)more >= sizeof(text))
			die("too many words");
		size += (size_t)more;
	}
	return text;
}

static void copy(int from, const char *what, const char *name)
{
	const char *directory = getenv("KT_OUT");
	char path[512];
	ssize_t got;
	int to;

	snprintf(path, sizeof(path), "%s/%s", directory ? directory : ".", name);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (to < 0)
		die("cannot make %s: %s", path, strerror(errno));
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)got) != got)
			die("cannot write %s: %s", path, strerror(errno));
	if (got < 0)
		die("cannot read %s: %s", what, strerror(errno));
	close(to);
}

/* Writes a text so many times; the kernel has to refuse it with `wanted`, if that is not 0. */
static void write_file(const char *path, const char *text, unsigned long times, int wanted)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	for (; fd >= 0 && times; times--)
		if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
			break;
	if (fd < 0 || (times && errno != wanted) || (!times && wanted))
		die("cannot write \"%s\" to %s: %s", text, path, strerror(errno));
	close(fd);
}

static void save(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open %s: %s", path, strerror(errno));
	copy(fd, path, name);
	close(fd);
}

/* What the module answered, as text. */
static const char *answered(void)
{
	ssize_t got = read(device, buffer, sizeof(buffer) - 1);

	buffer[got > 0 ? got : 0] = '\0';
	return buffer;
}

static void command(const char *text)
{
	if (device < 0)
		device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		die("cannot open " DEVICE ": %s", strerror(errno));
	if (write(device, text, strlen(text)) < 0) {
		int error = errno;

		die("\"%s\": %s: %s", text, strerror(error), answered());
	}
}

static void refused(int wanted, const char *text)
{
	if (device < 0)
		device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		die("cannot open " DEVICE ": %s", strerror(errno));
	if (write(device, text, strlen(text)) >= 0)
		die("\"%s\" did not fail", text);
	if (errno != wanted)
		die("\"%s\" failed with %d: %s", text, errno, strerror(errno));
	printf("refused %s", answered());
}

/* Reads into memory that may come late. */
static void read_into(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *to = MAP_FAILED;

	if (fd >= 0)
		to = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		die("cannot map %s: %s", path, strerror(errno));
	command("status");
	if (read(device, to, 4096) <= 0)
		die("cannot read into %s: %s", path, strerror(errno));
	fputs("read late\n", stdout);
}

/* Where the kernel's code is. */
static void text_of_kernel(char *parameters, size_t room)
{
	FILE *symbols = fopen("/proc/kallsyms", "r");
	char line[512], name[256], type;
	unsigned long address, start = 0, end = 0;

	while (symbols && fgets(line, sizeof(line), symbols)) {
		if (sscanf(line, "%lx %c %255s", &address, &type, name) != 3)
			continue;
		if (!strcmp(name, "_stext"))
			start = address;
		else if (!strcmp(name, "_etext"))
			end = address;
	}
	if (symbols)
		fclose(symbols);
	snprintf(parameters, room, "text_start=%lu text_end=%lu ", start, end);
}

static void load(int count, char **word)
{
	static char parameters[1 << 15];
	size_t size = 0;
	int fd = open(word[1], O_RDONLY | O_CLOEXEC);

	if (strstr(word[1], "kgmon.ko"))
		text_of_kernel(parameters, sizeof(parameters));
	size = strlen(parameters);
	snprintf(parameters + size, sizeof(parameters) - size, "%s", joined(count, word, 2));
	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0) < 0)
		die("cannot load %s: %s", word[1], strerror(errno));
	close(fd);
	parameters[0] = '\0';
}

static void unload(const char *name)
{
	if (device >= 0)
		close(device);
	device = -1;
	if (syscall(SYS_delete_module, name, O_NONBLOCK) < 0)
		die("cannot unload %s: %s", name, strerror(errno));
}

static pid_t spawn(char **command_line)
{
	pid_t child = fork();

	if (child < 0)
		die("cannot fork: %s", strerror(errno));
	if (child == 0) {
		execvp(command_line[0], command_line);
		fprintf(stderr, "kgmon: cannot run %s: %s\n", command_line[0], strerror(errno));
		_exit(127);
	}
	return child;
}

static void wait_for(pid_t child, const char *name)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			die("cannot wait for %s: %s", name, strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die("%s ended with status %#x", name, status);
}

static void rest(unsigned long milliseconds)
{
	struct timespec left = { .tv_sec = (time_t)(milliseconds / 1000),
				 .tv_nsec = (long)(milliseconds % 1000) * 1000000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void step(int count, char **word)
{
	static pid_t forked[16];
	static int children;
	bool is_take = !strcmp(word[0], "take");

	if (!strcmp(word[0], "load") && count >= 2)
		load(count, word);
	else if (!strcmp(word[0], "unload") && count == 2)
		unload(word[1]);
	else if (!strcmp(word[0], "start"))
		command(joined(count, word, 0));
	else if ((!strcmp(word[0], "stop") || !strcmp(word[0], "reset")) && count == 1)
		command(word[0]);
	else if ((is_take || !strcmp(word[0], "dump")) && count == 2) {
		command(word[0]);
		copy(device, DEVICE, word[1]);
	} else if (!strcmp(word[0], "refuse") && count >= 3)
		refused((int)number(word[1]), joined(count, word, 2));
	else if (!strcmp(word[0], "status") && count == 1) {
		command(word[0]);
		fputs(answered(), stdout);
	} else if (!strcmp(word[0], "begin") && count == 2)
		kt_begin(word[1]);
	else if (!strcmp(word[0], "end") && (count == 2 || count == 3))
		kt_end(word[1], count == 3 ? number(word[2]) : 0);
	else if (!strcmp(word[0], "run") && count >= 2)
		wait_for(spawn(word + 1), word[1]);
	else if (!strcmp(word[0], "fork") && count >= 2 && children < 16)
		forked[children++] = spawn(word + 1);
	else if (!strcmp(word[0], "join") && count == 1)
		while (children)
			wait_for(forked[--children], "what was forked");
	else if (!strcmp(word[0], "kill") && count == 1 && children) {
		kill(forked[--children], SIGKILL);
		waitpid(forked[children], NULL, 0);
	} else if (!strcmp(word[0], "start-and-hang")) {
		word[0] = "start";
		command(joined(count, word, 0));
		for (;;)
			pause();
	} else if (!strcmp(word[0], "write") && count >= 3)
		write_file(word[1], joined(count, word, 2), 1, 0);
	else if (!strcmp(word[0], "repeat") && count >= 4)
		write_file(word[2], joined(count, word, 3), number(word[1]), 0);
	else if (!strcmp(word[0], "refuse-write") && count >= 4)
		write_file(word[2], joined(count, word, 3), 1, (int)number(word[1]));
	else if (!strcmp(word[0], "read-into") && count == 2)
		read_into(word[1]);
	else if (!strcmp(word[0], "save") && count == 3)
		save(word[1], word[2]);
	else if (!strcmp(word[0], "sleep") && count == 2)
		rest(number(word[1]));
	else
		die("there is no step \"%s\" with %d words", word[0], count - 1);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int at = 1; at < argc; at++) {
		int end = at;

		while (end < argc && strcmp(argv[end], ",") != 0)
			end++;
		if (end == at)
			die("an empty step");
		argv[end] = NULL;
		step(end - at, argv + at);
		at = end;
	}
	return 0;
}
