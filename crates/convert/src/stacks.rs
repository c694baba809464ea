//! Call paths with their figures, for viewers of stacks.
//!
//! [`CallStacks`] is the profile's table of paths, summed over the chosen regions. Nothing is
//! rounded or left out: the sum over all stacks is the regions' busy time, as `kerntune report`
//! prints it.

use kerntune_analyze::timeline::TimelineLane;
use kerntune_profile::{
    add_up, thread_name, upwards, CallNode, CallTree, FunctionIndex, PathFrame, PathKind, Profile,
    RegionScope, Symbol, Tables, Ticks,
};
use kerntune_trace::loaded::{BPF, FTRACE};
use kerntune_trace::Recording;
use std::borrow::Cow;
use std::collections::HashMap;

/// Unit of a profile's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Instructions, exactly: a tick of the emulator's virtual time is one instruction.
    Instructions,
    /// Nanoseconds of time.
    Nanoseconds,
    /// Nanoseconds of time, sampled; each sample stands for this much.
    Sampled(Ticks),
}

impl FigureUnit {
    /// Returns the unit of a profile's times.
    pub fn of(profile: &Profile) -> Self {
        let manifest = &profile.manifest;
        match &manifest.sampled {
            Some(sampled) => Self::Sampled(sampled.sample_ns),
            None if manifest.machine == "emulator" => Self::Instructions,
            None => Self::Nanoseconds,
        }
    }

    /// Returns the name of the unit for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Nanoseconds | Self::Sampled(_) => "nanoseconds",
        }
    }

    /// Returns the number of samples behind a figure; `None` if the profile was not sampled.
    pub fn samples_in(self, figure: u64) -> Option<u64> {
        match self {
            Self::Sampled(each) => Some(figure.checked_div(each.get()).unwrap_or(0)),
            _ => None,
        }
    }
}

/// Returns a one-line description of a profile: workload, kernel, machine and id.
pub fn title(profile: &Profile) -> String {
    let manifest = &profile.manifest;
    let kernel = match manifest.kernel.label.as_str() {
        "" => &manifest.kernel.version,
        label => label,
    };
    let id = manifest.id.get(..12).unwrap_or(&manifest.id);
    shown(&format!("{} on {kernel} ({}), profile {id}", manifest.workload, manifest.machine))
}

/// Reason why a profile has no call stacks to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum NoCallStacks {
    #[error("the profile has no call paths, as those imported or recorded without functions: record the workload with functions")]
    NoPaths,
    #[error("nothing ran in what was chosen: the call paths there have no time")]
    Empty,
}

/// Element of a stack: a function, a thread, or an entry such as `[interrupt]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Name to show: a function's, a thread's, or `[interrupt]` and the like.
    pub name: String,
    /// Kind of the frame.
    pub kind: PathKind,
    /// Function, if the frame is one.
    pub function: Option<FunctionIndex>,
    /// Source file, if known.
    pub file: Option<String>,
    /// File with its code: a module's (`ext4.ko`) or a user binary; `None` for the kernel's image.
    pub module: Option<String>,
    /// True if it is a function of user code.
    pub is_user: bool,
}

/// Figures of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackFigures {
    /// Number of calls.
    pub calls: u64,
    /// Self time, without callees.
    pub own: u64,
}

/// Path that ends in a frame, given as its index in [`CallStacks::frames`].
pub type CallPath = CallNode<usize, StackFigures>;

/// Call tree of some regions of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStacks {
    /// Unit of the figures.
    pub unit: FigureUnit,
    /// Distinct frames.
    pub frames: Vec<StackFrame>,
    /// Paths, parents before children.
    pub paths: Vec<CallPath>,
}

impl CallStacks {
    /// Sums up the paths of a scope's regions.
    ///
    /// # Errors
    /// A profile without paths, or without any time in the scope: a viewer would show an empty
    /// page.
    pub fn of(profile: &Profile, scope: &RegionScope) -> Result<Self, NoCallStacks> {
        let tables = &profile.tables;
        if tables.paths.is_empty() {
            return Err(NoCallStacks::NoPaths);
        }
        let mut frames = FrameTable::new(tables);
        let mut tree = CallTree::<usize, StackFigures>::default();
        // Row of the table → path.
        let mut place: Vec<Option<usize>> = vec![None; tables.paths.len()];
        for (at, row) in tables.paths.iter().enumerate().filter(|(_, row)| scope.contains(row.region)) {
            let parent = place.get(row.parent as usize).copied().flatten();
            let path = tree.child(parent, frames.number(row.frame()));
            place[at] = Some(path);
            let figures = &mut tree.nodes[path].figures;
            figures.calls = figures.calls.saturating_add(row.calls);
            figures.own = figures.own.saturating_add(row.self_ticks.get());
        }
        let stacks = Self { unit: FigureUnit::of(profile), frames: frames.all, paths: tree.nodes };
        match stacks.total() {
            0 => Err(NoCallStacks::Empty),
            _ => Ok(stacks),
        }
    }

