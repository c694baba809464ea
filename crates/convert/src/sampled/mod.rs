//! Tables of a sampled profile from stacks with weights, for importers of other tools' samples.

#[cfg(test)]
mod tests;

use kerntune_profile::{
    CallArc, CallKind, FunctionIndex, FunctionStats, PathKind, PathNode, RegionStats, Symbol, Tables,
    ThreadKind, ThreadStats, Ticks,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of call paths; further ones are counted for their callers.
const MAX_PATHS: usize = 1 << 21;

/// Root of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackRoot<'a> {
    /// Threads of this name.
    Thread(&'a str),
    /// Interrupts.
    Interrupt,
    /// Idle tasks.
    Idle,
}

/// Frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackFrame {
    /// Function by its number.
    Function(u32),
    /// User mode without a known function.
    User,
    /// Code without a known function.
    Unattributed,
}

#[derive(Debug, Clone, Copy)]
struct Path {
    parent: u32,
    kind: PathKind,
    /// Name of a thread, or function.
    number: u32,
    own: u64,
}

/// Builder of a sampled profile's tables.
///
/// ```
/// use kerntune_convert::sampled::{SampledStacks, StackFrame, StackRoot};
/// use kerntune_profile::{Symbol, Ticks};
/// let mut stacks = SampledStacks::default();
/// let read = stacks.function("read", None, None);
/// stacks.add(StackRoot::Thread("work"), &[StackFrame::Function(read)], 3);
/// let tables = stacks.finish("samples", 10).unwrap();
/// assert_eq!(tables.functions[0].self_ticks, Ticks(30));
/// ```
#[derive(Debug, Default)]
pub struct SampledStacks {
    symbols: Vec<Symbol>,
    functions: FxHashMap<(String, Option<String>), u32>,
    /// Self and total samples, and counted calls, of each function.
    figures: Vec<[u64; 3]>,
    arcs: FxHashMap<(u32, u32), u64>,
    paths: Vec<Path>,
    places: FxHashMap<(u32, PathKind, u32), u32>,
    comms: Vec<String>,
    comm_numbers: FxHashMap<String, u32>,
    samples: u64,
    folded: u64,
    overflowed: bool,
    seen: FxHashSet<u32>,
    seen_arcs: FxHashSet<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

impl SampledStacks {
    /// Returns the number of a function, given its module or binary (`None` for the kernel's image)
    /// and source file.
    pub fn function(&mut self, name: &str, module: Option<&str>, file: Option<&str>) -> u32 {
        let key = (name.to_string(), module.map(str::to_string));
        if let Some(number) = self.functions.get(&key) {
            return *number;
        }
        let number = self.symbols.len() as u32;
        self.symbols.push(Symbol {
            function: FunctionIndex(number),
            name: name.into(),
            module: key.1.clone(),
            file: file.map(str::to_string),
            ..Symbol::default()
        });
        self.figures.push([0; 3]);
        self.functions.insert(key, number);
        number
    }

    /// Returns the number of samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of samples whose path had no room, and which count for a caller.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Returns the number of functions so far.
    pub fn functions(&self) -> usize {
        self.symbols.len()
    }

    /// Adds calls of a function that were counted apart from the samples.
    pub fn add_calls(&mut self, function: u32, calls: u64) {
        let sum = &mut self.figures[function as usize][2];
        *sum = sum.saturating_add(calls);
    }

    /// Adds a stack, outermost frame first.
    pub fn add(&mut self, root: StackRoot<'_>, frames: &[StackFrame], samples: u64) {
        let Some(sum) = self.samples.checked_add(samples) else {
            self.overflowed = true;
            return;
        };
        self.samples = sum;
        let mut at = match root {
            StackRoot::Thread(name) => {
                let name = self.comm(name);
                self.path(NONE, PathKind::Thread, name)
            }
            StackRoot::Interrupt => self.path(NONE, PathKind::Interrupt, 0),
            StackRoot::Idle => self.path(NONE, PathKind::Idle, 0),
        };
        self.seen.clear();
        self.seen_arcs.clear();
        let (mut caller, mut crowded) = (NONE, false);
        for frame in frames {
            let (kind, number) = match *frame {
                StackFrame::Function(function) => (PathKind::Function, function),
                StackFrame::User => (PathKind::User, 0),
                StackFrame::Unattributed => (PathKind::Unattributed, 0),
            };
            let below = self.path(at, kind, number);
            crowded |= below == at;
            at = below;
            let StackFrame::Function(function) = *frame else {
                caller = NONE;
                continue;
            };
            if self.seen.insert(function) {
                self.figures[function as usize][1] += samples;
            }
            if self.seen_arcs.insert((caller, function)) {
                *self.arcs.entry((caller, function)).or_default() += samples;
            }
            caller = function;
        }
        if frames.is_empty() {
            at = self.path(at, PathKind::Unattributed, 0);
        }
        if let Some(StackFrame::Function(function)) = frames.last() {
            self.figures[*function as usize][0] += samples;
        }
        if crowded {
            self.folded += samples;
        }
        self.paths[at as usize].own += samples;
    }

