//! Figures of a profile's rows: instructions of the operations, and deferred work during them
//! (pure).

use crate::deferred::{begins, DeferralClass};
use crate::{Error, Result};
use kerntune_profile::{Anomaly, PathKind, Profile, RegionScope, Tables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernel instructions of a row, of all its operations together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFigure {
    /// Name of the row, which is that of its region.
    pub row: String,
    /// Number of operations.
    pub operations: u64,
    /// All kernel instructions during the row, deferred work included.
    pub kernel_instructions: u64,
    /// Part of these that is deferred work, by class; classes with 0 are left out.
    #[serde(rename = "put_off", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deferred: BTreeMap<DeferralClass, u64>,
}

impl RowFigure {
    /// Returns the instructions of the operations themselves, without deferred work.
    pub fn own(&self) -> u64 {
        self.kernel_instructions.saturating_sub(self.deferred.values().sum())
    }

    /// Returns the path length: instructions of one operation itself.
    pub fn path(&self) -> f64 {
        self.own() as f64 / self.operations.max(1) as f64
    }
}

/// Returns the figures of these rows, in this order. If `rows` is empty, of all rows with
/// operations, in the order in which they first ran.
///
/// # Errors
/// A row that the profile lacks; a profile with incomplete figures.
pub fn rows(profile: &Profile, rows: &[String]) -> Result<Vec<RowFigure>> {
    let tables = &profile.tables;
    let id = &profile.manifest.id;
    if !profile.manifest.capture.functions || tables.paths.is_empty() {
        return Err(Error::NotWhole { profile: id.clone(), what: "it has no call paths" });
    }
    if profile.manifest.anomaly(Anomaly::UnclosedRegions) > 0 {
        return Err(Error::NotWhole { profile: id.clone(), what: "it has regions that never ended" });
    }
    let classes = classes(tables);
    let mut names: Vec<String> = rows.to_vec();
    if names.is_empty() {
        for region in tables.regions.iter().filter(|region| region.operations > 0) {
            if !names.contains(&region.name) {
                names.push(region.name.clone());
            }
        }
    }
    let figure = |name: String| {
        let missing = || Error::NoRow { profile: id.clone(), row: name.clone() };
        let scope = RegionScope::named(tables, &name).ok_or_else(missing)?;
        let totals = scope.totals(profile);
        if totals.operations == 0 {
            return Err(missing());
        }
        let mut deferred = BTreeMap::new();
        for (node, class) in tables.paths.iter().zip(&classes) {
            if let Some(class) = class.filter(|_| scope.contains(node.region) && node.kind != PathKind::User)
            {
                *deferred.entry(class).or_default() += node.self_ticks.0;
            }
        }
        deferred.retain(|_, sum: &mut u64| *sum > 0);
        Ok(RowFigure {
            row: name,
            operations: totals.operations,
            kernel_instructions: totals.kernel_instructions,
            deferred,
        })
    };
    names.into_iter().map(figure).collect()
}

/// Returns the class of deferred work of each call path; `None` for paths of operations.
pub(crate) fn classes(tables: &Tables) -> Vec<Option<DeferralClass>> {
    let name = |at: u32| {
        let node = tables.paths.get(at as usize)?;
        let symbol =
            tables.symbols.get(node.function.0 as usize).filter(|_| node.kind == PathKind::Function)?;
        Some(symbol.name.as_str())
    };
    let mut classes: Vec<Option<DeferralClass>> = Vec::with_capacity(tables.paths.len());
    for node in &tables.paths {
        // Parents come before children.
        let above = classes.get(node.parent as usize).copied().flatten();
        let own = || match node.kind {
            PathKind::Idle => Some(DeferralClass::Idle),
            PathKind::Function => begins(name(node.path)?, name(node.parent)),
            _ => None,
        };
        classes.push(above.or_else(own));
    }
    classes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kerntune_profile::{
        Address, FunctionIndex, Instructions, KernelId, Manifest, PathNode, RegionStats, Symbol, Ticks,
    };

    /// A call path: names from the root on, calls, self instructions.
    type Path<'a> = (&'a [&'a str], u64, u64);

    /// A profile of one region per name, operations and paths.
    pub(crate) fn profile(regions: &[(&str, u64, &[Path])]) -> Profile {
        let mut tables = Tables::default();
        for (number, (name, operations, paths)) in (0..).zip(regions) {
            let busy: u64 = paths.iter().map(|(_, _, net)| net).sum();
            tables.regions.push(region(number, name, *operations, busy));
            let mut places: BTreeMap<Vec<&str>, u32> = BTreeMap::new();
            for (path, calls, net) in *paths {
                for end in 1..=path.len() {
                    let head = path[..end].to_vec();
                    let row = tables.paths.len() as u32;
                    if places.contains_key(&head) {
                        continue;
                    }
                    let parent = places.get(&path[..end - 1]).copied().unwrap_or(PathNode::ROOT);
                    let kind = match (end, path[end - 1]) {
                        (1, "interrupt") => PathKind::Interrupt,
                        (1, "idle") => PathKind::Idle,
                        (1, _) => PathKind::Thread,
                        _ => PathKind::Function,
                    };
                    let function = match kind {
                        PathKind::Function => symbol(&mut tables, path[end - 1]),
                        _ => FunctionIndex::NONE,
                    };
                    let comm = if kind == PathKind::Thread { path[0].to_owned() } else { String::new() };
                    let (calls, net) = if end == path.len() { (*calls, *net) } else { (0, 0) };
                    tables.paths.push(PathNode {
                        region: number,
                        path: row,
                        parent,
                        kind,
                        comm,
                        function,
                        calls,
                        self_ticks: Ticks(net),
                        ..PathNode::default()
                    });
                    places.insert(head, row);
                }
            }
        }
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
        manifest.capture.functions = true;
        Profile { manifest, tables }
    }

    fn symbol(tables: &mut Tables, name: &str) -> FunctionIndex {
        if let Some(known) = tables.symbols.iter().find(|symbol| symbol.name == name) {
            return known.function;
        }
        let function = FunctionIndex(tables.symbols.len() as u32);
        let file = Some(format!("kernel/{name}.c"));
        let symbol =
            Symbol { function, name: name.into(), address: Address(0x1000), size: 16, file, module: None };
        tables.symbols.push(symbol);
        function
    }

    fn region(region: u32, name: &str, operations: u64, busy: u64) -> RegionStats {
        RegionStats {
            region,
            name: name.into(),
            elapsed_ticks: Ticks(busy),
            busy_ticks: Ticks(busy),
            operations,
            kernel_instructions: Instructions(busy),
            ..RegionStats::default()
        }
    }

    #[test]
    fn what_was_put_off_is_no_part_of_the_path_and_nothing_is_lost() {
        let paths: &[(&[&str], u64, u64)] = &[
            (&["rr", "entry_SYSCALL_64", "pipe_write"], 10, 1_000),
            (&["rr", "entry_SYSCALL_64", "handle_softirqs", "net_rx_action"], 10, 500),
            (&["rr", "entry_SYSCALL_64", "handle_softirqs", "rcu_core", "rcu_do_batch"], 1, 70),
            (&["interrupt", "asm_sysvec_apic_timer_interrupt", "tick"], 1, 30),
            (&["interrupt", "asm_common_interrupt", "nic"], 1, 200),
            (&["kworker/0:1", "ret_from_fork", "kthread", "worker_thread"], 1, 40),
            (&["idle", "do_idle"], 1, 9),
        ];
        let found = rows(&profile(&[("pipe_rr", 10, paths)]), &[]).unwrap();
        let [row] = &found[..] else { panic!("{found:?}") };
        let classes = [
            (DeferralClass::Timer, 30),
            (DeferralClass::Rcu, 70),
            (DeferralClass::Thread, 40),
            (DeferralClass::Idle, 9),
        ];
        assert_eq!(row.deferred, classes.into());
        assert_eq!((row.kernel_instructions, row.own(), row.path()), (1_849, 1_700, 170.0));
    }

    #[test]
    fn rows_that_are_not_there_are_said() {
        let paths: &[(&[&str], u64, u64)] = &[(&["rr", "f"], 1, 1)];
        let mut of = profile(&[("a", 1, paths), ("nothing", 0, paths)]);
        assert_eq!(rows(&of, &[]).unwrap().len(), 1);
        for row in ["nothing", "b"] {
            assert!(matches!(rows(&of, &[row.into()]), Err(Error::NoRow { .. })));
        }
        of.manifest.capture.functions = false;
        assert!(matches!(rows(&of, &[]), Err(Error::NotWhole { .. })));
    }
}
