/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Marks: what a program in the guest says to the recorder outside of it.
 *
 * A mark is one long NOP, `nopl imm32(%rax)`: the bytes 0f 1f 80 and four bytes of displacement,
 * little endian, 0x4b540000 ("KT") | kind. The CPU ignores it (the address is never accessed, rax
 * may hold anything), so a marked program runs unchanged where nobody listens. The recorder
 * recognizes it when the code is translated and reads the registers and the name when it executes:
 *
 *   kind  meaning              rdi                            rsi
 *   1     region begins        NUL-terminated name            -
 *   2     region ends          NUL-terminated name            operations done in it; 0: as many as
 *                                                             were marked with kind 3
 *   3     one operation done   -                              -        (of the innermost open region)
 *   4     note                 NUL-terminated text            -
 *
 * Regions nest. A name has 1 to KT_NAME_MAX bytes and its memory must be resident when the mark
 * executes, because the recorder cannot take a page fault: these functions read it first.
 *
 * The same numbers are in crates/trace (`kerntune_trace::mark`); change both or neither. Header
 * only, C and C++, x86-64; on other machines the functions do nothing.
 */
#ifndef KT_MARK_H
#define KT_MARK_H

#define KT_MARK_BASE 0x4b540000 /* upper half of the displacement: "KT" */
#define KT_MARK_BEGIN 1
#define KT_MARK_END 2
#define KT_MARK_OP 3
#define KT_MARK_NOTE 4
#define KT_NAME_MAX 63 /* bytes of a region name without its NUL */

#if defined(__x86_64__)
/* Volatile and clobbering memory: nothing of the measured work may move across a mark. */
#define KT_MARK_EMIT(kind, name, number)                                                           \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0"                                     \
			 :                                                                         \
			 : "i"(KT_MARK_BASE | (kind)), "D"(name), "S"((unsigned long)(number))     \
			 : "memory")
#else
#define KT_MARK_EMIT(kind, name, number) ((void)(kind), (void)(name), (void)(number))
#endif

/* Brings the text into memory. */
static inline void kt_touch(const char *text)
{
	const volatile char *at = text;

	while (*at)
		at++;
}

/* A region begins. */
static inline void kt_begin(const char *name)
{
	kt_touch(name);
	KT_MARK_EMIT(KT_MARK_BEGIN, name, 0);
}

/* The region ends; operations = 0 leaves the count to kt_op(). */
static inline void kt_end(const char *name, unsigned long operations)
{
	kt_touch(name);
	KT_MARK_EMIT(KT_MARK_END, name, operations);
}

/* One operation of the innermost open region is done. */
static inline void kt_op(void)
{
	KT_MARK_EMIT(KT_MARK_OP, 0L, 0);
}

/* A text for the reader of the trace. */
static inline void kt_note(const char *text)
{
	kt_touch(text);
	KT_MARK_EMIT(KT_MARK_NOTE, text, 0);
}

#endif
