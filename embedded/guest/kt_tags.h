/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Triggers for McRae's profiler (docs/mcrae.md): each puts an event tag where a box, or kerntune's
 * recorder, sees it. A function's entry has an even tag, its exit the next one; an inline
 * trigger has one tag of its own. `kerntune tags NAMES --header FILE` writes the numbers.
 *
 * Say where tags go before this file is included:
 *
 *   #define KT_TAGS_MEMORY 0x4b540000  one byte is read at this address + tag: an EPROM socket's
 *                                      window of 64 KiB. A number below 2^31, or a symbol that the
 *                                      linker resolves; with KT_TAGS_RELATIVE the symbol may be
 *                                      anywhere within 2 GiB of the code (PIE)
 *   #define KT_TAGS_PORT 0x80          16-bit `out` to this port (0x80: the POST card's)
 *   #define KT_TAGS_UART 0x3f8         two bytes to a 16550 at this port; tags below 16384
 *   #define KT_TAGS_GPIO 0x280         16 outputs at this port and the next, and a strobe, bit 0 at
 *                                      the port after them: the tag is valid while it rises
 *   #define KT_TAGS_CALL function      function(unsigned tag) is called
 *
 * or nothing, and the triggers are nothing. Tags have 16 bits. With
 *
 *   #define KT_TAGS_BITS 32
 *
 * they have 32: the `out` is one of 32 bits, the UART gets five bytes, and a window is as large as
 * the greatest tag. In C:
 *
 *   #include "kt_tags.h"
 *   #include "kt_tag_names.h"          // KT_TAG_… of each name, from `kerntune tags --header`
 *
 *   int f(int x)
 *   {
 *           KT_FUNCTION(f);            // entry here, exit on every way out; a declaration
 *           KT_INLINE(resend);         // a point inside
 *           …
 *   }
 *
 * KT_ENTER(f) and KT_EXIT(f) are the two by themselves. In assembler files the same three words
 * stand for instructions that change nothing but the flags; by UART, GPIO and a call there are none.
 *
 * Header only, C, C++ and assembler; GCC and clang. Ports are of x86.
 */
#ifndef KT_TAGS_H
#define KT_TAGS_H

#define KT_TAGS_STRING_(x) #x
#define KT_TAGS_STRING(x) KT_TAGS_STRING_(x)

#ifndef KT_TAGS_BITS
#define KT_TAGS_BITS 16
#endif
#if KT_TAGS_BITS != 16 && KT_TAGS_BITS != 32
#error "kt_tags.h: KT_TAGS_BITS is 16 or 32"
#endif
#if KT_TAGS_BITS == 32 && defined(KT_TAGS_GPIO)
#error "kt_tags.h: KT_TAGS_GPIO has 16 outputs, and so tags of 16 bits"
#endif

#ifdef __ASSEMBLER__

#ifdef KT_TAGS_RELATIVE
#define KT_TAGS_BASE_ (%rip)
#else
#define KT_TAGS_BASE_
#endif

#if defined(KT_TAGS_MEMORY)
/* McRae's `tstb 1386`: reads the byte, sets the flags. */
#define KT_TAG_EMIT(tag) testb %al, KT_TAGS_MEMORY+(tag) KT_TAGS_BASE_
#elif defined(KT_TAGS_PORT)
#if KT_TAGS_BITS == 16
#define KT_TAGS_OUT_ outw %ax, %dx
#else
#define KT_TAGS_OUT_ outl %eax, %dx
#endif
#define KT_TAG_EMIT(tag)                                                                           \
	push %rax; push %rdx; mov $(tag), %eax; mov $(KT_TAGS_PORT), %edx; KT_TAGS_OUT_;           \
	pop %rdx; pop %rax
#elif defined(KT_TAGS_UART) || defined(KT_TAGS_GPIO) || defined(KT_TAGS_CALL)
/* Nothing here would be functions that are called and that nobody sees. */
#error "kt_tags.h: triggers in assembler files say their tag by KT_TAGS_MEMORY or KT_TAGS_PORT alone"
#else
#define KT_TAG_EMIT(tag)
#endif
#define KT_ENTER(name) KT_TAG_EMIT(KT_TAG_##name)
#define KT_EXIT(name) KT_TAG_EMIT(KT_TAG_##name + 1)
#define KT_INLINE(name) KT_TAG_EMIT(KT_TAG_##name)

#else /* C, C++ */

#ifdef KT_TAGS_RELATIVE
#define KT_TAGS_BASE_ "(%%rip)"
#else
#define KT_TAGS_BASE_ ""
#endif

#if defined(KT_TAGS_MEMORY) && defined(__x86_64__)
/* Clobbering memory: nothing of the function moves across its trigger. */
#define KT_TAG_EMIT(tag)                                                                           \
	__asm__ volatile("testb %%al, " KT_TAGS_STRING(KT_TAGS_MEMORY) "+%c0" KT_TAGS_BASE_        \
			 :                                                                         \
			 : "i"(tag)                                                                \
			 : "memory", "cc")
