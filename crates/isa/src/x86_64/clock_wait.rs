//! Code that waits for a round time.

/// Returns code that waits for the next multiple of `step` nanoseconds, a power of two, and jumps to
/// `function`. It changes RAX, RCX, RDX and flags, and may lie anywhere.
pub(super) fn code(step: u32, function: u64) -> Vec<u8> {
    debug_assert!(step.is_power_of_two());
    let mut code = vec![
        0x0f, 0x31, // rdtsc
        0xf7, 0xd0, // not eax: the time to the next multiple, less one
        0x25, // and eax, imm32
    ];
    code.extend((step - 1).to_le_bytes());
    code.extend([
        0xff, 0xc0, // inc eax
        0x89, 0xc1, // mov ecx, eax
        0xe2, 0xfe, // loop to itself: an instruction takes a nanosecond
        0x48, 0xb8, // mov rax, imm64
    ]);
    code.extend(function.to_le_bytes());
    code.extend([0xff, 0xe0]); // jmp rax
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn the_instructions_are_those_that_the_comments_name() {
        let place = 0xffff_ffff_8200_3e58;
        let code = code(1 << 20, 0xffff_ffff_81ca_7810);
        let decoder = Decoder::with_ip(64, &code, place, DecoderOptions::NONE);
        let text: Vec<_> = decoder.into_iter().map(|insn| insn.to_string()).collect();
        let expected = [
            "rdtsc",
            "not %eax",
            "and $0xFFFFF,%eax",
            "inc %eax",
            "mov %eax,%ecx",
            "loop 0xFFFFFFFF82003E65",
            "movabs $0xFFFFFFFF81CA7810,%rax",
            "jmp *%rax",
        ];
        assert_eq!(text, expected);
    }
}