    /// Returns the sum over all paths: the regions' busy time.
    pub fn total(&self) -> u64 {
        self.paths.iter().fold(0, |sum, path| sum.saturating_add(path.figures.own))
    }

    /// Returns the total of each path, callees included.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.paths.iter().map(|path| path.figures.own).collect();
        let parent = |at: usize, _: &u64| self.paths[at].parent.unwrap_or(usize::MAX);
        add_up(&mut sums, parent, |above, below| *above = above.saturating_add(*below));
        sums
    }

    /// Returns the frames of a path as indices in [`CallStacks::frames`], outermost first.
    pub fn stack(&self, path: usize) -> Vec<usize> {
        let mut frames: Vec<usize> = upwards(&self.paths, path).map(|path| path.frame).collect();
        frames.reverse();
        frames
    }

    /// Returns the paths with self time, with their indices.
    pub fn taken(&self) -> impl Iterator<Item = (usize, &CallPath)> {
        self.paths.iter().enumerate().filter(|(_, path)| path.figures.own > 0)
    }
}

/// Distinct frames while they are collected.
struct FrameTable<'a> {
    tables: &'a Tables,
    all: Vec<StackFrame>,
    numbers: HashMap<PathFrame<&'a str, FunctionIndex>, usize>,
}

impl<'a> FrameTable<'a> {
    fn new(tables: &'a Tables) -> Self {
        Self { tables, all: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, frame: PathFrame<&'a str, FunctionIndex>) -> usize {
        let Self { tables, all, numbers } = self;
        *numbers.entry(frame).or_insert_with(|| {
            let name = match frame {
                PathFrame::Thread(comm) => shown(&thread_name(comm)),
                PathFrame::Function(function) => function_name(tables, function),
                _ => frame.kind().stand_in().to_owned(),
            };
            let function = frame.function().copied();
            let symbol = function.and_then(|function| tables.symbols.get(function.get() as usize));
            all.push(StackFrame {
                name,
                kind: frame.kind(),
                function,
                file: symbol.and_then(|symbol| symbol.file.clone()),
                module: symbol.and_then(object),
                is_user: symbol.is_some_and(|symbol| symbol.binary().is_some()),
            });
            all.len() - 1
        })
    }
}

/// Returns the name of a CPU's occupant for timelines.
pub(crate) fn lane_name(recording: &Recording, lane: TimelineLane) -> Cow<'_, str> {
    match lane {
        TimelineLane::Interrupt => PathKind::Interrupt.stand_in().into(),
        TimelineLane::Idle => PathKind::Idle.stand_in().into(),
        TimelineLane::Unknown => "[thread not known]".into(),
        TimelineLane::Thread(thread) => {
            recording.threads.get(thread as usize).map_or("".into(), |thread| thread_name(&thread.comm))
        }
    }
}

/// Returns the file with a function's code: a module's or a user binary; `None` for the kernel's
/// image.
fn object(symbol: &Symbol) -> Option<String> {
    match symbol.loaded_module() {
        Some(module @ (BPF | FTRACE)) => Some(module.into()),
        Some(module) => Some(format!("{module}.ko")),
        None => symbol.module.clone(),
    }
}

/// Returns the name of a function for viewers; a function outside of the kernel's image gets the
/// name of its module or binary.
pub fn function_name(tables: &Tables, function: FunctionIndex) -> String {
    let name = shown(tables.name(function));
    let symbol = tables.symbols.get(function.get() as usize);
    match symbol.and_then(|symbol| symbol.module.as_deref()) {
        Some(module) => format!("{name} [{}]", shown(module.rsplit('/').next().unwrap_or(module))),
        None => name,
    }
}

