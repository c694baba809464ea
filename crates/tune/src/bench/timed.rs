//! Kernels timed against each other in virtual machines or as processes: boots in turn, each with the workload's measured
//! run, several times over where its programs can.
//!
//! What a boot finds, such as where its memory lies, lasts until the next one, and the host is busy in phases. So
//! kernels take turns boot by boot, every second round in reverse: what changes slowly meets all of them alike. All of
//! them run on one CPU of the host.
//! The first kernel takes part twice; how far the two differ is what the difference of others has to be held against.
//! Times are written after each boot: the same request goes on from there.

use super::measured::{measured, Measured};
use super::{better, common, cpu, directory, empty_row, entry, fitting, lines, uname, Selected};
use crate::{Error, Result, Session};
use kerntune_guest::{Suite, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::{last_cpu, machine_that_times, Machine, Outcome, RunRequest};
use kerntune_profile::rfc3339;
use kerntune_stats::{
    schedule, Counter, Decision, Kernel as KernelName, Level, Method, Options, Results, ResultsRow, Set,
    Skipped, Stop, Value, RESULTS_SCHEMA,
};
use kerntune_work::{read_file, write_json, IoContext};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What results call the machine of kernels for User-Mode Linux.
pub const UML: &str = "uml";
/// What results call the machine that boots kernels by KVM.
pub const KVM: &str = "kvm";

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort<'a> {
    /// How often each kernel is booted.
    pub boots: u32,
    /// How often a row is timed in each boot; 1 but for batched suites and servers under load.
    pub iterations: u32,
    /// How much of its work a row does in each iteration.
    pub scale: f64,
    /// What the rows of our own programs count besides, where the machine's CPU has it.
    pub counters: &'a [Counter],
}

impl<'a> Effort<'a> {
    /// So many boots, and for the workload what was asked for, or what is usual: of a clock that others use, too, rows
    /// want more work than of one that is exact.
    ///
    /// # Errors
    /// [`bench::Error`](super::Error) for more than one iteration, or another scale, of programs that take none.
    pub fn of(workload: &Workload, boots: u32, iterations: Option<u32>, scale: Option<f64>) -> Result<Self> {
        let suite = Suite::of(workload.clone());
        let (batched, scalable, load) = match &suite {
            Some(suite) => (suite.is_batched(), suite.is_scalable(), suite.is_load()),
            // Programs that are not ours find both in their environment.
            None => (true, true, false),
        };
        let name = || workload.name.clone();
        if !batched && !load && iterations.is_some_and(|iterations| iterations > 1) {
            return Err(super::Error::NotRepeated { suite: name() }.into());
        }
        if !scalable && scale.is_some_and(|scale| scale != 1.0) {
            return Err(super::Error::NotScalable { suite: name() }.into());
        }
        let usual = if batched { (5, 4.0) } else { (1, if scalable { 10.0 } else { 1.0 }) };
        let (iterations, scale) = (iterations.unwrap_or(usual.0), scale.unwrap_or(usual.1));
        Ok(Self { boots, iterations, scale, counters: &[] })
    }

    /// The same with these counters.
    pub fn counting(self, counters: &'a [Counter]) -> Self {
        Self { counters, ..self }
    }
}

/// What to time.
#[derive(Debug, Clone, Copy)]
pub struct TimedRequest<'a> {
    /// The first one twice.
    pub kernels: &'a [Kernel],
    /// Its measured run is timed. Programs print a line for each row and iteration (`guest/README.md`).
    pub workload: &'a Workload,
    /// As many boots at most.
    pub effort: Effort<'a>,
    /// When fewer boots are enough.
    pub until: Option<Until>,
    /// Where the results go: one file for each kernel, replaced after each boot.
    pub directory: &'a Path,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Each row's interval, relative to its estimate: 0.01 is one per cent from end to end.
    pub width: f64,
    /// No round is begun after this time.
    pub budget: Option<Duration>,
    /// How intervals are computed.
    pub method: Method,
}

/// What one kernel's rows came to, and where that is written.
pub type Timed = (PathBuf, Results);

