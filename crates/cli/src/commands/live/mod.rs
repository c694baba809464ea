//! Commands that profile the kernel of this machine: `kerntune record --live` and `kerntune live`.

mod ask;
mod branches;
mod daemon;
mod dump;
mod top;

pub use daemon::COMMAND;

use clap::Args;
use kerntune_command::{print_summary, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions};
use kerntune_kernel::Kernel;
use kerntune_live::{
    cpu_list, CallCountOptions, Collector, CollectorOptions, ProfileLabels, SamplingFilter, StoppedCommand,
    TableBounds, TraceOptions, USER_FUNCTIONS, WAIT_ROWS,
};
use kerntune_profile::{KernelId, Profile, KIND};
use kerntune_symbols::RunningKernel;
use kerntune_work::{interrupt, Key, WorkDir};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

/// Default of `--rate`, in samples per second and CPU.
const RATE: u64 = 1000;

/// Options of the collector, shared by `record --live`, `live start` and `live top`.
#[derive(Debug, Clone, Default, Args)]
pub struct LiveOptions {
    /// With --live: mean number of samples per second and CPU [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,
    /// With --live: sample by the kernel's timer, even if the CPU counts cycles
    #[arg(long)]
    software_clock: bool,
    /// With --live: follow call chains into user programs that keep frame pointers
    #[arg(long)]
    user_chains: bool,
    /// With --live: profile only this process, its threads and the processes that it starts; may be
    /// repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// With --live: profile only this cgroup and the cgroups below it: a directory in
    /// /sys/fs/cgroup, or a name as in /proc/PID/cgroup
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// With --live: also count calls of the functions that match this glob; `all` means all
    /// functions, `macro` means system calls and the entry points of large parts; may be repeated
    #[arg(long, value_name = "GLOB")]
    calls: Vec<String>,
    /// With --calls: do not count functions that match this glob; may be repeated
    #[arg(long, value_name = "GLOB", requires = "calls")]
    calls_except: Vec<String>,
    /// With --live: read every context switch and wake-up, for the time that threads are blocked and
    /// wait for a CPU (report off-cpu)
    #[arg(long)]
    off_cpu: bool,
    /// With --live: read the begin and end of every wait for a lock (report locks)
    #[arg(long)]
    locks: bool,
    /// With --live: read the entry and exit of every system call, for times and errors (report
    /// syscalls)
    #[arg(long)]
    syscalls: bool,
    /// With --live: sample the CPU's last branches (LBR, BRS, BRBE) in place of times, for recipes;
    /// the running kernel has to be in the work directory
    #[arg(long, conflicts_with_all = ["calls", "software_clock", "user_chains", "off_cpu", "locks", "syscalls"])]
    branches: bool,
    /// With --live: profile only these CPUs (0-3,8)
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
}

impl LiveOptions {
    /// Returns true if any of these options was given.
    pub fn is_given(&self) -> bool {
        let Self {
            rate,
            software_clock,
            user_chains,
            pid,
            cgroup,
            cpu,
            calls,
            branches,
            calls_except: _,
            ..
        } = self;
        rate.is_some()
            || *software_clock
            || *branches
            || *user_chains
            || !pid.is_empty()
            || cgroup.is_some()
            || cpu.is_some()
            || !calls.is_empty()
            || self.trace().is_any()
    }

    /// Returns true if the options say what to watch on the machine.
    pub fn names_a_part(&self) -> bool {
        !self.pid.is_empty() || self.cgroup.is_some() || !self.calls.is_empty()
    }

    /// Converts the options for the collector. Calls are counted by the module kgmon, which the
    /// caller must still build.
    ///
    /// # Errors
    /// An invalid list of CPUs; values of `--calls` that exclude each other; `--calls` with a
    /// filter for processes, a cgroup or CPUs; `--off-cpu` with a filter for a cgroup or CPUs.
    pub fn options(&self) -> Result<CollectorOptions, Failure> {
        let cpus = self.cpu.as_deref().map(cpu_list).transpose()?.unwrap_or_default();
        let filter = SamplingFilter { processes: self.pid.clone(), cgroup: self.cgroup.clone(), cpus };
        let rate = self.rate.unwrap_or(RATE);
        let calls = self.counted()?;
        if calls.is_some() && !filter.is_all() {
            return Err(Failure::usage(
                "--calls counts on the whole machine: leave out --pid, --cgroup and --cpu",
            ));
        }
        if self.off_cpu && (filter.cgroup.is_some() || !filter.cpus.is_empty()) {
            return Err(Failure::usage(
                "--off-cpu follows threads over all CPUs: leave out --cgroup and --cpu, or give --pid",
            ));
        }
        let trace = self.trace();
        let bounds = TableBounds {
            user: if self.user_chains { USER_FUNCTIONS } else { 0 },
            waits: if trace.is_any() { WAIT_ROWS } else { 0 },
            ..TableBounds::default()
        };
        Ok(CollectorOptions {
            rate,
            filter,
            bounds,
            software_clock: self.software_clock,
            calls,
            trace,
            branches: self.branches,
            ..CollectorOptions::default()
        })
    }

    fn trace(&self) -> TraceOptions {
        TraceOptions { off_cpu: self.off_cpu, locks: self.locks, system_calls: self.syscalls }
    }

