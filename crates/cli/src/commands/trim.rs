//! The command `kerntune trim`.

use super::bytes;
use crate::percent::percent;
use clap::Args;
use kerntune_command::{
    build_request, command, show_steps, workload, BuildOptions, CliOutput, CommandEntry, CpuOptions,
    DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, OutputFile, RunSubcommand,
    MAX_MINUTES,
};
use kerntune_compare::number::figure;
use kerntune_guest::{read_text, Workload};
use kerntune_kernel::Compiler;
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::trial::PROBE_RUNS;
use kerntune_tune::trim::{self, trim, KeepReason, KernelSize, TrimRequest, TrimResult};
use kerntune_tune::{Session, MAX_RUNS};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Label of a base kernel that is built with non-default options.
const CHANGED: &str = "trim-base";

/// Rows of a table without `--all`.
const ROWS: usize = 12;

pub const COMMAND: CommandEntry = command::<TrimOptions>("trim", 140, "Tune");

/// Switch off kernel options whose code the workloads do not run; build, check and measure the
/// smaller kernel (docs/trim.md)
#[derive(Debug, Args)]
pub struct TrimOptions {
    /// Keep options that this workload uses: a name or a .toml file; may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Always keep this option: its name, in which * matches any text, or a file of names, one per
    /// line (@FILE); may be repeated
    #[arg(long, value_name = "OPTION")]
    pub keep: Vec<String>,
    /// Count an option as used only if at least this share of its own functions ran, in percent.
    /// Many options run a few functions although nothing uses them: a hook that is called, a
    /// namespace that is set up and torn down
    #[arg(long, alias = "least", value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub min_percent: f64,
    /// Build no modules and no support for them, as `make localmodconfig` does if none is loaded;
    /// modules that --keep names are built in
    #[arg(long)]
    pub no_modules: bool,
    /// Show which options would be switched off; build only the base kernel, and record on it
    #[arg(long)]
    pub plan: bool,
    /// List every option, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Number of runs of each kernel, if figures depend on the start of a run; otherwise there is
    /// one run
    #[arg(long, default_value_t = 8, value_name = "N",
          value_parser = clap::value_parser!(u32).range(i64::from(PROBE_RUNS)..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Start nothing new after this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Write the switched-off options to this file, as a config fragment
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for TrimOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = self.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
        let workloads = self
            .workload
            .iter()
            .map(|name| workload(name, &self.cpus))
            .collect::<Result<Vec<Workload>, _>>()?;
        workloads.iter().try_for_each(|workload| workload.require_run("measured"))?;
        let label = if self.build.is_default() { LABEL } else { CHANGED };
        let build = with_needs(build_request(&self.build, label, Compiler::default())?, &workloads);
        let keep = keep(&self.keep)?;
        let model = self.model.find(false)?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let request = TrimRequest {
            build: &build,
            workloads: &workloads,
            keep: &keep,
            min_percent: self.min_percent,
            no_modules: self.no_modules,
            model: &model,
            runs: self.runs,
            budget: self.budget.map(|minutes| Duration::from_secs(minutes * 60)),
            plan_only: self.plan,
        };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            trim::dry_run(&mut dry, &request)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        let found = trim(&session, &request, &|what| output.note(&format!("trimming: {what}")))?;
        if let Some(file) = &file {
            file.write(fragment(&found).as_bytes())?;
        }
        match self.format.json {
            true => output.json(&found),
            false => print(&found, self.all, output),
        }
        if let Some(file) = file.filter(|_| !self.format.json) {
            let path = file.path().display();
            output.print(&format!(
                "\nwritten to {path}; build it with: kerntune kernel build --fragment {path}"
            ));
        }
        Ok(Exit::Ok)
    }
}

/// Returns the patterns of `--keep`, with files replaced by their lines.
fn keep(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut patterns = Vec::new();
    for word in given {
        match word.strip_prefix('@') {
            Some(path) => {
                let text = read_text("read", Path::new(path))?;
                let lines =
                    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                patterns.extend(lines.map(String::from));
            }
            None => patterns.push(word.clone()),
        }
    }
    let is_pattern = |c: char| c.is_ascii_alphanumeric() || "_*".contains(c);
    match patterns.iter().find(|pattern| pattern.is_empty() || !pattern.chars().all(is_pattern)) {
        Some(bad) => Err(Failure::usage(format!(
            "--keep: `{bad}` is not the name of an option; write CONFIG_NAME or NAME, with * for any part of \
             it"
        ))),
        None => Ok(patterns),
    }
}

/// Returns a config fragment that switches the options off.
fn fragment(found: &TrimResult) -> String {
    let workloads = found.workloads.join(", ");
    let head =
        format!("# Options of which {workloads} and the functional checks run nothing (kerntune trim).\n");
    found.lines.iter().fold(head, |text, line| match line.strip_suffix("=n") {
        Some(option) => text + &format!("# {option} is not set\n"),
        None => text + line + "\n",
    })
}

