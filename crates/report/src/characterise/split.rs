//! Where the time went: each instant is in one part, so that the parts sum to the elapsed time.
//!
//! The parts are read from the tree of call paths, where an interrupt's path begins at a root of its own, whatever it
//! interrupted. So nothing is in two parts:
//!
//! - below the root of interrupts: hard interrupt, and from a softirq's function on down softirq;
//! - below the root of idle tasks and of threads: from a softirq's function on down softirq;
//! - else, below a thread: user code; what it entered the kernel by, of several entries within each other the outermost (a page
//!   fault within a system call is the system call's); what no entry is above of: kernel threads;
//! - what is left of the busy time is in no path.

use kerntune_profile::{source_name, How, PathKind, PathNode, Profile, Scope, ScopeTotals, Symbol};
use serde::Serialize;

/// What time was spent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    User,
    Syscall,
    Exception,
    KernelThread,
    /// Kernel code with no function open.
    Unattributed,
    /// The idle task while the CPU was not halted.
    IdleTask,
    /// Kernel code that is not told apart.
    Kernel,
    Interrupt,
    SoftirqAfterInterrupt,
    SoftirqElsewhere,
    NotSampled,
    /// Busy time that is in no path: 0 in a sound profile.
    NoPath,
    Idle,
}

impl Part {
    const ALL: [Part; 13] = [
        Part::User,
        Part::Syscall,
        Part::Exception,
        Part::KernelThread,
        Part::Unattributed,
        Part::IdleTask,
        Part::Kernel,
        Part::Interrupt,
        Part::SoftirqAfterInterrupt,
        Part::SoftirqElsewhere,
        Part::NotSampled,
        Part::NoPath,
        Part::Idle,
    ];

    /// As a row of the table.
    pub fn title(self) -> &'static str {
        match self {
            Part::User => "user code",
            Part::Syscall => "kernel: system calls",
            Part::Exception => "kernel: exceptions of user code (page faults …)",
            Part::KernelThread => "kernel: kernel threads, and threads that begin",
            Part::Unattributed => "kernel: in no known function",
            Part::IdleTask => "kernel: idle task, not halted",
            Part::Kernel => "kernel: not told apart",
            Part::Interrupt => "hard interrupts",
            Part::SoftirqAfterInterrupt => "softirqs on the way out of interrupts",
            Part::SoftirqElsewhere => "softirqs elsewhere (after system calls, ksoftirqd)",
            Part::NotSampled => "not sampled",
            Part::NoPath => "in no call path",
            Part::Idle => "idle: CPU halted",
        }
    }

    /// Which of the five of which `top`, `vmstat` and the like speak.
    pub fn group(self) -> Group {
        match self {
            Part::User => Group::User,
            Part::Interrupt => Group::Interrupt,
            Part::SoftirqAfterInterrupt | Part::SoftirqElsewhere => Group::Softirq,
            Part::Idle => Group::Idle,
            Part::NotSampled | Part::NoPath => Group::Unknown,
            _ => Group::Kernel,
        }
    }

    fn is_softirq(self) -> bool {
        self.group() == Group::Softirq
    }

    /// Whether the row is shown where there is nothing in it.
    fn is_always_there(self) -> bool {
        !matches!(self, Part::Unattributed | Part::Kernel | Part::NotSampled | Part::NoPath)
    }
}

/// Parts that are told of together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    User,
    Kernel,
    Interrupt,
    Softirq,
    Idle,
    Unknown,
}

impl Group {
    pub const ALL: [Group; 6] =
        [Group::User, Group::Kernel, Group::Interrupt, Group::Softirq, Group::Idle, Group::Unknown];

    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Group::User => "user",
            Group::Kernel => "kernel",
            Group::Interrupt => "interrupt",
            Group::Softirq => "softirq",
            Group::Idle => "idle",
            Group::Unknown => "unknown",
        }
    }
}

