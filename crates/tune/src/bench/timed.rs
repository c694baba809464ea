//! Timing of kernels against each other in virtual machines or as processes: kernels boot in turn,
//! and each boot runs the workload's measured run, several times if its programs can.
//!
//! Some conditions, such as physical memory layout, last for one boot, and the host is busy in
//! phases. So kernels take turns boot by boot, every second round in reverse order: slow changes
//! affect all alike. All of them run on one CPU of the host. The first kernel takes part twice
//! (A/A); the difference between its two runs is the scale for all others. Results are written
//! after each boot, so the same request resumes.

use super::measured::{read_values, RowMeasurement};
use super::{
    better, common_value, cpu, directory, empty_row, fitting, lines, uml_entry, uname, SelectedRows,
};
use crate::{Error, Result, Session};
use kerntune_guest::{Suite, Workload};
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::{last_cpu, timing_machine, Machine, RunOutcome, RunRequest};
use kerntune_profile::rfc3339;
use kerntune_stats::{
    schedule, BenchResults, ComparisonOptions, JoinedResults, MeasuredKernel as KernelName, MeasuredValue,
    PerfCounter, RatioMethod, ResultsRow, SkippedRow, StopDecision, StopRule, VariationLevel, RESULTS_SCHEMA,
};
use kerntune_work::{read_file, write_json, IoContext};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Name in results of the machine for kernels of User-Mode Linux.
pub const UML: &str = "uml";
/// Name in results of the machine that boots kernels by KVM.
pub const KVM: &str = "kvm";

/// Numbers of boots and iterations, scale and counters of a timing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedEffort<'a> {
    /// Number of boots of each kernel.
    pub boots: u32,
    /// Number of iterations of each row in a boot; 1 except for batched suites and servers under
    /// load.
    pub iterations: u32,
    /// Factor on the usual work of a row in each iteration.
    pub scale: f64,
    /// CPU counters to read in rows of our own programs, if the machine has them.
    pub counters: &'a [PerfCounter],
}

impl<'a> TimedEffort<'a> {
    /// Fills in the defaults for the workload: a shared clock needs more work per row than the
    /// exact machine.
    ///
    /// # Errors
    /// [`bench::Error`](super::Error) for several iterations, or another scale, of programs that
    /// support neither.
    pub fn of(workload: &Workload, boots: u32, iterations: Option<u32>, scale: Option<f64>) -> Result<Self> {
        let suite = Suite::of(workload.clone());
        let (batched, scalable, steps) = match &suite {
            Some(suite) => (suite.is_batched(), suite.is_scalable(), suite.is_steps()),
            // Other programs find both in their environment.
            None => (true, true, false),
        };
        let name = || workload.name.clone();
        if !batched && !steps && iterations.is_some_and(|iterations| iterations > 1) {
            return Err(super::Error::NotRepeated { suite: name() }.into());
        }
        if !scalable && scale.is_some_and(|scale| scale != 1.0) {
            return Err(super::Error::NotScalable { suite: name() }.into());
        }
        let usual = if batched { (5, 4.0) } else { (1, if scalable { 10.0 } else { 1.0 }) };
        let (iterations, scale) = (iterations.unwrap_or(usual.0), scale.unwrap_or(usual.1));
        Ok(Self { boots, iterations, scale, counters: &[] })
    }

    /// Sets the CPU counters to read.
    pub fn counting(self, counters: &'a [PerfCounter]) -> Self {
        Self { counters, ..self }
    }
}

/// Kernels, workload and numbers of boots of a timing.
#[derive(Debug, Clone, Copy)]
pub struct TimedRequest<'a> {
    /// Kernels to time; the first one takes part twice.
    pub kernels: &'a [Kernel],
    /// Workload whose measured run is timed. Its programs print a line for each row and iteration
    /// (`embedded/guest/README.md`).
    pub workload: &'a Workload,
    /// Effort; the number of boots is a maximum.
    pub effort: TimedEffort<'a>,
    /// Condition for stopping earlier.
    pub until: Option<StopCondition>,
    /// Directory of the results: one file for each kernel, replaced after each boot.
    pub directory: &'a Path,
}