fn print(found: &TrimResult, all: bool, output: &CliOutput) {
    let workloads = found.workloads.join(", ");
    let off = found.off.len();
    let change = |before: u64, after: u64| format!("{:+.1} %", 100.0 * (after as f64 / before as f64 - 1.0));
    match &found.trimmed {
        Some(trimmed) => output.print(&format!(
            "Switched off {off} options that {workloads} and the functional checks do not use: text {}, \
             image {}.\n",
            change(found.base.text_bytes, trimmed.text_bytes),
            change(found.base.image_bytes, trimmed.image_bytes)
        )),
        None if found.paths.is_empty() && off == 0 => output.print("No option can go.\n"),
        None => {
            let gone: u64 = found.gone.iter().map(|gone| gone.gone_bytes).sum();
            output.print(&format!(
                "{off} options that {workloads} and the functional checks do not use could go: {} of \
                 functions. Nothing was built.\n",
                bytes(gone)
            ));
        }
    }
    let row = |name: &str, size: &KernelSize| {
        vec![
            name.to_string(),
            size.id.clone(),
            size.options.to_string(),
            size.functions.to_string(),
            kib(size.text_bytes),
            kib(size.image_bytes),
        ]
    };
    let sizes =
        std::iter::once(row("base", &found.base)).chain(found.trimmed.iter().map(|of| row("trimmed", of)));
    output.table(&["KERNEL", "ID", "#OPTIONS", "#FUNCTIONS", "#TEXT KIB", "#IMAGE KIB"], sizes);
    if !found.paths.is_empty() {
        output.print("");
        let row = |of: &trim::WorkloadPath| {
            vec![
                of.workload.clone(),
                figure(of.base),
                figure(of.trimmed),
                format!("{:+.3}", 100.0 * (of.trimmed / of.base - 1.0)),
                format!("{:.3}", 100.0 * of.noise / of.base),
                of.runs.to_string(),
                if of.longer { "longer" } else { "not longer" }.to_string(),
            ]
        };
        let heads = ["WORKLOAD", "#BASE", "#TRIMMED", "#CHANGE %", "#NOISE %", "#RUNS", "PATH"];
        output.table(&heads, found.paths.iter().map(row));
        output.print("kernel instructions, exact; differences below the noise mean nothing");
    }
    let limit = if all { usize::MAX } else { ROWS };
    output.print("\nwhat goes, by directory");
    let gone = found.gone.iter().take(limit);
    output.table(
        &["DIRECTORY", "#TEXT KIB", "#GONE KIB", "#GONE %"],
        gone.map(|gone| {
            let percent = format!("{:.0}", 100.0 * gone.gone_bytes as f64 / gone.text_bytes.max(1) as f64);
            vec![gone.directory.clone(), kib(gone.text_bytes), kib(gone.gone_bytes), percent]
        }),
    );
    output.print("\nthe largest options that go (files of nested options count for each)");
    let rows = found.off.iter().take(limit);
    output.table(
        &["OPTION", "#FILES", "#TEXT KIB"],
        rows.map(|off| vec![off.option.clone(), off.files.to_string(), kib(off.text_bytes)]),
    );
    output.print("\nthe largest options that stay");
    let rows =
        found.stay.iter().filter(|stays| all || !matches!(stays.because, KeepReason::Ran { .. })).take(limit);
    output.table(
        &["OPTION", "#TEXT KIB", "BECAUSE"],
        rows.map(|stays| vec![stays.option.clone(), kib(stays.text_bytes), because(&stays.because)]),
    );
    if !all {
        output.print("options whose code ran are not listed here; --all lists everything");
    }
    if found.modules_off > 0 {
        output.print(&format!("\n{} modules, and support for them, are not built", found.modules_off));
    }
    if !found.went_with_them.is_empty() {
        output.print(&format!(
            "\n{} options without files of their own went with them",
            found.went_with_them.len()
        ));
    }
    if !found.on_instead.is_empty() {
        output.print(&format!("on instead: {}", found.on_instead.join(", ")));
    }
    if found.time_was_up {
        output.print("the time was up before every option was tried: more could go");
    }
    output.print(
        "\nWhat did not run here may run elsewhere: other hardware, an error, another program. Name it with --keep, or name its workload.",
    );
}

fn kib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1024.0)
}

fn because(because: &KeepReason) -> String {
    match because {
        KeepReason::Ran { file, function } => format!("{function} of {file} ran"),
        KeepReason::Asked { why } => why.clone(),
        KeepReason::Needed { by } => format!("{by} needs it"),
        KeepReason::Selected => "something that stays selects it".into(),
        KeepReason::Untried => "the time was up before it was tried by itself".into(),
        KeepReason::Fails => "the kernel is not usable without it".into(),
    }
}