/// The machine that times kernels: User-Mode Linux those that are built for it, KVM all others. They run on `cpu` of the host,
/// or on the last one.
///
/// # Errors
/// [`Error::OtherMachine`] for kernels of both kinds.
pub fn machine(kernels: &[Kernel], cpu: Option<u32>) -> Result<Box<dyn Machine>> {
    let arch = kernels.first().map_or(Arch::default(), |kernel| kernel.manifest.arch);
    match kernels.iter().find(|kernel| kernel.manifest.arch != arch) {
        Some(kernel) => Err(Error::OtherMachine { kernel: kernel.manifest.label.clone() }),
        None => Ok(machine_that_times(arch, cpu.or_else(last_cpu))),
    }
}

/// Why rows of a suite have no time where kernels of this architecture are timed.
pub fn unfit(arch: Arch, suite: &Suite) -> Option<&'static str> {
    match arch {
        Arch::Um if suite.workload.disk.is_some() => {
            Some("it wants a disk of its own (`disk`), which User-Mode Linux does not have")
        }
        Arch::Um if suite.is_batched() => None,
        Arch::Um if !suite.is_load() => Some(
            "a system call takes microseconds there, so that of our programs only batched rows say something of the kernel",
        ),
        Arch::Um | Arch::X86_64 => suite.untimed(),
    }
}

/// What this kernel can run where it is timed, and what it lacks for the rest.
///
/// # Errors
/// A configuration that cannot be read, nothing left.
pub fn check(kernel: &Kernel, selection: Vec<Selected>) -> Result<(Vec<Selected>, Vec<Skipped>)> {
    let arch = kernel.manifest.arch;
    fitting(kernel, selection, machine_that_times(arch, None).name(), |suite| unfit(arch, suite))
}

/// Times what [`check`] left, of one kernel by itself.
///
/// # Errors
/// Runs that fail, lines that are none.
pub fn run<'a>(
    session: &Session,
    machine: &dyn Machine,
    (selection, skipped): (Vec<Selected>, Vec<Skipped>),
    kernel: &Kernel,
    effort: impl Fn(&Workload) -> Result<Effort<'a>>,
) -> Result<Results> {
    let efforts: Vec<Effort> =
        selection.iter().map(|selected| effort(&selected.suite.workload)).collect::<Result<_>>()?;
    let mut results = empty(machine, kernel, None);
    results.scale = common(efforts.iter().map(|effort| effort.scale));
    results.iterations = common(efforts.iter().map(|effort| effort.iterations));
    for (Selected { suite, rows }, effort) in selection.iter().zip(efforts) {
        let workload = suite.restricted(&rows.iter().collect::<Vec<_>>(), 1.0);
        let timing = Timing::new(session, machine, &workload, effort)?;
        results.rows.extend(rows.iter().map(|row| empty_row(&suite.workload.name, row)));
        for boot in 0..effort.boots {
            timing.boot(kernel, boot, &mut results)?;
        }
    }
    results.skipped = skipped;
    // Programs that have no --only do more than was asked for.
    results.rows.retain(|row| {
        selection
            .iter()
            .any(|s| s.suite.workload.name == row.suite && s.rows.iter().any(|r| r.name == row.row))
    });
    Ok(results)
}

/// The workload with the effort that its programs read, or are told.
fn configured(workload: &Workload, effort: Effort) -> Workload {
    let mut workload = match Suite::of(workload.clone()) {
        Some(suite) if !suite.is_batched() && suite.is_scalable() => {
            suite.restricted(&suite.rows.iter().collect::<Vec<_>>(), effort.scale)
        }
        Some(suite) if suite.is_load() => {
            // They take turns, so that what grows slower in a boot meets all of them alike.
            let mut workload = workload.clone();
            let steps = std::mem::take(&mut workload.measured.steps);
            let all = std::iter::repeat_n(steps, effort.iterations as usize);
            workload.measured.steps = all.flatten().collect();
            workload.time_limit_seconds =
                workload.time_limit_seconds.saturating_mul(effort.iterations.into());
            workload
        }
        _ => workload.clone(),
    };
    workload.env.insert("KT_SCALE".into(), effort.scale.to_string());
    workload.env.insert("KT_ITERATIONS".into(), effort.iterations.to_string());
    workload.env.extend(lines::environment(effort.counters));
    workload
}

/// Results without rows.
fn empty(machine: &dyn Machine, kernel: &Kernel, label: Option<String>) -> Results {
    Results {
        schema: RESULTS_SCHEMA.into(),
        machine: machine.name().into(),
        kernel: KernelName { id: Some(kernel.manifest.id.clone()), ..KernelName::default() },
        label,
        started: rfc3339(SystemTime::now()),
        ..Results::default()
    }
}

