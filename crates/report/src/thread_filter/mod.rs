//! Restriction of a profile to some threads, as if no others had run.
//!
//! A recording's trace gives full figures by thread. Without a trace, only the call paths remain,
//! which distinguish threads by name. Start from [`ThreadFilter`].

mod paths;
mod trace;

use crate::pattern::matches;
use crate::{Error, Result};
use clap::Args;
use kerntune_analyze::TraceFile;
use kerntune_profile::{
    thread_name, CallArc, FunctionStats, HistogramBucket, PathKind, PathNode, Profile, ThreadKind,
    ThreadStats, Ticks,
};
use kerntune_table::printable;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Selection of threads for a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ThreadFilter {
    /// Show only these threads: a thread's id or name, a pattern of names with * and ?,
    /// `[interrupt]`; may be repeated
    #[arg(long, value_name = "PID|NAME")]
    pub thread: Vec<String>,
    /// Show only the threads of these processes: a process's id or name, or a pattern of names; may
    /// be repeated
    #[arg(long, value_name = "PID|NAME")]
    pub program: Vec<String>,
}

/// Threads that the filter selects.
struct SelectedThreads {
    /// Rows of the thread table, by thread number.
    threads: BTreeMap<u32, ThreadStats>,
    interrupts: bool,
}

impl SelectedThreads {
    fn contains(&self, row: &ThreadStats) -> bool {
        self.threads.contains_key(&row.thread)
    }
}

/// Tables of the selected threads.
struct ThreadTables {
    functions: Vec<FunctionStats>,
    arcs: Vec<CallArc>,
    histograms: Vec<HistogramBucket>,
    paths: Vec<PathNode>,
    /// By region: time in kernel functions, and in user code.
    in_functions: BTreeMap<u32, [u64; 2]>,
    /// Number of events of the threads; 0 if not counted.
    events: u64,
}

impl ThreadFilter {
    /// Checks whether all threads are selected.
    pub fn is_everybody(&self) -> bool {
        self.thread.is_empty() && self.program.is_empty()
    }

    /// Returns the names as given, for a title.
    pub fn names(&self) -> Vec<String> {
        let thread = self.thread.iter().map(|name| printable(name));
        thread.chain(self.program.iter().map(|name| format!("program {}", printable(name)))).collect()
    }

    /// Builds the threads' profile from the recording's trace.
    ///
    /// # Errors
    /// An unknown thread; a damaged trace, or that of another profile.
    pub fn of_trace(&self, profile: &Profile, trace: &TraceFile<'_>) -> Result<Profile> {
        let chosen = self.chosen(profile)?;
        let counted = trace::read(profile, trace, &chosen)?;
        assemble(profile, &chosen, counted)
    }

    /// Builds the threads' profile from call paths, without times of single calls.
    ///
    /// # Errors
    /// An unknown thread; a selection of some but not all threads of one name.
    pub fn of_paths(&self, profile: &Profile) -> Result<Profile> {
        let chosen = self.chosen(profile)?;
        let counted = paths::read(profile, &chosen)?;
        assemble(profile, &chosen, counted)
    }

    fn chosen(&self, profile: &Profile) -> Result<SelectedThreads> {
        let rows = &profile.tables.threads;
        let mut chosen = SelectedThreads { threads: BTreeMap::new(), interrupts: false };
        for wanted in &self.thread {
            let fits = |row: &&ThreadStats| {
                let by_id = row.kind != ThreadKind::Interrupt && wanted.parse() == Ok(row.pid);
                by_id || matches(wanted, &name_of(row))
            };
            self.add(&mut chosen, rows.iter().filter(fits), "thread", wanted, profile)?;
        }
        let processes = processes(rows);
        for wanted in &self.program {
            let fits = |row: &&ThreadStats| {
                let name = processes.get(&row.tgid).map_or("", String::as_str);
                row.kind == ThreadKind::Thread && (wanted.parse() == Ok(row.tgid) || matches(wanted, name))
            };
            self.add(&mut chosen, rows.iter().filter(fits), "program", wanted, profile)?;
        }
        Ok(chosen)
    }

