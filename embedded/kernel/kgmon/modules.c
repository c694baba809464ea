// SPDX-License-Identifier: GPL-2.0
/*
 * Modules: their functions, which are counted from the time a module is loaded, and their addresses, which name code
 * even after a module was unloaded.
 */
#include "kgmon.h"

#include <linux/kallsyms.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#define GONE_MAX 256

/* Modules unloaded since the last reset; a ring. */
static struct kg_dump_module *gone;
static unsigned int gone_count;
static bool missed;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
static unsigned long text_start(const struct module *module)
{
	return (unsigned long)module->core_layout.base;
}

static unsigned long text_end(const struct module *module)
{
	return text_start(module) + module->core_layout.text_size;
}
#else
static unsigned long text_start(const struct module *module)
{
	return (unsigned long)module->mem[MOD_TEXT].base;
}

static unsigned long text_end(const struct module *module)
{
	return text_start(module) + module->mem[MOD_TEXT].size;
}
#endif

/* Lists functions of a module that stay after its initialization: `all`, or those to be counted. */
static unsigned int sites_of(const struct module *module, bool all, unsigned long *sites)
{
	unsigned int i, count = 0;
	char *name = kmalloc(KSYM_SYMBOL_LEN, GFP_KERNEL);

	for (i = 0; name && i < module->num_ftrace_callsites; i++) {
		unsigned long site = module->ftrace_callsites[i];

		if (site < text_start(module) || site >= text_end(module))
			continue;
		if (!all) {
			char *end;

			sprint_symbol_no_offset(name, site);
			end = strchr(name, ' '); /* "name [module]" */
			if (end)
				*end = '\0';
			if (!kg_sites_wanted(name))
				continue;
		}
		sites[count++] = site;
	}
	kfree(name);
	return count;
}

/* Removes addresses from a filter, which may lack some of them. */
static int drop(struct ftrace_ops *ops, unsigned long *sites, unsigned int count)
{
	int error = count ? ftrace_set_filter_ips(ops, sites, count, 1, 0) : 0;

	if (!error || count <= 1)
		return error == -ENOMEM ? error : 0;
	if (error != -EINVAL && error != -ENOENT)
		return error;
	error = drop(ops, sites, count / 2);
	return error ?: drop(ops, sites + count / 2, count - count / 2);
}

/* A module with counted functions. */
struct counted {
	struct list_head list;
	const struct module *module;
	unsigned int functions;
};

static LIST_HEAD(counted);

static bool knows(const struct module *module)
{
	struct counted *one;

	list_for_each_entry(one, &counted, list)
		if (one->module == module)
			return true;
	return false;
}

static int add(struct module *module, struct ftrace_ops *core)
{
	struct counted *one;
	unsigned long *sites;
	unsigned int count;
	int error = 0;

	/* A module that was loading at the start is in the list before its notification gets the lock. */
	if (module == THIS_MODULE || !module->num_ftrace_callsites || knows(module))
		return 0;
	one = kmalloc(sizeof(*one), GFP_KERNEL);
	sites = kvmalloc_array(module->num_ftrace_callsites, sizeof(*sites), GFP_KERNEL);
	if (!one || !sites) {
		kfree(one);
		kvfree(sites);
		return -ENOMEM;
	}
	one->module = module;
	one->functions = kg_sites_in_modules();
	list_add(&one->list, &counted);
	count = sites_of(module, false, sites);
	if (count && core)
		error = drop(core, sites, count);
	if (count && !error)
		error = kg_sites_add(sites, count);
	one->functions = kg_sites_in_modules() - one->functions;
	kvfree(sites);
	return error;
}

/* Forgets a module that is unloaded; NULL: all. */
static void forget(const struct module *module)
{
	struct counted *one, *next;

	list_for_each_entry_safe(one, next, &counted, list) {
		if (module && one->module != module)
			continue;
		kg_sites_gone(one->functions);
		list_del(&one->list);
		kfree(one);
	}
}

/* Returns the loaded modules with references. The list's head, which is not exported, is the entry outside module memory. */
static struct module **held(unsigned int *count)
{
	unsigned int room = 1024, n = 0;
	struct module **list = kvmalloc_array(room, sizeof(*list), GFP_KERNEL), *module;

	if (!list)
		return NULL;
	rcu_read_lock();
	list_for_each_entry_rcu(module, &THIS_MODULE->list, list) {
		unsigned long at = (unsigned long)module;

		if (at < MODULES_VADDR || at >= MODULES_END)
			continue;
		if (module->state != MODULE_STATE_LIVE && module->state != MODULE_STATE_COMING)
			continue;
		if (n < room && try_module_get(module))
			list[n++] = module;
	}
	rcu_read_unlock();
	*count = n;
	return list;
}

int kg_modules_start(struct ftrace_ops *core, struct kg_said *said)
{
	unsigned int count, i;
	struct module **list = held(&count);
	int error = 0;

	if (!list)
		return kg_fail(said, -ENOMEM, "no memory");
	for (i = 0; i < count; i++) {
		if (!error)
			error = add(list[i], core);
		if (error < 0)
			kg_fail(said, error, "the functions of the module %s cannot be chosen (%d)", list[i]->name, error);
		module_put(list[i]);
	}
	kvfree(list);
	return error;
}

void kg_modules_stop(void)
{
	forget(NULL);
}

static void describe(struct kg_dump_module *to, const struct module *module, bool is_gone)
{
	memset(to, 0, sizeof(*to));
	to->start = cpu_to_le64(text_start(module));
	to->end = cpu_to_le64(text_end(module));
	to->gone = cpu_to_le64(is_gone);
	strscpy(to->name, module->name, sizeof(to->name));
}

unsigned int kg_modules_list(struct kg_dump_module *to, unsigned int room)
{
	unsigned int count, i, n = 0, old = min_t(unsigned int, gone_count, GONE_MAX);
	struct module **list = held(&count);

	for (i = 0; i < old && n < room; i++)
		to[n++] = gone[i];
	for (i = 0; list && i < count; i++) {
		if (n < room)
			describe(&to[n++], list[i], false);
		module_put(list[i]);
	}
	kvfree(list);
	return n;
}

void kg_modules_forget(void)
{
	gone_count = 0;
	missed = false;
}

bool kg_modules_missed(void)
{
	return missed || gone_count > GONE_MAX;
}

static int changed(struct notifier_block *block, unsigned long state, void *data)
{
	struct module *module = data;

	if (state != MODULE_STATE_COMING && state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	mutex_lock(&kg_lock);
	if (state == MODULE_STATE_COMING && kg_sites_running() && add(module, NULL))
		missed = true;
	if (state == MODULE_STATE_GOING)
		forget(module);
	if (state == MODULE_STATE_GOING && module != THIS_MODULE && kg_state.since_ns)
		describe(&gone[gone_count++ % GONE_MAX], module, true);
	mutex_unlock(&kg_lock);
	return NOTIFY_DONE;
}

static struct notifier_block watch = { .notifier_call = changed };

int kg_modules_init(void)
{
	int error;

	gone = vzalloc(array_size(GONE_MAX, sizeof(*gone)));
	if (!gone)
		return -ENOMEM;
	error = register_module_notifier(&watch);
	if (error)
		vfree(gone);
	return error;
}

void kg_modules_exit(void)
{
	unregister_module_notifier(&watch);
	vfree(gone);
}
