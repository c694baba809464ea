/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The entry: counted functions call it at their first instruction, instead of a NOP.
 *
 * The stack has the address after that call (the function), and above it the function's own return address (the
 * caller). All registers except flags must be preserved. The path of a known arc saves and uses two registers, calls
 * nothing, disables nothing, and takes no lock:
 *
 *  - the table's slots are written once, by kg_insert(), and never again while anybody counts;
 *  - the counter is this CPU's, and one instruction increments it. No interrupt, NMI or migration to another CPU can
 *    come in between, so no count is lost, and no guard against recursion is needed.
 */
#include "kgmon.h"

#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>

#ifdef CONFIG_SMP
#define THIS_CPU(at) %gs:at
#else
#define THIS_CPU(at) at
#endif

	.text

/* Never reached by an indirect branch: no ENDBR. */
SYM_START(kg_entry, SYM_L_GLOBAL, SYM_A_ALIGN)
	ANNOTATE_NOENDBR
#if defined(CONFIG_CALL_DEPTH_TRACKING) || defined(CONFIG_MITIGATION_CALL_DEPTH_TRACKING)
	CALL_DEPTH_ACCOUNT
#endif
	pushq	%rax
	pushq	%rcx
	imulq	$KG_MUL, 16(%rsp), %rax
	addq	24(%rsp), %rax
	movl	%eax, %ecx
	andl	$KG_INDEX, %ecx
.Lprobe:
	cmpq	%rax, kg_slots(, %rcx, 8)
	jne	.Lother
	movq	kg_slots + 8(, %rcx, 8), %rcx
	incq	THIS_CPU((%rcx))
	popq	%rcx
	popq	%rax
	RET

.Lother:
	cmpq	$0, kg_slots(, %rcx, 8)
	je	.Lnew
	addl	$2, %ecx
	andl	$KG_INDEX, %ecx
	jmp	.Lprobe

	/* Once for each arc, and while it is being inserted; for each call if the table is full. */
.Lnew:
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	movq	%rax, %rdi
	call	kg_insert
	incq	THIS_CPU((%rax))
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	RET
SYM_FUNC_END(kg_entry)
