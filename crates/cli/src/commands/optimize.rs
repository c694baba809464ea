//! The command `kerntune optimize`.

use clap::Args;
use kerntune_command::{
    command, exclusions, show_steps, workload, CliOutput, CommandEntry, CpuOptions, DryRunOptions,
    ExcludeOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, RecipeFlags, RunSubcommand,
};
use kerntune_compare::Metric;
use kerntune_guest::Workload;
use kerntune_kernel::Arch;
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_optimize::BoxedProof;
use kerntune_tune::cross::{self, cross, CrossRequest, CrossResult};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::optimize::{self, optimize, OptimizeRequest};
use kerntune_tune::{Recipe, Session, SuppliedProfile, TuningSettings};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The result in the output of `--json`.
#[derive(Serialize)]
struct OptimizeJson<'a> {
    schema: &'static str,
    recipe: &'a str,
    base: &'a str,
    tuned: &'a str,
    image: PathBuf,
    proof: &'a BoxedProof,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    excluded: &'a [Exclusion],
}

pub const COMMAND: CommandEntry = command::<OptimizeOptions>("optimize", 100, "Tune");

/// Rebuild a kernel for a workload
#[derive(Debug, Args)]
pub struct OptimizeOptions {
    /// The recipe: gcc-pgo, clang-autofdo, layout … (docs/recipes.md)
    #[arg(long, default_value = "gcc-pgo", value_name = "RECIPE")]
    pub recipe: String,
    /// The kernel to start from: label, beginning of an id, or directory
    #[arg(long)]
    pub kernel: String,
    /// The workload to tune for: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    /// Use these .gcda files instead of a training run (a directory as collected from debugfs)
    #[arg(long, value_name = "DIR", conflicts_with = "profile")]
    pub gcda: Option<PathBuf>,
    /// Use this recording with edges instead of a training run: beginning of an id, directory, or `latest`
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Tune also for this workload, and run every workload on every kernel; may be repeated
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["gcda", "profile"])]
    pub cross: Vec<String>,
    /// With --cross: also build one kernel that is trained on all workloads
    #[arg(long, requires = "cross")]
    pub together: bool,
    /// Train also on this workload, and count this training TIMES times; may be repeated
    #[arg(long, value_name = "WORKLOAD[:TIMES]", value_parser = times, conflicts_with_all = ["gcda", "profile", "cross"])]
    pub also: Vec<(String, u32)>,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    /// Number of parallel jobs of make and of parallel runs in the emulator [default: number of
    /// CPUs]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Largest TIMES of `--also`; low, because training runs are added up one by one.
const MAX_TIMES: u32 = 100;

/// Parses `redis` or `redis:3` into a workload and its number of times.
fn times(text: &str) -> Result<(String, u32), String> {
    let Some((name, times)) = text.rsplit_once(':') else { return Ok((text.into(), 1)) };
    match times.parse() {
        Ok(times @ 1..=MAX_TIMES) if !name.is_empty() => Ok((name.into(), times)),
        _ => Err(format!("give WORKLOAD or WORKLOAD:TIMES, 1 to {MAX_TIMES} times")),
    }
}