#elif defined(KT_TAGS_MEMORY)
#define KT_TAG_EMIT(tag) ((void)*(const volatile unsigned char *)((KT_TAGS_MEMORY) + (tag)))
#elif defined(KT_TAGS_PORT) && KT_TAGS_BITS == 16
#define KT_TAG_EMIT(tag)                                                                           \
	__asm__ volatile("outw %w0, %w1" : : "a"(tag), "Nd"(KT_TAGS_PORT) : "memory")
#elif defined(KT_TAGS_PORT)
#define KT_TAG_EMIT(tag)                                                                           \
	__asm__ volatile("outl %k0, %w1" : : "a"(tag), "Nd"(KT_TAGS_PORT) : "memory")
#elif defined(KT_TAGS_UART) || defined(KT_TAGS_GPIO)
/* A tag takes several writes here, and in a kernel an interrupt has tags of its own. */
#ifdef __KERNEL__
#define KT_TAGS_ALONE_(flags)                                                                      \
	__asm__ volatile("pushf; pop %0; cli" : "=rm"(flags) : : "memory")
#define KT_TAGS_TOGETHER_(flags)                                                                   \
	__asm__ volatile("push %0; popf" : : "g"(flags) : "memory", "cc")
#else
#define KT_TAGS_ALONE_(flags) ((void)((flags) = 0))
#define KT_TAGS_TOGETHER_(flags) ((void)(flags))
#endif
static inline void kt_tags_byte(unsigned char byte, unsigned short port)
{
	__asm__ volatile("outb %b0, %w1" : : "a"(byte), "Nd"(port) : "memory");
}
#ifdef KT_TAGS_UART
/* Seven bits a byte, the first with the top bit set: a reader finds the beginning again. */
#define KT_TAGS_BYTES_ (KT_TAGS_BITS == 16 ? 2 : 5)
static inline void kt_tags_send(unsigned tag)
{
	unsigned long flags;
	unsigned char ready;
	int at;

	KT_TAGS_ALONE_(flags);
	for (at = KT_TAGS_BYTES_ - 1; at >= 0; at--) {
		/* Transmitter holding register empty, bit 5 of the line status register. */
		do
			__asm__ volatile("inb %w1, %b0" : "=a"(ready) : "Nd"((KT_TAGS_UART) + 5));
		while (!(ready & 0x20));
		kt_tags_byte((unsigned char)((at == KT_TAGS_BYTES_ - 1 ? 0x80 : 0) | (tag >> 7 * at & 0x7f)),
			     KT_TAGS_UART);
	}
	KT_TAGS_TOGETHER_(flags);
}
/* A tag that does not fit is an error of the compiler's: its name has a negative size. */
#define KT_TAG_EMIT(tag)                                                                           \
	((void)sizeof(char[KT_TAGS_BITS == 32 || (tag) < 16384 ? 1 : -1]), kt_tags_send(tag))
#else
static inline void kt_tags_send(unsigned tag)
{
	unsigned long flags;

	KT_TAGS_ALONE_(flags);
	__asm__ volatile("outw %w0, %w1" : : "a"(tag), "Nd"(KT_TAGS_GPIO) : "memory");
	kt_tags_byte(1, (KT_TAGS_GPIO) + 2);
	kt_tags_byte(0, (KT_TAGS_GPIO) + 2);
	KT_TAGS_TOGETHER_(flags);
}
#define KT_TAG_EMIT(tag) kt_tags_send(tag)
#endif
#elif defined(KT_TAGS_CALL)
#define KT_TAG_EMIT(tag) KT_TAGS_CALL(tag)
#else
#define KT_TAG_EMIT(tag) ((void)(tag))
#endif

#define KT_ENTER(name) KT_TAG_EMIT(KT_TAG_##name)
#define KT_EXIT(name) KT_TAG_EMIT(KT_TAG_##name + 1)
#define KT_INLINE(name) KT_TAG_EMIT(KT_TAG_##name)

/* The file of `kerntune tags --header` has one of these for each function. */
#define KT_TAG_SCOPE(name)                                                                         \
	static inline __attribute__((__always_inline__, __unused__)) char kt_enter_##name(void)    \
	{                                                                                          \
		KT_ENTER(name);                                                                    \
		return 0;                                                                          \
	}                                                                                          \
	static inline __attribute__((__always_inline__, __unused__)) void kt_exit_##name(          \
		const char *scope)                                                                 \
	{                                                                                          \
		(void)scope;                                                                       \
		KT_EXIT(name);                                                                     \
	}

/* First among the declarations of a function: their initial values belong to it. */
#define KT_FUNCTION(name)                                                                          \
	const char kt_scope_##name __attribute__((__cleanup__(kt_exit_##name), __unused__)) =      \
		kt_enter_##name()

#endif
#endif
