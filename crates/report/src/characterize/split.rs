//! Division of time into parts: each instant is in one part, so that the parts sum to the elapsed
//! time.
//!
//! The parts are read from the tree of call paths, in which an interrupt's path begins at its own
//! root, whatever it interrupted:
//!
//! - below the root of interrupts: hard interrupt, but softirq from a softirq's function on;
//! - below the roots of idle tasks and threads: softirq from a softirq's function on;
//! - elsewhere below a thread: user code, or the kind of the outermost kernel entry (a page fault
//!   within a system call counts as the system call); paths without an entry are kernel threads;
//! - the rest of the busy time is in no path.

use crate::view::is_user;
use kerntune_profile::{
    source_name, CallKind, PathKind, PathNode, Profile, RegionScope, ScopeTotals, Symbol,
};
use serde::Serialize;

/// Part of the time; each instant is in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimePart {
    User,
    Syscall,
    Exception,
    KernelThread,
    /// Kernel code with no function open.
    Unattributed,
    /// Idle task while the CPU was not halted.
    IdleTask,
    /// Kernel code that is not divided further.
    Kernel,
    Interrupt,
    SoftirqAfterInterrupt,
    SoftirqElsewhere,
    NotSampled,
    /// Busy time in no path: 0 in a sound profile.
    NoPath,
    Idle,
}

impl TimePart {
    const ALL: [TimePart; 13] = [
        TimePart::User,
        TimePart::Syscall,
        TimePart::Exception,
        TimePart::KernelThread,
        TimePart::Unattributed,
        TimePart::IdleTask,
        TimePart::Kernel,
        TimePart::Interrupt,
        TimePart::SoftirqAfterInterrupt,
        TimePart::SoftirqElsewhere,
        TimePart::NotSampled,
        TimePart::NoPath,
        TimePart::Idle,
    ];

    /// Returns the title in the table.
    pub fn title(self) -> &'static str {
        match self {
            TimePart::User => "user code",
            TimePart::Syscall => "kernel: system calls",
            TimePart::Exception => "kernel: exceptions of user code (page faults …)",
            TimePart::KernelThread => "kernel: kernel threads, and threads that begin",
            TimePart::Unattributed => "kernel: in no known function",
            TimePart::IdleTask => "kernel: idle task, not halted",
            TimePart::Kernel => "kernel: not told apart",
            TimePart::Interrupt => "hard interrupts",
            TimePart::SoftirqAfterInterrupt => "softirqs on the way out of interrupts",
            TimePart::SoftirqElsewhere => "softirqs elsewhere (after system calls, ksoftirqd)",
            TimePart::NotSampled => "not sampled",
            TimePart::NoPath => "in no call path",
            TimePart::Idle => "idle: CPU halted",
        }
    }

    /// Returns the group of the part, as `top` and `vmstat` count.
    pub fn group(self) -> PartGroup {
        match self {
            TimePart::User => PartGroup::User,
            TimePart::Interrupt => PartGroup::Interrupt,
            TimePart::SoftirqAfterInterrupt | TimePart::SoftirqElsewhere => PartGroup::Softirq,
            TimePart::Idle => PartGroup::Idle,
            TimePart::NotSampled | TimePart::NoPath => PartGroup::Unknown,
            _ => PartGroup::Kernel,
        }
    }

    fn is_softirq(self) -> bool {
        self.group() == PartGroup::Softirq
    }

    /// Checks whether the row is shown even if it is 0.
    fn is_always_there(self) -> bool {
        !matches!(self, TimePart::Unattributed | TimePart::Kernel | TimePart::NotSampled | TimePart::NoPath)
    }
}

/// Group of parts, as `top` and `vmstat` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PartGroup {
    User,
    Kernel,
    Interrupt,
    Softirq,
    Idle,
    Unknown,
}

impl PartGroup {
    pub const ALL: [PartGroup; 6] = [
        PartGroup::User,
        PartGroup::Kernel,
        PartGroup::Interrupt,
        PartGroup::Softirq,
        PartGroup::Idle,
        PartGroup::Unknown,
    ];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            PartGroup::User => "user",
            PartGroup::Kernel => "kernel",
            PartGroup::Interrupt => "interrupt",
            PartGroup::Softirq => "softirq",
            PartGroup::Idle => "idle",
            PartGroup::Unknown => "unknown",
        }
    }
}

