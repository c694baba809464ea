//! Figures of a program: user code, system calls and page faults of each row (pure).

use crate::figures::{classes, rows, RowFigure};
use crate::{Error, Result};
use kerntune_profile::{
    source_name, system_call, CallKind, PathKind, PathNode, Profile, RegionScope, Symbol, Tables,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Costs of a row, of all its operations together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFigure {
    /// Kernel instructions, and those of deferred work among them.
    #[serde(flatten)]
    pub kernel: RowFigure,
    /// Instructions of user code, of all programs.
    pub user_instructions: u64,
    /// Self instructions of the guarded programs' functions, with those of libraries that they call;
    /// other user code by thread name, in brackets.
    pub functions: BTreeMap<String, u64>,
    /// System calls by name and calling function.
    pub system_calls: Vec<CallFigure>,
    /// Page faults by kind and the function that caused them, itself or in a system call.
    pub page_faults: Vec<FaultFigure>,
}

/// System calls of a name by a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFigure {
    /// Name of the system call.
    pub name: String,
    /// Innermost user function below which they were made; a thread name in brackets if there is
    /// none.
    pub caller: String,
    /// Number of calls.
    pub calls: u64,
    /// Kernel instructions of these calls, without deferred work and page faults.
    pub instructions: u64,
}

/// Page faults of a kind by a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultFigure {
    /// Kind of page.
    pub kind: FaultKind,
    /// As [`CallFigure::caller`].
    pub caller: String,
    /// Number of faults.
    pub faults: u64,
    /// Kernel instructions of these faults, without deferred work. 0 for faults of the second kind
    /// at a place that has both: those of the first kind hold them.
    pub instructions: u64,
}

/// Kind of page that a fault asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// New memory: a page of zeros.
    #[default]
    Memory,
    /// A page of a file, a copy of one, or one that is only unprotected. How many there are depends
    /// on where the linker put code and data.
    File,
}

impl ProgramFigure {
    /// Returns the instructions of the operations themselves: kernel without deferred work, and
    /// user code.
    pub fn whole(&self) -> u64 {
        self.kernel.own().saturating_add(self.user_instructions)
    }

    /// Returns the number of system calls.
    pub fn calls(&self) -> u64 {
        self.system_calls.iter().fold(0, |sum, call| sum.saturating_add(call.calls))
    }

    /// Returns the number of page faults of a kind.
    pub fn faults(&self, kind: FaultKind) -> u64 {
        let of_kind = self.page_faults.iter().filter(|of| of.kind == kind);
        of_kind.fold(0, |sum, of| sum.saturating_add(of.faults))
    }
}

/// Returns the figures of these rows, as [`crate::rows`] orders and checks them.
///
/// # Errors
/// As of [`crate::rows`].
pub fn program_rows(profile: &Profile, names: &[String]) -> Result<Vec<ProgramFigure>> {
    let paths = PathPlaces::of(&profile.tables);
    rows(profile, names)?.into_iter().map(|kernel| figure(profile, &paths, kernel)).collect()
}

fn figure(profile: &Profile, paths: &PathPlaces, kernel: RowFigure) -> Result<ProgramFigure> {
    let tables = &profile.tables;
    let missing = || Error::NoRow { profile: profile.manifest.id.clone(), row: kernel.row.clone() };
    let scope = RegionScope::named(tables, &kernel.row).ok_or_else(missing)?;
    let regions = scope.outermost().iter().filter_map(|region| tables.regions.get(*region as usize));
    let user_instructions = regions.map(|region| region.user_instructions.0).sum();
    let mut found = ProgramFigure { kernel, user_instructions, ..ProgramFigure::default() };
    let mut calls: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    let mut faults: BTreeMap<(FaultKind, &str), (u64, u64)> = BTreeMap::new();
    for (at, node) in tables.paths.iter().enumerate().filter(|(_, node)| scope.contains(node.region)) {
        let caller = paths.caller(at);
        match &paths.places[at] {
            PathOwner::User => {
                let sum = found.functions.entry(caller.to_owned()).or_default();
                *sum += node.self_ticks.0;
            }
            PathOwner::Call { name, is_entry } => {
                let own = calls.entry((name, caller)).or_default();
                own.0 += if *is_entry { node.calls } else { 0 };
                own.1 += node.self_ticks.0;
                // What remains at the way in are calls whose function is inlined into it.
                if *is_entry && name != ENTRY {
                    let way_in = calls.entry((ENTRY, caller)).or_default();
                    way_in.0 = way_in.0.saturating_sub(node.calls);
                }
            }
            PathOwner::Fault { fault, part } => {
                let kind = if paths.has_memory(*fault) { FaultKind::Memory } else { FaultKind::File };
                faults.entry((kind, caller)).or_default().1 += node.self_ticks.0;
                if *fault == at {
                    faults.entry((FaultKind::File, caller)).or_default().0 += node.calls;
                }
                if *part == FaultPart::Memory {
                    faults.entry((FaultKind::Memory, caller)).or_default().0 += node.calls;
                    let file = faults.entry((FaultKind::File, caller)).or_default();
                    file.0 = file.0.saturating_sub(node.calls);
                }
            }
            PathOwner::Other => {}
        }
    }
    found.functions.retain(|_, sum| *sum > 0);
    let call = |((name, caller), (calls, instructions)): ((&str, &str), (u64, u64))| CallFigure {
        name: name.to_owned(),
        caller: caller.to_owned(),
        calls,
        instructions,
    };
    found.system_calls = calls.into_iter().filter(|(_, sums)| *sums != (0, 0)).map(call).collect();
    let fault = |((kind, caller), (faults, instructions)): ((FaultKind, &str), (u64, u64))| FaultFigure {
        kind,
        caller: caller.to_owned(),
        faults,
        instructions,
    };
    found.page_faults = faults.into_iter().filter(|(_, sums)| *sums != (0, 0)).map(fault).collect();
    Ok(found)
}

