//! Conversion of an aggregate into a profile.
//!
//! Each sample stands for the same time: the sampled time divided by the number of samples,
//! including lost ones. The tables therefore sum exactly to the sampled time, and each time shows
//! its number of samples. Time of lost samples and the remainder of the division are
//! `unattributed`.

use crate::aggregate::{Aggregate, ChainRole, SampleFrame, SampleTree};
use crate::{counted_calls, wait_rows, Coverage, Error, Result, SamplingFilter, SourceDescription};
use kerntune_profile::{
    rfc3339, Address, Anomaly, CallArc, CallKind, CaptureSummary, CounterTotal, FunctionIndex, FunctionStats,
    KernelId, Manifest, PathKind, PathNode, Profile, RegionStats, RunPurpose, SamplingSummary, SwitchStats,
    Symbol, Tables, ThreadCgroup, ThreadKind, ThreadStats, Ticks,
};
use kerntune_symbols::RunningKernel;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

/// Labels of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileLabels {
    /// Id of the profile in the work directory.
    pub id: String,
    /// Description of the machine's work.
    pub workload: String,
    /// Name of the profile's only region.
    pub region: String,
    /// Number of operations; 0 if unknown.
    pub operations: u64,
    /// Kernel as named in the work directory; `None` to use the kernel's release and build id.
    pub kernel: Option<KernelId>,
}

/// Inputs of a profile.
pub(crate) struct ProfileBuilder<'a> {
    pub all: &'a Aggregate,
    pub running: &'a RunningKernel,
    pub descriptions: &'a [SourceDescription],
    pub coverage: Coverage,
    /// Time in which CPUs were halted according to `/proc/stat`, in ns.
    pub halted_ns: u64,
    pub counted: Vec<CounterTotal>,
    pub filter: &'a SamplingFilter,
    pub wall: Duration,
    pub bound_bytes: u64,
}

/// Name of the pseudo-thread that receives the time without samples.
const NOT_SAMPLED: &str = "[not sampled]";

/// Times of a profile, in ns.
struct ProfileTimes {
    /// Time of one sample.
    sample: u64,
    elapsed: u64,
    idle: u64,
    /// Time without a sample that was kept.
    rest: u64,
}

