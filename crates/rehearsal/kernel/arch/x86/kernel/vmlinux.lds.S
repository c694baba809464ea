/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Linux's link address and its order of sections (include/asm-generic/vmlinux.lds.h).
 */
#define TEXT_TEXT *(.text.hot .text.hot.*) *(.text .text.fixup) *(.text.startup) *(.text.unlikely .text.unlikely.*) \
	*(.text.unknown .text.unknown.*)
ENTRY(startup_64)
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS
{
	. = 0xffffffff81000000;
	.text : {
		_stext = .;
		*(.head.text)
		TEXT_TEXT
		*(.text.[0-9a-zA-Z_]*)
		_etext = .;
	} :text
	. = ALIGN(4096);
	.data : {
		*(.rodata .rodata.*) *(.data .data.*)
		. = ALIGN(8);
		__ctors_start = .;
		*(SORT(.ctors*)) *(SORT(.init_array.*)) *(.init_array)
		__ctors_end = .;
	} :data
	.bss : { *(.bss .bss.* COMMON) } :data
	/DISCARD/ : { *(.fini_array .fini_array.* .comment .note* .eh_frame) }
}
