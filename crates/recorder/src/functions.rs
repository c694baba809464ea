//! Kernel functions by address.

use crate::loaded_code::LoadedTable;
use kerntune_trace::loaded::LoadSelection;
use kerntune_trace::{FunctionKind, FunctionSpec, ProbeKind};
use std::ops::Range;

/// Kernel functions with lookup by address: those of the image, and of code that was loaded. The
/// index after the image's last function stands for kernel code outside of all known functions,
/// such as ftrace trampolines.
pub struct TracedFunctions {
    addresses: Vec<u64>,
    kinds: Vec<FunctionKind>,
    skip: Vec<bool>,
    guarded: Vec<bool>,
    /// Probes of the few functions that have one, by function index.
    probes: Vec<(u32, ProbeKind)>,
    selection: bool,
    thunks: bool,
    end: u64,
    /// Code that the kernel loaded.
    pub loaded: LoadedTable,
}

impl TracedFunctions {
    /// Creates the table from functions sorted by address, for a kernel that has loaded no code and
    /// `user` user functions. Of code that it loads, functions of the selection are traced.
    pub fn new(list: &[FunctionSpec], user: u32, loaded: Option<LoadSelection>) -> Result<Self, String> {
        if let Some(pair) = list.windows(2).find(|pair| pair[0].address >= pair[1].address) {
            return Err(format!("the function table is not in order at {:#x}", pair[1].address));
        }
        let last = list.last().ok_or("the function table is empty")?;
        Ok(Self {
            addresses: list.iter().map(|f| f.address).collect(),
            kinds: list.iter().map(|f| f.kind).collect(),
            skip: list.iter().map(|f| f.skip && !is_pillar(f.kind)).collect(),
            guarded: list.iter().map(|f| f.conditional).collect(),
            probes: (0..).zip(list).filter_map(|(at, f)| Some((at, f.probe?))).collect(),
            selection: loaded.is_some() || list.iter().any(|f| f.skip),
            thunks: list.iter().any(|f| f.kind == FunctionKind::Thunk),
            end: last.address + last.size.max(1),
            loaded: LoadedTable::new(list.len() as u32 + 1 + user, loaded),
        })
    }

    /// Returns the index that stands for code outside of all known functions.
    pub fn unknown(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// Returns true for a function of user code.
    #[inline]
    pub fn is_user(&self, function: u32) -> bool {
        function > self.unknown() && function < self.loaded.first()
    }

    /// Returns the role of a function.
    pub fn kind(&self, function: u32) -> FunctionKind {
        let kind = self.kinds.get(function as usize).copied().or_else(|| self.loaded.kind(function));
        kind.unwrap_or(FunctionKind::Plain)
    }

    /// Returns the probe of a function, if it has one.
    pub fn probe(&self, function: u32) -> Option<ProbeKind> {
        let at = self.probes.binary_search_by_key(&function, |(function, _)| *function).ok()?;
        Some(self.probes[at].1)
    }

    /// Returns true if some functions are not traced.
    pub fn is_selection(&self) -> bool {
        self.selection
    }

    /// Returns true if all code shares thunks for indirect calls. Kernels without them still
    /// contain a return thunk, which is never used.
    pub fn has_thunks(&self) -> bool {
        self.thunks
    }

    /// Returns true if a function is traced. Code outside of all known functions is traced only if
    /// all functions are.
    pub fn traced(&self, function: u32) -> bool {
        let traced = self.skip.get(function as usize).map(|skip| !skip);
        traced.or_else(|| self.loaded.traced(function)).unwrap_or(!self.selection)
    }

    /// Returns true if the function at `address` checks for conditional jumps to it.
    pub fn guarded(&self, address: u64) -> bool {
        // Code that leads to loaded code may be translated before it.
        self.starting(address)
            .is_some_and(|function| self.guarded.get(function as usize).copied().unwrap_or(true))
    }

    /// Makes the function at `address` check for conditional jumps to it.
    pub fn guard(&mut self, address: u64) {
        let function = self.starting(address);
        if let Some(guarded) = function.and_then(|function| self.guarded.get_mut(function as usize)) {
            *guarded = true;
        }
    }

    /// Returns the function that contains `address`. Split-off parts belong to their owner.
    pub fn containing(&self, address: u64) -> u32 {
        let outside = || self.loaded.containing(address).unwrap_or(self.unknown());
        if address >= self.end {
            return outside();
        }
        match self.addresses.partition_point(|&start| start <= address) {
            0 => outside(),
            after => match self.kinds[after - 1] {
                FunctionKind::Part(owner) => owner,
                _ => after as u32 - 1,
            },
        }
    }

    /// Returns the functions with code in a range of addresses.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = u32> + '_ {
        let later = self.addresses.partition_point(|&start| start <= range.start);
        let starts = self.addresses[later..].iter().take_while(move |start| **start < range.end);
        [range.start].into_iter().chain(starts.copied()).map(|address| self.containing(address))
    }

    /// Returns the function that begins at `address`; `None` for a split-off part.
    pub fn starting(&self, address: u64) -> Option<u32> {
        let Ok(index) = self.addresses.binary_search(&address) else { return self.loaded.starting(address) };
        (!matches!(self.kinds[index], FunctionKind::Part(_))).then_some(index as u32)
    }

    /// Returns true if `address` lies in a known function.
    pub fn covers(&self, address: u64) -> bool {
        self.image_covers(address) || self.loaded.covers(address)
    }

    /// Returns true if `address` lies in the code of the kernel image.
    pub fn image_covers(&self, address: u64) -> bool {
        self.addresses.first().is_some_and(|&first| first <= address) && address < self.end
    }
}

/// Returns true for kinds that are always traced, because they identify threads and stacks.
fn is_pillar(kind: FunctionKind) -> bool {
    use FunctionKind::*;
    matches!(kind, Interrupt | Exception | Syscall | SwitchTo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_with_their_owner_and_pillars_cannot_be_skipped() {
        let spec = |address, kind, skip| FunctionSpec {
            address,
            size: 16,
            kind,
            skip,
            probe: None,
            conditional: false,
        };
        let functions = TracedFunctions::new(
            &[
                spec(0x100, FunctionKind::Syscall, true),
                spec(0x200, FunctionKind::Plain, true),
                spec(0x300, FunctionKind::Part(3), true),
                spec(0x400, FunctionKind::Plain, false),
            ],
            0,
            None,
        )
        .unwrap();
        let traced = |address| functions.traced(functions.containing(address));
        assert_eq!([0x100, 0x20f, 0x305, 0x400, 0x999].map(traced), [true, false, true, true, false]);
        assert_eq!(functions.starting(0x300), None);
        let within = |range| functions.within(range).collect::<Vec<_>>();
        assert_eq!(within(0x104..0x110), [0]);
        assert_eq!(within(0x2f0..0x401), [1, 3, 3], "the part is its owner's");
        assert_eq!(within(0x10..0x20), [4], "in no known function");
        let all = TracedFunctions::new(&[spec(0x100, FunctionKind::Plain, false)], 0, None).unwrap();
        assert!(all.traced(all.unknown()) && !all.is_selection());
    }
}
