//! The kernel's functions by address.

use kerntune_trace::{FunctionKind, FunctionSpec, Probe};
use std::ops::Range;

/// Finds functions by address. The index one past the last stands for kernel code that is in no
/// known function: loaded modules, BPF, ftrace trampolines.
pub struct Functions {
    addresses: Vec<u64>,
    kinds: Vec<FunctionKind>,
    skip: Vec<bool>,
    guarded: Vec<bool>,
    /// Of the few that have one, in their order.
    probes: Vec<(u32, Probe)>,
    selection: bool,
    thunks: bool,
    end: u64,
}

impl Functions {
    /// `list` must be in order of address.
    pub fn new(list: &[FunctionSpec]) -> Result<Self, String> {
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
            selection: list.iter().any(|f| f.skip),
            thunks: list.iter().any(|f| f.kind == FunctionKind::Thunk),
            end: last.address + last.size.max(1),
        })
    }

    /// The index that stands for code in no known function.
    pub fn unknown(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// What part a function plays.
    pub fn kind(&self, function: u32) -> FunctionKind {
        self.kinds.get(function as usize).copied().unwrap_or(FunctionKind::Plain)
    }

    /// What a function's arguments say.
    pub fn probe(&self, function: u32) -> Option<Probe> {
        let at = self.probes.binary_search_by_key(&function, |(function, _)| *function).ok()?;
        Some(self.probes[at].1)
    }

    /// Whether some functions are not traced.
    pub fn is_selection(&self) -> bool {
        self.selection
    }

    /// Whether all code shares some that stands for indirect calls. Kernels without have a thunk for returns, too, which nothing
    /// goes to.
    pub fn has_thunks(&self) -> bool {
        self.thunks
    }

    /// Whether a function is traced. Code in no known function is if all functions are.
    pub fn traced(&self, function: u32) -> bool {
        self.skip.get(function as usize).map_or(!self.selection, |skip| !skip)
    }

    /// Whether the function that begins at `address` looks for conditional jumps that lead to it.
    pub fn guarded(&self, address: u64) -> bool {
        self.starting(address).is_some_and(|function| self.guarded[function as usize])
    }

    /// From now on it does.
    pub fn guard(&mut self, address: u64) {
        if let Some(function) = self.starting(address) {
            self.guarded[function as usize] = true;
        }
    }

    /// The function that code at `address` belongs to; split-off parts belong to their owner.
    pub fn containing(&self, address: u64) -> u32 {
        if address >= self.end {
            return self.unknown();
        }
        match self.addresses.partition_point(|&start| start <= address) {
            0 => self.unknown(),
            after => match self.kinds[after - 1] {
                FunctionKind::Part(owner) => owner,
                _ => after as u32 - 1,
            },
        }
    }

    /// The functions that code in a range of addresses belongs to.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = u32> + '_ {
        let later = self.addresses.partition_point(|&start| start <= range.start);
        let starts = self.addresses[later..].iter().take_while(move |start| **start < range.end);
        [range.start].into_iter().chain(starts.copied()).map(|address| self.containing(address))
    }

    /// The function whose first instruction is at `address`; split-off parts are none.
    pub fn starting(&self, address: u64) -> Option<u32> {
        let index = self.addresses.binary_search(&address).ok()?;
        (!matches!(self.kinds[index], FunctionKind::Part(_))).then_some(index as u32)
    }

    /// Whether `address` is in the kernel image's own code.
    pub fn covers(&self, address: u64) -> bool {
        self.addresses.first().is_some_and(|&first| first <= address) && address < self.end
    }
}

/// What is always traced: threads and stacks are known by it.
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
        let functions = Functions::new(&[
            spec(0x100, FunctionKind::Syscall, true),
            spec(0x200, FunctionKind::Plain, true),
            spec(0x300, FunctionKind::Part(3), true),
            spec(0x400, FunctionKind::Plain, false),
        ])
        .unwrap();
        let traced = |address| functions.traced(functions.containing(address));
        assert_eq!([0x100, 0x20f, 0x305, 0x400, 0x999].map(traced), [true, false, true, true, false]);
        assert_eq!(functions.starting(0x300), None);
        let within = |range| functions.within(range).collect::<Vec<_>>();
        assert_eq!(within(0x104..0x110), [0]);
        assert_eq!(within(0x2f0..0x401), [1, 3, 3], "the part is its owner's");
        assert_eq!(within(0x10..0x20), [4], "in no known function");
        let all = Functions::new(&[spec(0x100, FunctionKind::Plain, false)]).unwrap();
        assert!(all.traced(all.unknown()) && !all.is_selection());
    }
}