    fn counted(&self) -> Result<Option<CallCountOptions>, Failure> {
        let globs: Vec<&str> = self.calls.iter().map(String::as_str).collect();
        let only = match globs[..] {
            [] => return Ok(None),
            ["all"] => Vec::new(),
            ["macro"] => kerntune_kgmon::MACRO.iter().map(|glob| (*glob).to_string()).collect(),
            _ if globs.contains(&"all") || globs.contains(&"macro") => {
                return Err(Failure::usage("give --calls all or --calls macro alone, without other --calls"));
            }
            _ => self.calls.clone(),
        };
        Ok(Some(CallCountOptions { only, except: self.calls_except.clone(), module: None }))
    }
}

/// Profiles the kernel while a command runs; with `only` nothing but the command and the processes
/// that it starts.
pub fn record(
    global: &GlobalOptions,
    words: &[String],
    only: bool,
    watch: &LiveOptions,
    format: FormatOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    if words.first().is_none_or(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    let work = work(global)?;
    let (running, own) = RunningKernel::find_in(&work)?;
    let mut watch = with_module(&work, watch.options()?, output);
    // Everything is checked before the command starts, so that a refusal costs nothing. With
    // --json, standard output must be a single JSON document, so the command's output goes to
    // standard error.
    let stdout = if format.json { Stdio::from(std::io::stderr()) } else { Stdio::inherit() };
    let mut command = StoppedCommand::new(words, stdout)?;
    if only {
        watch.filter.processes = vec![command.id()];
        watch.on_exec = true;
    }
    let watch_branches = watch.branches;
    let mut collector = Collector::start(watch, running)?;
    print_sources(&collector, output);
    if watch_branches && own.is_none() {
        return Err(branches::no_kernel(collector.running()));
    }
    command.resume()?;
    let mut ended = None;
    let watched = collector.run_until(|| {
        interrupt::check()?;
        ended = command.try_wait()?;
        Ok::<bool, kerntune_live::Error>(ended.is_some())
    });
    if let Err(error) = watched {
        command.terminate();
        return Err(error.into());
    }
    let name = kerntune_guest::name_of(words);
    let kernel = own.as_ref().map(kernel_id);
    let labels =
        ProfileLabels { id: String::new(), workload: name, region: "command".into(), operations: 1, kernel };
    let (path, profile) = keep(&work, &mut collector, labels).map_err(|error| match error {
        kerntune_live::Error::Nothing(why) if only => Failure {
            exit: Exit::Recording,
            message: format!(
                "no time was recorded: {why}; take more samples (--rate), or watch the whole machine (--all)"
            ),
        },
        error => error.into(),
    })?;
    print_kept(&path, &profile, format, output)?;
    // The recording is complete even if the command failed.
    if let Some(failed) = ended.filter(|status| !status.success()) {
        output.note(&format!("note: the command ended with {failed}"));
    }
    Ok(Exit::Ok)
}

/// Adds the module kgmon, which counts calls, if calls are to be counted and it is not loaded;
/// builds it for the running kernel.
fn with_module(work: &WorkDir, mut options: CollectorOptions, output: &CliOutput) -> CollectorOptions {
    if let Some(calls) = &mut options.calls {
        if !kerntune_kgmon::is_loaded() {
            let built = match kerntune_kgmon::obstacle() {
                Some(obstacle) => Err(obstacle),
                None => kerntune_kgmon::find_or_build(work, output.progress()),
            };
            calls.module = Some(built.map_err(|error| error.to_string()));
        }
    }
    options
}

/// Prints the sources that the collector uses, and their limitations.
fn print_sources(collector: &Collector, output: &CliOutput) {
    for description in collector.descriptions() {
        output.note(&format!("{}, memory at most {}", description.name, super::bytes(collector.bound())));
        // The profile's reports have them, too.
        for lack in description.lacks.iter().filter(|_| output.is_verbose()) {
            output.note(&format!("note: {lack}"));
        }
    }
    for note in collector.running().notes.iter().filter(|_| output.is_verbose()) {
        output.note(&format!("note: {note}"));
    }
}

/// Returns the identity of a kernel, as profiles record it.
fn kernel_id(kernel: &Kernel) -> KernelId {
    let manifest = &kernel.manifest;
    KernelId { id: manifest.id.clone(), label: manifest.label.clone(), version: manifest.version.clone() }
}

/// Prints the summary of a profile that was kept, and what to do with it.
fn print_kept(
    path: &Path,
    profile: &Profile,
    format: FormatOptions,
    output: &CliOutput,
) -> Result<(), Failure> {
    let id = &profile.manifest.id;
    if branches::is_of_branches(profile) && !format.json {
        output.print(&branches::summary(path, profile));
        return Ok(());
    }
    let next = format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display());
    print_summary(profile, format, &next, output)?;
    Ok(())
}

/// Writes the collected data into the work directory as a profile, atomically.
fn keep(
    work: &WorkDir,
    collector: &mut Collector,
    labels: ProfileLabels,
) -> Result<(PathBuf, Profile), kerntune_live::Error> {
    // Every dump is unique and is never found by its inputs, so the time is part of the key.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let key = Key::new("live/1", kerntune_live::CODE)
        .field("workload", labels.workload.as_bytes())
        .field("time", now.to_le_bytes())
        .field("process", std::process::id().to_le_bytes());
    if let Some(stacks) = collector.branch_stacks()? {
        return branches::keep(work, collector, &stacks, &labels, &key);
    }
    let profile = collector.snapshot(&ProfileLabels { id: key.id(), ..labels })?;
    let staged = work.stage(KIND, &key)?;
    staged.clear()?;
    if let Some(config) = &collector.machine_state().config {
        kerntune_profile::save_config(staged.path(), config)?;
    }
    profile.save(staged.path())?;
    Ok((staged.publish()?, profile))
}
