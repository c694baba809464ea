//! What was seen, as a profile.
//!
//! Each sample stands for the same time: what was watched, divided by all samples, lost ones included. So the tables sum
//! exactly to the time that was watched, and from each time the number of its samples can be told. Time of samples that were
//! lost, and what a division leaves, is nobody's (`unattributed`).

use crate::aggregate::{Aggregate, Key, Role, Tree};
use crate::{counted_calls, Description, Error, Filter, Observed, Result};
use kerntune_profile::{
    rfc3339, Address, CallArc, Capture, Counted, FunctionIndex, FunctionStats, How, Instructions, KernelId,
    Manifest, Nanoseconds, PathKind, PathNode, Profile, RegionStats, Run, Sampled, SwitchStats, Symbol,
    Tables, ThreadKind, ThreadStats,
};
use kerntune_symbols::Running;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

/// What a profile is filed under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Its id in the work directory.
    pub id: String,
    /// What the machine was busy with.
    pub workload: String,
    /// Name of its one region.
    pub region: String,
    /// Operations that were done, if they are known.
    pub operations: u64,
    /// The kernel as the work directory knows it; made of its release and build id if none.
    pub kernel: Option<KernelId>,
}

/// Everything that a profile is made of.
pub(crate) struct Seen<'a> {
    pub all: &'a Aggregate,
    pub running: &'a Running,
    pub descriptions: &'a [Description],
    pub observed: Observed,
    /// Time in which CPUs were halted, as `/proc/stat` has it.
    pub halted_ns: u64,
    pub counted: Vec<Counted>,
    pub filter: &'a Filter,
    pub wall: Duration,
    pub bound_bytes: u64,
}

/// Name of the pseudo-thread that has the time of no sample.
const NOT_SAMPLED: &str = "[not sampled]";

/// Times, ns.
struct Times {
    /// Of a sample.
    sample: u64,
    elapsed: u64,
    idle: u64,
    /// Of no sample that was kept.
    rest: u64,
}