    fn add<'a>(
        &self,
        chosen: &mut SelectedThreads,
        rows: impl Iterator<Item = &'a ThreadStats>,
        what: &'static str,
        wanted: &str,
        profile: &Profile,
    ) -> Result<()> {
        let mut some = false;
        for row in rows {
            some = true;
            chosen.interrupts |= row.kind == ThreadKind::Interrupt;
            chosen.threads.entry(row.thread).or_insert_with(|| row.clone());
        }
        if some {
            return Ok(());
        }
        let processes = processes(&profile.tables.threads);
        let shown: Vec<String> = profile.tables.threads.iter().map(|row| name_of(row).into_owned()).collect();
        let names: BTreeSet<&str> = match what {
            "program" => processes.values().map(String::as_str).collect(),
            _ => shown.iter().map(String::as_str).collect(),
        };
        Err(no_thread(what, wanted, names))
    }
}

/// Returns a thread's name as in the thread table, quoted if it could be taken for the interrupts'.
fn name_of(row: &ThreadStats) -> Cow<'_, str> {
    match row.kind {
        ThreadKind::Thread => thread_name(&row.comm),
        ThreadKind::Interrupt | ThreadKind::Idle => row.comm.as_str().into(),
    }
}

/// Returns the name of each process: that of its leader, else of its first thread.
fn processes(rows: &[ThreadStats]) -> BTreeMap<u32, String> {
    let mut first: BTreeMap<u32, (u32, String)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == ThreadKind::Thread) {
        // The leader has the process's id.
        let rank = if row.pid == row.tgid { 0 } else { row.pid };
        let named = first.entry(row.tgid).or_insert_with(|| (rank, row.comm.clone()));
        if rank <= named.0 {
            *named = (rank, row.comm.clone());
        }
    }
    first.into_iter().map(|(tgid, (_, comm))| (tgid, comm)).collect()
}

fn no_thread(what: &'static str, wanted: &str, names: BTreeSet<&str>) -> Error {
    const MAX_NAMES: usize = 8;
    let mut near: Vec<(i64, &str)> = names
        .iter()
        .map(|name| ((-strsim::jaro_winkler(name, wanted) * 1e6) as i64, *name))
        .filter(|(score, name)| *score <= -700_000 || wanted.len() >= 2 && name.contains(wanted))
        .collect();
    near.sort_unstable();
    let list = |names: Vec<&str>| names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
    let hint = match (near.is_empty(), names.len()) {
        (false, _) => {
            format!("; did you mean {}?", list(near.iter().take(5).map(|(_, name)| *name).collect()))
        }
        (true, 0) => "; the profile has none".to_string(),
        (true, count) if count > MAX_NAMES => format!(
            "; {} and {} more ran: see `report PROFILE threads --by-comm`",
            list(names.iter().copied().take(MAX_NAMES).collect()),
            count - MAX_NAMES
        ),
        (true, _) => format!("; there are {}", list(names.into_iter().collect())),
    };
    Error::NoThread { what, name: printable(wanted), hint }
}

