//! The command `kerntune optimize`.

use clap::Args;
use kerntune_command::{
    command, exclusions, show_steps, workload, CliOutput, CommandEntry, CpuOptions, DryRunOptions,
    ExcludeOptions, Exit, Failure, FormatOptions, GlobalOptions, ModelOptions, RecipeFlags, RunSubcommand,
};
use kerntune_compare::Metric;
use kerntune_guest::Workload;
use kerntune_kernel::Arch;
use kerntune_optimize::gcc_pgo::{Exclusion, WeightedRun};
use kerntune_optimize::BoxedProof;
use kerntune_tune::cross::{self, cross, CrossRequest, CrossResult};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::optimize::{self, optimize, OptimizeRequest};
use kerntune_tune::{Recipe, Session, SuppliedProfile, TuningSettings};
use kerntune_work::WorkDir;
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
    /// The workload to tune for: a name or a .toml file; not needed with --profile or --gcda
    #[arg(long, required_unless_present_any = ["profile", "gcda"])]
    pub workload: Option<String>,
    /// Use these .gcda files instead of a training run (a directory of `gcov collect`, or a copy of
    /// debugfs), and count them WEIGHT times; may be repeated, and all are added up
    #[arg(long, value_name = "DIR[:WEIGHT]", value_parser = counters, conflicts_with = "profile")]
    pub gcda: Vec<WeightedRun>,
    /// Use this profile instead of a training run: beginning of an id, directory, or `latest`. It
    /// needs what the recipe reads (docs/recipes.md)
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

/// Workload that stands for the one behind a profile or counters, which nothing runs. Only its guest
/// image is made.
const STAND_IN: &str = "rr";
/// Longest name that a label takes from a profile's workload, in bytes.
const MAX_NAME: usize = 24;

impl OptimizeOptions {
    /// Returns the workload of labels where none was named: with the name that the profile has.
    fn stand_in(
        &self,
        work: &WorkDir,
        named: &dyn Fn(&str) -> Result<Workload, Failure>,
    ) -> Result<Workload, Failure> {
        let name = match &self.profile {
            Some(profile) => kerntune_profile::find(work, profile)?.manifest.workload,
            None => "counters".into(),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let mut name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(MAX_NAME).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            name.insert_str(0, "live");
        }
        Ok(Workload { name, ..named(STAND_IN)? })
    }
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

/// Parses `DIR` or `DIR:3` into counters and their weight. A path may contain colons: only a number
/// after the last one is a weight.
fn counters(text: &str) -> Result<WeightedRun, String> {
    let (dir, weight) = match text.rsplit_once(':') {
        Some((dir, weight)) if !dir.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit()) => {
            match weight.parse() {
                Ok(weight @ 1..=MAX_TIMES) => (dir, weight),
                _ => return Err(format!("give DIR or DIR:WEIGHT, a weight from 1 to {MAX_TIMES}")),
            }
        }
        _ => (text, 1),
    };
    Ok(WeightedRun { dir: PathBuf::from(dir), weight })
}

impl RunSubcommand<GlobalOptions> for OptimizeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let recipe: Recipe = self.recipe.parse().map_err(Failure::usage)?;
        let work = self.dry.work_to_read(global)?;
        let named = |name: &str| workload(name, &self.cpus);
        let workload = match &self.workload {
            Some(name) => named(name)?,
            None => self.stand_in(&work, &named)?,
        };
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
        let supplied = match (&self.gcda[..], &self.profile) {
            ([], Some(profile)) => {
                Some(SuppliedProfile::Recording(kerntune_profile::find(&work, profile)?.path))
            }
            ([], None) => None,
            (counters, _) => Some(SuppliedProfile::Counters(counters.to_vec())),
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
        let named = if self.workload.is_some() { &*workload.name } else { "WORKLOAD" };
        let compare = match tuned.arch {
            Arch::X86_64 => format!("compare {} {} --workload {named}", base.id, tuned.id),
            Arch::Um => {
                let out = format!("times-{}", tuned.id);
                format!("time {} {} --workload {named} --output {out}", base.id, tuned.id)
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
    heads.extend(["#SCORE", "#WORST ROW", "OPERATION"]);
    let lines = matrix.rows.iter().flat_map(|row| {
        row.cells.iter().map(|cell| {
            let mut line = vec![row.tuned_for.clone(), cell.running.clone()];
            line.extend(cell.changes.iter().map(|change| format!("{change:+.2} %")));
            line.push(format!("{:.3}", cell.score));
            let worst = cell.worst_operation.as_ref();
            line.push(worst.map_or("-".into(), |worst| format!("{:+.2} %", worst.change_percent)));
            line.push(worst.map_or("-".into(), |worst| worst.operation.clone()));
            line
        })
    });
    output.table(&heads, lines);
    output.print(
        "\nchanges against the base kernel; misses by a front-end model; score: model cycles as a ratio to the base \
         kernel's (the geometric mean of the four ratios where the model has no costs), less is better; worst row: the \
         operation whose path length grew most, or shrank least",
    );
}

#[cfg(test)]
mod tests {
    use super::{counters, times};
    use kerntune_optimize::gcc_pgo::WeightedRun;

    #[test]
    fn counters_have_weights() {
        let run = |dir: &str, weight| Ok(WeightedRun { dir: dir.into(), weight });
        assert_eq!(counters("dir"), run("dir", 1));
        assert_eq!(counters("a:b/dir:20"), run("a:b/dir", 20));
        assert_eq!(counters("a:b"), run("a:b", 1));
        for wrong in ["dir:0", "dir:101", "dir:"] {
            assert!(counters(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn trainings_have_times() {
        assert_eq!(times("redis"), Ok(("redis".into(), 1)));
        assert_eq!(times("dir/my.toml:3"), Ok(("dir/my.toml".into(), 3)));
        for wrong in ["redis:0", "redis:101", ":3", "redis:", "redis:x"] {
            assert!(times(wrong).is_err(), "{wrong}");
        }
    }
}