/// How often the kernel of these results was booted.
fn boots(results: &Results) -> u32 {
    let boots = results.rows.iter().flat_map(|row| &row.values).map(|value| value.boot + 1);
    boots.max().unwrap_or(0)
}

/// Whether times of `other` can stand beside these.
fn goes_on_with(one: &Results, other: &Results) -> bool {
    (&one.schema, &one.machine, &one.kernel.id, one.iterations, one.scale)
        == (&other.schema, &other.machine, &other.kernel.id, other.iterations, other.scale)
}

fn add(results: &mut Results, suite: &str, boot: u32, measured: Vec<Measured>) {
    for Measured { row: name, iteration, unit, value, counters, uncounted } in measured {
        let is_it = |row: &ResultsRow| (row.suite.as_str(), &row.row) == (suite, &name);
        let at = results.rows.iter().position(is_it).unwrap_or_else(|| {
            results.rows.push(ResultsRow {
                suite: suite.into(),
                row: name.clone(),
                unit: unit.name().into(),
                better: better(&unit),
                values: Vec::new(),
                cpu: Vec::new(),
            });
            results.rows.len() - 1
        });
        results.rows[at].values.push(Value { boot, iteration, value, counters, ..Value::default() });
        results.uncounted.extend(uncounted);
    }
}

/// Boots the kernels in turn; the first of the results is the first kernel's, the last its A/A partner's. Boots whose
/// times are in the directory are not made again. `tell` hears of each other boot: which of how many, and whose;
/// `look` of each look at the intervals.
///
/// # Errors
/// A kernel that cannot be timed, runs that fail, lines that are none.
pub fn timed(
    session: &Session,
    machine: &dyn Machine,
    request: &TimedRequest,
    tell: &dyn Fn(u32, u32, &str),
    look: &dyn Fn(Decision),
) -> Result<Vec<Timed>> {
    let timing = Timing::new(session, machine, request.workload, request.effort)?;
    let mut sides = sides(machine, request)?;
    let all = request.effort.boots * sides.len() as u32;
    let (mut done, begun, mut block) = (0, Instant::now(), Instant::now());
    let mut stop = request.until.map(|until| Stop::at_width(until.width, Options::default().confidence));
    let turns: Vec<usize> =
        schedule::mirrored(sides.len(), request.effort.boots.div_ceil(2) as usize).collect();
    for (boot, round) in (0..request.effort.boots).zip(turns.chunks(sides.len())) {
        for &at in round {
            let (kernel, (path, results)) = &mut sides[at];
            done += 1;
            if boots(results) > boot {
                continue;
            }
            tell(done, all, results.label.as_deref().unwrap_or_default());
            timing.boot(kernel, boot, results)?;
            write_json(path, results)?;
        }
        // Two rounds are one way and back, a block.
        if let (Some(stop), Some(until), 1) = (&mut stop, request.until, boot % 2) {
            // Another one takes about as long as this one did; boots of before took no time.
            let left = until.budget.is_none_or(|budget| begun.elapsed() + block.elapsed() <= budget);
            block = Instant::now();
            let decision = stop.look(&ratios(&sides, until.method)?, left);
            look(decision);
            if !matches!(decision, Decision::GoOn(_)) {
                break;
            }
        }
    }
    Ok(sides.into_iter().map(|(_, timed)| timed).collect())
}

/// Each row of each kernel against the base kernel, its A/A partner left out, with the boots of the one that has fewer.
fn ratios(sides: &[(&Kernel, Timed)], method: Method) -> Result<Vec<(kerntune_stats::Ratio, usize)>> {
    let set = |(_, (path, results)): &(&Kernel, Timed)| -> Result<Set> {
        Ok(Set::join(&[(path.display().to_string(), results.clone())])?)
    };
    let [base, others @ .., again] = sides else { return Ok(Vec::new()) };
    let others = if others.is_empty() { std::slice::from_ref(again) } else { others };
    let base = set(base)?;
    let options = Options { method, ..Options::default() };
    let mut ratios = Vec::new();
    for other in others {
        let other = set(other)?;
        for row in &base.rows {
            let Some(beside) = other.row(&row.suite, &row.row) else { continue };
            let units = row.sample.count(Level::Boot).min(beside.sample.count(Level::Boot));
            if units > 1 {
                let ratio = options.ratio(&row.sample, &beside.sample, Level::Boot)?;
                ratios.push((ratio, units));
            }
        }
    }
    Ok(ratios)
}