/// Replaces control characters, because viewers print names as they are.
fn shown(name: &str) -> String {
    name.replace(char::is_control, "?")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kerntune_profile::{Address, KernelId, Manifest, PathNode, RegionStats, Symbol, TreeChildren};

    /// Two regions of `rr`: a system call with a recursion, user time, an interrupt; 1000
    /// instructions in all.
    pub(crate) fn profile() -> Profile {
        let names = [("sys", Some("a/sys.c")), ("walk", None), ("irq;x", Some("irq.c"))];
        let symbol = |(at, (name, file)): (usize, &(&str, Option<&str>))| Symbol {
            function: FunctionIndex(at as u32),
            name: (*name).into(),
            address: Address(0x1000 * (at as u64 + 1)),
            size: 16,
            file: file.map(Into::into),
            module: None,
        };
        let none = FunctionIndex::NONE;
        let rows = [
            // region, parent, kind, function, calls, own
            (0, PathNode::ROOT, PathKind::Thread, none, 0, 0),
            (0, 0, PathKind::Function, FunctionIndex(0), 2, 100),
            (0, 1, PathKind::Function, FunctionIndex(1), 2, 30),
            (0, 2, PathKind::Function, FunctionIndex(1), 1, 20),
            (0, 0, PathKind::User, none, 0, 400),
            (1, PathNode::ROOT, PathKind::Thread, none, 0, 0),
            (1, 5, PathKind::Function, FunctionIndex(0), 1, 50),
            (1, PathNode::ROOT, PathKind::Interrupt, none, 0, 0),
            (1, 7, PathKind::Function, FunctionIndex(2), 3, 400),
        ];
        let row = |(at, &(region, parent, kind, function, calls, own)): (usize, &_)| PathNode {
            region,
            path: at as u32,
            parent,
            kind,
            comm: if kind == PathKind::Thread { "rr".into() } else { String::new() },
            function,
            calls,
            self_ticks: Ticks(own),
            ..PathNode::default()
        };
        let region = |(at, (name, busy)): (usize, &(&str, u64))| RegionStats {
            region: at as u32,
            name: (*name).into(),
            begin_ticks: Ticks(1000 * at as u64),
            elapsed_ticks: Ticks(*busy),
            busy_ticks: Ticks(*busy),
            operations: 1,
            ..RegionStats::default()
        };
        let tables = Tables {
            symbols: names.iter().enumerate().map(symbol).collect(),
            paths: rows.iter().enumerate().map(row).collect(),
            regions: [("one", 550), ("two", 450)].iter().enumerate().map(region).collect(),
            ..Tables::default()
        };
        Profile { manifest: Manifest::new("p1", KernelId::default(), "rr", "emulator"), tables }
    }

    pub(crate) fn stacks() -> CallStacks {
        let profile = profile();
        CallStacks::of(&profile, &RegionScope::all(&profile.tables)).unwrap()
    }

    #[test]
    fn regions_are_summed_and_nothing_is_lost() {
        let stacks = stacks();
        assert_eq!((stacks.total(), stacks.unit), (1000, FigureUnit::Instructions));
        let names = |at| stacks.stack(at).into_iter().map(|at| stacks.frames[at].name.as_str());
        let all: Vec<(String, u64, u64)> = (stacks.paths.iter().enumerate())
            .map(|(at, path)| (names(at).collect::<Vec<_>>().join("/"), path.figures.own, path.figures.calls))
            .collect();
        let expected = [
            ("rr", 0, 0),
            ("rr/sys", 150, 3),
            ("rr/sys/walk", 30, 2),
            ("rr/sys/walk/walk", 20, 1),
            ("rr/[user]", 400, 0),
            ("[interrupt]", 0, 0),
            ("[interrupt]/irq;x", 400, 3),
        ];
        assert_eq!(all, expected.map(|(name, own, calls)| (name.to_owned(), own, calls)));
        assert_eq!(stacks.inclusive(), [600, 200, 50, 20, 400, 400, 400]);
        assert_eq!(TreeChildren::new(&stacks.paths).roots, [0, 5]);
    }

    /// Names that programs give themselves.
    #[test]
    fn no_thread_is_added_to_the_interrupts() {
        let mut profile = profile();
        let mut names = ["[interrupt]", "   "].into_iter();
        for row in profile.tables.paths.iter_mut().filter(|row| row.kind == PathKind::Thread) {
            row.comm = names.next().unwrap().into();
        }
        let stacks = CallStacks::of(&profile, &RegionScope::all(&profile.tables)).unwrap();
        let roots = TreeChildren::new(&stacks.paths).roots;
        let roots: Vec<&str> = roots.iter().map(|at| &*stacks.frames[stacks.paths[*at].frame].name).collect();
        assert_eq!(roots, ["\"[interrupt]\"", "\"   \"", "[interrupt]"]);
        let mut folded = Vec::new();
        crate::folded::write(&stacks, &mut folded).unwrap();
        let folded = String::from_utf8(folded).unwrap();
        let interrupts = folded.lines().filter(|line| line.starts_with("[interrupt];")).collect::<Vec<_>>();
        assert_eq!(interrupts, ["[interrupt];irq:x 400"], "{folded}");
        let mut callgrind = Vec::new();
        crate::callgrind::write(&stacks, "rr", "kerntune 0", &mut callgrind).unwrap();
        let callgrind = String::from_utf8(callgrind).unwrap();
        let fns = callgrind.lines().filter(|line| line.starts_with("fn=") || line.starts_with("cfn="));
        assert!(fns.clone().count() > 4 && fns.clone().all(|line| line.trim_end() == line), "{callgrind}");
    }

    #[test]
    fn a_region_alone_and_none() {
        let mut profile = profile();
        let one = RegionScope::named(&profile.tables, "two").unwrap();
        assert_eq!(CallStacks::of(&profile, &one).unwrap().total(), 450);
        let nothing = RegionScope::rows(&profile.tables, |_| false);
        assert_eq!(CallStacks::of(&profile, &nothing), Err(NoCallStacks::Empty));
        profile.tables.paths.clear();
        assert_eq!(CallStacks::of(&profile, &one), Err(NoCallStacks::NoPaths));
    }

    #[test]
    fn what_was_sampled_has_samples() {
        let unit = FigureUnit::Sampled(Ticks(1000));
        assert_eq!((unit.name(), unit.samples_in(5000)), ("nanoseconds", Some(5)));
        assert_eq!(
            (FigureUnit::Instructions.name(), FigureUnit::Instructions.samples_in(5)),
            ("instructions", None)
        );
    }
}
