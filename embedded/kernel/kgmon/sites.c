// SPDX-License-Identifier: GPL-2.0
/*
 * Chooses the functions that call us, and how they do.
 *
 * Functions of the kernel itself call kg_entry directly (register_ftrace_direct), without any code of ftrace. Functions
 * of modules call through the trampoline that ftrace makes for our generic ops, since direct ftrace_ops cannot name
 * functions of modules that may be unloaded. If a BPF program is already attached directly to one of the functions,
 * ftrace refuses direct calls for all of them, and all use the generic entry.
 */
#include "kgmon.h"

#include <linux/ctype.h>
#include <linux/glob.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>

/* The names before and since 6.4. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define direct_on(ops) register_ftrace_direct_multi(ops, (unsigned long)kg_entry)
#define direct_off(ops) unregister_ftrace_direct_multi(ops, (unsigned long)kg_entry)
#else
#define direct_on(ops) register_ftrace_direct(ops, (unsigned long)kg_entry)
#define direct_off(ops) unregister_ftrace_direct(ops, (unsigned long)kg_entry, false)
#endif

static struct ftrace_ops *core;	   /* functions of the kernel */
static struct ftrace_ops *generic; /* functions of modules */
static bool core_on, generic_on, core_direct;
static unsigned int in_modules;
static char **wanted, **unwanted; /* globs while we count; each list ends in NULL, an empty one is NULL */

static void through_ftrace(unsigned long ip, unsigned long parent, struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	kg_count(parent, ip + MCOUNT_INSN_SIZE);
}

#ifdef CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS
/* A test defines this as an error, to make a registration fail in its last step. */
#ifndef KG_SHARED
#define KG_SHARED 0
#endif

/* Allows live-patched functions: our trampoline returns to wherever it was called from, so both work. */
static __maybe_unused int share(struct ftrace_ops *ops, enum ftrace_ops_cmd command)
{
	return KG_SHARED;
}

/* The same for kernels whose ftrace passes the function's address. */
static __maybe_unused int share_at(struct ftrace_ops *ops, unsigned long ip, enum ftrace_ops_cmd command)
{
	return KG_SHARED;
}

#define SHARE                                                                                                \
	__builtin_choose_expr(__builtin_types_compatible_p(typeof(&share), typeof(((struct ftrace_ops *)0)->ops_func)), \
			      share, share_at)

static int core_register(void)
{
	unsigned long flags = core->flags;
	int error;

	core->ops_func = SHARE;
	error = direct_on(core);
	if (error) {
		/* It may have been in ftrace's list for a moment, which is traversed with preemption off. */
		synchronize_rcu();
		/* Reset what ftrace set before the error; otherwise the generic entry would be mistaken for this one. */
		core->flags = flags;
		core->func = NULL;
		core->ops_func = NULL;
		core->trampoline = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
		core->direct_call = 0;
#endif
	}
	return error;
}

static void core_unregister(void)
{
	if (core_direct)
		direct_off(core);
	else
		unregister_ftrace_function(core);
}
#else
static int core_register(void)
{
	return -EBUSY;
}

static void core_unregister(void)
{
	unregister_ftrace_function(core);
}
#endif

bool kg_sites_running(void)
{
	return core_on;
}

bool kg_sites_direct(void)
{
	return core_on && core_direct;
}

unsigned int kg_sites_in_modules(void)
{
	return in_modules;
}

void kg_sites_gone(unsigned int count)
{
	in_modules -= min(in_modules, count);
}

static bool matches(char **globs, const char *name)
{
	for (; globs && *globs; globs++)
		if (glob_match(*globs, name))
			return true;
	return false;
}

bool kg_sites_wanted(const char *name)
{
	return !matches(unwanted, name) && (!wanted || matches(wanted, name));
}

static void forget(char **globs)
{
	char **each;

	for (each = globs; each && *each; each++)
		kfree(*each);
	kvfree(globs);
}

static int keep(char **from, unsigned int count, char ***to)
{
	unsigned int i;

	if (!count)
		return 0;
	*to = kvcalloc(count + 1, sizeof(char *), GFP_KERNEL);
	if (!*to)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		(*to)[i] = kstrdup(from[i], GFP_KERNEL);
		if (!(*to)[i])
			return -ENOMEM;
	}
	return 0;
}

int kg_sites_add(const unsigned long *sites, unsigned int count)
{
	int error;

	if (!generic)
		return 0;
	error = ftrace_set_filter_ips(generic, (unsigned long *)sites, count, 0, 0);
	if (!error) {
		in_modules += count;
		return 0;
	}
	/* One unknown address makes ftrace reject all of them: bisect to find the known ones. */
	if (error != -EINVAL || count == 1)
		return error == -EINVAL ? 0 : error;
	error = kg_sites_add(sites, count / 2);
	return error ?: kg_sites_add(sites + count / 2, count - count / 2);
}

