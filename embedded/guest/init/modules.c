/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Loads the kernel modules of the image, in the order of /kt/modules: a line has name, path and parameters, separated by tabs.
 * Talks to: crates/guest (modules.rs), which writes that file.
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST "/kt/modules"
#define LIST_MAX (256 * 1024) /* bytes */

static bool load(const char *name, const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return fail("module %s: cannot open %s: %s", name, path, strerror(errno));
	/* A driver that is there already is as good. */
	error = syscall(SYS_finit_module, fd, parameters, 0) < 0 && errno != EEXIST ? errno : 0;
	close(fd);
	if (error)
		return fail("module %s (%s) cannot be loaded: %s (errno %d); the kernel's lines say more", name,
			    path, strerror(error), error);
	return true;
}

bool modules_load(void)
{
	static char text[LIST_MAX];
	ssize_t size = read_text(LIST, text, sizeof(text));
	char *line, *next;

	if (size < 0 || size == sizeof(text) - 1)
		return fail("modules: cannot read %s: %s", LIST, strerror(size < 0 ? errno : EFBIG));
	announce("kt: phase modules");
	for (line = text; *line; line = next) {
		char *end = strchr(line, '\n'), *path = strchr(line, '\t');
		char *parameters = path ? strchr(path + 1, '\t') : NULL;

		if (!end || !parameters || parameters > end)
			return fail("modules: %s has a line without a path", LIST);
		*end = *path = *parameters = '\0';
		next = end + 1;
		if (!load(line, path + 1, parameters + 1))
			return false;
	}
	return true;
}
