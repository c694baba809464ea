//! A kernel's functions with their code.

use super::shape::Shape;
use crate::Result;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use kerntune_kernel::{Function, Kernel, Symbols};
use kerntune_profile::{source_name, Address, EdgeKind, FunctionIndex, Symbol};
use kerntune_work::IoContext;
use object::{Architecture, Object, ObjectSection, ReadCache, SectionKind};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// Straight code is never longer than this; a CPU's record of its last branches now and then says so.
const FAR: u64 = 1 << 16;

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// The code of a kernel, as linked, and what its functions are called.
#[derive(Debug, Clone, Default)]
pub struct Image {
    symbols: Symbols,
    /// First address and bytes of each section with code; none if it is not for x86-64.
    sections: Vec<(u64, Vec<u8>)>,
    /// By the name in the source, and whether it is the cold part; by address.
    by_name: HashMap<(String, bool), Vec<usize>>,
}

impl Image {
    /// Reads `vmlinux`.
    ///
    /// # Errors
    /// An image that cannot be read, or has no symbols.
    pub fn load(kernel: &Kernel) -> Result<Self> {
        let path = kernel.vmlinux();
        Ok(Self::new(kernel.symbols()?, code(&path)?))
    }

    /// Of a symbol table and of the sections that it speaks of.
    fn new(symbols: Symbols, sections: Vec<(u64, Vec<u8>)>) -> Self {
        let mut by_name: HashMap<(String, bool), Vec<usize>> = HashMap::new();
        for (function, at) in symbols.functions().iter().zip(0..) {
            let (name, cold) = source_name(&function.name);
            by_name.entry((name.to_string(), cold)).or_default().push(at);
        }
        Self { symbols, sections, by_name }
    }

    /// The function table.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Whether its code can be taken apart.
    pub fn has_code(&self) -> bool {
        !self.sections.is_empty()
    }

    /// The functions that the source calls `name`; its cold parts if `cold`.
    pub(super) fn namesakes(&self, name: &str, cold: bool) -> &[usize] {
        self.by_name.get(&(name.to_string(), cold)).map_or(&[], Vec::as_slice)
    }

    /// The function table as a profile has it.
    pub fn rows(&self) -> Vec<Symbol> {
        let functions = self.symbols.functions().iter().zip(0..);
        let row = |(function, number): (&Function, u32)| Symbol {
            function: FunctionIndex(number),
            name: function.name.clone(),
            address: Address(function.address),
            size: function.size,
            file: function.file.clone(),
            module: None,
        };
        functions.map(row).collect()
    }

    /// The straight code from the instruction at `start` to the one at `last`: its instructions, and its bytes up to the end of
    /// the last one. None if one does not come to `last` from `start`, or only after [`FAR`] bytes.
    pub fn straight(&self, start: u64, last: u64) -> Option<(u64, u64)> {
        let until = last.checked_sub(start).filter(|distance| *distance <= FAR)? + LONGEST;
        let decoder = Decoder::with_ip(64, self.code_at(start, until)?, start, DecoderOptions::NONE);
        let to_last = (1u64..).zip(decoder).take_while(|(_, instruction)| instruction.ip() <= last);
        let (instructions, end) = to_last.last()?;
        (end.ip() == last && !end.is_invalid()).then(|| (instructions, end.next_ip() - start))
    }

    /// What kind of branch is at `address`.
    pub fn branch(&self, address: u64) -> EdgeKind {
        let Some(code) = self.code_at(address, LONGEST) else { return EdgeKind::Unknown };
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

    /// Up to `most` bytes of code at `address`.
    fn code_at(&self, address: u64, most: u64) -> Option<&[u8]> {
        let (start, code) = self.section(address)?;
        let from = usize::try_from(address - start).ok()?;
        let until = from.saturating_add(usize::try_from(most).ok()?).min(code.len());
        code.get(from..until)
    }

    /// The section with code that `address` is in: its first address, and its bytes.
    fn section(&self, address: u64) -> Option<(u64, &[u8])> {
        let here = |(start, code): &&(u64, Vec<u8>)| {
            (*start..start.saturating_add(code.len() as u64)).contains(&address)
        };
        self.sections.iter().find(here).map(|(start, code)| (*start, code.as_slice()))
    }

    /// The shape of function `at`; none if its code is not here.
    pub(super) fn shape(&self, at: usize) -> Option<Shape> {
        let function = self.symbols.functions().get(at)?;
        let code = self.code_at(function.address, function.size)?;
        let whole = code.len() as u64 == function.size;
        whole.then(|| {
            Shape::of(code, function.address, |address| {
                let at = self.symbols.lookup(address)?;
                Some(source_name(&self.symbols.functions()[at].name).0)
            })
        })
    }
}

/// The sections with code of an image for x86-64.
fn code(vmlinux: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    let cache = ReadCache::new(File::open(vmlinux).at("open", vmlinux)?);
    let Ok(file) = object::File::parse(&cache) else { return Ok(Vec::new()) };
    if file.architecture() != Architecture::X86_64 {
        return Ok(Vec::new());
    }
    let text = file.sections().filter(|section| section.kind() == SectionKind::Text);
    Ok(text.filter_map(|section| Some((section.address(), section.data().ok()?.to_vec()))).collect())
}