/// Functions in which softirqs run, whoever calls them (kernel/softirq.c): everything below them is
/// softirq. Linux 6.1 uses some other names.
const SOFTIRQ: [&str; 5] =
    ["handle_softirqs", "__do_softirq", "__softirqentry_text_start", "do_softirq", "run_ksoftirqd"];

/// Name of the thread that stands for lost samples, in profiles of the running kernel.
const NOT_SAMPLED: &str = "[not sampled]";

/// Time of a part. Negative only for [`TimePart::NoPath`] of an unsound profile, whose paths exceed
/// the busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartTime {
    pub part: TimePart,
    pub ns: i128,
}

/// Divides the elapsed time into parts, in order. Parts that this kind of profile always has are
/// included even if 0.
pub(crate) fn split(profile: &Profile, scope: &RegionScope, totals: &ScopeTotals) -> Vec<PartTime> {
    let mut sums = [0i128; TimePart::ALL.len()];
    let mut add = |part: TimePart, ns: i128| sums[part as usize] += ns;
    let busy = i128::from(totals.busy_ticks.get());
    let mut attributed = 0;
    for (row, part) in profile.tables.paths.iter().zip(parts(profile)) {
        if scope.contains(row.region) {
            let ns = i128::from(row.self_ticks.get());
            add(part, ns);
            attributed += ns;
        }
    }
    // Without functions there are no paths, but the emulator's instruction counts still separate
    // user and kernel code.
    if attributed == 0 && !profile.manifest.capture.functions {
        let (kernel, user) = instructions(profile, scope);
        if i128::from(kernel) + i128::from(user) == busy {
            add(TimePart::User, user.into());
            add(TimePart::Kernel, kernel.into());
            attributed = busy;
        }
    }
    add(TimePart::NoPath, busy - attributed);
    add(TimePart::Idle, totals.idle_ticks.get().into());
    // Time that was not divided has no parts, rather than parts of 0.
    let divided = attributed != 0 && sums[TimePart::Kernel as usize] == 0;
    let is_there = |part: &TimePart| {
        sums[*part as usize] != 0 || (part.is_always_there() && (divided || *part == TimePart::Idle))
    };
    let slice = |part: TimePart| PartTime { part, ns: sums[part as usize] };
    TimePart::ALL.into_iter().filter(is_there).map(slice).collect()
}

/// Returns the instructions of kernel and user code.
fn instructions(profile: &Profile, scope: &RegionScope) -> (u64, u64) {
    let regions = scope.outermost().iter().filter_map(|at| profile.tables.regions.get(*at as usize));
    regions.fold((0, 0), |(kernel, user), row| {
        (
            u64::saturating_add(kernel, row.kernel_instructions.get()),
            u64::saturating_add(user, row.user_instructions.get()),
        )
    })
}

/// Classification of a path row, which its children inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathPlace {
    /// Root of a thread, where nothing is open.
    Thread,
    /// Root of time without samples.
    Nobody,
    In(TimePart),
}

impl PathPlace {
    fn part(self) -> TimePart {
        match self {
            PathPlace::Thread => TimePart::Unattributed,
            PathPlace::Nobody => TimePart::NotSampled,
            PathPlace::In(part) => part,
        }
    }
}

