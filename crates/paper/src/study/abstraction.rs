//! Cost of several functions together, over all their callers.

use super::{CacheFunctions, StudyQuantity};
use kerntune_profile::{CallKind, FunctionIndex, PathKind, PathNode, Profile, RegionScope};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// Set of functions that together do what one function of an older kernel did.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abstraction {
    /// Name of the abstraction.
    pub name: String,
    /// Names of its functions. `foo` also matches `foo.isra.0` and the like.
    pub functions: Vec<String>,
    /// Functions that it calls, but that do not belong to it; their callees do not either.
    #[serde(default)]
    pub outside: Vec<String>,
    /// Function that every use calls once.
    pub once: String,
}

/// Cost of an abstraction in the regions of a name. Times are nanoseconds of the exact machine, one
/// for each instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbstractionCost {
    /// Number of uses.
    pub uses: u64,
    /// Time in its own functions.
    pub self_ns: u64,
    /// Time in their callees.
    pub child_ns: u64,
    /// Time in all functions of the kernel.
    pub kernel_ns: u64,
    /// Time in system calls, interrupts left out.
    pub system_call_ns: u64,
    /// Time in user code.
    pub user_ns: u64,
    /// Lookups in each cache of the kernel, and those that it answered.
    pub lookups: BTreeMap<String, (u64, u64)>,
}

/// Reason that the cost of an abstraction is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The workload has no such region.
    #[error("the recording has no region {region}")]
    NoRegion {
        /// Name of the region.
        region: String,
    },
    /// The abstraction was not used, or this kernel calls it differently.
    #[error("{function} was never called in region {region}: in this kernel the abstraction may have another form")]
    Unused {
        /// Function that every use should call.
        function: String,
        /// Name of the region.
        region: String,
    },
    /// The call tree was cut, so the time of some functions counts as their callers'.
    #[error(
        "the tree of call paths was cut for its size in region {region}: what was spent where is not known"
    )]
    Cut {
        /// Name of the region.
        region: String,
    },
}

/// Returns a function's name without the compiler's suffixes.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

