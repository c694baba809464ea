/* SPDX-License-Identifier: Apache-2.0 OR MIT */

#define MSR_LSTAR 0xc0000082

	.section .head.text, "ax"
	.globl startup_64
	.type startup_64, @function
/* rdi: entry of user code, rsi: its stack, rdx: the plan, first argument of its entry. */
startup_64:
	movq	%rdx, %r12
	movq	%rsi, %r13
	movq	%rdi, %r14
	leaq	boot_stack_end(%rip), %rsp
	leaq	entry_SYSCALL_64(%rip), %rax
	movq	%rax, %rdx
	shrq	$32, %rdx
	movl	$MSR_LSTAR, %ecx
	wrmsr
	call	start_kernel
	/* Enters user code for the first time. */
	movq	%r12, %rdi
	movq	%r14, %rcx
	movl	$0x202, %r11d
	movq	%r13, %rsp
	sysretq
	.size startup_64, . - startup_64

	.text
	.globl entry_SYSCALL_64
	.type entry_SYSCALL_64, @notype
entry_SYSCALL_64:
	movq	%rsp, user_rsp(%rip)
	leaq	boot_stack_end(%rip), %rsp
	/* Preserves all registers of user code but rax, rcx and r11. */
	pushq	%rcx
	pushq	%r11
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%r8
	pushq	%r9
	pushq	%r10
	movq	%r10, %rcx
	movq	%rax, %r8
	call	do_syscall_64
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdx
	popq	%rsi
	popq	%rdi
	popq	%r11
	popq	%rcx
	movq	user_rsp(%rip), %rsp
	sysretq
	.size entry_SYSCALL_64, . - entry_SYSCALL_64

	.globl __switch_to_asm
	.type __switch_to_asm, @function
/* rdi: the running thread, rsi: the next one. */
__switch_to_asm:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, 0(%rdi)
	movq	0(%rsi), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size __switch_to_asm, . - __switch_to_asm

	.bss
	.balign 16
user_rsp:
	.skip	8
	.balign 16
	.skip	16384
boot_stack_end:
	.section .note.GNU-stack, "", @progbits
