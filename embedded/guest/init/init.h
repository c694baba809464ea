/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The guest's init: what its files share. See embedded/guest/README.md for the plan, the phases and the
 * result stream.
 */
#ifndef KT_INIT_H
#define KT_INIT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Only the init that is packed for `record --proc` has it. */
#if __has_include("proc.h")
#include "proc.h"
#endif

/* Only the init of images that ask for what it does. */
#if __has_include("command.h")
#include "command.h"
#endif
#if __has_include("modules.h")
#include "modules.h"
#endif

/* Only the init of machines that have a clock. */
#if __has_include("times.h")
#include "times.h"
#endif

#define OUT_DIR "/kt/out" /* a tmpfs; everything in it is sent */
#define PLAN_FILE "/kt/plan"
#define PORT_NAME "kerntune.out" /* the virtio-serial port that the machine gives us */
#define REASON_MAX 1024

/* ---- system.c: the running system ---- */

struct options {
	char run[64]; /* kt.run= */
	bool gcov;    /* kt.gcov=1 */
	bool ftrace;  /* kt.ftrace=1 */
#ifdef KT_PROC
	bool proc;    /* kt.proc=1 */
#endif
	unsigned long cpus; /* kt.cpus=, 0 if it does not matter */
};

/* Options are on the kernel's command line. Where the kernel was there before us (machine `host`) we are process 1 of
 * namespaces that embedded/guest/contain made and brought up, and `/init contained OPTION...` is our command line, with lines out on
 * descriptor 1 and results on 0. */
bool system_start(struct options *options, int argc, char **argv);
bool is_contained(void);
/* One line on the console; waits until it is out, so that no later region pays for it. */
void announce(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void power_off(void);
bool write_text(const char *path, const char *text);
ssize_t read_text(const char *path, char *text, size_t size);

/* ---- main.c: only the first failure is reported ---- */

/* Keeps the reason if it is the first; returns false so that callers can return it. */
bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- plan.c ---- */

enum verb {
	VERB_ENV,
	VERB_LIMIT,
	VERB_SETUP,
	VERB_SERVICE,
	VERB_READY,
	VERB_RUN,
	VERB_WARMUP,
	VERB_STEP,
#ifdef KT_COMMAND
	VERB_DIRECTORY,
	VERB_INPUT,
	VERB_STATUS,
	VERB_USER,
	VERB_RESOURCE,
	VERB_UMASK,
	VERB_CLOCK,
#endif
};

struct directive {
	enum verb verb;
	int line;    /* in the plan file, from 1 */
	int count;   /* of words after the verb */
	char **word; /* NULL-terminated: a command can be handed to exec */
};

struct plan {
	struct directive *directive;
	int count;
};

bool plan_read(const char *path, struct plan *plan);
/* A plain decimal number from 0 to 10^9; the plan was checked, so this cannot fail later. */
bool plan_number(const char *text, unsigned long *value);

/* ---- child.c: programs ---- */

/* Starts a service in the background. */
bool service_start(const char *name, char **command);
/* Waits until the service answers as the words after its name in a `ready` directive say. */
bool service_ready(const char *name, char **how);
/* Runs a program to its end, which must be status 0 within `limit` guest seconds. `what` names it
 * in failures, `log` is a file in OUT_DIR. `region` may be NULL. */
struct program {
	const char *what;
	const char *log;
	char **command;
	const char *region;       /* marked by us, or NULL */
	unsigned long operations; /* told with the end mark */
	unsigned long limit;      /* guest seconds */
#ifdef KT_PROC
	const char *proc;         /* readings of /proc around it go by this name; NULL: none are taken */
#endif
};
bool program_run(const struct program *program);
void kill_everything(void);

/* ---- collect.c: what the kernel counted ---- */

bool gcov_reset(void);
bool gcov_send(void);
bool profiler_open(void);
bool profiler_switch(bool on);
/* Copies the function profiler's tables to OUT_DIR/ftrace/NAME/. */
bool profiler_save(const char *name);

/* ---- stream.c: the result stream ---- */

/* Results go to this descriptor, and no port is looked for. */
void stream_given(int descriptor);
bool stream_open(void);
bool stream_file(const char *path, const char *member);
bool stream_bytes(const char *bytes, size_t size, const char *member);
/* Every regular file below `dir`, sorted by name, as `prefix` + its path below dir. `suffix` may be
 * NULL or limits the names. */
bool stream_tree(const char *dir, const char *prefix, const char *suffix);
bool stream_close(void);

#endif
