//! A kernel's functions with their code.

use super::shape::Shape;
use crate::Result;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::source_name;
use kerntune_work::IoContext;
use object::{Architecture, Object, ObjectSection, ReadCache, SectionKind};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

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

    /// The shape of function `at`; none if its code is not here.
    pub(super) fn shape(&self, at: usize) -> Option<Shape> {
        let function = self.symbols.functions().get(at)?;
        let here = |(start, code): &&(u64, Vec<u8>)| {
            (*start..start.saturating_add(code.len() as u64)).contains(&function.address)
        };
        let (start, code) = self.sections.iter().find(here)?;
        let from = usize::try_from(function.address - start).ok()?;
        let until = from.checked_add(usize::try_from(function.size).ok()?)?;
        Some(Shape::of(code.get(from..until)?, function.address, |address| {
            let at = self.symbols.lookup(address)?;
            Some(source_name(&self.symbols.functions()[at].name).0)
        }))
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