/* Applies a glob to a filter. Returns 1 if it matches functions, 0 if it matches none. */
static int one_glob(struct ftrace_ops *ops, const char *glob, bool remove, struct kg_said *said)
{
	char text[KSYM_NAME_LEN + 2];
	int error, length = snprintf(text, sizeof(text), "%s%s", remove ? "!" : "", glob);

	/* ftrace would take a digit for a function's number, and ! for a negation. */
	if (length >= (int)sizeof(text) || isdigit(glob[0]) || glob[0] == '!')
		return kg_fail(said, -EINVAL, "%.64s is not a glob of functions", glob);
	error = ftrace_set_filter(ops, (unsigned char *)text, length, 0);
	if (!error || error == -EINVAL)
		return !error;
	return kg_fail(said, error, "ftrace does not take the glob %.64s (%d)", glob, error);
}

/*
 * Before 6.8 ftrace copied the list of all direct functions whenever it was full, and leaked the previous copy: a gigabyte
 * for all functions of Debian's 6.1. There, so many functions use the generic entry unless the direct one is demanded.
 */
static bool direct_leaks(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	char **glob;

	for (glob = wanted; glob && *glob; glob++)
		if (strcspn(*glob, "*?[") < 3)
			return true;
	return !wanted;
#else
	return false;
#endif
}

static int choose(struct kg_said *said)
{
	int result = wanted ? 0 : one_glob(core, "*", false, said), error;
	bool found = result > 0;
	char **glob;

	for (glob = wanted; glob && *glob && result >= 0; glob++) {
		result = one_glob(core, *glob, false, said);
		found |= result > 0;
	}
	for (glob = unwanted; glob && *glob && result >= 0; glob++)
		result = one_glob(core, *glob, true, said);
	if (result < 0)
		return result;
	if (!found)
		return kg_fail(said, -EINVAL, "no function that can be counted has such a name");
	/* Each filter has one sentinel and not the other. */
	error = ftrace_set_filter_ip(core, (unsigned long)kg_sentinel_direct, 0, 0);
	if (!error)
		error = ftrace_set_filter_ip(core, (unsigned long)kg_sentinel_generic, 0, 0);
	if (!error)
		error = ftrace_set_filter_ip(core, (unsigned long)kg_sentinel_generic, 1, 0);
	if (!error)
		error = ftrace_set_filter_ip(generic, (unsigned long)kg_sentinel_generic, 0, 0);
	return error ? kg_fail(said, error, "ftrace does not know the module's own functions (%d)", error) : 0;
}

static void release(void)
{
	if (core)
		ftrace_free_filter(core);
	if (generic)
		ftrace_free_filter(generic);
	kfree(core);
	kfree(generic);
	forget(wanted);
	forget(unwanted);
	core = generic = NULL;
	wanted = unwanted = NULL;
	in_modules = 0;
}

int kg_sites_start(const struct kg_options *options, struct kg_said *said)
{
	int error;

	core = kzalloc(sizeof(*core), GFP_KERNEL);
	generic = kzalloc(sizeof(*generic), GFP_KERNEL);
	if (!core || !generic || keep(options->filter, options->filters, &wanted) ||
	    keep(options->except, options->exceptions, &unwanted)) {
		release();
		return kg_fail(said, -ENOMEM, "no memory");
	}
	/* Prevents switching ftrace off while we count. */
	generic->flags = FTRACE_OPS_FL_PERMANENT;
	generic->func = through_ftrace;
	error = choose(said);
	if (!error)
		error = kg_modules_start(core, said);
	if (error)
		goto fail;

	error = register_ftrace_function(generic);
	if (error) {
		kg_fail(said, error, error == -EBUSY ? "ftrace is switched off (kernel.ftrace_enabled is 0)" :
						       "ftrace takes no functions of modules");
		goto fail;
	}
	generic_on = true;

	error = -EBUSY;
	if (options->entry == KG_ENTRY_DIRECT || (options->entry == KG_ENTRY_AUTO && !direct_leaks())) {
		error = core_register();
		core_direct = !error;
		if (error && options->entry == KG_ENTRY_DIRECT) {
			kg_fail(said, error, "a function has a direct caller already, or the kernel knows none (%d)", error);
			goto fail;
		}
	}
	if (error) {
		core->flags |= FTRACE_OPS_FL_PERMANENT;
		core->func = through_ftrace;
		core_direct = false;
		error = register_ftrace_function(core);
		if (error) {
			kg_fail(said, error, "ftrace takes no functions (%d)", error);
			goto fail;
		}
	}
	core_on = true;
	if (!kg_sentinels_counted()) {
		error = kg_fail(said, -EIO, "ftrace took our functions and does not call us: nothing would be counted");
		goto fail;
	}
	return 0;

fail:
	kg_sites_stop();
	return error;
}

/* On return nobody is inside an entry any more: ftrace waits for that (FTRACE_OPS_FL_DYNAMIC). */
void kg_sites_stop(void)
{
	kg_modules_stop();
	if (core_on)
		core_unregister();
	if (generic_on)
		unregister_ftrace_function(generic);
	core_on = generic_on = core_direct = false;
	release();
}
