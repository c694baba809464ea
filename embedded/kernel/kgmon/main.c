// SPDX-License-Identifier: GPL-2.0
/*
 * kgmon: exact call counts of the running kernel for each caller and function, and timer samples.
 *
 * Named after kgmon(8) of 4.2BSD, which profiled a kernel in operation. Here the kernel is unmodified: calls are
 * counted through ftrace, and while nothing is counted the functions have their NOPs.
 *
 * Commands and results go through /dev/kgmon (session.c). docs/kgmon.md describes the commands and the meaning of a count.
 */
#include "kgmon.h"

#include <linux/init.h>
#include <linux/module.h>

MODULE_DESCRIPTION("Exact call counts and random samples of the running kernel");
MODULE_AUTHOR("The kerntune authors");
MODULE_LICENSE("GPL v2");

module_param_named(text_start, kg_state.text_start, ullong, 0400);
MODULE_PARM_DESC(text_start, "address of _stext, for the header of dumps");
module_param_named(text_end, kg_state.text_end, ullong, 0400);
MODULE_PARM_DESC(text_end, "address of _etext, for the header of dumps");

static int __init kg_init(void)
{
	int error = kg_modules_init();

	if (error)
		return error;
	error = kg_device_init();
	if (error)
		kg_modules_exit();
	return error;
}

static void __exit kg_exit(void)
{
	kg_device_exit();
	mutex_lock(&kg_lock);
	kg_stop();
	mutex_unlock(&kg_lock);
	kg_modules_exit();
	kg_table_free();
	kg_sample_free();
	kg_snapshot_free();
}

module_init(kg_init);
module_exit(kg_exit);