/// Condition for stopping a timing early.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopCondition {
    /// Width of each row's interval relative to its estimate: 0.01 is one percent from end to end.
    pub width: f64,
    /// Time after which no round is started.
    pub budget: Option<Duration>,
    /// Method of the intervals.
    pub method: RatioMethod,
}

/// File and results of one kernel.
pub type TimedResults = (PathBuf, BenchResults);

/// Returns the machine that times these kernels: User-Mode Linux for kernels built for it,
/// otherwise KVM. They run on `cpu` of the host, by default the last one.
///
/// # Errors
/// [`Error::OtherMachine`] for kernels of both kinds.
pub fn machine(kernels: &[Kernel], cpu: Option<u32>) -> Result<Box<dyn Machine>> {
    let arch = kernels.first().map_or(Arch::default(), |kernel| kernel.manifest.arch);
    match kernels.iter().find(|kernel| kernel.manifest.arch != arch) {
        Some(kernel) => Err(Error::OtherMachine { kernel: kernel.manifest.label.clone() }),
        None => Ok(timing_machine(arch, cpu.or_else(last_cpu))),
    }
}

/// Returns the reason why rows of a suite cannot be timed on kernels of this architecture.
pub fn unfit(arch: Arch, suite: &Suite) -> Option<&'static str> {
    match arch {
        Arch::Um if suite.workload.disk.is_some() => {
            Some("it wants a disk of its own (`disk`), which User-Mode Linux does not have")
        }
        Arch::Um if suite.is_batched() => None,
        Arch::Um if !suite.is_steps() => Some(
            "a system call takes microseconds there, so that of our programs only batched rows say something of the kernel",
        ),
        Arch::Um | Arch::X86_64 => suite.untimed(),
    }
}

/// Splits the selection into what this kernel can run where it is timed and the rows that are
/// skipped.
///
/// # Errors
/// A configuration that cannot be read; no row that can run.
pub fn check(kernel: &Kernel, selection: Vec<SelectedRows>) -> Result<(Vec<SelectedRows>, Vec<SkippedRow>)> {
    let arch = kernel.manifest.arch;
    fitting(kernel, selection, timing_machine(arch, None).name(), |suite| unfit(arch, suite))
}

/// Times the rows that [`check`] left, on one kernel alone.
///
/// # Errors
/// Runs that fail; lines that cannot be parsed.
pub fn run<'a>(
    session: &Session,
    machine: &dyn Machine,
    (selection, skipped): (Vec<SelectedRows>, Vec<SkippedRow>),
    kernel: &Kernel,
    effort: impl Fn(&Workload) -> Result<TimedEffort<'a>>,
) -> Result<BenchResults> {
    let efforts: Vec<TimedEffort> =
        selection.iter().map(|selected| effort(&selected.suite.workload)).collect::<Result<_>>()?;
    let mut results = empty(machine, kernel, None)?;
    results.scale = common_value(efforts.iter().map(|effort| effort.scale));
    results.iterations = common_value(efforts.iter().map(|effort| effort.iterations));
    for (SelectedRows { suite, rows }, effort) in selection.iter().zip(efforts) {
        let workload = suite.restricted(&rows.iter().collect::<Vec<_>>(), 1.0);
        let timing = TimedRunner::new(session, machine, &workload, effort, &[kernel])?;
        results.rows.extend(rows.iter().map(|row| empty_row(&suite.workload.name, row)));
        for boot in 0..effort.boots {
            timing.boot(kernel, boot, &mut results)?;
        }
    }
    results.skipped = skipped;
    // Programs without --only run more rows than requested.
    results.rows.retain(|row| {
        selection
            .iter()
            .any(|s| s.suite.workload.name == row.suite && s.rows.iter().any(|r| r.name == row.row))
    });
    Ok(results)
}