impl Seen<'_> {
    pub fn profile(self, labels: &Labels) -> Result<Profile> {
        let times = self.times()?;
        let tables = self.tables(&times, labels);
        let release = &self.running.release;
        let id = self.running.build_id.clone().unwrap_or_else(|| release.clone());
        let running = KernelId { id, label: release.clone(), version: release.clone() };
        let mut manifest =
            Manifest::new(&labels.id, labels.kernel.clone().unwrap_or(running), &labels.workload, "host");
        manifest.run = Run::Measured;
        manifest.recorded = rfc3339(SystemTime::now());
        manifest.elapsed_ns = Nanoseconds(times.elapsed);
        manifest.idle_ns = Nanoseconds(times.idle);
        manifest.busy_ns = Nanoseconds(times.elapsed - times.idle);
        manifest.events = self.all.samples;
        manifest.lost_events = self.lost();
        manifest.health = self.health();
        manifest.capture = Capture { functions: true, ..Capture::default() };
        manifest.exact = false;
        manifest.sources = self.sources();
        manifest.sampled = Some(self.sampled(&times));
        manifest.counted = self.counted_with_system_calls();
        Ok(Profile { manifest, tables })
    }

    /// What counts calls.
    fn counter(&self) -> Option<&Description> {
        self.descriptions.iter().find(|description| description.calls)
    }

    /// What was counted, and system calls where their functions were.
    fn counted_with_system_calls(&self) -> Vec<Counted> {
        let source =
            self.counter().map_or("", |description| description.name.split(':').next().unwrap_or_default());
        let calls = counted_calls::system_calls(&self.all.calls, &self.all.table, source);
        self.counted.iter().cloned().chain(calls).collect()
    }

    fn lost(&self) -> u64 {
        self.observed.lost.max(self.all.lost)
    }

    fn times(&self) -> Result<Times> {
        let sees_idle = self.descriptions.iter().any(|description| description.sees_idle);
        let samples = self.all.samples.saturating_add(self.lost());
        if self.observed.ns == 0 || samples == 0 {
            return Err(Error::Nothing(match self.filter.is_all() {
                true => "there were no samples; record for longer".into(),
                false => format!("nothing that was selected ran: {}", self.filter),
            }));
        }
        // Where samples do not see halted CPUs, they share the rest of the time.
        let halted =
            if sees_idle || self.filter.is_of_tasks() { 0 } else { self.halted_ns.min(self.observed.ns) };
        let sample = (self.observed.ns - halted) / samples;
        let idle = halted.saturating_add(self.all.halted.saturating_mul(sample));
        let kept = (self.all.samples - self.all.halted).saturating_mul(sample);
        let rest = self.observed.ns.saturating_sub(idle).saturating_sub(kept);
        Ok(Times { sample, elapsed: self.observed.ns, idle, rest })
    }

    fn sampled(&self, times: &Times) -> Sampled {
        let words = |of: fn(&Description) -> String| {
            let words: Vec<String> =
                self.descriptions.iter().map(of).filter(|word| !word.is_empty()).collect();
            words.join("; ")
        };
        let bias = words(|description| description.bias.clone().unwrap_or_default());
        Sampled {
            source: words(
                |description| if description.samples() { description.name.clone() } else { String::new() },
            ),
            samples: self.all.samples,
            sample_ns: Nanoseconds(times.sample),
            cpus: self.observed.cpus,
            wall_ns: Nanoseconds(u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX)),
            period: words(|description| description.period.clone()),
            bias: Some(bias).filter(|bias| !bias.is_empty()),
            filter: (!self.filter.is_all()).then(|| self.filter.to_string()),
            calls: self.counter().map(|description| description.name.clone()),
            bound_bytes: self.bound_bytes,
        }
    }

    fn health(&self) -> BTreeMap<String, u64> {
        let all = self.all;
        let mut health: BTreeMap<String, u64> =
            all.health.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
        let crowded = [
            ("folded_samples", all.tree.folded.saturating_add(all.tree.homeless)),
            ("crowded_threads", all.threads.crowded),
            ("crowded_switches", all.switches.crowded),
            ("crowded_calls", all.calls.crowded),
            ("unnamed_calls", all.calls.unnamed),
        ];
        health.extend(crowded.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_string(), n)));
        health
    }

    fn sources(&self) -> Vec<String> {
        let mut sources: Vec<String> =
            self.descriptions.iter().map(|description| description.name.clone()).collect();
        sources.extend(self.running.sources.iter().cloned());
        sources.extend(self.running.notes.iter().map(|note| format!("note: {note}")));
        sources.extend(
            self.descriptions.iter().flat_map(|d| d.lacks.iter().map(|lack| format!("note: {lack}"))),
        );
        sources
    }

    fn tables(&self, times: &Times, labels: &Labels) -> Tables {
        let symbols = self.symbols();
        let user = self.all.tree.nodes().iter().filter(|node| node.key == Key::User).map(|node| node.samples);
        let user_ns = user.sum::<u64>().saturating_mul(times.sample);
        let mut out = Tables { symbols, paths: self.paths(times), ..Tables::default() };
        (out.functions, out.arcs) = inclusive(&out.paths);
        counted_calls::add(&self.all.calls, &mut out.functions, &mut out.arcs);
        let named: Nanoseconds = out.functions.iter().map(|row| row.net_ns).sum();
        // Also what is at the root of a thread, as there was no room for its path.
        let unattributed = (times.elapsed - times.idle).saturating_sub(named.get()).saturating_sub(user_ns);
        out.threads = self.threads(times);
        out.switches = self.switches();
        out.regions = vec![RegionStats {
            region: 0,
            name: labels.region.clone(),
            begin_ns: Nanoseconds::ZERO,
            elapsed_ns: Nanoseconds(times.elapsed),
            busy_ns: Nanoseconds(times.elapsed - times.idle),
            idle_ns: Nanoseconds(times.idle),
            user_ns: Nanoseconds(user_ns),
            unattributed_ns: Nanoseconds(unattributed),
            operations: labels.operations,
            depth: 0,
            kernel_instructions: Instructions::ZERO,
            user_instructions: Instructions::ZERO,
            kernel_taken_branches: 0,
            user_taken_branches: 0,
            kernel_l1i_misses: 0,
            user_l1i_misses: 0,
            kernel_itlb_misses: 0,
            user_itlb_misses: 0,
        }];
        out
    }

    fn symbols(&self) -> Vec<Symbol> {
        let symbol = |(number, function): (u32, &kerntune_symbols::KernelFunction)| Symbol {
            function: FunctionIndex(number),
            name: function.name.clone(),
            address: Address(self.running.linked(function)),
            size: function.size,
            file: function.file.clone(),
            module: function.module.clone(),
        };
        (0..).zip(self.all.table.functions()).map(symbol).collect()
    }

    /// The tree, and below the root of no thread the time of no sample.
    fn paths(&self, times: &Times) -> Vec<PathNode> {
        let node = |path: u32, parent: u32, kind: PathKind, net: u64| PathNode {
            region: 0,
            path,
            parent,
            kind,
            comm: String::new(),
            function: FunctionIndex::NONE,
            how: How::Call,
            calls: 0,
            net_ns: Nanoseconds(net),
            taken_branches: 0,
            l1i_misses: 0,
            itlb_misses: 0,
        };
        let mut paths = Vec::with_capacity(self.all.tree.nodes().len() + 2);
        for (number, from) in (0..).zip(self.all.tree.nodes()) {
            let parent = if from.parent == Tree::ROOT { PathNode::ROOT } else { from.parent };
            let mut path =
                node(number, parent, PathKind::Function, from.samples.saturating_mul(times.sample));
            match from.key {
                Key::Thread(comm) => {
                    path.kind = PathKind::Thread;
                    path.comm = self.all.threads.name(comm).into();
                }
                Key::Interrupt => path.kind = PathKind::Interrupt,
                Key::Idle => path.kind = PathKind::Idle,
                Key::User => path.kind = PathKind::User,
                Key::Unattributed => path.kind = PathKind::Unattributed,
                Key::Function(function) => {
                    path.function = FunctionIndex(function);
                    path.how = match self.all.role(function) {
                        Role::Interrupt => How::Interrupt,
                        Role::Exception => How::Exception,
                        Role::Syscall => How::Syscall,
                        Role::Plain | Role::Halt | Role::Scheduler => How::Call,
                    };
                }
            }
            paths.push(path);
        }
        let rest = times.rest.saturating_add(self.all.tree.homeless.saturating_mul(times.sample));
        if rest > 0 {
            let number = paths.len() as u32;
            let mut root = node(number, PathNode::ROOT, PathKind::Thread, 0);
            root.comm = NOT_SAMPLED.into();
            paths.push(root);
            paths.push(node(number + 1, number, PathKind::Unattributed, rest));
        }
        paths
    }

    fn threads(&self, times: &Times) -> Vec<ThreadStats> {
        let row = |kind, pid, tgid, comm: &str, net: u64, user: u64| ThreadStats {
            region: 0,
            thread: 0,
            kind,
            pid,
            tgid,
            comm: comm.into(),
            net_ns: Nanoseconds(net),
            user_ns: Nanoseconds(user),
            switches_in: 0,
        };
        let of = |samples: u64| samples.saturating_mul(times.sample);
        let all = self.all;
        let threads = all.threads.rows().map(|thread| {
            let (net, user) = (of(thread.user + thread.kernel), of(thread.user));
            row(ThreadKind::Thread, thread.tid, thread.tgid, all.threads.name(thread.comm), net, user)
        });
        let mut rows: Vec<ThreadStats> = threads.collect();
        for (kind, comm, net) in [
            (ThreadKind::Interrupt, "[interrupt]", of(all.interrupts)),
            (ThreadKind::Idle, "[idle task]", of(all.idle)),
            (ThreadKind::Thread, "[other threads]", of(all.threads.crowded)),
            (ThreadKind::Thread, NOT_SAMPLED, times.rest),
        ] {
            if net > 0 {
                rows.push(row(kind, 0, 0, comm, net, 0));
            }
        }
        (0..).zip(&mut rows).for_each(|(number, row)| row.thread = number);
        rows
    }

    /// Switches scaled to those that were counted.
    fn switches(&self) -> Vec<SwitchStats> {
        let rows = self.all.switches.rows();
        let weighed =
            rows.iter().fold(self.all.switches.crowded, |sum, (_, weight)| sum.saturating_add(*weight));
        let counted =
            self.counted.iter().filter(|row| row.kind == "switch").map(|row| row.count).sum::<u64>();
        let counted = if counted == 0 { weighed } else { counted };
        let scale = |weight: u64| {
            (u128::from(weight) * u128::from(counted)).checked_div(weighed.into()).unwrap_or(0) as u64
        };
        let name = |number: Option<u32>| {
            number.map_or("[not known]", |number| self.all.threads.name(number)).to_string()
        };
        let row = |(switch, weight): (crate::Switch, u64)| SwitchStats {
            region: 0,
            from: name(switch.from),
            to: name(switch.to),
            reason: switch.reason.map_or(FunctionIndex::NONE, FunctionIndex),
            kind: switch.kind,
            count: scale(weight),
        };
        rows.into_iter().map(row).filter(|row| row.count > 0).collect()
    }
}

