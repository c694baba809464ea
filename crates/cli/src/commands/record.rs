//! The command `kerntune record`.

use super::live::{self, LiveOptions};
use crate::first_run;
use crate::root_options::{self, here, RootOptions};
use crate::standard_input::command_input;
use crate::workload_options::{WorkloadOptions, IDS};
use clap::Args;
use kerntune_command::{
    base_request, command, kernel_for, show_steps, workload, CliOutput, CommandEntry, CpuOptions,
    DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, RunSubcommand,
    TagLayoutOptions,
};
use kerntune_guest::{check, read_text, MetricValue, Problem, Workload};
use kerntune_kernel::{import, Kernel, ShippedKernel, Triggers};
use kerntune_machine::{ConsoleTail, FunctionSelection};
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_trace::stream::StreamSpec;
use kerntune_trace::{TagSource, TagWindow};
use kerntune_tune::detail::{patterns, DetailRequest};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::outputs::{self, StepFigures};
use kerntune_tune::record::{record_in_detail, CaptureOptions, RecordRequest, Repetition};
use kerntune_tune::Session;
use kerntune_work::{IoContext, WorkDir};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub const COMMAND: CommandEntry = command::<RecordOptions>("record", 35, "");

/// Run a workload on a kernel in the emulator and record what the kernel does
#[derive(Debug, Args)]
pub struct RecordOptions {
    /// The kernel: label, beginning of an id, or directory [default: the workload's base kernel, built if it is missing]
    #[arg(long)]
    pub kernel: Option<String>,
    /// The workload: a name or a .toml file; not needed with a COMMAND
    #[arg(long)]
    pub workload: Option<String>,
    /// The run of the workload to record
    #[arg(long, default_value = "measured", value_parser = ["measured", "training"])]
    pub run: String,
    /// Do not record function entries and exits
    #[arg(long)]
    pub no_functions: bool,
    /// Do not record executed edges and misses of the front-end model
    #[arg(long)]
    pub no_edges: bool,
    /// Record executed edges also with --only and --skip, which leave them out by default: edges
    /// cover the whole kernel, and cost more than a few functions
    #[arg(long, conflicts_with = "no_edges")]
    pub edges: bool,
    /// Options that select the events to record
    #[command(flatten)]
    pub detail: RecordDetail,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub guest: WorkloadOptions,
    #[command(flatten)]
    pub system: RootOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
    /// Print also what the recorded programs printed, before the summary
    #[arg(long, conflicts_with_all = ["json", "live"])]
    pub show_output: bool,
    /// Run this command in the guest, in this directory and with the files of this machine that it uses:
    /// it is run once on this machine first, where it changes nothing (docs/profiler.md). With --workload it replaces the
    /// workload's run; the workload's services are started first
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "run")]
    pub command: Vec<String>,
    /// Run COMMAND on this machine, and profile what this machine's kernel does for it and for the
    /// processes that it starts (docs/live.md)
    #[arg(long, requires = "command", conflicts_with_all = IDS, conflicts_with_all = root_options::IDS, conflicts_with_all = ["kernel", "workload", "no_functions", "no_edges", "edges",
          "only", "skip", "point", "user", "weights", "data", "instructions", "tags", "tag_bits", "clock_bits", "tick_ns", "model", "cpus", "mitigations", "fast_strings"])]
    pub live: bool,
    #[command(flatten)]
    pub watch: LiveOptions,
    /// With --live: profile the whole machine while COMMAND runs; --calls implies it
    #[arg(short, long, requires = "live", conflicts_with_all = ["pid", "cgroup"])]
    pub all: bool,
    /// The default; scripts may still name it.
    #[arg(long, requires = "live", conflicts_with_all = ["pid", "cgroup", "all", "calls"], hide = true)]
    pub command_only: bool,
}

/// Largest value of `--instructions`: ten seconds of a CPU, and 64 GB of ChampSim records.
const MAX_INSTRUCTIONS: u64 = 1_000_000_000;