impl RunSubcommand<GlobalOptions> for OptimizeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let recipe: Recipe = self.recipe.parse().map_err(Failure::usage)?;
        let work = self.dry.work_to_read(global)?;
        let named = |name: &str| workload(name, &self.cpus);
        let workload = named(&self.workload)?;
        let base = kerntune_kernel::find(&work, &self.kernel)?;
        let session = Session::on(base.manifest.arch, &work, output.progress())?.with_jobs(self.jobs);
        let exclusions = exclusions(&self.exclude)?;
        let model = self.model.find(false)?;
        let settings = TuningSettings {
            options: self.of_recipe.options(),
            exclusions: &exclusions,
            ..TuningSettings::new(&model)
        };
        if !self.cross.is_empty() {
            let mut workloads = vec![workload];
            for name in &self.cross {
                workloads.push(named(name)?);
            }
            let request = CrossRequest { recipe, settings, together: self.together, jobs: self.jobs };
            if self.dry.dry_run {
                let mut dry = DryRun::new(&session);
                cross::dry_run(&mut dry, &base, &workloads, &request)?;
                return Ok(show_steps(dry, self.format.json, output));
            }
            let matrix = cross(&session, &base, &workloads, &request)?;
            match self.format.json {
                true => output.json(&matrix),
                false => print(&matrix, output),
            }
            return Ok(Exit::Ok);
        }
        if self.model.is_asked() && !recipe.uses_model() {
            return Err(Failure::usage(format!(
                "leave out --model: it is for --cross and for recipes that order functions, and recipe {recipe} \
                 does not"
            )));
        }
        let supplied = match (&self.gcda, &self.profile) {
            (Some(directory), _) => Some(SuppliedProfile::Counters(directory.clone())),
            (None, Some(profile)) => {
                Some(SuppliedProfile::Recording(kerntune_profile::find(&work, profile)?.path))
            }
            (None, None) => None,
        };
        let also = self.also.iter().map(|(name, times)| Ok((named(name)?, *times)));
        let also: Vec<(Workload, u32)> = also.collect::<Result<_, Failure>>()?;
        let settings = TuningSettings { supplied: supplied.as_ref(), also_trained_on: &also, ..settings };
        let request = OptimizeRequest { workload: &workload, recipe, settings, jobs: self.jobs };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            optimize::dry_run(&base, &request, &mut dry)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        let optimized = optimize(&session, base, &request)?;
        if self.format.json {
            output.json(&OptimizeJson {
                schema: "kerntune-optimize/1",
                recipe: recipe.name(),
                base: &optimized.base.manifest.id,
                tuned: &optimized.tuned.manifest.id,
                image: optimized.tuned.image(),
                proof: &optimized.proof,
                excluded: &optimized.excluded,
            });
        } else {
            output.print(&optimized.proof.to_string());
            output.print(&super::bisect::excluded(&optimized.excluded));
        }
        optimized.proof.verdict()?;
        let (base, tuned) = (&optimized.base.manifest, &optimized.tuned.manifest);
        let compare = match tuned.arch {
            Arch::X86_64 => format!("compare {} {} --workload {}", base.id, tuned.id, workload.name),
            Arch::Um => {
                let out = format!("times-{}", tuned.id);
                format!("time {} {} --workload {} --output {out}", base.id, tuned.id, workload.name)
            }
        };
        output.note(&format!(
            "\ntuned kernel {} ({}): {}\n`kerntune {compare}` shows the difference",
            tuned.label,
            tuned.id,
            optimized.tuned.image().display(),
        ));
        Ok(Exit::Ok)
    }
}

fn print(matrix: &CrossResult, output: &CliOutput) {
    let metrics = Metric::COUNTED.map(|metric| format!("#{}", metric.title().to_uppercase()));
    let mut heads = vec!["TUNED FOR", "RUNNING"];
    heads.extend(metrics.iter().map(String::as_str));
    heads.push("#SCORE");
    let lines = matrix.rows.iter().flat_map(|row| {
        row.cells.iter().map(|cell| {
            let mut line = vec![row.tuned_for.clone(), cell.running.clone()];
            line.extend(cell.changes.iter().map(|change| format!("{change:+.2} %")));
            line.push(format!("{:.3}", cell.score));
            line
        })
    });
    output.table(&heads, lines);
    output.print(
        "\nchanges against the base kernel; misses by a front-end model; score: model cycles as a ratio to the base \
         kernel's (the geometric mean of the four ratios where the model has no costs), less is better",
    );
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn trainings_have_times() {
        assert_eq!(times("redis"), Ok(("redis".into(), 1)));
        assert_eq!(times("dir/my.toml:3"), Ok(("dir/my.toml".into(), 3)));
        for wrong in ["redis:0", "redis:101", ":3", "redis:", "redis:x"] {
            assert!(times(wrong).is_err(), "{wrong}");
        }
    }
}