/// Rows of functions and of arcs: own time, and time on the stack, which counts once for each sample however often a
/// function or an arc is on it.
fn inclusive(paths: &[PathNode]) -> (Vec<FunctionStats>, Vec<CallArc>) {
    type Arc = (FunctionIndex, FunctionIndex, How);
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); paths.len()];
    let mut below: Vec<u64> = paths.iter().map(|path| path.net_ns.get()).collect();
    for (at, path) in paths.iter().enumerate().rev() {
        let sum = below[at];
        if let Some(parent) = below.get_mut(path.parent as usize) {
            *parent = parent.saturating_add(sum);
            children[path.parent as usize].push(at as u32);
        }
    }
    let arc = |path: &PathNode| -> Option<Arc> {
        let callee = path.function.known()?;
        let caller = paths.get(path.parent as usize).map_or(FunctionIndex::NONE, |parent| parent.function);
        let caller = if path.how == How::Interrupt { FunctionIndex::NONE } else { caller };
        Some((caller, callee, path.how))
    };
    let mut functions: BTreeMap<FunctionIndex, (u64, u64)> = BTreeMap::new();
    let mut arcs: BTreeMap<Arc, u64> = BTreeMap::new();
    let mut open: HashMap<FunctionIndex, u32> = HashMap::new();
    let mut open_arcs: HashMap<Arc, u32> = HashMap::new();
    // A node is on the stack twice: to be entered, and to be left.
    let roots = paths.iter().zip(0_u32..).filter(|(path, _)| path.parent == PathNode::ROOT);
    let mut stack: Vec<(u32, bool)> = roots.map(|(_, at)| (at, true)).collect();
    while let Some((at, enters)) = stack.pop() {
        let path = &paths[at as usize];
        let found = arc(path);
        if enters {
            stack.push((at, false));
            stack.extend(children[at as usize].iter().map(|child| (*child, true)));
        }
        let Some(arc) = found else { continue };
        let (depth, arc_depth) = (open.entry(arc.1).or_default(), open_arcs.entry(arc).or_default());
        if !enters {
            *depth -= 1;
            *arc_depth -= 1;
            continue;
        }
        let sums = functions.entry(arc.1).or_default();
        sums.0 = sums.0.saturating_add(path.net_ns.get());
        if *depth == 0 {
            sums.1 = sums.1.saturating_add(below[at as usize]);
        }
        if *arc_depth == 0 {
            let sum = arcs.entry(arc).or_default();
            *sum = sum.saturating_add(below[at as usize]);
        }
        *depth += 1;
        *arc_depth += 1;
    }
    let function = |(function, (net, elapsed))| FunctionStats {
        region: 0,
        function,
        calls: 0,
        ended: 0,
        net_ns: Nanoseconds(net),
        ended_net_ns: Nanoseconds::ZERO,
        elapsed_ns: Nanoseconds(elapsed),
        max_ns: Nanoseconds::ZERO,
        min_ns: Nanoseconds::ZERO,
        slowest_ns: Nanoseconds::ZERO,
        slowest_at_ns: Nanoseconds::ZERO,
    };
    let row = |((caller, callee, how), elapsed)| CallArc {
        region: 0,
        caller,
        callee,
        how,
        calls: 0,
        ended: 0,
        elapsed_ns: Nanoseconds(elapsed),
    };
    (functions.into_iter().map(function).collect(), arcs.into_iter().map(row).collect())
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