/// Options of `record` that select the events to trace.
#[derive(Debug, Clone, Args)]
pub struct RecordDetail {
    /// Trace only these functions; may be repeated. A name (tcp_*), a source directory or path
    /// (net/, net/ipv4/tcp.c), a file name (tcp.c), or a file with such lines (@FILE), of which some
    /// may match nothing. The time of all other functions counts for their callers; interrupts,
    /// system calls and context switches are always recorded
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Do not trace these functions, written as for --only
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Record each execution of an instruction inside a function: SYMBOL, SYMBOL+0x1f, or FILE:LINE
    /// if the kernel has debug information; may be repeated
    #[arg(long, value_name = "PLACE")]
    pub point: Vec<String>,
    /// Trace also the user functions of this program or library: a name in the guest (rr,
    /// redis-server, libc.so.6) or a path; may be repeated
    #[arg(long, value_name = "BINARY")]
    pub user: Vec<String>,
    /// Record taken branches and the model's misses for each call path; makes the trace half as
    /// large again
    #[arg(long)]
    pub weights: bool,
    /// Simulate data accesses in the model's caches and TLBs: misses by function, path and type,
    /// and lines that several CPUs write (docs/data.md); takes longer
    #[arg(long)]
    pub data: bool,
    /// Record the first N instructions of all regions one by one, with the memory that they read
    /// and write, for `kerntune export champsim`; needs a guest with one CPU, and takes longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_INSTRUCTIONS))]
    pub instructions: Option<u64>,
    /// With --instructions: record only instructions in the regions of this name
    #[arg(long, value_name = "REGION", requires = "instructions")]
    pub instructions_of: Option<String>,
    /// Read the guest kernel's own counters in /proc right before and after each step; `kerntune
    /// characterize` compares them with the profile
    #[arg(long)]
    pub proc: bool,
    /// Record event tags of McRae's profiler for `kerntune import mcrae`: tags that the guest
    /// writes to this port or memory window, or that the compiler placed in the kernel
    #[arg(long, value_name = "port:0x80|memory:0xADDRESS[+0xSIZE]|kernel", value_parser = tags)]
    pub tags: Option<TagPlace>,
    #[command(flatten)]
    pub widths: TagLayoutOptions,
}

impl RecordDetail {
    /// Returns the window in which tags are recorded, and the layout of their records.
    fn tag_source(&self, kernel: &Kernel) -> Result<Option<TagSource>, Failure> {
        let layout = self.widths.layout()?;
        let window = match self.tags {
            None if self.widths.is_given() => {
                return Err(Failure::usage(
                    "--tag-bits, --clock-bits and --tick-ns are for --tags, which says where the tags come from",
                ));
            }
            None => return Ok(None),
            Some(TagPlace::Window(window)) => window,
            Some(TagPlace::Kernel) => {
                let image = kernel.vmlinux();
                let missing = || kerntune_tune::Error::NoTriggers { image: image.clone() };
                let triggers = Triggers::load(&image)?.ok_or_else(missing)?;
                if triggers.last_tag() > layout.max_tag() {
                    return Err(Failure::usage(format!(
                        "the greatest tag of kernel {} is {}, which has more than {} bits: give --tag-bits 32",
                        kernel.manifest.label,
                        triggers.last_tag(),
                        layout.tag_bits()
                    )));
                }
                TagWindow::Memory { base: triggers.base, size: triggers.size }
            }
        };
        Ok(Some(TagSource { window, layout }))
    }
}

/// Place where event tags come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagPlace {
    /// The guest writes tags to this port or memory window.
    Window(TagWindow),
    /// Triggers in the kernel, placed by the compiler.
    Kernel,
}

fn tags(text: &str) -> Result<TagPlace, String> {
    match text {
        "kernel" => Ok(TagPlace::Kernel),
        _ => tag_window(text).map(TagPlace::Window),
    }
}

/// Size of a window with tags of 16 bits, each twice.
const WINDOW: u64 = 0x2_0000;

fn tag_window(text: &str) -> Result<TagWindow, String> {
    let number = |digits: &str| match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16).ok(),
        None => digits.parse().ok(),
    };
    let window = match text.split_once(':') {
        Some(("port", port)) => number(port).and_then(|p| u16::try_from(p).ok()).map(TagWindow::Port),
        Some(("memory", place)) => match place.split_once('+') {
            None => number(place).map(|base| TagWindow::Memory { base, size: WINDOW }),
            Some((base, size)) => match (number(base), number(size)) {
                (Some(base), Some(size @ 1..)) => Some(TagWindow::Memory { base, size }),
                _ => None,
            },
        },
        _ => None,
    };
    window.ok_or_else(|| {
        "give port:NUMBER (port:0x80), memory:ADDRESS (memory:0x4b540000) or memory:ADDRESS+SIZE, or kernel".to_string()
    })
}

impl RunSubcommand<GlobalOptions> for RecordOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if self.live && self.dry.dry_run {
            return Err(Failure::usage(
                "--dry-run: with --live there is one step, COMMAND itself on this machine; leave one of them out",
            ));
        }
        if self.live {
            let alone = !self.all && !self.watch.names_a_part();
            return live::record(global, &self.command, alone, &self.watch, self.format, output);
        }
        if self.watch.is_given() {
            return Err(Failure::usage(
                "--rate, --software-clock, --user-chains, --pid, --cgroup, --cpu, --calls and --branches are for --live",
            ));
        }
        let work = self.dry.work(global)?;
        if self.dry.dry_run {
            return dry_run(self, &work, output);
        }
        let mut workload = what_runs(self, &work, output)?;
        let input = match &mut workload.context {
            Some(context) if !self.guest.has_input() => {
                let input = command_input()?;
                context.input = input.file;
                input.note.iter().for_each(|note| output.note(&format!("warning: {note}")));
                input.note
            }
            _ => None,
        };
        if !self.guest.has_memory() {
            workload.make_room()?;
        }
        let shipped = match self.kernel.is_none() && self.workload.is_none() {
            true => shipped_kernel(&work, output)?,
            false => None,
        };
        let kernel = match shipped {
            Some(kernel) => kernel,
            None => kernel_for(&work, self.kernel.as_deref(), [&workload], output)?,
        };
        let edges = edges(self);
        if self.model.is_asked() && !edges {
            return Err(Failure::usage(
                "--model computes misses from recorded edges: leave out --no-edges, or give --edges with --only \
                 and --skip",
            ));
        }
        let model = match edges {
            true => Some(self.model.find(self.detail.data)?),
            false if self.detail.data => {
                return Err(Failure::usage(
                    "--data needs the front-end model, and the model needs edges: leave out --no-edges",
                ));
            }
            false => None,
        };
        if self.detail.instructions.is_some() && workload.cpus > 1 {
            return Err(Failure::usage("--instructions needs a guest with one CPU: give --cpus 1"));
        }
        let run = if self.command.is_empty() { &self.run } else { "measured" };
        let session = Session::new(&work, output.progress())?;
        let mut listed = BTreeSet::new();
        let only = patterns(&self.detail.only, &mut listed)?;
        let skip = patterns(&self.detail.skip, &mut listed)?;
        // What is also named on the command line must exist.
        listed.retain(|name| !self.detail.only.contains(name) && !self.detail.skip.contains(name));
        let detail = DetailRequest {
            selection: FunctionSelection { only, skip, listed },
            points: self.detail.point.clone(),
            users: self.detail.user.clone(),
            weights: self.detail.weights,
            data: self.detail.data,
            stream: self
                .detail
                .instructions
                .map(|instructions| StreamSpec { region: self.detail.instructions_of.clone(), instructions }),
            tags: self.detail.tag_source(&kernel)?,
            proc: self.detail.proc,
        };
        let record = |workload: &Workload| {
            let request = RecordRequest {
                kernel: &kernel,
                workload,
                run,
                capture: CaptureOptions { functions: !self.no_functions, edges },
                model: model.as_ref(),
                repeat: Repetition::Another,
            };
            record_in_detail(&session, &request, &detail)
        };
        let recorded = match record(&workload) {
            Err(error) if first_run::completes(&error, &mut workload, output)? => record(&workload)?,
            recorded => recorded?,
        };
        let profile = Profile::load(&recorded.path)?;
        let figures = outputs::of_recording(&workload, run, &recorded.path)?;
        let logs = outputs::step_logs(&workload, run, &recorded.path);
        if self.show_output {
            for log in &logs {
                let text = std::fs::read(log).at("read", log)?;
                output.print(&String::from_utf8_lossy(&text));
            }
        }
        if self.format.json {
            output.print(&with_figures(&summary::SummaryOptions.json(&profile)?, &figures)?);
        } else {
            output.print(&summary::SummaryOptions.text(&profile, output.style())?);
            if !figures.is_empty() {
                output.print(&described(&figures));
            }
            let ran_here = workload.context.as_ref().is_some_and(|context| context.discovered.is_some());
            let help = if ran_here { "; `--file PATH` packs what its first run did not use" } else { "" };
            for (log, line) in outputs::missing_files(&workload, run, &recorded.path) {
                output.note(&format!("warning: the program printed `{line}`{help} ({})", log.display()));
            }
            // Other kinds of input were handled before.
            if input.is_none() && workload.context.is_some() && !self.guest.has_input() {
                command_input()?.note.iter().for_each(|note| output.note(&format!("warning: {note}")));
            }
            let printed: Vec<String> =
                logs.iter().map(|log| format!("\noutput: {}", log.display())).collect();
            output.note(&format!(
                "\nprofile {}{}\n`kerntune report {}` shows the functions",
                recorded.path.display(),
                printed.concat(),
                recorded.manifest.id
            ));
        }
        match recorded.manifest.exit_status {
            Some(status) => {
                if let Some(log) = logs.last().filter(|_| !self.show_output) {
                    output.note(&last_lines(log));
                }
                output.note(&format!("note: the command ended with status {status}, as kerntune does"));
                Ok(Exit::Command(status))
            }
            None => Ok(Exit::Ok),
        }
    }
}