/// Returns the part of each path row. Parents precede children.
fn parts(profile: &Profile) -> Vec<TimePart> {
    let tables = &profile.tables;
    let roles: Vec<FunctionRole> = tables.symbols.iter().map(|symbol| role(profile, symbol)).collect();
    let mut places: Vec<PathPlace> = Vec::with_capacity(tables.paths.len());
    for row in &tables.paths {
        let above = places.get(row.parent as usize).copied().filter(|_| row.parent != PathNode::ROOT);
        let role = roles.get(row.function.get() as usize).copied().unwrap_or(FunctionRole::Kernel);
        places.push(place(above.unwrap_or(PathPlace::Thread), row, role));
    }
    places.into_iter().map(PathPlace::part).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FunctionRole {
    Kernel,
    User,
    Softirq,
    /// Entry of system calls. A sampled call chain shows it as a plain call if a label in the entry
    /// code gave its name.
    Syscall,
}

fn role(profile: &Profile, symbol: &Symbol) -> FunctionRole {
    if is_user(profile, symbol) {
        FunctionRole::User
    } else if SOFTIRQ.contains(&source_name(&symbol.name).0) {
        FunctionRole::Softirq
    } else if symbol.name.starts_with("entry_SYS") || symbol.name == "do_syscall_64" {
        FunctionRole::Syscall
    } else {
        FunctionRole::Kernel
    }
}

fn place(above: PathPlace, row: &PathNode, role: FunctionRole) -> PathPlace {
    let above_part = match above {
        PathPlace::In(part) => Some(part),
        PathPlace::Thread | PathPlace::Nobody => None,
    };
    let from_user = above == PathPlace::Thread || above_part == Some(TimePart::User);
    PathPlace::In(match (row.kind, role) {
        (PathKind::Thread, _) if row.comm == NOT_SAMPLED => return PathPlace::Nobody,
        (PathKind::Thread, _) => return PathPlace::Thread,
        (PathKind::Interrupt, _) => TimePart::Interrupt,
        (PathKind::Idle, _) => TimePart::IdleTask,
        (PathKind::User, _) | (PathKind::Function, FunctionRole::User) => TimePart::User,
        (PathKind::Unattributed, _) => match above_part {
            Some(TimePart::User) | None => {
                return if above == PathPlace::Nobody { above } else { PathPlace::Thread }
            }
            Some(part) => part,
        },
        (PathKind::Function, FunctionRole::Softirq) => match above_part {
            Some(part) if part.is_softirq() => part,
            Some(TimePart::Interrupt) => TimePart::SoftirqAfterInterrupt,
            _ => TimePart::SoftirqElsewhere,
        },
        (PathKind::Function, role) => match (row.how, above_part) {
            _ if from_user && (row.how == CallKind::Syscall || role == FunctionRole::Syscall) => {
                TimePart::Syscall
            }
            (CallKind::Exception, _) if from_user => TimePart::Exception,
            (_, Some(TimePart::User) | None) => TimePart::KernelThread,
            (_, Some(part)) => part,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{FunctionIndex, Instructions, KernelId, Manifest, RegionStats, Tables, Ticks};

    const NAMES: [(&str, Option<&str>); 8] = [
        ("entry_SYSCALL_64", None),
        ("asm_exc_page_fault", None),
        ("asm_sysvec_apic_timer_interrupt", None),
        ("handle_softirqs.constprop.0", None),
        ("__do_softirq", None),
        ("ret_from_fork_asm", None),
        ("main", Some("rr")),
        ("net_rx_action", None),
    ];

    /// Parent (-1: none), kind or function with its entry kind, time, and the expected part.
    type PathRow = (i32, Result<(usize, CallKind), PathKind>, u64, TimePart);

    fn profile(lines: &[PathRow], idle: u64) -> Profile {
        let symbol = |(at, (name, module)): (usize, &(&str, Option<&str>))| Symbol {
            function: FunctionIndex(at as u32),
            name: (*name).into(),
            module: module.map(Into::into),
            ..Symbol::default()
        };
        let path = |(at, &(parent, what, net, _)): (usize, &PathRow)| PathNode {
            path: at as u32,
            parent: u32::try_from(parent).unwrap_or(PathNode::ROOT),
            kind: what.err().unwrap_or(PathKind::Function),
            function: what.map_or(FunctionIndex::NONE, |(function, _)| FunctionIndex(function as u32)),
            how: what.map_or(CallKind::Call, |(_, how)| how),
            calls: 1,
            self_ticks: Ticks(net),
            ..PathNode::default()
        };
        let busy: u64 = lines.iter().map(|line| line.2).sum();
        let region = RegionStats {
            name: "all".into(),
            elapsed_ticks: Ticks(busy + idle),
            busy_ticks: Ticks(busy),
            idle_ticks: Ticks(idle),
            operations: 1,
            kernel_instructions: Instructions(busy),
            ..RegionStats::default()
        };
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
        manifest.capture.functions = true;
        let tables = Tables {
            symbols: NAMES.iter().enumerate().map(symbol).collect(),
            paths: lines.iter().enumerate().map(path).collect(),
            regions: vec![region],
            ..Tables::default()
        };
        Profile { manifest, tables }
    }

    fn split_of(profile: &Profile) -> Vec<(TimePart, i128)> {
        let scope = RegionScope::all(&profile.tables);
        let slices = split(profile, &scope, &scope.totals(profile));
        let elapsed = scope.totals(profile).elapsed_ticks.get();
        assert_eq!(slices.iter().map(|slice| slice.ns).sum::<i128>(), elapsed.into());
        slices.into_iter().map(|slice| (slice.part, slice.ns)).collect()
    }

    #[test]
    fn each_path_is_in_one_part_and_the_parts_sum_to_the_elapsed_time() {
        let function = |function, how| Ok((function, how));
        let lines: &[PathRow] = &[
            (-1, Err(PathKind::Thread), 0, TimePart::Unattributed),
            (0, Err(PathKind::User), 100, TimePart::User),
            (0, function(0, CallKind::Syscall), 200, TimePart::Syscall),
            // A fault within a system call counts as the system call; a softirq within it stays a
            // softirq.
            (2, function(1, CallKind::Exception), 30, TimePart::Syscall),
            (2, function(4, CallKind::Call), 40, TimePart::SoftirqElsewhere),
            (4, function(3, CallKind::Call), 50, TimePart::SoftirqElsewhere),
            (5, function(7, CallKind::Call), 60, TimePart::SoftirqElsewhere),
            (0, function(1, CallKind::Exception), 70, TimePart::Exception),
            (0, function(5, CallKind::Call), 80, TimePart::KernelThread),
            (8, function(1, CallKind::Exception), 5, TimePart::KernelThread),
            (0, Err(PathKind::Unattributed), 6, TimePart::Unattributed),
            // A traced program: its system calls are kernel time, and below them only user
            // functions are user time.
            (0, function(6, CallKind::Call), 300, TimePart::User),
            (11, function(0, CallKind::Syscall), 90, TimePart::Syscall),
            (-1, Err(PathKind::Interrupt), 0, TimePart::Interrupt),
            (13, function(2, CallKind::Interrupt), 11, TimePart::Interrupt),
            (14, function(3, CallKind::Call), 12, TimePart::SoftirqAfterInterrupt),
            (15, function(7, CallKind::Call), 13, TimePart::SoftirqAfterInterrupt),
            (-1, Err(PathKind::Idle), 1, TimePart::IdleTask),
            (17, function(4, CallKind::Call), 2, TimePart::SoftirqElsewhere),
        ];
        let profile = profile(lines, 1_000);
        let expected: Vec<TimePart> = lines.iter().map(|line| line.3).collect();
        assert_eq!(parts(&profile), expected);
        assert_eq!(
            split_of(&profile),
            [
                (TimePart::User, 400),
                (TimePart::Syscall, 320),
                (TimePart::Exception, 70),
                (TimePart::KernelThread, 85),
                (TimePart::Unattributed, 6),
                (TimePart::IdleTask, 1),
                (TimePart::Interrupt, 11),
                (TimePart::SoftirqAfterInterrupt, 25),
                (TimePart::SoftirqElsewhere, 152),
                (TimePart::Idle, 1_000),
            ]
        );
    }

    #[test]
    fn what_is_in_no_path_is_said_and_without_functions_instructions_tell() {
        let mut holed = profile(&[(-1, Err(PathKind::Interrupt), 10, TimePart::Interrupt)], 5);
        holed.tables.regions[0].busy_ticks = Ticks(12);
        holed.tables.regions[0].elapsed_ticks = Ticks(17);
        assert!(split_of(&holed).contains(&(TimePart::NoPath, 2)));
        let mut plain = holed.clone();
        plain.manifest.capture.functions = false;
        plain.tables.paths.clear();
        assert!(split_of(&plain).contains(&(TimePart::NoPath, 12)), "no instructions that sum to it");
        plain.tables.regions[0].user_instructions = Instructions(2);
        assert_eq!(split_of(&plain), [(TimePart::User, 2), (TimePart::Kernel, 10), (TimePart::Idle, 5)]);
    }

    #[test]
    fn modules_of_the_running_kernel_are_no_programs() {
        let mut profile = profile(&[], 0);
        let symbol = profile.tables.symbols[6].clone();
        assert!(is_user(&profile, &symbol));
        let text = r#"{"source":"perf","samples":1,"sample_ns":1,"cpus":1,"wall_ns":1,"period":"","bias":null,"filter":null,"calls":null,"bound_bytes":0}"#;
        profile.manifest.sampled = serde_json::from_str(text).unwrap();
        assert!(!is_user(&profile, &symbol));
        assert!(is_user(&profile, &Symbol { module: Some("/usr/bin/rr".into()), ..symbol }));
    }
}
