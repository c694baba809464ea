//! Counts of modules, which `llvm-profgen` reads by an image of each.
//!
//! A module's file is relocatable: it has no addresses. lld links it alone to where the recorded
//! kernel loaded its code, so that line tables have the addresses of the recording. What a module
//! uses of the kernel stays undefined.

use super::{ExecutedFunction, ModuleSamples};
use crate::llvm::{ProfileTools, ToolFailure};
use crate::module_code::{functions, module, ModuleFunction, TEXT};
use crate::{Error, Result};
use kerntune_convert::autofdo::{SampleProfile, UnsymbolizedProfile};
use kerntune_debuginfo::Elf;
use kerntune_kernel::{module_name, Kernel, KernelModule};
use kerntune_profile::{Symbol, Tables};
use kerntune_work::{IoContext, PlainName};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Module with code that ran.
pub(super) struct ExecutedModule {
    /// Its file.
    pub module: KernelModule,
    /// Address at which the kernel loaded its [`TEXT`].
    pub address: u64,
    /// Blocks and branches there.
    pub counts: UnsymbolizedProfile,
}

impl ExecutedModule {
    /// Returns the counts in `llvm-profgen`'s form.
    pub fn text(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.counts.write(&mut text).at("write", "the counts of a module")?;
        Ok(text)
    }

    /// Makes the module's sample profile in `dir`. `None` if its file has no line tables.
    pub fn samples(
        &self,
        llvm: &ProfileTools,
        dir: &Path,
    ) -> Result<Option<(PathBuf, SampleProfile)>, ToolFailure> {
        let not_run = |error: Error| ToolFailure::NotRun(error);
        let has_lines = Elf::parse(&self.module.bytes).is_ok_and(|elf| elf.has_section(".debug_line"));
        if !has_lines {
            return Ok(None);
        }
        let name = self.module.name.parse::<PlainName>();
        let dir = dir.join(name.map_err(|error| not_run(kerntune_kernel::Error::Name(error).into()))?);
        let at = |name: &str| dir.join(name);
        let write = |name: &str, bytes: &[u8]| fs::write(at(name), bytes).at("write", at(name));
        fs::create_dir(&dir).at("create", &dir).map_err(|error| not_run(error.into()))?;
        write("module.ko", &self.module.bytes).map_err(|error| not_run(error.into()))?;
        write("counts.txt", &self.text().map_err(not_run)?).map_err(|error| not_run(error.into()))?;
        llvm.link_module(&at("module.ko"), self.address, &at("module.elf"), &at("ld.lld.log"))?;
        llvm.profgen(&at("module.elf"), &at("counts.txt"), &at("module.afdo"), &at("llvm-profgen.log"))?;
        let samples = llvm.samples(&at("module.afdo"), &dir)?;
        for image in ["module.ko", "module.elf"] {
            fs::remove_file(at(image)).at("remove", at(image)).map_err(|error| not_run(error.into()))?;
        }
        Ok(Some((at("module.afdo"), samples)))
    }

    /// Returns the sizes of the recording and of the profile.
    pub fn summarize(&self, samples: &SampleProfile, ran: &[ExecutedFunction]) -> ModuleSamples {
        let matched = ran.iter().filter(|function| function.in_profile.is_some()).count() as u64;
        let number = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        ModuleSamples {
            module: self.module.name.clone(),
            executed_bytes: number(self.counts.executed_bytes),
            attributed_bytes: number(samples.total()),
            functions: ran.len() as u64,
            matched_functions: matched,
        }
    }
}

/// Returns the modules of `kernel` with code that ran, by name.
///
/// # Errors
/// Modules that cannot be read.
pub(super) fn executed_modules(kernel: &Kernel, tables: &Tables) -> Result<Vec<ExecutedModule>> {
    if !kernel.has_modules() {
        return Ok(Vec::new());
    }
    let modules = kernel.modules()?;
    let known = modules.object_paths();
    let mut loaded: BTreeMap<String, Vec<&Symbol>> = BTreeMap::new();
    for symbol in &tables.symbols {
        if let Some(name) = symbol.loaded_module().map(module_name).filter(|name| known.contains_key(name)) {
            loaded.entry(name).or_default().push(symbol);
        }
    }
    let mut executed = Vec::new();
    for (name, symbols) in loaded {
        let Some(module) = module(&modules, &name)? else { continue };
        let Some(area) = text_area(&module, &symbols)? else { continue };
        if let Ok(counts) = UnsymbolizedProfile::of_code(tables, &area) {
            executed.push(ExecutedModule { module, address: area.start, counts });
        }
    }
    Ok(executed)
}

/// Returns the addresses of the module's [`TEXT`]: where most of its functions say it begins. Names
/// that occur more than once say nothing. `None` if no function does.
fn text_area(module: &KernelModule, symbols: &[&Symbol]) -> Result<Option<Range<u64>>> {
    let mut addresses: HashMap<&str, Option<u64>> = HashMap::new();
    for symbol in symbols {
        let address = addresses.entry(&symbol.name).or_insert(Some(symbol.address.get()));
        *address = address.filter(|address| *address == symbol.address.get());
    }
    let mut text = functions(module)?;
    text.retain(|function| function.section == TEXT);
    let mut starts: BTreeMap<u64, usize> = BTreeMap::new();
    for function in &text {
        let address = addresses.get(function.name.as_str()).copied().flatten();
        if let Some(start) = address.and_then(|address| address.checked_sub(function.offset)) {
            *starts.entry(start).or_default() += 1;
        }
    }
    let bytes = text.iter().map(ModuleFunction::end).max().unwrap_or_default();
    let start = starts.into_iter().max_by_key(|(_, votes)| *votes).map(|(start, _)| start);
    Ok(start.map(|start| start..start.saturating_add(bytes)))
}