/// What all boots share.
struct Timing<'a> {
    session: &'a Session<'a>,
    machine: &'a dyn Machine,
    workload: Workload,
    suite: Option<Suite>,
    initramfs: PathBuf,
}

impl<'a> Timing<'a> {
    fn new(
        session: &'a Session,
        machine: &'a dyn Machine,
        workload: &Workload,
        effort: Effort,
    ) -> Result<Self> {
        let workload = configured(workload, effort);
        let initramfs = session.image(&workload)?.initramfs;
        Ok(Self { session, machine, suite: Suite::of(workload.clone()), workload, initramfs })
    }

    /// One boot, added to the results.
    fn boot(&self, kernel: &Kernel, boot: u32, results: &mut Results) -> Result<()> {
        let (measured, outcome) = self.boot_once(kernel)?;
        if results.kernel.release.is_empty() {
            let console = outcome.directory.join("console.log");
            (results.kernel.release, results.kernel.version) = uname(&console);
            results.entry = entry(&console);
        }
        let suite = &self.workload.name;
        add(results, suite, boot, measured);
        for (name, time) in cpu::of_steps(&self.workload, "measured", boot, &outcome.spent) {
            let row = results.rows.iter_mut().find(|row| (&row.suite, &row.row) == (suite, &name));
            row.into_iter().for_each(|row| row.cpu.push(time));
        }
        Ok(fs::remove_dir_all(&outcome.directory).at("remove", &outcome.directory)?)
    }

    fn boot_once(&self, kernel: &Kernel) -> Result<(Vec<Measured>, Outcome)> {
        let (session, workload) = (self.session, &self.workload);
        let directory = directory(session.work, &kernel.manifest.id)?;
        let request = RunRequest::of_workload(kernel, &self.initramfs, workload, "measured");
        let outcome = self.machine.run(&request, &directory, session.progress)?;
        let measured = measured(workload, self.suite.as_ref(), &outcome.guest_files)?;
        Ok((measured, outcome))
    }
}

/// The kernels, then the first of them again, each with its file and what is in it by now.
fn sides<'a>(machine: &dyn Machine, request: &TimedRequest<'a>) -> Result<Vec<(&'a Kernel, Timed)>> {
    fs::create_dir_all(request.directory).at("create", request.directory)?;
    let mut names = BTreeSet::new();
    let again = request.kernels.first().map(|kernel| (kernel, "-again"));
    let each = request.kernels.iter().map(|kernel| (kernel, "")).chain(again);
    each.map(|(kernel, suffix)| {
        let label = format!("{}{suffix}", kernel.manifest.label);
        let path = request.directory.join(format!("{label}.json"));
        if !names.insert(label.clone()) {
            return Err(Error::Exists { path });
        }
        let Effort { scale, iterations, .. } = request.effort;
        let (scale, iterations) = (Some(scale), Some(iterations));
        let empty = Results { scale, iterations, ..empty(machine, kernel, Some(label)) };
        let results = match path.exists() {
            true => taken_up(&path, &request.workload.name, &empty)?,
            false => empty,
        };
        Ok((kernel, (path, results)))
    })
    .collect()
}

