/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Reads the plan that crates/guest wrote into the image, and checks all of it before anything runs.
 * Talks to: crates/guest (`plan.rs`), by the file /kt/plan.
 */
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_MAX (256 * 1024) /* bytes */
#define HEADER "kerntune-plan\t1"
#define HEADER_ESCAPED "kerntune-plan\t2"

static const struct {
	const char *name;
	int words; /* at least so many after the verb */
} verbs[] = {
	[VERB_ENV] = { "env", 1 },	   [VERB_LIMIT] = { "limit", 1 }, [VERB_SETUP] = { "setup", 1 },
	[VERB_SERVICE] = { "service", 2 }, [VERB_READY] = { "ready", 4 }, [VERB_RUN] = { "run", 1 },
	[VERB_WARMUP] = { "warmup", 1 },   [VERB_STEP] = { "step", 3 },
#ifdef KT_COMMAND
	[VERB_DIRECTORY] = { "directory", 1 }, [VERB_INPUT] = { "input", 1 },
	[VERB_STATUS] = { "status", 1 },       [VERB_USER] = { "user", 2 },
	[VERB_RESOURCE] = { "resource", 3 },   [VERB_UMASK] = { "umask", 1 },
	[VERB_CLOCK] = { "clock", 1 },
#endif
};

bool plan_number(const char *text, unsigned long *value)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoul(text, &rest, 10);
	return errno == 0 && *rest == '\0' && *value <= 1000000000;
}

static bool check_ready(const struct directive *d)
{
	const char *kind = d->word[1];
	bool command = strcmp(kind, "command") == 0;
	unsigned long port, seconds;

	if (!plan_number(d->word[command ? 2 : 3], &seconds))
		return fail("plan line %d: the seconds are not a number", d->line);
	if (strcmp(kind, "tcp") == 0 && (!plan_number(d->word[2], &port) || port == 0 || port > 65535))
		return fail("plan line %d: %s is not a port", d->line, d->word[2]);
	if (!command && strcmp(kind, "tcp") != 0 && strcmp(kind, "unix") != 0 && strcmp(kind, "file") != 0)
		return fail("plan line %d: unknown readiness %s", d->line, kind);
	return true;
}

static bool check(const struct directive *d, bool in_run)
{
	unsigned long number;
	bool run_only = d->verb == VERB_WARMUP || d->verb == VERB_STEP;

	if (d->count < verbs[d->verb].words)
		return fail("plan line %d: %s needs %d fields", d->line, verbs[d->verb].name,
			    verbs[d->verb].words);
	if (run_only && !in_run)
		return fail("plan line %d: %s outside of a run", d->line, verbs[d->verb].name);
	switch (d->verb) {
	case VERB_ENV:
		if (!strchr(d->word[0], '=') || d->word[0][0] == '=')
			return fail("plan line %d: env needs KEY=VALUE", d->line);
		return true;
	case VERB_LIMIT:
		if (!plan_number(d->word[0], &number) || number == 0)
			return fail("plan line %d: %s is not a number of seconds", d->line, d->word[0]);
		return true;
	case VERB_STEP:
		if (!plan_number(d->word[1], &number))
			return fail("plan line %d: %s is not a number of operations", d->line, d->word[1]);
		return true;
	case VERB_READY:
		return check_ready(d);
	default:
		return true;
	}
}

/* Splits one line at its tabs, in place. */
static bool split(char *line, int number, struct directive *d)
{
	int fields = 1;
	char *at;

	for (at = line; *at; at++)
		fields += *at == '\t';
	d->line = number;
	d->count = fields - 1;
	d->word = calloc((size_t)fields, sizeof(*d->word));
	if (!d->word)
		return fail("plan: out of memory");
	fields = 0;
	for (at = line; (at = strchr(at, '\t')); fields++) {
		*at++ = '\0';
		d->word[fields] = at;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(line, verbs[i].name) == 0) {
			d->verb = (enum verb)i;
			return true;
		}
	}
	return fail("plan line %d: unknown directive %s", number, line);
}

bool plan_read(const char *path, struct plan *plan)
{
	static char text[PLAN_MAX];
	ssize_t size = read_text(path, text, sizeof(text));
	int lines = 0, number = 0;
	bool in_run = false;
	char *line, *next;
#ifdef KT_COMMAND
	bool escaped = false;
#endif

	if (size < 0)
		return fail("plan: cannot read %s: %s", path, strerror(errno));
	if (size == sizeof(text) - 1)
		return fail("plan: %s has more than %d bytes", path, PLAN_MAX - 2);
	for (ssize_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	plan->directive = calloc((size_t)lines + 1, sizeof(*plan->directive));
	if (!plan->directive)
		return fail("plan: out of memory");
	for (line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (++number == 1) {
#ifdef KT_COMMAND
			escaped = strcmp(line, HEADER_ESCAPED) == 0;
			if (escaped)
				continue;
#endif
			if (strcmp(line, HEADER) != 0)
				return fail("plan: %s was written for another init (%s)", path, line);
			continue;
		}
		if (*line == '\0' || *line == '#')
			continue;
		struct directive *d = &plan->directive[plan->count];

		if (!split(line, number, d))
			return false;
#ifdef KT_COMMAND
		for (int i = 0; escaped && i < d->count; i++)
			if (!command_unescape(d->word[i]))
				return fail("plan line %d: field %d has a backslash before nothing known", number,
					    i + 1);
#endif
		in_run = in_run || d->verb == VERB_RUN;
		if (!check(d, in_run))
			return false;
		plan->count++;
	}
	return true;
}
