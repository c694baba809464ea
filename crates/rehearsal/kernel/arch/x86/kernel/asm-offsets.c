/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <linux/kbuild.h>
#include <linux/sched.h>

static void __used offsets(void)
{
	DEFINE(TASK_sp, offsetof(struct task_struct, sp));
}