/// Returns the workload with scale, iterations and counters, as options and environment of its
/// programs.
fn configured(workload: &Workload, effort: TimedEffort) -> Workload {
    let mut workload = match Suite::of(workload.clone()) {
        Some(suite) if !suite.is_batched() && suite.is_scalable() => {
            suite.restricted(&suite.rows.iter().collect::<Vec<_>>(), effort.scale)
        }
        Some(suite) if suite.is_steps() => {
            // Steps take turns, so that slowdown during a boot affects all of them alike.
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
    workload.times = true;
    workload.env.insert("KT_SCALE".into(), effort.scale.to_string());
    workload.env.insert("KT_ITERATIONS".into(), effort.iterations.to_string());
    workload.env.extend(lines::environment(effort.counters));
    workload
}

/// Returns results without rows. A machine that cannot time anything here fails before images are
/// made.
fn empty(machine: &dyn Machine, kernel: &Kernel, label: Option<String>) -> Result<BenchResults> {
    Ok(BenchResults {
        schema: RESULTS_SCHEMA.into(),
        machine: machine.name().into(),
        kernel: KernelName { id: Some(kernel.manifest.id.clone()), ..KernelName::default() },
        label,
        started: rfc3339(SystemTime::now()),
        cpu_model: machine.cpu_model()?,
        ..BenchResults::default()
    })
}

/// Returns the number of boots in these results.
fn boots(results: &BenchResults) -> u32 {
    let boots = results.rows.iter().flat_map(|row| &row.values).map(|value| value.boot + 1);
    boots.max().unwrap_or(0)
}

/// Returns whether both results have the same machine, CPU model, kernel, iterations and scale.
fn is_same_request(one: &BenchResults, other: &BenchResults) -> bool {
    let of = |of: &BenchResults| {
        (of.schema.clone(), of.machine.clone(), of.kernel.id.clone(), of.cpu_model.clone())
    };
    of(one) == of(other) && (one.iterations, one.scale) == (other.iterations, other.scale)
}

fn add(results: &mut BenchResults, suite: &str, boot: u32, measured: Vec<RowMeasurement>) {
    for RowMeasurement { row: name, iteration, unit, value, counters, uncounted, cpu: _ } in measured {
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
        results.rows[at].values.push(MeasuredValue {
            boot,
            iteration,
            value,
            counters,
            ..MeasuredValue::default()
        });
        results.uncounted.extend(uncounted);
    }
}

/// Boots the kernels in turn. The results are in the order of the kernels, with the A/A partner of
/// the first one last. Boots with results in the directory are not repeated. `on_boot` is called
/// before each other boot with its number, the total and the kernel's label; `look` after each look
/// at the intervals.
///
/// # Errors
/// A kernel that cannot be timed; runs that fail; lines that cannot be parsed.
pub fn timed(
    session: &Session,
    machine: &dyn Machine,
    request: &TimedRequest,
    on_boot: &dyn Fn(u32, u32, &str),
    look: &dyn Fn(StopDecision),
) -> Result<Vec<TimedResults>> {
    let mut sides = sides(machine, request)?;
    let kernels: Vec<&Kernel> = sides.iter().map(|(kernel, _)| *kernel).collect();
    let timing = TimedRunner::new(session, machine, request.workload, request.effort, &kernels)?;
    let all = request.effort.boots * sides.len() as u32;
    let (mut done, begun, mut block) = (0, Instant::now(), Instant::now());
    let mut stop =
        request.until.map(|until| StopRule::at_width(until.width, ComparisonOptions::default().confidence));
    let turns: Vec<usize> =
        schedule::mirrored(sides.len(), request.effort.boots.div_ceil(2) as usize).collect();
    for (boot, round) in (0..request.effort.boots).zip(turns.chunks(sides.len())) {
        for &at in round {
            let (kernel, (path, results)) = &mut sides[at];
            done += 1;
            if boots(results) > boot {
                continue;
            }
            on_boot(done, all, results.label.as_deref().unwrap_or_default());
            timing.boot(kernel, boot, results)?;
            write_json(path, results)?;
        }
        // Two rounds, forward and reverse, are a block.
        if let (Some(stop), Some(until), 1) = (&mut stop, request.until, boot % 2) {
            // The next block takes about as long as this one; boots of earlier calls took no time.
            let left = until.budget.is_none_or(|budget| begun.elapsed() + block.elapsed() <= budget);
            block = Instant::now();
            let decision = stop.check(&ratios(&sides, until.method)?, left);
            look(decision);
            if !matches!(decision, StopDecision::Continue(_)) {
                break;
            }
        }
    }
    Ok(sides.into_iter().map(|(_, timed)| timed).collect())
}

/// Returns the ratio of each row of each kernel to the base kernel, without its A/A partner, and
/// the smaller number of boots.
fn ratios(
    sides: &[(&Kernel, TimedResults)],
    method: RatioMethod,
) -> Result<Vec<(kerntune_stats::Ratio, usize)>> {
    let set = |(_, (path, results)): &(&Kernel, TimedResults)| -> Result<JoinedResults> {
        Ok(JoinedResults::join(&[(path.display().to_string(), results.clone())])?)
    };
    let [base, others @ .., again] = sides else { return Ok(Vec::new()) };
    let others = if others.is_empty() { std::slice::from_ref(again) } else { others };
    let base = set(base)?;
    let options = ComparisonOptions { method, ..ComparisonOptions::default() };
    let mut ratios = Vec::new();
    for other in others {
        let other = set(other)?;
        for row in &base.rows {
            let Some(beside) = other.row(&row.suite, &row.row) else { continue };
            let units = row.sample.count(VariationLevel::Boot).min(beside.sample.count(VariationLevel::Boot));
            if units > 1 {
                let ratio = options.ratio(&row.sample, &beside.sample, VariationLevel::Boot)?;
                ratios.push((ratio, units));
            }
        }
    }
    Ok(ratios)
}

/// Context of all boots.
struct TimedRunner<'a> {
    session: &'a Session<'a>,
    machine: &'a dyn Machine,
    workload: Workload,
    suite: Option<Suite>,
    /// Images by the kernels' ids.
    images: BTreeMap<String, PathBuf>,
}

impl<'a> TimedRunner<'a> {
    fn new(
        session: &'a Session,
        machine: &'a dyn Machine,
        workload: &Workload,
        effort: TimedEffort,
        kernels: &[&Kernel],
    ) -> Result<Self> {
        let workload = configured(workload, effort);
        let image = |kernel: &&Kernel| {
            Ok((kernel.manifest.id.clone(), session.image_on(kernel, &workload)?.initramfs))
        };
        let images = kernels.iter().map(image).collect::<Result<_>>()?;
        Ok(Self { session, machine, suite: Suite::of(workload.clone()), workload, images })
    }

    /// Boots once and adds the values to the results.
    fn boot(&self, kernel: &Kernel, boot: u32, results: &mut BenchResults) -> Result<()> {
        let (measured, outcome) = self.boot_once(kernel)?;
        if results.kernel.release.is_empty() {
            let console = outcome.directory.join("console.log");
            (results.kernel.release, results.kernel.version) = uname(&console);
            results.entry = uml_entry(&console);
        }
        let suite = &self.workload.name;
        let times = match outcome.spent.is_empty() {
            true => cpu::times_of_steps(boot, &measured),
            false => cpu::times_by_region(&self.workload, "measured", boot, &outcome.spent),
        };
        add(results, suite, boot, measured);
        for (name, time) in times {
            let row = results.rows.iter_mut().find(|row| (&row.suite, &row.row) == (suite, &name));
            row.into_iter().for_each(|row| row.cpu.push(time));
        }
        Ok(fs::remove_dir_all(&outcome.directory).at("remove", &outcome.directory)?)
    }

    fn boot_once(&self, kernel: &Kernel) -> Result<(Vec<RowMeasurement>, RunOutcome)> {
        let (session, workload) = (self.session, &self.workload);
        let directory = directory(session.work, &kernel.manifest.id)?;
        let initramfs = &self.images[&kernel.manifest.id];
        let request = RunRequest::of_workload(kernel, initramfs, workload, "measured");
        let outcome = self.machine.run(&request, &directory, session.progress)?;
        let measured = read_values(workload, self.suite.as_ref(), &outcome.guest_files)?;
        Ok((measured, outcome))
    }
}

/// Returns the kernels, and the first one again, each with its file and its earlier results.
fn sides<'a>(machine: &dyn Machine, request: &TimedRequest<'a>) -> Result<Vec<(&'a Kernel, TimedResults)>> {
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
        let TimedEffort { scale, iterations, .. } = request.effort;
        let (scale, iterations) = (Some(scale), Some(iterations));
        let empty = BenchResults { scale, iterations, ..empty(machine, kernel, Some(label))? };
        let results = match path.exists() {
            true => resume_results(&path, &request.workload.name, &empty)?,
            false => empty,
        };
        Ok((kernel, (path, results)))
    })
    .collect()
}

