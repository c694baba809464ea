//! Functions of a kernel with their code.

use super::blocks::CodeGraph;
use super::shape::CodeShape;
use crate::Result;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::{Kernel, KernelFunction, Symbols};
use kerntune_profile::{source_name, Address, EdgeKind, FunctionIndex, Symbol};
use kerntune_work::IoContext;
use std::collections::HashMap;
use std::path::Path;

/// Most bytes of straight code; a CPU's record of its last branches sometimes suggests longer runs.
const MAX_STRAIGHT_BYTES: u64 = 1 << 16;

/// Bytes of the longest x86 instruction.
const MAX_INSTRUCTION_BYTES: u64 = 15;

/// Code of a linked kernel, with its symbols.
#[derive(Debug, Clone, Default)]
pub struct LinkedCode {
    symbols: Symbols,
    /// First address and bytes of each section with code; empty if it is not for x86-64.
    sections: Vec<(u64, Vec<u8>)>,
    /// Indices of functions by name in the source and by whether they are cold parts; by address.
    by_name: HashMap<(String, bool), Vec<usize>>,
}

impl LinkedCode {
    /// Reads `vmlinux`.
    ///
    /// # Errors
    /// An image that cannot be read, or has no symbols.
    pub fn load(kernel: &Kernel) -> Result<Self> {
        let path = kernel.vmlinux();
        Ok(Self::new(kernel.symbols()?, code(&path)?))
    }

    /// Creates an image from a symbol table and its sections.
    fn new(symbols: Symbols, sections: Vec<(u64, Vec<u8>)>) -> Self {
        let mut by_name: HashMap<(String, bool), Vec<usize>> = HashMap::new();
        for (function, at) in symbols.functions().iter().zip(0..) {
            let (name, cold) = source_name(&function.name);
            by_name.entry((name.to_string(), cold)).or_default().push(at);
        }
        Self { symbols, sections, by_name }
    }

    /// Returns the function table.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Checks whether there is code that can be disassembled.
    pub fn has_code(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Returns the functions that the source calls `name`, or its cold parts if `cold`.
    pub(super) fn namesakes(&self, name: &str, cold: bool) -> &[usize] {
        self.by_name.get(&(name.to_string(), cold)).map_or(&[], Vec::as_slice)
    }

    /// Returns the function table as rows of a profile.
    pub fn rows(&self) -> Vec<Symbol> {
        let functions = self.symbols.functions().iter().zip(0..);
        let row = |(function, number): (&KernelFunction, u32)| Symbol {
            function: FunctionIndex(number),
            name: function.name.clone(),
            address: Address(function.address),
            size: function.size,
            file: function.file.clone(),
            module: None,
        };
        functions.map(row).collect()
    }

    /// Returns the instructions of the straight code from the one at `start` to the one at `last`,
    /// and the bytes to its end. `None` if `last` is not reached from `start` within [`MAX_STRAIGHT_BYTES`] bytes.
    pub fn straight(&self, start: u64, last: u64) -> Option<(u64, u64)> {
        let until = last.checked_sub(start).filter(|distance| *distance <= MAX_STRAIGHT_BYTES)?
            + MAX_INSTRUCTION_BYTES;
        let decoder = Decoder::with_ip(64, self.code_at(start, until)?, start, DecoderOptions::NONE);
        let to_last = (1u64..).zip(decoder).take_while(|(_, instruction)| instruction.ip() <= last);
        let (instructions, end) = to_last.last()?;
        (end.ip() == last && !end.is_invalid()).then(|| (instructions, end.next_ip() - start))
    }

    /// Returns the address of the instruction that comes `number` instructions after the one at
    /// `start`. `None` without code there.
    pub fn instruction(&self, start: u64, number: u64) -> Option<u64> {
        let code = self.code_at(start, MAX_STRAIGHT_BYTES)?;
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        decoder
            .iter()
            .nth(usize::try_from(number).ok()?)
            .filter(|found| !found.is_invalid())
            .map(|found| found.ip())
    }

    /// Returns the kind of the branch at `address`.
    pub fn branch(&self, address: u64) -> EdgeKind {
        let Some(code) = self.code_at(address, MAX_INSTRUCTION_BYTES) else { return EdgeKind::Unknown };
        match Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode().flow_control() {
            FlowControl::ConditionalBranch => EdgeKind::Conditional,
            FlowControl::UnconditionalBranch => EdgeKind::Jump,
            FlowControl::IndirectBranch => EdgeKind::IndirectJump,
            FlowControl::Call => EdgeKind::Call,
            FlowControl::IndirectCall => EdgeKind::IndirectCall,
            FlowControl::Return => EdgeKind::Return,
            _ => EdgeKind::Unknown,
        }
    }

    /// Returns up to `max` bytes of code at `address`.
    fn code_at(&self, address: u64, max: u64) -> Option<&[u8]> {
        let (start, code) = self.section(address)?;
        let from = usize::try_from(address - start).ok()?;
        let until = from.saturating_add(usize::try_from(max).ok()?).min(code.len());
        code.get(from..until)
    }

    /// Returns the first address and the bytes of the code section that contains `address`.
    fn section(&self, address: u64) -> Option<(u64, &[u8])> {
        let here = |(start, code): &&(u64, Vec<u8>)| {
            (*start..start.saturating_add(code.len() as u64)).contains(&address)
        };
        self.sections.iter().find(here).map(|(start, code)| (*start, code.as_slice()))
    }

    /// Returns the shape of function `at`; `None` without its code.
    pub(super) fn shape(&self, at: usize) -> Option<CodeShape> {
        let (address, code) = self.function_code(at)?;
        Some(CodeShape::of(code, address, |address| self.name_at(address)))
    }

    /// Returns the control flow of function `at`, in which the branches `seen` were taken; `None`
    /// without its code.
    pub(super) fn graph(&self, at: usize, seen: &[(u64, u64)]) -> Option<CodeGraph> {
        let (address, code) = self.function_code(at)?;
        Some(CodeGraph::of(code, address, |address| self.name_at(address), seen))
    }

    fn function_code(&self, at: usize) -> Option<(u64, &[u8])> {
        let function = self.symbols.functions().get(at)?;
        let code = self.code_at(function.address, function.size)?;
        (code.len() as u64 == function.size).then_some((function.address, code))
    }

    /// Returns the name in the source of the function at an address.
    pub(super) fn name_at(&self, address: u64) -> Option<&str> {
        let at = self.symbols.lookup(address)?;
        Some(source_name(&self.symbols.functions()[at].name).0)
    }
}

/// Reads the sections with code of an image for x86-64.
fn code(vmlinux: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    let bytes = MappedFile::open(vmlinux).at("open", vmlinux)?;
    let elf = Elf::parse_any(&bytes).ok().filter(Elf::is_x86_64);
    let sections = elf.and_then(|elf| elf.code_sections().ok()).unwrap_or_default().into_iter();
    Ok(sections.map(|section| (section.start, section.data.to_vec())).collect())
}