/// Functions in which softirqs run, whoever calls them (kernel/softirq.c): what lies below one of them is a softirq. 6.1 has
/// some under other names.
const SOFTIRQ: [&str; 5] =
    ["handle_softirqs", "__do_softirq", "__softirqentry_text_start", "do_softirq", "run_ksoftirqd"];

/// Name of the thread that has the time of lost samples, in profiles of the running kernel.
const NOT_SAMPLED: &str = "[not sampled]";

/// Whether a function is of a program and not of the kernel. Modules of the running kernel have a name, programs a path; an
/// emulated kernel has no modules.
pub(crate) fn is_user(profile: &Profile, symbol: &Symbol) -> bool {
    match &symbol.module {
        None => false,
        Some(module) => profile.manifest.sampled.is_none() || module.starts_with('/'),
    }
}

/// A part and its time. Negative only in [`Part::NoPath`] of an unsound profile, whose paths have more than the busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub part: Part,
    pub ns: i128,
}

/// The parts, in order; those that a profile of its kind always has also where they are 0. They sum to the elapsed time.
pub(crate) fn split(profile: &Profile, scope: &Scope, totals: &ScopeTotals) -> Vec<Slice> {
    let mut sums = [0i128; Part::ALL.len()];
    let mut add = |part: Part, ns: i128| sums[part as usize] += ns;
    let busy = i128::from(totals.busy_ns.get());
    let mut told = 0;
    for (row, part) in profile.tables.paths.iter().zip(parts(profile)) {
        if scope.contains(row.region) {
            let ns = i128::from(row.net_ns.get());
            add(part, ns);
            told += ns;
        }
    }
    // Without functions there are no paths; on the emulator instructions tell user code from the kernel's all the same.
    if told == 0 && !profile.manifest.capture.functions {
        let (kernel, user) = instructions(profile, scope);
        if i128::from(kernel) + i128::from(user) == busy {
            add(Part::User, user.into());
            add(Part::Kernel, kernel.into());
            told = busy;
        }
    }
    add(Part::NoPath, busy - told);
    add(Part::Idle, totals.idle_ns.get().into());
    // What was not told apart has no parts, and not parts of 0.
    let divided = told != 0 && sums[Part::Kernel as usize] == 0;
    let is_there = |part: &Part| {
        sums[*part as usize] != 0 || (part.is_always_there() && (divided || *part == Part::Idle))
    };
    let slice = |part: Part| Slice { part, ns: sums[part as usize] };
    Part::ALL.into_iter().filter(is_there).map(slice).collect()
}

/// Instructions of kernel and user code.
fn instructions(profile: &Profile, scope: &Scope) -> (u64, u64) {
    let regions = scope.outermost().iter().filter_map(|at| profile.tables.regions.get(*at as usize));
    regions.fold((0, 0), |(kernel, user), row| {
        (
            u64::saturating_add(kernel, row.kernel_instructions.get()),
            u64::saturating_add(user, row.user_instructions.get()),
        )
    })
}

/// What a row's own time is, and what its children go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At a thread's root, where nothing is open.
    Thread,
    /// At that of time without samples.
    Nobody,
    In(Part),
}

impl Place {
    fn part(self) -> Part {
        match self {
            Place::Thread => Part::Unattributed,
            Place::Nobody => Part::NotSampled,
            Place::In(part) => part,
        }
    }
}

/// The part of each row of paths. Parents come before children.
fn parts(profile: &Profile) -> Vec<Part> {
    let tables = &profile.tables;
    let roles: Vec<Role> = tables.symbols.iter().map(|symbol| role(profile, symbol)).collect();
    let mut places: Vec<Place> = Vec::with_capacity(tables.paths.len());
    for row in &tables.paths {
        let above = places.get(row.parent as usize).copied().filter(|_| row.parent != PathNode::ROOT);
        let role = roles.get(row.function.get() as usize).copied().unwrap_or(Role::Kernel);
        places.push(place(above.unwrap_or(Place::Thread), row, role));
    }
    places.into_iter().map(Place::part).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Kernel,
    User,
    Softirq,
    /// Where system calls come in. A sampled chain has it as a plain call if a label in the entry code was its name.
    Syscall,
}