/// Reads earlier results, which must be of the same request.
fn resume_results(path: &Path, suite: &str, empty: &BenchResults) -> Result<BenchResults> {
    let bytes = read_file(path).at("read", path)?;
    let results = serde_json::from_slice(&bytes).ok().filter(|results: &BenchResults| {
        is_same_request(results, empty) && results.rows.iter().all(|row| row.suite == suite)
    });
    results.ok_or_else(|| Error::Exists { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_guest::RowUnit;

    fn nothing(id: &str, scale: f64) -> BenchResults {
        BenchResults {
            schema: RESULTS_SCHEMA.into(),
            machine: UML.into(),
            kernel: KernelName { id: Some(id.into()), ..KernelName::default() },
            scale: Some(scale),
            iterations: Some(2),
            ..BenchResults::default()
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
        let again = resume_results(&path, "batched", &empty).unwrap();
        assert_eq!((boots(&again), boots(&empty)), (1, 0));
        assert_eq!(again, timed);
        let others = [nothing("bb22", 1.0), nothing("aa11", 2.0)];
        for other in others.iter().map(|other| ("batched", other)).chain([("rr", &empty)]) {
            let error = resume_results(&path, other.0, other.1).unwrap_err().to_string();
            assert!(error.contains("base.json") && error.contains("remove it"), "{error}");
        }
        fs::write(&path, "{").unwrap();
        resume_results(&path, "batched", &empty).unwrap_err();
    }

    fn nop(iteration: u32, value: f64) -> RowMeasurement {
        let counters = [(PerfCounter::Instructions, 2.0 * value)].into();
        let uncounted = [(PerfCounter::Cycles, "none".into())].into();
        let cpu = None;
        RowMeasurement { row: "nop".into(), iteration, unit: RowUnit::Time, value, counters, uncounted, cpu }
    }

    #[test]
    fn what_was_measured_becomes_rows_in_order() {
        let mut timed = nothing("aa11", 1.0);
        for boot in 0..2 {
            let rate = RowUnit::Rate("transactions/s".into());
            let tcp = RowMeasurement { row: "tcp_rr_1".into(), unit: rate, ..nop(0, 5e3) };
            add(&mut timed, "batched", boot, vec![nop(0, 100.0), nop(1, 120.0), tcp]);
        }
        let rows: Vec<_> = timed.rows.iter().map(|row| (row.row.as_str(), row.values.len())).collect();
        assert_eq!(rows, [("nop", 4), ("tcp_rr_1", 2)]);
        assert_eq!(timed.rows[0].spread(), Some([110.0, 100.0, 120.0]));
        assert_eq!(
            (timed.rows[0].counted(PerfCounter::Instructions), timed.uncounted.len()),
            (Some(220.0), 1)
        );
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
            TimedEffort::of(&Workload::find(name, &[]).unwrap(), 3, iterations, scale)
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
            let effort =
                TimedEffort { boots: 1, iterations: 1, scale: 3.0, counters: &[PerfCounter::Cycles] };
            configured(&workload, effort)
        };
        assert!(scaled("kbx").measured.steps[0].command.ends_with(&["--scale".to_string(), "3".to_string()]));
        assert!(!scaled("batched").measured.steps[0].command.contains(&"--scale".to_string()));
        assert_eq!(scaled("batched").env["KT_SCALE"], "3");
        assert_eq!(scaled("kbx").env["KT_COUNTERS"], "cycles");
        let effort = TimedEffort { boots: 1, iterations: 2, scale: 1.0, counters: &[] };
        let redis = configured(&Workload::find("redis", &[]).unwrap(), effort);
        let rows: Vec<_> = redis.measured.steps.iter().filter_map(|step| step.region.as_deref()).collect();
        assert_eq!(rows, ["redis_set", "redis_get", "redis_set", "redis_get"]);
    }
}