    fn comm(&mut self, name: &str) -> u32 {
        if let Some(number) = self.comm_numbers.get(name) {
            return *number;
        }
        let number = self.comms.len() as u32;
        self.comms.push(name.into());
        self.comm_numbers.insert(name.into(), number);
        number
    }

    fn path(&mut self, parent: u32, kind: PathKind, number: u32) -> u32 {
        let key = (parent, kind, number);
        if let Some(path) = self.places.get(&key) {
            return *path;
        }
        if self.paths.len() >= MAX_PATHS && parent != NONE {
            return parent;
        }
        let path = self.paths.len() as u32;
        self.paths.push(Path { parent, kind, number, own: 0 });
        self.places.insert(key, path);
        path
    }

    /// Returns the tables, with one region of this name, in which each sample stands for `each` ns;
    /// `None` if the time of all samples overflows 64 bits.
    pub fn finish(self, region: &str, each: u64) -> Option<Tables> {
        let busy = self.samples.checked_mul(each).filter(|_| !self.overflowed)?;
        let time = |samples: u64| Ticks(samples * each);
        let of_kind =
            |kind| time(self.paths.iter().filter(|path| path.kind == kind).map(|path| path.own).sum());
        let threads = self.threads(each);
        let region = RegionStats {
            name: region.into(),
            elapsed_ticks: Ticks(busy),
            busy_ticks: Ticks(busy),
            user_ticks: of_kind(PathKind::User),
            unattributed_ticks: of_kind(PathKind::Unattributed),
            ..RegionStats::default()
        };
        let functions = (0..).zip(&self.figures).map(|(number, &[own, total, calls])| FunctionStats {
            function: FunctionIndex(number),
            calls,
            self_ticks: time(own),
            total_ticks: time(total),
            ..FunctionStats::default()
        });
        let index = |number| if number == NONE { FunctionIndex::NONE } else { FunctionIndex(number) };
        let mut arcs: Vec<CallArc> = self
            .arcs
            .iter()
            .map(|(&(caller, callee), &samples)| CallArc {
                caller: index(caller),
                callee: index(callee),
                how: CallKind::Call,
                total_ticks: time(samples),
                ..CallArc::default()
            })
            .collect();
        arcs.sort_unstable_by_key(|arc| (arc.caller, arc.callee));
        let path = |(number, path): (u32, &Path)| PathNode {
            path: number,
            parent: if path.parent == NONE { PathNode::ROOT } else { path.parent },
            kind: path.kind,
            comm: match path.kind {
                PathKind::Thread => self.comms[path.number as usize].clone(),
                _ => String::new(),
            },
            function: match path.kind {
                PathKind::Function => FunctionIndex(path.number),
                _ => FunctionIndex::NONE,
            },
            self_ticks: time(path.own),
            ..PathNode::default()
        };
        Some(Tables {
            functions: functions.collect(),
            arcs,
            paths: (0..).zip(&self.paths).map(path).collect(),
            threads,
            regions: vec![region],
            symbols: self.symbols,
            ..Tables::default()
        })
    }

    fn threads(&self, each: u64) -> Vec<ThreadStats> {
        // Own and user samples of each root. Parents come before children.
        let mut roots: Vec<u32> = Vec::with_capacity(self.paths.len());
        let mut sums: FxHashMap<u32, [u64; 2]> = FxHashMap::default();
        for (number, path) in (0..).zip(&self.paths) {
            let root = if path.parent == NONE { number } else { roots[path.parent as usize] };
            roots.push(root);
            let sum = sums.entry(root).or_default();
            sum[0] += path.own;
            sum[1] += if path.kind == PathKind::User { path.own } else { 0 };
        }
        let mut rows = Vec::new();
        for (number, path) in (0..).zip(&self.paths).filter(|(_, path)| path.parent == NONE) {
            let (kind, comm) = match path.kind {
                PathKind::Interrupt => (ThreadKind::Interrupt, "[interrupt]"),
                PathKind::Idle => (ThreadKind::Idle, "[idle task]"),
                _ => (ThreadKind::Thread, self.comms[path.number as usize].as_str()),
            };
            let [own, user] = sums.get(&number).copied().unwrap_or_default();
            rows.push(ThreadStats {
                thread: rows.len() as u32,
                kind,
                comm: comm.into(),
                self_ticks: Ticks(own * each),
                user_ticks: Ticks(user * each),
                ..ThreadStats::default()
            });
        }
        rows
    }
}
