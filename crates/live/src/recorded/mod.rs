//! Profiles of files that another profiler recorded: `perf.data`.
//!
//! Samples go into the same [`Aggregate`] as those of a collector, and the profile is built in the
//! same way. Start with [`import_perf_data`].

mod names;
mod samples;

pub use names::RecordedNames;

use crate::aggregate::{Aggregate, RecordedFiles, TableBounds, USER_FUNCTIONS, WAIT_ROWS};
use crate::profile::{ProfileBuilder, ProfileLabels};
use crate::{Coverage, Error, Result, SamplingFilter, SourceDescription};
use kerntune_convert::perf_data::{EventKind, PerfData, PerfDataError, PerfEvent, PerfFile};
use kerntune_kernel::Kernel;
use kerntune_profile::{rfc3339, Profile};
use kerntune_work::{open_file, WorkDir};
use samples::SampleCounts;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A `perf.data` to import, and how.
#[derive(Debug, Clone, Copy)]
pub struct PerfDataRequest<'a> {
    /// The file.
    pub file: &'a Path,
    /// Kernel of the work directory that ran.
    pub kernel: Option<&'a Kernel>,
    /// List of the kernel's symbols: `System.map`, or a copy of `/proc/kallsyms`.
    pub symbols: Option<&'a Path>,
    /// Event to import; the clock or the cycles if `None`.
    pub event: Option<&'a str>,
    /// True to name functions of programs; otherwise user time is one row.
    pub user_chains: bool,
}

/// A profile of a file, with remarks on its origin.
#[derive(Debug, Clone)]
pub struct RecordedProfile {
    /// The profile.
    pub profile: Profile,
    /// Lines for the user: what was left out, and why.
    pub notes: Vec<String>,
}

/// Makes a profile of a `perf.data`. The id, the workload, the region and the operations of the
/// profile come from `labels`.
///
/// # Errors
/// [`Error::Recorded`] for a file that gives no profile: damaged, of another kernel, without samples.
pub fn import_perf_data(
    work: &WorkDir,
    request: &PerfDataRequest<'_>,
    labels: &ProfileLabels,
) -> Result<RecordedProfile> {
    let refuse = |reason: String| Error::Recorded { path: request.file.to_owned(), reason };
    let unreadable = |error: PerfDataError| match error {
        PerfDataError::Io(source) => Error::Io { action: "read", path: request.file.to_owned(), source },
        other => refuse(other.to_string()),
    };
    let input = open_file(request.file).map_err(Error::io("read", request.file))?;
    let modified = input.metadata().and_then(|file| file.modified());
    let mut data = PerfData::open(input).map_err(unreadable)?;
    let chosen = choose(&data.file, request.event).map_err(refuse)?;
    let first = data.file.events[chosen[0]].clone();
    let needs_kernel = chosen.iter().any(|at| !data.file.events[*at].excludes_kernel);
    let RecordedNames { mut running, kernel } = match needs_kernel {
        true => names::find(work, &data.file, request)?,
        false => RecordedNames::without_kernel(&data.file),
    };
    let user = if request.user_chains { USER_FUNCTIONS } else { 0 };
    let mut counts = SampleCounts::new(&data.file, &chosen, request.user_chains);
    let waits = if counts.has_waits() { WAIT_ROWS } else { 0 };
    let bounds = TableBounds { user, waits, ..TableBounds::default() };
    let table = std::mem::take(&mut running.table);
    let names = table.functions().iter().map(|function| function.name.len() + 120).sum::<usize>();
    let mut all = Aggregate::new(table, bounds);
    all.user.set_recorded(recorded_files(&data.file));
    data.read(|_, record| {
        counts.record(&record, &mut all);
        Ok(())
    })
    .map_err(unreadable)?;
    let file = &data.file;
    counts.check(file, &all).map_err(refuse)?;
    let description = describe(file, &first, &counts, request);
    let notes = description.lacks.clone();
    let sample_ns = counts.sample_ns(&first);
    let stood_for = all.samples.saturating_add(counts.lost);
    let descriptions = [description];
    let builder = ProfileBuilder {
        all: &all,
        running: &running,
        descriptions: &descriptions,
        coverage: Coverage {
            ns: sample_ns.saturating_mul(stood_for),
            cpus: counts.cpus().max(1),
            lost: counts.lost,
        },
        halted_ns: 0,
        counted: Vec::new(),
        filter: &SamplingFilter::default(),
        wall: Duration::from_nanos(counts.span_ns()),
        bound_bytes: (bounds.bytes() + names) as u64,
    };
    let labels = ProfileLabels { kernel: kernel.or_else(|| labels.kernel.clone()), ..labels.clone() };
    let mut profile = builder.build(&labels)?;
    profile.manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
    profile.manifest.sources.insert(0, origin(file, request.file));
    if let Some(sampled) = &mut profile.manifest.sampled {
        sampled.filter = counts.filter(file);
    }
    let notes = notes.into_iter().chain(running.notes).collect();
    Ok(RecordedProfile { profile, notes })
}

