# Flat guest that shows how fast the host's KVM runs code: loops of known length in ring 0 and in
# ring 3, and system calls. It stands for QEMU's firmware (-bios), so that nothing else runs
# before it, and writes a line to port 0xe9 (-debugcon) before and after each loop; the host takes
# the times. In the end it leaves QEMU through isa-debug-exit at port 0xf4.
#
# The image is mapped below 4 GiB. It begins in real mode, copies itself to RAM, and enters long
# mode with one page of 2 MiB. crates/machine/src/kvm/speed.bin has the assembled bytes; a test in speed.rs
# assembles this file and compares.

        .set    ROM, 0xfffff000         # where the last page of the image is mapped
        .set    RAM, 0x8000             # where the copy runs
        .set    REPEATS, 4
        .set    LOOPS, 20000
        .set    USER_LOOPS, 500000
        .set    CALLS, 1000

        .text
begin:
        .code32
        .org    0
        .code16
        cli
        lgdtl   %cs:gdt_of_rom - begin + 0xf000
        movl    %cr0, %eax
        orb     $1, %al
        movl    %eax, %cr0
        ljmpl   $0x08, $(protected - begin + ROM)

        .code32
protected:
        movl    $0x10, %eax
        movl    %eax, %ds
        movl    %eax, %es
        movl    %eax, %ss
        cld
        movl    $ROM, %esi              # the copy
        movl    $RAM, %edi
        movl    $(end - begin), %ecx
        rep movsb
        ljmpl   $0x08, $(copied - begin + RAM)
copied:
        xorl    %eax, %eax              # page tables: 0x1000, 0x2000, 0x3000
        movl    $0x1000, %edi
        movl    $0xc00, %ecx
        rep stosl
        movl    $0x2007, 0x1000
        movl    $0x3007, 0x2000
        movl    $0x00e7, 0x3000
        lgdtl   gdt_of_ram - begin + RAM
        movl    $0x20, %eax             # PAE
        movl    %eax, %cr4
        movl    $0x1000, %eax
        movl    %eax, %cr3
        movl    $0xc0000080, %ecx       # EFER: long mode, SYSCALL
        movl    $0x101, %eax
        xorl    %edx, %edx
        wrmsr
        movl    %cr0, %eax
        orl     $0x80000000, %eax
        movl    %eax, %cr0
        ljmpl   $0x18, $(long_mode - begin + RAM)

        .code64
long_mode:
        movl    $0x20, %eax
        movl    %eax, %ss
        movl    $0x7000, %esp
        movl    $0xc0000081, %ecx       # STAR: selectors of kernel and user
        xorl    %eax, %eax
        movl    $0x002b0018, %edx
        wrmsr
        incl    %ecx                    # LSTAR: the system call
        movl    $(system_call - begin + RAM), %eax
        xorl    %edx, %edx
        wrmsr
        movl    $0xc0000084, %ecx       # SFMASK: none
        xorl    %eax, %eax
        wrmsr

        movl    $REPEATS, %ebx
1:      movb    $'k', %al
        call    mark
        movl    $LOOPS, %ecx
2:      decl    %ecx
        jnz     2b
        decl    %ebx
        jnz     1b
        movb    $'.', %al
        call    mark

        movl    $(user - begin + RAM), %ecx
        movl    $0x3002, %r11d          # ports may be used in ring 3
        sysretq

user:
        movl    $REPEATS, %ebx
1:      movb    $'u', %al
        call    mark
        movl    $USER_LOOPS, %ecx
2:      decl    %ecx
        jnz     2b
        decl    %ebx
        jnz     1b
        movl    $REPEATS, %ebx
3:      movb    $'s', %al
        call    mark
        movl    $CALLS, %ebp
4:      syscall
        decl    %ebp
        jnz     4b
        decl    %ebx
        jnz     3b
        movb    $'.', %al
        call    mark
        movb    $42, %al                # QEMU's status is 2 * 42 + 1
        outb    %al, $0xf4
5:      jmp     5b

system_call:
        sysretq

mark:
        outb    %al, $0xe9
        movb    $'\n', %al
        outb    %al, $0xe9
        ret

        .balign 8
gdt:
        .quad   0
        .quad   0x00cf9b000000ffff      # 0x08: code of 32 bits
        .quad   0x00cf93000000ffff      # 0x10: data
        .quad   0x00af9b000000ffff      # 0x18: code of 64 bits
        .quad   0x00cf93000000ffff      # 0x20: data
        .quad   0x00cffb000000ffff      # 0x28: user code of 32 bits, which SYSRET skips
        .quad   0x00cff3000000ffff      # 0x30: user data
        .quad   0x00affb000000ffff      # 0x38: user code of 64 bits
gdt_of_rom:
        .word   63
        .long   gdt - begin + ROM
gdt_of_ram:
        .word   63
        .long   gdt - begin + RAM
end:
