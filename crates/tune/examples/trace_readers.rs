//! Measures the speed of trace readers: kerntune analyzes a recording, and `uftrace report` reads
//! the same events; for comparison, `trace-cmd report` reads a function_graph capture made in the
//! guest. `make bench` runs this; docs/benchmarks.md has a baseline.
//!
//! Times are CPU time, user and system together, since these depend less on other load.
//!
//! Usage: `trace_readers [MILLIONS_OF_EVENTS] [MILLIONS_FOR_UFTRACE]`; the work directory is
//! `KERNTUNE_DIR` or `.kerntune`. The recording is kept there and used again.

#[path = "support/cpu.rs"]
mod cpu;

use kerntune_analyze::{analyze, AnalysisInput};
use kerntune_guest::{GuestImage, Workload, WorkloadRun, WorkloadStep};
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_machine::{Emulator, Machine, RunRequest};
use kerntune_profile::Profile;
use kerntune_tune::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::{export, Session};
use kerntune_work::{NoProgress, WorkDir};
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Round trips per million events of the row `tcp_rr`, and the row's round trips at scale 1.
const TRIPS_PER_MILLION: f64 = 1_000_000.0 / 1_110.0;
const TRIPS_AT_SCALE_1: f64 = 1_000.0;

type ExampleResult<T> = Result<T, Box<dyn Error>>;

fn main() -> ExampleResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, threads, profile] = arguments.as_slice() {
        if word == "analyze" {
            return analyze_profile(Path::new(profile), threads.parse()?);
        }
    }
    let millions = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<f64>());
    let (events, shared) = (millions(0, 200.0)?, millions(1, 20.0)?);
    let work = WorkDir::open(std::env::var("KERNTUNE_DIR").unwrap_or(".kerntune".into()))?;
    let kernel = build(&work, &BuildRequest::new("debian:6.12".parse()?, "base"), &NoProgress)?;

    let large = trace(&work, &kernel, events)?;
    let bytes = std::fs::metadata(large.path.join("run/trace.kt"))?.len();
    println!(
        "trace of {:.1} M events: {:.0} MiB, {:.3} bytes per event",
        large.manifest.events as f64 / 1e6,
        bytes as f64 / 1048576.0,
        bytes as f64 / large.manifest.events as f64
    );
    let ours = child(1, &large.path)?;
    let both = child(0, &large.path)?;
    println!("  kerntune, 1 thread:    {ours}");
    println!("  kerntune, all threads: {both}");

    let same = trace(&work, &kernel, shared)?;
    let ours = child(1, &same.path)?;
    println!("the same {:.1} M events read by both", same.manifest.events as f64 / 1e6);
    let both = child(0, &same.path)?;
    println!("  kerntune, 1 thread:    {ours}");
    println!("  kerntune, all threads: {both}");
    let (records, CommandCost { seconds, wall }) = uftrace(&same.path)?;
    println!(
        "  uftrace report:        {seconds:.2} s of CPU ({wall:.2} s), {:.2} M records per CPU s ({:.1} M records)",
        records as f64 / seconds / 1e6,
        records as f64 / 1e6
    );
    println!(
        "  uftrace / kerntune:    {:.1} in CPU time, {:.1} on the clock with all threads",
        seconds / ours.seconds,
        wall / both.wall
    );

    let (lines, CommandCost { seconds, .. }) = trace_cmd(&work)?;
    let rate = lines as f64 / seconds;
    println!(
        "trace-cmd report on {:.2} M function_graph events: {seconds:.2} s of CPU, {:.2} M events per CPU s",
        lines as f64 / 1e6,
        rate / 1e6
    );
    println!("  kerntune's rate / trace-cmd's: {:.1}", ours.rate() / rate);
    Ok(())
}

/// Records TCP round trips of about `millions` million events.
fn trace(work: &WorkDir, kernel: &Kernel, millions: f64) -> ExampleResult<RecordedProfile> {
    let scale = format!("{:.3}", millions * TRIPS_PER_MILLION / TRIPS_AT_SCALE_1);
    let workload = rr(&["rr", "--only", "tcp_rr", "--scale", &scale])?;
    let session = Session::new(work, &NoProgress)?;
    Ok(record(
        &session,
        &RecordRequest {
            kernel,
            workload: &workload,
            run: "measured",
            capture: CaptureOptions { functions: true, edges: false },
            model: None,
            repeat: Repetition::Number(0),
        },
    )?)
}