/// The times of before, if they are those of the same request.
fn taken_up(path: &Path, suite: &str, empty: &Results) -> Result<Results> {
    let bytes = read_file(path).at("read", path)?;
    let results = serde_json::from_slice(&bytes).ok().filter(|results: &Results| {
        goes_on_with(results, empty) && results.rows.iter().all(|row| row.suite == suite)
    });
    results.ok_or_else(|| Error::Exists { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_guest::Unit;

    fn nothing(id: &str, scale: f64) -> Results {
        Results {
            schema: RESULTS_SCHEMA.into(),
            machine: UML.into(),
            kernel: KernelName { id: Some(id.into()), ..KernelName::default() },
            scale: Some(scale),
            iterations: Some(2),
            ..Results::default()
        }
    }

    #[test]
    fn only_times_of_the_same_request_are_taken_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.json");
        let empty = nothing("aa11", 1.0);
        let mut timed = empty.clone();
        add(&mut timed, "batched", 0, vec![nop(0, 5.0)]);
        write_json(&path, &timed).unwrap();
        let again = taken_up(&path, "batched", &empty).unwrap();
        assert_eq!((boots(&again), boots(&empty)), (1, 0));
        assert_eq!(again, timed);
        let others = [nothing("bb22", 1.0), nothing("aa11", 2.0)];
        for other in others.iter().map(|other| ("batched", other)).chain([("rr", &empty)]) {
            let error = taken_up(&path, other.0, other.1).unwrap_err().to_string();
            assert!(error.contains("base.json") && error.contains("remove it"), "{error}");
        }
        fs::write(&path, "{").unwrap();
        taken_up(&path, "batched", &empty).unwrap_err();
    }

    fn nop(iteration: u32, value: f64) -> Measured {
        let counters = [(Counter::Instructions, 2.0 * value)].into();
        let uncounted = [(Counter::Cycles, "none".into())].into();
        Measured { row: "nop".into(), iteration, unit: Unit::Time, value, counters, uncounted }
    }

    #[test]
    fn what_was_measured_becomes_rows_in_order() {
        let mut timed = nothing("aa11", 1.0);
        for boot in 0..2 {
            let rate = Unit::Rate("transactions/s".into());
            let tcp = Measured { row: "tcp_rr_1".into(), unit: rate, ..nop(0, 5e3) };
            add(&mut timed, "batched", boot, vec![nop(0, 100.0), nop(1, 120.0), tcp]);
        }
        let rows: Vec<_> = timed.rows.iter().map(|row| (row.row.as_str(), row.values.len())).collect();
        assert_eq!(rows, [("nop", 4), ("tcp_rr_1", 2)]);
        assert_eq!(timed.rows[0].spread(), Some([110.0, 100.0, 120.0]));
        assert_eq!((timed.rows[0].counted(Counter::Instructions), timed.uncounted.len()), (Some(220.0), 1));
        let value = &timed.rows[0].values[3];
        assert_eq!((value.boot, value.iteration, value.value), (1, 1, 120.0));
        let written = serde_json::to_value(&timed).unwrap();
        assert_eq!(written["rows"][0]["unit"], "ns/op");
        assert_eq!(
            (&written["rows"][1]["unit"], &written["rows"][1]["better"]),
            (&"transactions/s".into(), &"higher".into())
        );
    }

    #[test]
    fn effort_is_what_the_programs_can_do() {
        let of = |name: &str, iterations, scale| {
            Effort::of(&Workload::find(name, &[]).unwrap(), 3, iterations, scale)
        };
        let usual = |name| {
            of(name, None, None).map(|effort| (effort.boots, effort.iterations, effort.scale)).unwrap()
        };
        assert_eq!(usual("batched"), (3, 5, 4.0));
        assert_eq!(usual("kbx"), (3, 1, 10.0));
        assert_eq!(usual("redis"), (3, 1, 1.0));
        assert_eq!(of("redis", Some(3), None).unwrap().iterations, 3);
        assert!(of("kbx", Some(2), None).unwrap_err().to_string().contains("--iterations"));
        assert!(of("redis", None, Some(2.0)).unwrap_err().to_string().contains("--scale"));
        of("redis", Some(1), Some(1.0)).unwrap();
        let scaled = |name| {
            let workload = Workload::find(name, &[]).unwrap();
            let effort = Effort { boots: 1, iterations: 1, scale: 3.0, counters: &[Counter::Cycles] };
            configured(&workload, effort)
        };
        assert!(scaled("kbx").measured.steps[0].command.ends_with(&["--scale".to_string(), "3".to_string()]));
        assert!(!scaled("batched").measured.steps[0].command.contains(&"--scale".to_string()));
        assert_eq!(scaled("batched").env["KT_SCALE"], "3");
        assert_eq!(scaled("kbx").env["KT_COUNTERS"], "cycles");
        let effort = Effort { boots: 1, iterations: 2, scale: 1.0, counters: &[] };
        let redis = configured(&Workload::find("redis", &[]).unwrap(), effort);
        let rows: Vec<_> = redis.measured.steps.iter().filter_map(|step| step.region.as_deref()).collect();
        assert_eq!(rows, ["redis_set", "redis_get", "redis_set", "redis_get"]);
    }
}