/// Shows the steps of a recording. The command's first run is one of them and is not made, so the
/// guest is estimated as one with the files that the arguments name.
fn dry_run(options: &RecordOptions, work: &WorkDir, output: &CliOutput) -> Result<Exit, Failure> {
    let session = Session::new(work, output.progress())?;
    let mut dry = DryRun::new(&session);
    let workload = match &options.command[..] {
        [program, ..] if options.workload.is_none() && !program.is_empty() => {
            let here = std::env::current_dir().map_err(Failure::usage)?;
            let mut workload = Workload::of_command(&options.command, &here)?.workload;
            options.cpus.apply_to(&mut workload);
            options.guest.apply_to(&mut workload)?;
            workload
        }
        [] if options.workload.is_none() && options.system.is_given() => {
            return Err(Failure::usage("--dry-run: name the COMMAND that the image is to run"));
        }
        _ => what_runs(options, work, output)?,
    };
    let run = if options.command.is_empty() { &options.run } else { "measured" };
    workload.require_run(run)?;
    if options.workload.is_none() {
        let what = "run the command on this machine, where it changes nothing, to see what files it uses";
        dry.add("first-run", what, None, |_| None);
    }
    // What a command needs is known after its first run; here it shows only what this machine lacks.
    let image = match options.system.is_given() {
        true => None,
        false => dry.find(|session| session.image(&workload))?,
    };
    let image = image.filter(|_| options.workload.is_some()).map(|image| image.dir);
    dry.add("image", format!("pack {} into a guest image", workload.name), image.as_deref(), |_| None);
    match &options.kernel {
        Some(name) => drop(kerntune_kernel::find(work, name)?),
        None => kernel_of_dry_run(options, &workload, &mut dry, output)?,
    }
    dry.runs(format!("record {}", workload.name), &workload, run, 1);
    Ok(show_steps(dry, options.format.json, output))
}

/// Adds the kernel that a recording takes if none is named.
fn kernel_of_dry_run(
    options: &RecordOptions,
    workload: &Workload,
    dry: &mut DryRun,
    output: &CliOutput,
) -> Result<(), Failure> {
    let work = dry.session().work;
    if options.workload.is_none() {
        work.take_missing();
        match shipped_kernel(work, output)? {
            Some(Kernel { dir, manifest, .. }) => {
                dry.add("kernel", format!("take the kernel {}", manifest.label), Some(&dir), |_| None);
                return Ok(());
            }
            None if work.take_missing() => {
                let what = "import the distribution's kernel as it was shipped";
                dry.add("import", what, None, |dry| Some(dry.of_import()));
                return Ok(());
            }
            None => {}
        }
    }
    let request = base_request([workload])?;
    dry.kernel(format!("build the kernel {}", request.label), &request)?;
    Ok(())
}

/// Returns the kernel for a command if none was built: the last imported one, or else the kernel
/// that this machine runs, or the distribution's that `scripts/setup` downloaded, if it can be
/// imported.
fn shipped_kernel(work: &WorkDir, output: &CliOutput) -> Result<Option<Kernel>, Failure> {
    let kernels = kerntune_kernel::list(work)?;
    if !kernels.iter().all(|kernel| kernel.manifest.source.is_shipped()) {
        return Ok(None);
    }
    let found = match kernels.into_iter().next_back() {
        Some(kernel) => Some(kernel),
        // Without it a kernel is built, which needs no excuse.
        None => {
            let given = ShippedKernel::running().ok().into_iter().chain(ShippedKernel::prepared());
            given.filter_map(|given| import(work, &given, None).ok()).next()
        }
    };
    let found = found.filter(|kernel| kernel.manifest.warnings.is_empty());
    if let Some(Kernel { manifest, .. }) = &found {
        output.note(&format!("kernel {} ({}), as shipped", manifest.label, manifest.id));
    }
    Ok(found)
}

