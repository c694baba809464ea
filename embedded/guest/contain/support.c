/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What all other files of the program use.
 */
#include "contain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool refuse(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vdprintf(2, format, list);
	va_end(list);
	dprintf(2, "\n");
	return false;
}

bool write_file(const char *path, const char *text)
{
	size_t size = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, size) == (ssize_t)size;
	if (!done) {
		int why = errno;

		close(fd);
		errno = why;
		return false;
	}
	return close(fd) == 0;
}
