// SPDX-License-Identifier: GPL-2.0
/*
 * Where the kernel being built keeps what is known of a request to a block device, of a network packet, and of
 * code that it loads.
 *
 * Compiled to assembly by kerntune-kernel with the very command that Kbuild used for
 * arch/x86/kernel/asm-offsets.s, so that the answer needs no debug information. The numbers are
 * read from the `.ascii "->STRUCTURE.MEMBER value"` lines that DEFINE() (include/linux/kbuild.h) leaves there.
 */
#include <linux/kbuild.h>
#include <linux/version.h>
#ifdef CONFIG_BLOCK
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#endif
#ifdef CONFIG_NET
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#endif
#ifdef CONFIG_MODULES
#include <linux/module.h>
#endif
#ifdef CONFIG_BPF_SYSCALL
#include <linux/bpf.h>
#endif

#define MEMBER(structure, member) DEFINE(structure.member, offsetof(struct structure, member))

static void __used structure_offsets(void)
{
#ifdef CONFIG_BLOCK
	MEMBER(request, q);
	MEMBER(request, cmd_flags);
	MEMBER(request, __data_len);
	MEMBER(request, __sector);
	MEMBER(request, rq_next);
	/* A pointer to the first request, or a structure that begins with it. */
	MEMBER(io_comp_batch, req_list);
	MEMBER(request_queue, disk);
	MEMBER(gendisk, disk_name);
#endif
#ifdef CONFIG_NET
	MEMBER(sk_buff, len);
	MEMBER(sk_buff, dev);
	MEMBER(net_device, name);
#endif
#ifdef CONFIG_MODULES
	MEMBER(module, name);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	MEMBER(module, mem);
	MEMBER(module_memory, base);
	MEMBER(module_memory, size);
	DEFINE(module_memory.sizeof, sizeof(struct module_memory));
#else
	MEMBER(module, core_layout);
	MEMBER(module, init_layout);
	MEMBER(module_layout, base);
	MEMBER(module_layout, text_size);
#endif
#ifdef CONFIG_KALLSYMS
	MEMBER(module, kallsyms);
	MEMBER(mod_kallsyms, symtab);
	MEMBER(mod_kallsyms, num_symtab);
	MEMBER(mod_kallsyms, strtab);
#endif
#endif
#ifdef CONFIG_BPF_SYSCALL
	MEMBER(bpf_ksym, start);
	MEMBER(bpf_ksym, end);
	MEMBER(bpf_ksym, name);
#endif
}
