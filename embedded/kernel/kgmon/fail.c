// SPDX-License-Identifier: GPL-2.0
/* The error message of a command. */
#include "kgmon.h"

int kg_fail(struct kg_said *said, int error, const char *format, ...)
{
	va_list list;

	/* The first reason is the cause of the others. */
	if (said->text[0] == '\0') {
		va_start(list, format);
		vsnprintf(said->text, sizeof(said->text), format, list);
		va_end(list);
	}
	return error;
}