impl AbstractionCost {
    /// Computes the cost in the regions called `region`, in a kernel with these `caches`.
    ///
    /// Interrupts in between do not count.
    ///
    /// # Errors
    /// [`CostError`].
    pub fn of(
        profile: &Profile,
        region: &str,
        of: &Abstraction,
        caches: &BTreeMap<String, CacheFunctions>,
    ) -> Result<Self, CostError> {
        let tables = &profile.tables;
        let scope =
            RegionScope::named(tables, region).ok_or(CostError::NoRegion { region: region.into() })?;
        let is_in = |names: &[String]| -> Vec<bool> {
            tables.symbols.iter().map(|symbol| names.iter().any(|name| name == plain(&symbol.name))).collect()
        };
        let (own, outside) = (is_in(&of.functions), is_in(&of.outside));
        let has = |set: &[bool], function: FunctionIndex| {
            set.get(function.get() as usize).copied().unwrap_or(false)
        };
        let mut cost = Self::default();
        // Time of each function in the call tree and in the table of functions.
        let mut sums: HashMap<FunctionIndex, [u64; 2]> = HashMap::new();
        for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
            cost.kernel_ns += row.self_ticks.get();
            sums.entry(row.function).or_default()[0] += row.self_ticks.get();
        }
        let regions = tables.regions.iter().filter(|row| scope.contains(row.region));
        cost.user_ns = regions.map(|row| row.user_ticks.get()).sum();
        let mut inside: Vec<bool> = Vec::with_capacity(tables.paths.len());
        let mut in_call: Vec<bool> = Vec::with_capacity(tables.paths.len());
        for row in &tables.paths {
            let parent = inside.get(row.parent as usize).copied().filter(|_| row.parent != PathNode::ROOT);
            let is_function = row.kind == PathKind::Function;
            let is_own = is_function && has(&own, row.function);
            let below =
                parent.unwrap_or(false) && row.how != CallKind::Interrupt && !has(&outside, row.function);
            inside.push(is_own || below);
            let caller = in_call.get(row.parent as usize).copied().filter(|_| row.parent != PathNode::ROOT);
            let is_in_call = match row.how {
                CallKind::Syscall => true,
                CallKind::Interrupt => false,
                _ => caller.unwrap_or(false),
            };
            in_call.push(is_in_call);
            if !scope.contains(row.region) || !is_function {
                continue;
            }
            sums.entry(row.function).or_default()[1] += row.self_ticks.get();
            if is_in_call {
                cost.system_call_ns += row.self_ticks.get();
            }
            match (is_own, below) {
                (true, _) => cost.self_ns += row.self_ticks.get(),
                (false, true) => cost.child_ns += row.self_ticks.get(),
                (false, false) => {}
            }
        }
        if sums.values().any(|[summed, tree]| summed != tree) {
            return Err(CostError::Cut { region: region.into() });
        }
        let calls = |names: &[String]| -> u64 {
            let these = is_in(names);
            let rows =
                tables.functions.iter().filter(|row| scope.contains(row.region) && has(&these, row.function));
            rows.map(|row| row.calls).sum()
        };
        cost.uses = calls(std::slice::from_ref(&of.once));
        if cost.uses == 0 {
            return Err(CostError::Unused { function: of.once.clone(), region: region.into() });
        }
        let answered = |of: &CacheFunctions| {
            let looked = calls(&of.looked);
            let found = match of.found.is_empty() {
                true => looked.saturating_sub(calls(&of.missed)),
                false => calls(&of.found),
            };
            (looked, found)
        };
        cost.lookups = caches.iter().map(|(name, of)| (name.clone(), answered(of))).collect();
        Ok(cost)
    }

    /// Returns a quantity; `None` for hits of a kernel without that `cache`.
    pub fn figure(&self, what: StudyQuantity, cache: &str) -> Option<f64> {
        let each = |ns: u64| ns as f64 / self.uses as f64;
        let percent = |ns: u64, of: u64| 100.0 * ns as f64 / of.max(1) as f64;
        let share = |ns: u64| percent(ns, self.kernel_ns);
        let total = self.self_ns + self.child_ns;
        Some(match what {
            StudyQuantity::Itself => each(self.self_ns),
            StudyQuantity::Child => each(self.child_ns),
            StudyQuantity::Total => each(total),
            StudyQuantity::SelfPercent => share(self.self_ns),
            StudyQuantity::ChildPercent => share(self.child_ns),
            StudyQuantity::TotalPercent => share(total),
            StudyQuantity::HitPercent => {
                let (looked, found) = self.lookups.get(cache).filter(|(looked, _)| *looked > 0)?;
                percent(*found, *looked)
            }
            StudyQuantity::SystemCallPercent => percent(total, self.system_call_ns),
            StudyQuantity::CyclesPercent => percent(total, self.kernel_ns + self.user_ns),
            StudyQuantity::SystemPercent => percent(self.kernel_ns, self.kernel_ns + self.user_ns),
            StudyQuantity::Uses => self.uses as f64,
            StudyQuantity::Kernel => self.kernel_ns as f64,
            StudyQuantity::User => self.user_ns as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, FunctionStats, KernelId, Manifest, RegionStats, Symbol, Tables, Ticks};

    /// Functions: 0 caller, 1 walk.isra.0, 2 step, 3 hash, 4 create, 5 interrupt. Self times of the
    /// tree: caller(7) → walk(10) → step(5) → hash(3); walk → create(100) → hash(1); walk →
    /// interrupt(50); caller → hash(9).
    fn profile() -> Profile {
        let names = ["caller", "walk.isra.0", "step", "hash", "create", "interrupt"];
        let tree = [
            (PathNode::ROOT, 0, CallKind::Syscall, 1, 7),
            (0, 1, CallKind::Call, 2, 10),
            (1, 2, CallKind::Call, 4, 5),
            (2, 3, CallKind::Call, 4, 3),
            (1, 4, CallKind::Call, 1, 100),
            (4, 3, CallKind::Call, 1, 1),
            (1, 5, CallKind::Interrupt, 1, 50),
            (0, 3, CallKind::Call, 1, 9),
        ];
        let symbols = (0..).zip(names).map(|(number, name)| Symbol {
            function: FunctionIndex(number),
            name: name.into(),
            address: Address(u64::from(number) << 8),
            size: 16,
            file: None,
            module: None,
        });
        let path =
            |(number, &(parent, function, how, calls, net)): (u32, &(u32, u32, CallKind, u64, u64))| {
                PathNode {
                    path: number,
                    parent,
                    kind: PathKind::Function,
                    function: FunctionIndex(function),
                    how,
                    calls,
                    self_ticks: Ticks(net),
                    ..PathNode::default()
                }
            };
        let sum = |function: u32, of: fn(&(u32, u32, CallKind, u64, u64)) -> u64| {
            tree.iter().filter(|row| row.1 == function).map(of).sum::<u64>()
        };
        let function = |number: u32| FunctionStats {
            function: FunctionIndex(number),
            calls: sum(number, |row| row.3),
            self_ticks: Ticks(sum(number, |row| row.4)),
            ..FunctionStats::default()
        };
        let region = RegionStats {
            name: "mix".into(),
            elapsed_ticks: Ticks(300),
            busy_ticks: Ticks(300),
            user_ticks: Ticks(115),
            operations: 1,
            ..RegionStats::default()
        };
        let tables = Tables {
            symbols: symbols.collect(),
            functions: (0..6).map(function).collect(),
            paths: (0..).zip(&tree).map(path).collect(),
            regions: vec![region],
            ..Tables::default()
        };
        Profile { manifest: Manifest::new("p", KernelId::default(), "w", "emulator"), tables }
    }

    fn namei() -> Abstraction {
        Abstraction {
            name: "namei".into(),
            functions: vec!["walk".into(), "step".into()],
            outside: vec!["create".into()],
            once: "walk".into(),
        }
    }

    #[test]
    fn what_it_calls_is_its_own_but_for_what_is_outside() {
        let cache = |looked: &str, found: &[&str], missed: &[&str]| CacheFunctions {
            looked: vec![looked.into()],
            found: found.iter().map(|name| name.to_string()).collect(),
            missed: missed.iter().map(|name| name.to_string()).collect(),
        };
        let caches = BTreeMap::from([
            ("less".to_string(), cache("step", &[], &["hash"])),
            ("found".to_string(), cache("step", &["create"], &[])),
        ]);
        let cost = AbstractionCost::of(&profile(), "mix", &namei(), &caches).unwrap();
        assert_eq!((cost.uses, cost.self_ns, cost.child_ns, cost.kernel_ns), (2, 15, 3, 185));
        let figure = |what| cost.figure(what, "less");
        assert_eq!(figure(StudyQuantity::Total), Some(9.0));
        assert_eq!(figure(StudyQuantity::TotalPercent), Some(100.0 * 18.0 / 185.0));
        // The system call is `caller`, with all below it but the interrupt of 50.
        assert_eq!((cost.system_call_ns, cost.user_ns), (135, 115));
        assert_eq!(figure(StudyQuantity::SystemCallPercent), Some(100.0 * 18.0 / 135.0));
        assert_eq!(figure(StudyQuantity::CyclesPercent), Some(6.0));
        assert_eq!(figure(StudyQuantity::SystemPercent), Some(100.0 * 185.0 / 300.0));
        assert_eq!(figure(StudyQuantity::HitPercent), Some(0.0), "more misses than lookups are no hits");
        assert_eq!(cost.figure(StudyQuantity::HitPercent, "found"), Some(25.0));
        assert_eq!(cost.figure(StudyQuantity::HitPercent, "other"), None);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let other = Abstraction { once: "namei".into(), ..namei() };
        let error = |region: &str, of: &Abstraction| {
            AbstractionCost::of(&profile(), region, of, &BTreeMap::new()).unwrap_err().to_string()
        };
        assert!(error("ls", &namei()).contains("no region ls"));
        assert!(error("mix", &other).contains("namei was never called in region mix"));
        let mut cut = profile();
        cut.tables.paths[3].self_ticks.0 += 1;
        let cost = AbstractionCost::of(&cut, "mix", &namei(), &BTreeMap::new());
        assert!(matches!(cost, Err(CostError::Cut { .. })));
    }
}
