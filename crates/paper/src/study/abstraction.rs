//! What several functions cost together, over all their callers.

use super::Quantity;
use kerntune_profile::{FunctionIndex, How, PathKind, PathNode, Profile, Scope};
use serde::Deserialize;
use std::collections::HashMap;

/// Functions that do one thing together, as one of an older kernel did alone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abstraction {
    /// What it is called.
    pub name: String,
    /// Its functions. `foo` stands for `foo.isra.0` and the like, too.
    pub functions: Vec<String>,
    /// Functions that are called from it and are no part of it, nor is what they call.
    #[serde(default)]
    pub outside: Vec<String>,
    /// The function that is called once for each use.
    pub once: String,
}

/// What an abstraction cost in the regions of a name. Times are nanoseconds of the exact machine, where an instruction
/// takes one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it was used.
    pub uses: u64,
    /// In its own functions.
    pub self_ns: u64,
    /// In what they call.
    pub child_ns: u64,
    /// All time of the kernel's functions.
    pub kernel_ns: u64,
    /// Lookups in a cache, and those that found nothing.
    pub lookups: Option<(u64, u64)>,
}

/// Why there is no cost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The workload has no such region.
    #[error("the recording has no region {region}")]
    NoRegion {
        /// The name.
        region: String,
    },
    /// The abstraction was not used, or is called otherwise in this kernel.
    #[error("{function} was never called in region {region}: in this kernel the abstraction may have another form")]
    Unused {
        /// The function that each use calls.
        function: String,
        /// Where.
        region: String,
    },
    /// Time of functions is counted with that of their callers.
    #[error(
        "the tree of call paths was cut for its size in region {region}: what was spent where is not known"
    )]
    Cut {
        /// Where.
        region: String,
    },
}

/// A function's name without what the compiler adds to it.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

