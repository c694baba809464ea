//! The command `kerntune hints`.

use clap::Args;
use kerntune_command::{
    build_request, command, output_directory, show_steps, workload, BuildOptions, CliOutput, CommandEntry,
    CpuOptions, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, RunSubcommand,
};
use kerntune_compare::number::{fixed, grouped};
use kerntune_kernel::Compiler;
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::hints::{self, hints, CountedHint, HintsRequest, HintsResult};
use kerntune_tune::Session;
use std::path::PathBuf;

pub const COMMAND: CommandEntry = command::<HintsOptions>("hints", 142, "Tune");

/// Count how often likely() and unlikely() are wrong under a workload, and write patches that
/// correct them (docs/hints.md)
#[derive(Debug, Args)]
pub struct HintsOptions {
    /// Workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Show at most N hints [default: 20 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show every hint that was executed, not only those that are wrong more often than right
    #[arg(long)]
    pub all: bool,
    /// Write a patch for each hint that is shown, and changes.toml for `kerntune ablate`, to this directory
    #[arg(short, long, value_name = "DIR")]
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

impl RunSubcommand<GlobalOptions> for HintsOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if let Some(dir) = &self.output {
            output_directory("--output", dir)?;
        }
        let workload = workload(&self.workload, &self.cpus)?;
        workload.require_run("measured")?;
        let build = build_request(&self.build, LABEL, Compiler::default())?;
        let build = with_needs(build, std::slice::from_ref(&workload));
        let model = self.model.find(false)?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let request = HintsRequest { build: &build, workload: &workload, model: &model };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            hints::dry_run(&mut dry, &request)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        let found = hints(&session, &request)?;
        let wanted = |hint: &&CountedHint| self.all || hint.saved() > 0;
        let top = self.top.unwrap_or(if self.format.json { usize::MAX } else { 20 });
        let shown: Vec<CountedHint> = found.hints.iter().filter(wanted).take(top).cloned().collect();
        let written = match &self.output {
            Some(dir) => Some((hints::write_changes(shown.iter(), dir)?, dir)),
            None => None,
        };
        match self.format.json {
            true => output.json(&HintsResult { hints: shown, ..found }),
            false => print(&found, &shown, output),
        }
        if let (Some((count, dir)), false) = (written, self.format.json) {
            let dir = dir.display();
            output.print(&format!(
                "\n{count} patches are in {dir}; to measure each of them:\n\
                 kerntune ablate {dir}/changes.toml --workload {}",
                self.workload
            ));
        }
        Ok(Exit::Ok)
    }
}

fn print(found: &HintsResult, shown: &[CountedHint], output: &CliOutput) {
    let wrong = found.hints.iter().filter(|hint| hint.saved() > 0);
    let (count, saved) = wrong.fold((0_usize, 0_u64), |(count, sum), hint| (count + 1, sum + hint.saved()));
    let share = 100.0 * saved as f64 / found.taken_branches.max(1) as f64;
    output.print(&format!(
        "{} hints of Linux {} under {}: {} were executed, {count} are wrong more often than right.\n\
         Correct, these save at most {} jumps, {} % of the {} taken branches of the kernel (kernel {}, profile {}).\n",
        grouped(found.in_image as u64),
        found.version,
        found.workload,
        grouped(found.hints.len() as u64),
        grouped(saved),
        fixed(share, 2),
        grouped(found.taken_branches),
        found.kernel,
        found.profile
    ));
    output.table(
        &["#WRONG", "#RIGHT", "#WRONG %", "#SAVES", "HINT", "SOURCE", "FUNCTION", "CORRECTION"],
        shown.iter().map(|hint| {
            let percent = 100.0 * hint.wrong as f64 / (hint.wrong as f64 + hint.right as f64);
            let correction = match &hint.correction {
                Some(correction) => correction.new.clone(),
                None if hint.saved() == 0 => String::new(),
                None => "in a macro, or not the only one of its line".to_owned(),
            };
            vec![
                grouped(hint.wrong),
                grouped(hint.right),
                fixed(percent, 1),
                grouped(hint.saved()),
                hint.name().to_owned(),
                format!("{}:{}", hint.file, hint.line),
                hint.functions.first().map(|(name, _)| name.clone()).unwrap_or_default(),
                correction,
            ]
        }),
    );
    output.print(
        "\nwrong, right: executions with the other and with the expected outcome, in the measured run; exact. saves: wrong minus\n\
         right, the jumps to code that stands apart and need not. function: the one that executed it most.",
    );
}