fn role(profile: &Profile, symbol: &Symbol) -> Role {
    if is_user(profile, symbol) {
        Role::User
    } else if SOFTIRQ.contains(&source_name(&symbol.name).0) {
        Role::Softirq
    } else if symbol.name.starts_with("entry_SYS") || symbol.name == "do_syscall_64" {
        Role::Syscall
    } else {
        Role::Kernel
    }
}

fn place(above: Place, row: &PathNode, role: Role) -> Place {
    let above_part = match above {
        Place::In(part) => Some(part),
        Place::Thread | Place::Nobody => None,
    };
    let from_user = above == Place::Thread || above_part == Some(Part::User);
    Place::In(match (row.kind, role) {
        (PathKind::Thread, _) if row.comm == NOT_SAMPLED => return Place::Nobody,
        (PathKind::Thread, _) => return Place::Thread,
        (PathKind::Interrupt, _) => Part::Interrupt,
        (PathKind::Idle, _) => Part::IdleTask,
        (PathKind::User, _) | (PathKind::Function, Role::User) => Part::User,
        (PathKind::Unattributed, _) => match above_part {
            Some(Part::User) | None => return if above == Place::Nobody { above } else { Place::Thread },
            Some(part) => part,
        },
        (PathKind::Function, Role::Softirq) => match above_part {
            Some(part) if part.is_softirq() => part,
            Some(Part::Interrupt) => Part::SoftirqAfterInterrupt,
            _ => Part::SoftirqElsewhere,
        },
        (PathKind::Function, role) => match (row.how, above_part) {
            _ if from_user && (row.how == How::Syscall || role == Role::Syscall) => Part::Syscall,
            (How::Exception, _) if from_user => Part::Exception,
            (_, Some(Part::User) | None) => Part::KernelThread,
            (_, Some(part)) => part,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{
        Address, FunctionIndex, Instructions, KernelId, Manifest, Nanoseconds, RegionStats, Tables,
    };

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

    /// Parent (-1: none), kind or function and how it came to run, time; the part that it is.
    type Line = (i32, Result<(usize, How), PathKind>, u64, Part);

    fn profile(lines: &[Line], idle: u64) -> Profile {
        let symbol = |(at, (name, module)): (usize, &(&str, Option<&str>))| Symbol {
            function: FunctionIndex(at as u32),
            name: (*name).into(),
            address: Address(0),
            size: 0,
            file: None,
            module: module.map(Into::into),
        };
        let path = |(at, &(parent, what, net, _)): (usize, &Line)| PathNode {
            region: 0,
            path: at as u32,
            parent: u32::try_from(parent).unwrap_or(PathNode::ROOT),
            kind: what.err().unwrap_or(PathKind::Function),
            comm: String::new(),
            function: what.map_or(FunctionIndex::NONE, |(function, _)| FunctionIndex(function as u32)),
            how: what.map_or(How::Call, |(_, how)| how),
            calls: 1,
            net_ns: Nanoseconds(net),
            taken_branches: 0,
            l1i_misses: 0,
            itlb_misses: 0,
        };
        let busy: u64 = lines.iter().map(|line| line.2).sum();
        let region = RegionStats {
            region: 0,
            name: "all".into(),
            begin_ns: Nanoseconds(0),
            elapsed_ns: Nanoseconds(busy + idle),
            busy_ns: Nanoseconds(busy),
            idle_ns: Nanoseconds(idle),
            user_ns: Nanoseconds(0),
            unattributed_ns: Nanoseconds(0),
            operations: 1,
            depth: 0,
            kernel_instructions: Instructions(busy),
            user_instructions: Instructions(0),
            kernel_taken_branches: 0,
            user_taken_branches: 0,
            kernel_l1i_misses: 0,
            user_l1i_misses: 0,
            kernel_itlb_misses: 0,
            user_itlb_misses: 0,
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

    fn split_of(profile: &Profile) -> Vec<(Part, i128)> {
        let scope = Scope::all(&profile.tables);
        let slices = split(profile, &scope, &scope.totals(profile));
        let elapsed = scope.totals(profile).elapsed_ns.get();
        assert_eq!(slices.iter().map(|slice| slice.ns).sum::<i128>(), elapsed.into());
        slices.into_iter().map(|slice| (slice.part, slice.ns)).collect()
    }

    #[test]
    fn each_path_is_in_one_part_and_the_parts_sum_to_the_elapsed_time() {
        let function = |function, how| Ok((function, how));
        let lines: &[Line] = &[
            (-1, Err(PathKind::Thread), 0, Part::Unattributed),
            (0, Err(PathKind::User), 100, Part::User),
            (0, function(0, How::Syscall), 200, Part::Syscall),
            // A fault within a system call is the system call's, and a softirq within it is one.
            (2, function(1, How::Exception), 30, Part::Syscall),
            (2, function(4, How::Call), 40, Part::SoftirqElsewhere),
            (4, function(3, How::Call), 50, Part::SoftirqElsewhere),
            (5, function(7, How::Call), 60, Part::SoftirqElsewhere),
            (0, function(1, How::Exception), 70, Part::Exception),
            (0, function(5, How::Call), 80, Part::KernelThread),
            (8, function(1, How::Exception), 5, Part::KernelThread),
            (0, Err(PathKind::Unattributed), 6, Part::Unattributed),
            // A traced program: what it asks for is the kernel's, and below that nothing is a user's but what says so.
            (0, function(6, How::Call), 300, Part::User),
            (11, function(0, How::Syscall), 90, Part::Syscall),
            (-1, Err(PathKind::Interrupt), 0, Part::Interrupt),
            (13, function(2, How::Interrupt), 11, Part::Interrupt),
            (14, function(3, How::Call), 12, Part::SoftirqAfterInterrupt),
            (15, function(7, How::Call), 13, Part::SoftirqAfterInterrupt),
            (-1, Err(PathKind::Idle), 1, Part::IdleTask),
            (17, function(4, How::Call), 2, Part::SoftirqElsewhere),
        ];
        let profile = profile(lines, 1_000);
        let expected: Vec<Part> = lines.iter().map(|line| line.3).collect();
        assert_eq!(parts(&profile), expected);
        assert_eq!(
            split_of(&profile),
            [
                (Part::User, 400),
                (Part::Syscall, 320),
                (Part::Exception, 70),
                (Part::KernelThread, 85),
                (Part::Unattributed, 6),
                (Part::IdleTask, 1),
                (Part::Interrupt, 11),
                (Part::SoftirqAfterInterrupt, 25),
                (Part::SoftirqElsewhere, 152),
                (Part::Idle, 1_000),
            ]
        );
    }

    #[test]
    fn what_is_in_no_path_is_said_and_without_functions_instructions_tell() {
        let mut holed = profile(&[(-1, Err(PathKind::Interrupt), 10, Part::Interrupt)], 5);
        holed.tables.regions[0].busy_ns = Nanoseconds(12);
        holed.tables.regions[0].elapsed_ns = Nanoseconds(17);
        assert!(split_of(&holed).contains(&(Part::NoPath, 2)));
        let mut plain = holed.clone();
        plain.manifest.capture.functions = false;
        plain.tables.paths.clear();
        assert!(split_of(&plain).contains(&(Part::NoPath, 12)), "no instructions that sum to it");
        plain.tables.regions[0].user_instructions = Instructions(2);
        assert_eq!(split_of(&plain), [(Part::User, 2), (Part::Kernel, 10), (Part::Idle, 5)]);
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
