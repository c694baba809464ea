// SPDX-License-Identifier: GPL-2.0
/*
 * Where the kernel being built keeps what is known of a request to a block device and of a network packet.
 *
 * Compiled to assembly by kerntune-kernel with the very command that Kbuild used for
 * arch/x86/kernel/asm-offsets.s, so that the answer needs no debug information. The numbers are
 * read from the `.ascii "->STRUCTURE.MEMBER value"` lines that DEFINE() (include/linux/kbuild.h) leaves there.
 */
#include <linux/kbuild.h>
#ifdef CONFIG_BLOCK
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#endif
#ifdef CONFIG_NET
#include <linux/netdevice.h>
#include <linux/skbuff.h>
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
}
