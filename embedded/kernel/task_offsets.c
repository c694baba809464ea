// SPDX-License-Identifier: GPL-2.0
/*
 * Where `struct task_struct` of the kernel being built keeps pid, tgid and comm.
 *
 * Compiled to assembly by kerntune-kernel with the very command that Kbuild used for
 * arch/x86/kernel/asm-offsets.s, so that the answer needs no debug information. The numbers are
 * read from the `.ascii "->NAME value"` lines that DEFINE() (include/linux/kbuild.h) leaves there.
 */
#include <linux/kbuild.h>
#include <linux/sched.h>

static void __used task_offsets(void)
{
	DEFINE(KERNTUNE_pid, offsetof(struct task_struct, pid));
	DEFINE(KERNTUNE_tgid, offsetof(struct task_struct, tgid));
	DEFINE(KERNTUNE_comm, offsetof(struct task_struct, comm));
}