fn rr(command: &[&str]) -> ExampleResult<Workload> {
    let mut workload = Workload::find("rr", &[])?;
    let command = command.iter().map(|word| word.to_string()).collect();
    let step = WorkloadStep { command, limit_seconds: Some(1_800), ..WorkloadStep::default() };
    workload.measured = WorkloadRun { warmup: Vec::new(), steps: vec![step] };
    workload.time_limit_seconds = 2_400;
    Ok(workload)
}

/// Cost of one analysis, in a process of its own.
struct AnalysisCost {
    events: u64,
    /// CPU time.
    seconds: f64,
    /// Wall time.
    wall: f64,
    peak_kib: u64,
}

impl AnalysisCost {
    fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

impl std::fmt::Display for AnalysisCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rate, peak) = (self.rate() / 1e6, self.peak_kib as f64 / 1024.0);
        let (cpu, wall) = (self.seconds, self.wall);
        write!(f, "{cpu:.2} s of CPU ({wall:.2} s), {rate:.1} M events per CPU s, peak memory {peak:.0} MiB")
    }
}

fn child(threads: usize, profile: &Path) -> ExampleResult<AnalysisCost> {
    let output = Command::new(std::env::current_exe()?)
        .args(["analyze", &threads.to_string()])
        .arg(profile)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let mut word = || words.next().ok_or("the analysis printed nothing");
    Ok(AnalysisCost {
        events: word()?.parse()?,
        seconds: word()?.parse()?,
        wall: word()?.parse()?,
        peak_kib: word()?.parse()?,
    })
}

fn analyze_profile(profile: &Path, threads: usize) -> ExampleResult<()> {
    let symbols = Profile::load(profile)?.tables.symbols;
    let run = RunFiles::open(profile)?;
    let (started, before) = (Instant::now(), cpu::own()?);
    let input = AnalysisInput { threads, ..AnalysisInput::new(&run.trace, &run.recording, &symbols) };
    let analysis = analyze(&input, &mut |_| ControlFlow::Continue(()))?;
    let wall = started.elapsed().as_secs_f64();
    let seconds = cpu::own()? - before;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let peak = peak.split_whitespace().next().ok_or("no VmHWM")?;
    println!("{} {seconds} {wall} {peak}", analysis.events);
    Ok(())
}

fn uftrace(profile: &Path) -> ExampleResult<(u64, CommandCost)> {
    let directory = tempfile::tempdir_in(profile)?;
    let data = directory.path().join("uftrace.data");
    let records = export::uftrace(&Profile::load(profile)?, profile, &data, &NoProgress)?;
    let cost = cost_of(Command::new("uftrace").args(["report", "--no-pager", "-d"]).arg(&data))?;
    Ok((records, cost))
}

/// Returns the number of lines in the report of a capture made in the guest, and the cost of the
/// report.
fn trace_cmd(work: &WorkDir) -> ExampleResult<(u64, CommandCost)> {
    let mut request = BuildRequest::new("debian:6.12".parse()?, "graph");
    request.fragments.push("embedded/kernel/graph.config".into());
    let kernel = build(work, &request, &NoProgress)?;
    let capture = "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; \
                   trace-cmd record -q -b 65536 -p function_graph -o /kt/out/trace.dat rr --only tcp_rr";
    let mut workload = rr(&["sh", "-c", capture])?;
    workload.memory_mb = 2_048;
    workload.binaries.push("trace-cmd".into());
    let image = GuestImage::build(work, &workload, &NoProgress)?;
    let directory = tempfile::tempdir()?;
    let request = RunRequest::of_workload(&kernel, &image.initramfs, &workload, "measured");
    let outcome = Emulator::find()?.run(&request, directory.path(), &NoProgress)?;
    let file = ["trace.dat", "out/trace.dat"].map(|name| outcome.guest_files.join(name));
    let file = file.iter().find(|path| path.exists()).ok_or("the guest made no trace.dat")?;
    let report = || {
        let mut command = Command::new("trace-cmd");
        command.args(["report", "-i"]).arg(file);
        command
    };
    let lines = report().stderr(Stdio::null()).output()?.stdout.iter().filter(|&&b| b == b'\n').count();
    Ok((lines as u64, cost_of(&mut report())?))
}

/// Time that a command takes, in seconds.
struct CommandCost {
    /// CPU time.
    seconds: f64,
    /// Wall time.
    wall: f64,
}

fn cost_of(command: &mut Command) -> ExampleResult<CommandCost> {
    let (started, before) = (Instant::now(), cpu::of_children()?);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    let wall = started.elapsed().as_secs_f64();
    Ok(CommandCost { seconds: cpu::of_children()? - before, wall })
}
