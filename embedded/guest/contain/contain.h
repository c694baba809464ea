/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Runs a guest image under the kernel that is booted, so that nothing outside of it can be changed: what the files of the
 * program share. See main.c for the order of things, and embedded/guest/README.md.
 */
#ifndef KT_CONTAIN_H
#define KT_CONTAIN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define EXIT_REFUSED 3 /* the host lacks something: the reason is on standard error */

/* What ids the processes inside have outside. */
enum users {
	USERS_RANGE, /* 65536 of their own, which root hands out */
	USERS_SUBIDS, /* the same, which newuidmap(1) and newgidmap(1) hand out */
	USERS_ONE, /* root inside is the caller, and nobody else is there */
	USERS_SAME, /* all of them, as they are outside; root only, and only over files that cannot be changed */
};

struct request {
	enum users users;
	unsigned long first_uid, first_gid; /* outside; not of USERS_ONE */
	unsigned long memory_mb;
};

/* ---- support.c ---- */

/* Says why the host cannot contain, on standard error; returns false so that callers can return it. */
bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes all of `text` to a file that is there, in one call. */
bool write_file(const char *path, const char *text);

/* ---- users.c: who the processes inside are ---- */

/* Root only: takes the real and effective user id of the range, keeps its capabilities, and comes back. Limits of
 * processes are counted for the user who made the namespaces, and root has none. */
bool users_leave_root(const struct request *request);
bool users_return(const struct request *request);
/* Of process `pid`, from outside. */
bool users_map(const struct request *request, pid_t pid);
/* Inside: becomes root there, without the groups of outside. */
bool users_become_root(const struct request *request);

/* ---- limits.c: how much of the machine they may take ---- */

/* Before the namespaces are made. */
bool limits_of_processes(void);
/* Of process `pid`, from outside, and of all that it starts: a cgroup where there is one to be had. */
bool limits_apply(pid_t pid, unsigned long memory_mb);
/* How long to wait before limits_exceeded() wants to look, in ms; -1 if never. */
int limits_pause(void);
/* Whether too little memory is left, without a cgroup to see to it. */
bool limits_exceeded(void);
/* After all processes are gone: whether one was killed for want of memory. Removes the cgroup. */
bool limits_remove(void);

/* ---- root.c: what they see ---- */

/* Every system has it, everybody may enter it, and in mounts of our own it is free. */
#define ROOT "/tmp"

/* Unpacks the image (if `image` is a descriptor) into a root of its own, and leaves the host's behind. */
bool root_enter(int image, unsigned long memory_mb);
/* The same with the files of a directory of the host's, `root`, except for those in the directory `hidden` of it ("" for none);
 * what is written to them is thrown away. */
bool root_of_host(unsigned long memory_mb, const char *root, const char *hidden);
/* Loopback and host name. */
bool root_system(void);

/* ---- overlay.c: the host's files ---- */

/* Before the root is mounted: opens the directory `root` of the host's, and makes a place for what is written. */
bool overlay_prepare(unsigned long memory_mb, const char *root);
/* Puts the files of that directory below ROOT, and says on descriptor 1 what cannot be there: `hidden PATH: REASON`. */
bool overlay_fill(void);

/* ---- discover.c: what a command uses ---- */

/* Runs it to its end as the user UID:GID[:GROUP...]; the exit status of this program. `alone` means USERS_ONE: that user is the
 * caller, or root. What is in `asked`, ended by NULL, is shown to it though it may be secret. */
int discover(bool alone, char *user, const char *directory, char **asked, char **words);

/* ---- unpack.c ---- */

/* A newc archive, as crates/guest writes it, below `directory`; devices are left out. */
bool unpack(int archive, const char *directory);

/* ---- rights.c: what they may do ---- */

/* Capabilities, and system calls; nothing takes this back. */
bool rights_drop(void);

#endif
