//! Code of an ELF file, and the boundaries of its instructions.

use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_isa::{BlockEnding, BlockFlow, GuestIsa, Insn, Isa};
use kerntune_kernel::KernelFunction;
use kerntune_trace::counts::BranchKind;
use std::collections::HashSet;
use std::path::Path;

/// The code sections of a file, by address.
pub struct CodeSections {
    sections: Vec<(u64, Vec<u8>)>,
}

impl CodeSections {
    /// Reads the code sections of a file; the error is the reason why it cannot be read.
    pub fn load(path: &Path) -> Result<Self, String> {
        let bytes = MappedFile::open(path).map_err(|e| e.to_string())?;
        let sections = Elf::parse(&bytes).and_then(|elf| elf.code_sections()).map_err(|e| e.to_string())?;
        let sections = sections.into_iter().map(|section| (section.start, section.data.to_vec())).collect();
        Ok(Self { sections })
    }

    /// Returns the addresses of a function's instructions, as linked. A kernel that patches itself
    /// at boot keeps them except inside the patched code.
    pub fn boundaries(&self, start: u64, size: u64) -> Option<Vec<u64>> {
        Some(self.instructions(start, size)?.map(|insn| insn.address).collect())
    }

    /// Returns the targets of conditional jumps that leave their function. Clang ends functions
    /// with such jumps, GCC does not.
    pub fn conditional_targets(&self, functions: &[KernelFunction]) -> HashSet<u64> {
        let leaving = functions.iter().flat_map(|function| {
            let own = function.address..function.address.saturating_add(function.size);
            let insns = self.instructions(own.start, function.size).into_iter().flatten();
            insns.filter_map(|insn| conditional_target(&insn)).filter(move |target| !own.contains(target))
        });
        leaving.collect()
    }

    /// Decodes up to `size` bytes at an address.
    fn instructions(&self, start: u64, size: u64) -> Option<impl Iterator<Item = Insn> + '_> {
        let bytes = self.sections.iter().find_map(|(address, bytes)| {
            let from = usize::try_from(start.checked_sub(*address)?).ok()?;
            let to = from.checked_add(usize::try_from(size).ok()?)?;
            bytes.get(from..to.min(bytes.len()))
        })?;
        Some(GuestIsa::instructions(bytes, start))
    }
}

/// Returns the target of a conditional jump; `None` for other instructions.
fn conditional_target(insn: &Insn) -> Option<u64> {
    match GuestIsa::ending(insn) {
        (BlockEnding::Jump { target }, BlockFlow::Branch(BranchKind::Conditional)) => target,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_jumps_out_of_a_function_are_found() {
        // 100: je 104; je 110; 104: ret … 110: jmp 100; jne 103 (the middle of another function)
        let code = [&[0x74, 0x02, 0x74, 0x0c, 0xc3][..], &[0x90; 11], &[0xeb, 0xee, 0x75, 0xef]].concat();
        let code = CodeSections { sections: vec![(0x100, code)] };
        let function = |address, size| KernelFunction {
            name: String::new(),
            aliases: Vec::new(),
            address,
            size,
            file: None,
            part_of: None,
            is_code_label: false,
        };
        let functions = [function(0x100, 5), function(0x110, 4), function(0x900, 4)];
        assert_eq!(code.conditional_targets(&functions), HashSet::from([0x110, 0x103]));
    }
}