/// Returns the workload: from its file, from COMMAND, or from its file with COMMAND instead of its
/// runs.
fn what_runs(options: &RecordOptions, work: &WorkDir, output: &CliOutput) -> Result<Workload, Failure> {
    if options.command.first().is_some_and(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    let directory = options.guest.directory();
    let Some(name) = &options.workload else {
        if options.command.is_empty() && !options.system.is_given() {
            return Err(Failure::usage(
                "name what to run: `kerntune record -- COMMAND`, or --workload NAME (`kerntune workload \
                 list`)",
            ));
        }
        let (system, command) = options.system.system(&options.command, directory, work, output)?;
        let start = &system.directory;
        let files = match options.system.is_given() {
            true => options.guest.names_of_files().iter().map(|file| start.join(file)).collect(),
            false => options.guest.files(&here()?)?,
        };
        let mut workload = first_run::workload_of(&command, system, &files, &options.guest, work, output)?;
        options.cpus.apply_to(&mut workload);
        options.guest.apply_to(&mut workload)?;
        return Ok(workload);
    };
    let mut workload = workload(name, &options.cpus)?;
    for problem in problems(name) {
        output.note(&format!("{}:{problem}", name));
    }
    if !options.command.is_empty() {
        workload.run_instead(&options.command);
    }
    let here = here()?;
    workload.files.extend(options.guest.files(&here)?);
    if let Some(context) = &mut workload.context {
        context.directory = directory.map(|directory| here.join(directory).components().collect());
    }
    options.guest.apply_to(&mut workload)?;
    Ok(workload)
}

/// Returns what `kerntune workload check` says of a workload's file; nothing of those that come with
/// kerntune.
fn problems(name: &str) -> Vec<Problem> {
    let file = match name.contains('/') || name.ends_with(".toml") {
        true => PathBuf::from(name),
        false => Path::new("workloads").join(format!("{name}.toml")),
    };
    read_text("read workload", &file).map_or(Vec::new(), |text| check(&text, &file))
}

/// Formats the last lines of a command's output.
fn last_lines(log: &Path) -> String {
    let lines = ConsoleTail::of_program(log.to_owned()).lines;
    match lines.is_empty() {
        true => "the command printed nothing".into(),
        false => format!(
            "last lines of its output (--show-output prints all of it):\n    {}",
            lines.join("\n    ")
        ),
    }
}

/// Formats the figures that the workload's programs printed, one line each.
fn described(figures: &[StepFigures]) -> String {
    let mut out = String::from("\n");
    for StepFigures { step, figures } in figures {
        for MetricValue { name, value, unit, .. } in figures {
            out.push_str(&format!("{step} printed {name} {value} {unit}\n"));
        }
    }
    out
}

/// Adds the figures that the workload's programs printed, if any, to the JSON summary.
fn with_figures(summary: &str, figures: &[StepFigures]) -> Result<String, Failure> {
    if figures.is_empty() {
        return Ok(summary.to_owned());
    }
    let unreadable =
        |error: serde_json::Error| Failure { exit: Exit::Profile, message: format!("the summary: {error}") };
    let mut json: serde_json::Value = serde_json::from_str(summary).map_err(unreadable)?;
    json["figures"] = serde_json::to_value(figures).map_err(unreadable)?;
    Ok(serde_json::to_string_pretty(&json).map_err(unreadable)? + "\n")
}

/// Returns true if edges and the model's misses are recorded. Both cover the whole kernel, so they
/// are off by default if functions are selected.
fn edges(options: &RecordOptions) -> bool {
    let detail = &options.detail;
    let chosen = !detail.only.is_empty() || !detail.skip.is_empty();
    !options.no_edges && (!chosen || options.edges || detail.weights || detail.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        assert_eq!(tag_window("port:0x80"), Ok(TagWindow::Port(0x80)));
        assert_eq!(tag_window("port:128"), Ok(TagWindow::Port(0x80)));
        assert_eq!(
            tag_window("memory:0x4b540000"),
            Ok(TagWindow::Memory { base: 0x4b54_0000, size: WINDOW })
        );
        let wide = TagWindow::Memory { base: 0x4b54_0000, size: 0x10_0000 };
        assert_eq!(tag_window("memory:0x4b540000+0x100000"), Ok(wide));
        assert_eq!(tags("kernel"), Ok(TagPlace::Kernel));
        for bad in ["port:65536", "port:", "0x80", "memory:zz", "memory:1+0", "memory:1+", "uart:1"] {
            assert!(tag_window(bad).is_err(), "{bad}");
        }
    }
}