/// Returns the numbers of the events to import: one kind of clock, or the named event.
fn choose(file: &PerfFile, name: Option<&str>) -> Result<Vec<usize>, String> {
    let numbered = || file.events.iter().enumerate().filter(|(_, event)| event.kind != EventKind::Dummy);
    let names = || {
        let names: Vec<String> = numbered().map(|(_, event)| format!("`{}`", event.name)).collect();
        names.join(", ")
    };
    let is_clock = |event: &PerfEvent| event.kind != EventKind::Other;
    let first = match name {
        Some(name) => numbered()
            .find(|(_, event)| event.name == name)
            .ok_or_else(|| format!("it has no event `{name}`; it has {}", names()))?,
        None => numbered()
            .find(|(_, event)| is_clock(event))
            .or_else(|| numbered().next())
            .ok_or("it has no event with samples, only `dummy`")?,
    };
    if !is_clock(first.1) {
        return Err(format!(
            "its samples are of {}, and a profile's times need samples of a clock: record with `perf record -e cycles`, or \
             `-e cpu-clock` where the CPU does not count cycles",
            names()
        ));
    }
    // The kinds of cores of a hybrid CPU have an event each, and so may kernel and user code.
    let (number, event) = first;
    let mut chosen = vec![number];
    for (at, other) in numbered().filter(|(at, other)| *at != number && other.kind == event.kind) {
        let apart = chosen.iter().all(|known| {
            let known = &file.events[*known];
            let kernel = known.excludes_kernel && other.excludes_user;
            let user = known.excludes_user && other.excludes_kernel;
            known.event.1 >> 32 != other.event.1 >> 32 || kernel || user
        });
        if apart && name.is_none() && other.period == event.period {
            chosen.push(at);
        }
    }
    Ok(chosen)
}

fn recorded_files(file: &PerfFile) -> RecordedFiles {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    RecordedFiles {
        build_ids: file.build_ids.iter().map(|known| (known.path.clone(), known.id.clone())).collect(),
        is_this_machine: file.hostname.as_deref() == Some(here.trim()),
    }
}

/// Describes the origin of a file in a line.
fn origin(file: &PerfFile, path: &Path) -> String {
    let mut parts = vec![format!("perf.data: {}", path.display())];
    parts.extend(file.hostname.iter().map(|name| format!("machine {name}")));
    parts.extend(file.release.iter().map(|release| format!("Linux {release}")));
    parts.extend(file.perf_version.iter().map(|version| format!("perf {version}")));
    parts.extend(file.command.iter().map(|command| format!("`{command}`")));
    parts.join(", ")
}

fn describe(
    file: &PerfFile,
    event: &PerfEvent,
    counts: &SampleCounts,
    request: &PerfDataRequest<'_>,
) -> SourceDescription {
    let is_timer = matches!(event.kind, EventKind::CpuClock | EventKind::TaskClock);
    let period = match (event.is_frequency, is_timer) {
        (true, true) => format!("perf took about {} samples per second of {}", event.period, event.name),
        (true, false) => format!(
            "perf took about {} samples per second of the time in which a CPU was not halted, and each stands for as much time",
            event.period
        ),
        (false, true) => format!("perf took a sample every {} ns", event.period),
        (false, false) => format!(
            "perf took a sample every {} cycles; the time from the first to the last sample, of all CPUs that have samples, \
             is divided among them, and includes the time in which they were halted",
            event.period
        ),
    };
    let bias = is_timer.then(|| {
        "samples are taken by a timer interrupt: the time of code that runs with interrupts off is charged to the \
         instruction at which they come on again"
            .to_owned()
    });
    SourceDescription {
        name: format!("perf.data: {}", event.name),
        period,
        bias,
        calls: false,
        sees_idle: event.kind == EventKind::CpuClock,
        buffers: 0,
        traced: counts.traced(),
        lacks: counts.left_out(file, request),
    }
}