impl Cost {
    /// Of the regions called `region`. `cache` has the functions of lookups and of lookups that found nothing.
    ///
    /// Interrupts that come meanwhile are no part of it.
    ///
    /// # Errors
    /// [`CostError`].
    pub fn of(
        profile: &Profile,
        region: &str,
        of: &Abstraction,
        cache: Option<(&[String], &[String])>,
    ) -> Result<Self, CostError> {
        let tables = &profile.tables;
        let scope = Scope::named(tables, region).ok_or(CostError::NoRegion { region: region.into() })?;
        let is_in = |names: &[String]| -> Vec<bool> {
            tables.symbols.iter().map(|symbol| names.iter().any(|name| name == plain(&symbol.name))).collect()
        };
        let (own, outside) = (is_in(&of.functions), is_in(&of.outside));
        let has = |set: &[bool], function: FunctionIndex| {
            set.get(function.get() as usize).copied().unwrap_or(false)
        };
        let mut cost = Self::default();
        // Time by function in the tree, and as it was summed.
        let mut sums: HashMap<FunctionIndex, [u64; 2]> = HashMap::new();
        for row in tables.functions.iter().filter(|row| scope.contains(row.region)) {
            cost.kernel_ns += row.net_ns.get();
            sums.entry(row.function).or_default()[0] += row.net_ns.get();
        }
        let mut inside: Vec<bool> = Vec::with_capacity(tables.paths.len());
        for row in &tables.paths {
            let parent = inside.get(row.parent as usize).copied().filter(|_| row.parent != PathNode::ROOT);
            let is_function = row.kind == PathKind::Function;
            let is_own = is_function && has(&own, row.function);
            let below = parent.unwrap_or(false) && row.how != How::Interrupt && !has(&outside, row.function);
            inside.push(is_own || below);
            if !scope.contains(row.region) || !is_function {
                continue;
            }
            sums.entry(row.function).or_default()[1] += row.net_ns.get();
            match (is_own, below) {
                (true, _) => cost.self_ns += row.net_ns.get(),
                (false, true) => cost.child_ns += row.net_ns.get(),
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
        cost.lookups = cache.map(|(looked, missed)| (calls(looked), calls(missed)));
        Ok(cost)
    }

    /// One of its figures; none for hits of a kernel without a cache.
    pub fn figure(&self, what: Quantity) -> Option<f64> {
        let each = |ns: u64| ns as f64 / self.uses as f64;
        let share = |ns: u64| 100.0 * ns as f64 / self.kernel_ns.max(1) as f64;
        let total = self.self_ns + self.child_ns;
        Some(match what {
            Quantity::Itself => each(self.self_ns),
            Quantity::Child => each(self.child_ns),
            Quantity::Total => each(total),
            Quantity::SelfPercent => share(self.self_ns),
            Quantity::ChildPercent => share(self.child_ns),
            Quantity::TotalPercent => share(total),
            Quantity::HitPercent => {
                let (looked, missed) = self.lookups.filter(|(looked, _)| *looked > 0)?;
                100.0 * looked.saturating_sub(missed) as f64 / looked as f64
            }
            Quantity::Uses => self.uses as f64,
            Quantity::Kernel => self.kernel_ns as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{
        Address, FunctionStats, Instructions, KernelId, Manifest, Nanoseconds, RegionStats, Symbol, Tables,
    };

    /// Functions 0 caller, 1 walk.isra.0, 2 step, 3 hash, 4 create, 5 interrupt; net times of a tree:
    /// caller(7) → walk(10) → step(5) → hash(3); walk → create(100) → hash(1); walk → interrupt(50); caller → hash(9).
    fn profile() -> Profile {
        let names = ["caller", "walk.isra.0", "step", "hash", "create", "interrupt"];
        let tree = [
            (PathNode::ROOT, 0, How::Call, 1, 7),
            (0, 1, How::Call, 2, 10),
            (1, 2, How::Call, 4, 5),
            (2, 3, How::Call, 4, 3),
            (1, 4, How::Call, 1, 100),
            (4, 3, How::Call, 1, 1),
            (1, 5, How::Interrupt, 1, 50),
            (0, 3, How::Call, 1, 9),
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
            |(number, &(parent, function, how, calls, net)): (u32, &(u32, u32, How, u64, u64))| PathNode {
                region: 0,
                path: number,
                parent,
                kind: PathKind::Function,
                comm: String::new(),
                function: FunctionIndex(function),
                how,
                calls,
                net_ns: Nanoseconds(net),
                taken_branches: 0,
                l1i_misses: 0,
                itlb_misses: 0,
            };
        let sum = |function: u32, of: fn(&(u32, u32, How, u64, u64)) -> u64| {
            tree.iter().filter(|row| row.1 == function).map(of).sum::<u64>()
        };
        let function = |number: u32| FunctionStats {
            region: 0,
            function: FunctionIndex(number),
            calls: sum(number, |row| row.3),
            ended: 0,
            net_ns: Nanoseconds(sum(number, |row| row.4)),
            ended_net_ns: Nanoseconds(0),
            elapsed_ns: Nanoseconds(0),
            max_ns: Nanoseconds(0),
            min_ns: Nanoseconds(0),
            slowest_ns: Nanoseconds(0),
            slowest_at_ns: Nanoseconds(0),
        };
        let region = RegionStats {
            region: 0,
            name: "mix".into(),
            begin_ns: Nanoseconds(0),
            elapsed_ns: Nanoseconds(185),
            busy_ns: Nanoseconds(185),
            idle_ns: Nanoseconds(0),
            user_ns: Nanoseconds(0),
            unattributed_ns: Nanoseconds(0),
            operations: 1,
            depth: 0,
            kernel_instructions: Instructions(0),
            user_instructions: Instructions(0),
            kernel_taken_branches: 0,
            user_taken_branches: 0,
            kernel_l1i_misses: 0,
            user_l1i_misses: 0,
            kernel_itlb_misses: 0,
            user_itlb_misses: 0,
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
        let (looked, missed) = (["step".to_string()], ["hash".to_string()]);
        let cost = Cost::of(&profile(), "mix", &namei(), Some((&looked, &missed))).unwrap();
        assert_eq!((cost.uses, cost.self_ns, cost.child_ns, cost.kernel_ns), (2, 15, 3, 185));
        assert_eq!(cost.figure(Quantity::Total), Some(9.0));
        assert_eq!(cost.figure(Quantity::TotalPercent), Some(100.0 * 18.0 / 185.0));
        assert_eq!(cost.lookups, Some((4, 6)));
        assert_eq!(cost.figure(Quantity::HitPercent), Some(0.0), "more misses than lookups are no hits");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let other = Abstraction { once: "namei".into(), ..namei() };
        let error =
            |region: &str, of: &Abstraction| Cost::of(&profile(), region, of, None).unwrap_err().to_string();
        assert!(error("ls", &namei()).contains("no region ls"));
        assert!(error("mix", &other).contains("namei was never called in region mix"));
        let mut cut = profile();
        cut.tables.paths[3].net_ns.0 += 1;
        assert!(matches!(Cost::of(&cut, "mix", &namei(), None), Err(CostError::Cut { .. })));
    }
}
