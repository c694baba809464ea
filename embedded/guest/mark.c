/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * kt-mark: marks for shell scripts and for programs that cannot be changed.
 * Talks to: the recorder (kt_mark.h). The start and end of this program itself fall into the region
 * that it opens or closes; where that matters let init mark the step (`region` in the workload).
 */
#include "kt_mark.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
	fputs("usage: kt-mark begin NAME | end NAME [OPERATIONS] | note TEXT\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long operations = 0;
	char *rest;

	if (argc < 3 || argv[2][0] == '\0')
		return usage();
	if (strlen(argv[2]) > KT_NAME_MAX) {
		fprintf(stderr, "kt-mark: \"%s\" is longer than %d bytes\n", argv[2], KT_NAME_MAX);
		return 2;
	}
	if (strcmp(argv[1], "begin") == 0 && argc == 3) {
		kt_begin(argv[2]);
	} else if (strcmp(argv[1], "note") == 0 && argc == 3) {
		kt_note(argv[2]);
	} else if (strcmp(argv[1], "end") == 0 && argc <= 4) {
		if (argc == 4) {
			errno = 0;
			operations = strtoul(argv[3], &rest, 10);
			if (errno || *rest || rest == argv[3] || argv[3][0] == '-') {
				fprintf(stderr, "kt-mark: \"%s\" is not a number of operations\n", argv[3]);
				return 2;
			}
		}
		kt_end(argv[2], operations);
	} else {
		return usage();
	}
	return 0;
}