/// Replaces the figures of all threads by those of the selected ones.
fn assemble(profile: &Profile, chosen: &SelectedThreads, counted: ThreadTables) -> Result<Profile> {
    let mut of = Profile { manifest: profile.manifest.clone(), tables: Default::default() };
    of.tables.symbols.clone_from(&profile.tables.symbols);
    of.tables.regions.clone_from(&profile.tables.regions);
    of.tables.threads = profile.tables.threads.iter().filter(|row| chosen.contains(row)).cloned().collect();
    // These know threads by name.
    let comms: BTreeSet<&str> = of.tables.threads.iter().map(|row| row.comm.as_str()).collect();
    let calls = profile.tables.system_calls.iter().filter(|row| comms.contains(row.comm.as_str()));
    let calls = calls.cloned().collect();
    of.tables.system_calls = calls;
    of.tables.functions = counted.functions;
    of.tables.arcs = counted.arcs;
    of.tables.histograms = counted.histograms;
    of.tables.paths = counted.paths;
    // By region, without regions within: time of the threads, and their user time.
    let mut by_region: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for row in &of.tables.threads {
        let [all, user] = by_region.entry(row.region).or_default();
        *all = all.saturating_add(row.self_ticks.get());
        *user = user.saturating_add(row.user_ticks.get());
    }
    let depths: Vec<u32> = of.tables.regions.iter().map(|row| row.depth).collect();
    // A region's time includes that of the regions within, which follow it.
    let mut sums: Vec<u64> =
        (0..).zip(&depths).map(|(at, _)| by_region.get(&at).map_or(0, |by_region| by_region[0])).collect();
    for at in (0..sums.len()).rev() {
        let outer = (0..at).rev().find(|outer| depths[*outer] < depths[at]);
        if let Some(outer) = outer {
            sums[outer] = sums[outer].saturating_add(sums[at]);
        }
    }
    let mut whole = 0_u64;
    for (row, busy) in of.tables.regions.iter_mut().zip(sums) {
        let [all, user] = by_region.get(&row.region).copied().unwrap_or_default();
        let [kernel, programs] = counted.in_functions.get(&row.region).copied().unwrap_or_default();
        let bare = user.checked_sub(programs);
        let rest = all.checked_sub(user).and_then(|rest| rest.checked_sub(kernel));
        let (Some(bare), Some(rest)) = (bare, rest) else {
            return Err(Error::Threads { parts: kernel.saturating_add(user.max(programs)), whole: all });
        };
        (row.user_ticks, row.unattributed_ticks) = (Ticks(bare), Ticks(rest));
        (row.busy_ticks, row.elapsed_ticks, row.idle_ticks) = (Ticks(busy), Ticks(busy), Ticks(0));
        if row.depth == 0 {
            whole = whole.saturating_add(busy);
        }
    }
    let manifest = &mut of.manifest;
    (manifest.elapsed_ticks, manifest.busy_ticks, manifest.idle_ticks) =
        (Ticks(whole), Ticks(whole), Ticks(0));
    if counted.events > 0 {
        manifest.events = counted.events;
    }
    Ok(of)
}

/// Checks whether a root of the call paths belongs to the selected names.
fn is_root(kind: PathKind, comm: &str, names: &BTreeSet<(PathKind, String)>) -> bool {
    let comm = if kind == PathKind::Thread { comm.to_string() } else { String::new() };
    names.contains(&(kind, comm))
}

/// Returns the root of a thread's call paths.
fn root_of(row: &ThreadStats) -> (PathKind, String) {
    match row.kind {
        ThreadKind::Thread => (PathKind::Thread, row.comm.clone()),
        ThreadKind::Interrupt => (PathKind::Interrupt, String::new()),
        ThreadKind::Idle => (PathKind::Idle, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{KernelId, Manifest, Tables};

    #[test]
    fn a_thread_that_calls_itself_the_interrupts_is_a_thread() {
        let row = |thread, kind, pid| ThreadStats {
            thread,
            kind,
            pid,
            tgid: pid,
            comm: "[interrupt]".into(),
            self_ticks: Ticks(1),
            ..ThreadStats::default()
        };
        let threads = vec![row(0, ThreadKind::Thread, 7), row(1, ThreadKind::Interrupt, 0)];
        let manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
        let profile = Profile { manifest, tables: Tables { threads, ..Tables::default() } };
        let chosen = |name: &str| {
            let who = ThreadFilter { thread: vec![name.into()], program: Vec::new() };
            let chosen = who.chosen(&profile).map_err(|error| error.to_string());
            chosen.map(|chosen| chosen.threads.into_keys().collect::<Vec<_>>())
        };
        assert_eq!(chosen("[interrupt]"), Ok(vec![1]));
        assert_eq!(chosen("\"[interrupt]\""), Ok(vec![0]));
        assert_eq!(chosen("7"), Ok(vec![0]));
        assert!(chosen("nobody").unwrap_err().contains("\"[interrupt]\", [interrupt]"));
    }
}