impl ProfileBuilder<'_> {
    pub fn build(self, labels: &ProfileLabels) -> Result<Profile> {
        let times = self.times()?;
        let tables = self.tables(&times, labels);
        let release = &self.running.release;
        let id = self.running.build_id.clone().unwrap_or_else(|| release.clone());
        let running = KernelId { id, label: release.clone(), version: release.clone() };
        let mut manifest =
            Manifest::new(&labels.id, labels.kernel.clone().unwrap_or(running), &labels.workload, "host");
        manifest.run = RunPurpose::Measured;
        manifest.recorded = rfc3339(SystemTime::now());
        manifest.elapsed_ticks = Ticks(times.elapsed);
        manifest.idle_ticks = Ticks(times.idle);
        manifest.busy_ticks = Ticks(times.elapsed - times.idle);
        manifest.events = self.all.samples;
        manifest.lost_events = self.lost();
        manifest.health = self.health();
        manifest.capture = CaptureSummary { functions: true, ..CaptureSummary::default() };
        manifest.exact = false;
        manifest.sources = self.sources();
        manifest.sampled = Some(self.sampled(&times));
        manifest.counted = self.counted_with_system_calls();
        Ok(Profile { manifest, tables })
    }

    /// Returns the source that counts calls, if any.
    fn counter(&self) -> Option<&SourceDescription> {
        self.descriptions.iter().find(|description| description.calls)
    }

    /// Returns all counters, with system calls if their functions were counted.
    fn counted_with_system_calls(&self) -> Vec<CounterTotal> {
        let source =
            self.counter().map_or("", |description| description.name.split(':').next().unwrap_or_default());
        let calls = counted_calls::system_calls(&self.all.calls, &self.all.table, source);
        self.counted.iter().cloned().chain(calls).collect()
    }

    fn lost(&self) -> u64 {
        self.coverage.lost.max(self.all.lost)
    }

    fn times(&self) -> Result<ProfileTimes> {
        let sees_idle = self.descriptions.iter().any(|description| description.sees_idle);
        let samples = self.all.samples.saturating_add(self.lost());
        if self.coverage.ns == 0 || samples == 0 {
            return Err(Error::Nothing(match self.filter.is_all() {
                true => "there were no samples; record for longer".into(),
                false => format!("nothing that was selected ran long enough: {}", self.filter),
            }));
        }
        // If samples do not cover halted CPUs, they share the remaining time.
        let halted =
            if sees_idle || self.filter.is_of_tasks() { 0 } else { self.halted_ns.min(self.coverage.ns) };
        let sample = (self.coverage.ns - halted) / samples;
        let idle = halted.saturating_add(self.all.halted.saturating_mul(sample));
        let kept = (self.all.samples - self.all.halted).saturating_mul(sample);
        let rest = self.coverage.ns.saturating_sub(idle).saturating_sub(kept);
        Ok(ProfileTimes { sample, elapsed: self.coverage.ns, idle, rest })
    }

    fn sampled(&self, times: &ProfileTimes) -> SamplingSummary {
        let words = |of: fn(&SourceDescription) -> String| {
            let words: Vec<String> =
                self.descriptions.iter().map(of).filter(|word| !word.is_empty()).collect();
            words.join("; ")
        };
        let bias = words(|description| description.bias.clone().unwrap_or_default());
        SamplingSummary {
            source: words(
                |description| if description.samples() { description.name.clone() } else { String::new() },
            ),
            samples: self.all.samples,
            sample_ns: Ticks(times.sample),
            cpus: self.coverage.cpus,
            wall_ns: Ticks(u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX)),
            period: words(|description| description.period.clone()),
            bias: Some(bias).filter(|bias| !bias.is_empty()),
            filter: (!self.filter.is_all()).then(|| self.filter.to_string()),
            calls: self.counter().map(|description| description.name.clone()),
            bound_bytes: self.bound_bytes,
        }
    }

    fn health(&self) -> BTreeMap<String, u64> {
        let all = self.all;
        let crowded = [
            (Anomaly::FoldedSamples, all.tree.folded.saturating_add(all.tree.homeless)),
            (Anomaly::CrowdedThreads, all.threads.crowded),
            (Anomaly::CrowdedSwitches, all.switches.crowded),
            (Anomaly::CrowdedCalls, all.calls.crowded),
            (Anomaly::UnnamedCalls, all.calls.unnamed),
            (Anomaly::CrowdedWaits, all.waits.crowded()),
            (Anomaly::FoldedWaits, all.waits.paths.folded),
        ];
        let counts = all.health.iter().map(|(anomaly, count)| (*anomaly, *count)).chain(crowded);
        counts.filter(|(_, n)| *n > 0).map(|(anomaly, n)| (anomaly.name().to_owned(), n)).collect()
    }

    fn sources(&self) -> Vec<String> {
        let mut sources: Vec<String> =
            self.descriptions.iter().map(|description| description.name.clone()).collect();
        sources.extend(self.descriptions.iter().flat_map(|description| description.traced.iter().cloned()));
        sources.extend(self.running.sources.iter().cloned());
        sources.extend(self.running.notes.iter().map(|note| format!("note: {note}")));
        sources.extend(
            self.descriptions.iter().flat_map(|d| d.lacks.iter().map(|lack| format!("note: {lack}"))),
        );
        sources
    }

    fn tables(&self, times: &ProfileTimes, labels: &ProfileLabels) -> Tables {
        let symbols = self.symbols();
        let user = self
            .all
            .tree
            .nodes()
            .iter()
            .filter(|node| node.key == SampleFrame::User)
            .map(|node| node.samples);
        let user_ticks = user.sum::<u64>().saturating_mul(times.sample);
        let mut out = Tables { symbols, paths: self.paths(times), ..Tables::default() };
        (out.functions, out.arcs) = inclusive(&out.paths);
        counted_calls::add(&self.all.calls, &mut out.functions, &mut out.arcs);
        let named: Ticks = out.functions.iter().map(|row| row.self_ticks).sum();
        // This includes samples at a thread's root whose paths found no room.
        let unattributed =
            (times.elapsed - times.idle).saturating_sub(named.get()).saturating_sub(user_ticks);
        (out.threads, out.thread_cgroups) = self.threads(times);
        out.switches = self.switches();
        wait_rows::add(self.all, &mut out);
        out.regions = vec![RegionStats {
            name: labels.region.clone(),
            elapsed_ticks: Ticks(times.elapsed),
            busy_ticks: Ticks(times.elapsed - times.idle),
            idle_ticks: Ticks(times.idle),
            user_ticks: Ticks(user_ticks),
            unattributed_ticks: Ticks(unattributed),
            operations: labels.operations,
            ..RegionStats::default()
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

    /// Returns the call tree, with the time without samples below a pseudo-thread.
    fn paths(&self, times: &ProfileTimes) -> Vec<PathNode> {
        let node = |path: u32, parent: u32, kind: PathKind, net: u64| PathNode {
            path,
            parent,
            kind,
            self_ticks: Ticks(net),
            ..PathNode::default()
        };
        let mut paths = Vec::with_capacity(self.all.tree.nodes().len() + 2);
        for (number, from) in (0..).zip(self.all.tree.nodes()) {
            let parent = if from.parent == SampleTree::ROOT { PathNode::ROOT } else { from.parent };
            let mut path = node(number, parent, from.key.kind(), from.samples.saturating_mul(times.sample));
            match from.key {
                SampleFrame::Thread(comm) => path.comm = self.all.threads.name(comm).into(),
                SampleFrame::Function(function) => {
                    path.function = FunctionIndex(function);
                    path.how = match self.all.role(function) {
                        ChainRole::Interrupt => CallKind::Interrupt,
                        ChainRole::Exception => CallKind::Exception,
                        ChainRole::Syscall => CallKind::Syscall,
                        ChainRole::Plain | ChainRole::Halt | ChainRole::Scheduler | ChainRole::Tracing => {
                            CallKind::Call
                        }
                    };
                }
                _ => {}
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

    /// Returns the threads, and the cgroups of those whose cgroup is known.
    fn threads(&self, times: &ProfileTimes) -> (Vec<ThreadStats>, Vec<ThreadCgroup>) {
        let row = |kind, pid, tgid, comm: &str, net: u64, user: u64| ThreadStats {
            region: 0,
            thread: 0,
            kind,
            pid,
            tgid,
            comm: comm.into(),
            self_ticks: Ticks(net),
            user_ticks: Ticks(user),
            switches_in: 0,
        };
        let of = |samples: u64| samples.saturating_mul(times.sample);
        let all = self.all;
        let threads = all.threads.rows().map(|thread| {
            let (net, user) = (of(thread.user + thread.kernel), of(thread.user));
            row(ThreadKind::Thread, thread.tid, thread.tgid, all.threads.name(thread.comm), net, user)
        });
        let mut rows: Vec<ThreadStats> = threads.collect();
        let cgroups =
            rows.iter().zip(all.threads.rows()).zip(0..).map(|((row, thread), number)| ThreadCgroup {
                region: 0,
                thread: number,
                cgroup: all.cgroups.name(thread.cgroup).into(),
                self_ticks: row.self_ticks,
                user_ticks: row.user_ticks,
            });
        let cgroups: Vec<ThreadCgroup> = cgroups.collect();
        // A file has no cgroups.
        let cgroups = if cgroups.iter().all(|row| row.cgroup.is_empty()) { Vec::new() } else { cgroups };
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
        (rows, cgroups)
    }

    /// Returns the switches, scaled to their counted number.
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
        let row = |(switch, weight): (crate::SampledSwitch, u64)| SwitchStats {
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

/// Returns rows of functions and arcs with self time, and with total time, which counts once per
/// sample however often a function or arc is on its stack.
fn inclusive(paths: &[PathNode]) -> (Vec<FunctionStats>, Vec<CallArc>) {
    type ArcKey = (FunctionIndex, FunctionIndex, CallKind);
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); paths.len()];
    for (path, at) in paths.iter().zip(0..) {
        if let Some(siblings) = children.get_mut(path.parent as usize) {
            siblings.push(at);
        }
    }
    let below = PathNode::totals(paths);
    let arc = |path: &PathNode| -> Option<ArcKey> {
        let callee = path.function.known()?;
        let caller = paths.get(path.parent as usize).map_or(FunctionIndex::NONE, |parent| parent.function);
        let caller = if path.how == CallKind::Interrupt { FunctionIndex::NONE } else { caller };
        Some((caller, callee, path.how))
    };
    let mut functions: BTreeMap<FunctionIndex, (u64, u64)> = BTreeMap::new();
    let mut arcs: BTreeMap<ArcKey, u64> = BTreeMap::new();
    let mut open: HashMap<FunctionIndex, u32> = HashMap::new();
    let mut open_arcs: HashMap<ArcKey, u32> = HashMap::new();
    // Each node is on the stack twice: once to be entered and once to be left.
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
        sums.0 = sums.0.saturating_add(path.self_ticks.get());
        if *depth == 0 {
            sums.1 = sums.1.saturating_add(below[at as usize].get());
        }
        if *arc_depth == 0 {
            let sum = arcs.entry(arc).or_default();
            *sum = sum.saturating_add(below[at as usize].get());
        }
        *depth += 1;
        *arc_depth += 1;
    }
    let function = |(function, (net, elapsed))| FunctionStats {
        function,
        self_ticks: Ticks(net),
        total_ticks: Ticks(elapsed),
        ..FunctionStats::default()
    };
    let row = |((caller, callee, how), elapsed)| CallArc {
        region: 0,
        caller,
        callee,
        how,
        calls: 0,
        ended: 0,
        total_ticks: Ticks(elapsed),
    };
    (functions.into_iter().map(function).collect(), arcs.into_iter().map(row).collect())
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
