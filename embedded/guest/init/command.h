/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What only some images ask for: arguments of any bytes, a directory and an input of the steps, files below /tmp. The init of
 * other images is compiled without this file, so that nothing in them is different.
 */
#ifndef KT_COMMAND_H
#define KT_COMMAND_H

#include <stdbool.h>

#define KT_COMMAND

#define STATUS_FILE "exit-status" /* in OUT_DIR; crates/guest/src/plan.rs reads it */

/* Turns \\, \t and \n of a field into what they stand for, in place; false if a backslash stands before anything else. */
bool command_unescape(char *field);
/* What the steps read; /dev/null until a path is given. */
void command_input_is(const char *path);
const char *command_input(void);
/* Who the programs that follow are: user, group and supplementary groups. */
void command_user_is(char **ids, int count);
/* A limit of theirs: the resource's number, and its soft and hard limit. */
bool command_limit_is(char **numbers);
/* Their file mode mask, in octal. */
void command_umask_is(const char *mask);
/* Takes the groups, limits and mask, which the next program inherits, so that its region has no system calls for them; gives
 * them back. */
bool command_enter(void);
bool command_leave(void);
/* In a new process, whose output is `out`: becomes the user. Does nothing for root. */
bool command_become(int out);
/* Keeps going when a step ends with a status other than 0. */
void command_keeps_going(void);
/* Sets the clock forward to the midnight so many days after the first of 1970. A machine whose clock is past them, or not init's to set, keeps it. */
bool command_clock(const char *days);
/* Writes the status of a step for the host, as a shell has it; false if the step's end is a failure. */
bool command_status(int status);
/* Shows what would be another line of the console. */
void command_one_line(char *text);
/* Takes the directory /tmp of the image, before a tmpfs hides it; -1 if there is none. */
int command_packed_tmp(void);
/* Moves what was packed there to the tmpfs. */
bool command_fill_tmp(int packed);

/* Gives the files of /kt/stubs their sizes; their contents are not in the image. */
bool command_make_stubs(void);
/* One that was read; NULL if none was. A file that another took the place of does not count. */
const char *command_read_stub(void);

#endif