/// Owner of a call path's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathOwner {
    /// User code.
    User,
    /// A system call.
    Call {
        name: String,
        /// True for the function that implements it.
        is_entry: bool,
    },
    /// A page fault.
    Fault {
        /// Row of the path with which the fault begins.
        fault: usize,
        part: FaultPart,
    },
    /// Deferred work, interrupts, and ways into the kernel that are neither.
    Other,
}

/// Part of a page fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultPart {
    /// The function that maps a new page of memory.
    Memory,
    /// Below a function that maps a page which is not new; it calls the same function in the end.
    Copy,
    Rest,
}

/// Places of all call paths.
struct PathPlaces<'p> {
    places: Vec<PathOwner>,
    /// Innermost user function of each path, or the name of its thread.
    callers: Vec<Option<&'p str>>,
    /// Thread names in brackets.
    threads: BTreeMap<&'p str, String>,
    roots: Vec<&'p str>,
    with_memory: Vec<bool>,
}

impl<'p> PathPlaces<'p> {
    fn of(tables: &'p Tables) -> Self {
        let mut all = Self {
            places: Vec::with_capacity(tables.paths.len()),
            callers: Vec::with_capacity(tables.paths.len()),
            threads: BTreeMap::new(),
            roots: Vec::with_capacity(tables.paths.len()),
            with_memory: vec![false; tables.paths.len()],
        };
        let deferred = classes(tables);
        // Parents come before children.
        for (at, node) in tables.paths.iter().enumerate() {
            let parent = (node.parent != PathNode::ROOT).then_some(node.parent as usize);
            let symbol =
                tables.symbols.get(node.function.0 as usize).filter(|_| node.kind == PathKind::Function);
            let above = parent.map(|parent| (all.places[parent].clone(), all.callers[parent]));
            let (above, caller) = above.unwrap_or((PathOwner::Other, None));
            let own = symbol.filter(|symbol| !symbol.is_kernel()).map(|symbol| symbol.name.as_str());
            let root = parent.map_or(node.comm.as_str(), |parent| all.roots[parent]);
            all.threads.entry(root).or_insert_with(|| format!("[{root}]"));
            all.roots.push(root);
            all.callers.push(own.or(caller));
            let owner = match (deferred[at], symbol) {
                (Some(_), _) => PathOwner::Other,
                (None, _) if node.kind == PathKind::User => PathOwner::User,
                (None, Some(_)) if own.is_some() => PathOwner::User,
                (None, Some(symbol)) => owner(at, node, symbol, &above),
                (None, None) => PathOwner::Other,
            };
            if let PathOwner::Fault { fault, part: FaultPart::Memory } = owner {
                all.with_memory[fault] = true;
            }
            all.places.push(owner);
        }
        all
    }

    fn caller(&self, at: usize) -> &str {
        let thread = self.threads.get(self.roots[at]).map_or("[]", String::as_str);
        self.callers[at].unwrap_or(thread)
    }

    fn has_memory(&self, fault: usize) -> bool {
        self.with_memory[fault]
    }
}

/// Functions that map a page which is not new.
const COPIES: [&str; 4] = ["finish_fault", "do_wp_page", "wp_page_copy", "do_cow_fault"];

/// Returns the place of a kernel function's path below `above`.
fn owner(at: usize, node: &PathNode, symbol: &Symbol, above: &PathOwner) -> PathOwner {
    let name = source_name(&symbol.name).0;
    if node.how == CallKind::Interrupt {
        return PathOwner::Other;
    }
    if node.how == CallKind::Exception && name.contains("page_fault") {
        return PathOwner::Fault { fault: at, part: FaultPart::Rest };
    }
    match above {
        PathOwner::Fault { fault, part } => {
            let part = match part {
                FaultPart::Copy => FaultPart::Copy,
                _ if COPIES.contains(&name) => FaultPart::Copy,
                _ if name == "folio_add_new_anon_rmap" => FaultPart::Memory,
                _ => FaultPart::Rest,
            };
            PathOwner::Fault { fault: *fault, part }
        }
        PathOwner::Call { name: known, .. } => match system_call(&symbol.name).filter(|_| known == ENTRY) {
            Some((name, _)) => PathOwner::Call { name, is_entry: true },
            None => PathOwner::Call { name: known.clone(), is_entry: false },
        },
        PathOwner::User | PathOwner::Other if node.how == CallKind::Syscall => {
            PathOwner::Call { name: ENTRY.to_owned(), is_entry: true }
        }
        PathOwner::User | PathOwner::Other => PathOwner::Other,
    }
}

/// Name for the way into system calls, which all share.
pub(super) const ENTRY: &str = "[entry]";
