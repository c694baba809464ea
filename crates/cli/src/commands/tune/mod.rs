//! The command `kerntune tune`.

mod auto;

use super::provenance;
use crate::ranking::{self, RecipeQuery};
use clap::Args;
use kerntune_command::{
    build_request, command, command_line, exclusions, show_steps, workload, BuildOptions, CliOutput,
    CommandEntry, CpuOptions, DryRunOptions, ExcludeOptions, Exit, Failure, FormatOptions, GlobalOptions,
    ModelOptions, RecipeFlags, RunSubcommand, MAX_MINUTES,
};
use kerntune_compare::Comparison;
use kerntune_kernel::ObjectFlags;
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_profile::{rfc3339, Profile};
use kerntune_report::comparison;
use kerntune_report::html::{self, HtmlInput, StepLine};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::{tune, Recipe, Session, StepStatus, TuneRequest, TuneResult, TuningSettings};
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// Value of `--recipe` that tries all recipes.
const AUTO: &str = "auto";

pub const COMMAND: CommandEntry = command::<TuneOptions>("tune", 5, "");

/// Build, train, rebuild, measure and compare; resumes where it stopped
#[derive(Debug, Args)]
pub struct TuneOptions {
    /// The workload to tune for: a name or a .toml file; with auto it may be repeated
    #[arg(long, required = true)]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// The recipe: gcc-pgo, clang-autofdo, clang-autofdo+thinlto, layout, one of these with +layout, one of Clang's with
    /// +propeller, bolt, layout+bolt, or auto, which tries all of them and keeps the best [default: of the recipes that this
    /// machine's tools can build, the best by measured times (docs/recipes.md)]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// With auto: check on this workload that the best kernel does no harm; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub held_out: Vec<String>,
    /// With auto: try only this recipe; may be repeated
    #[arg(long = "try", value_name = "RECIPE")]
    pub tried: Vec<Recipe>,
    /// With auto: also build the upstream baselines, and compare the best kernel with them
    #[arg(long)]
    pub stock: bool,
    /// With auto: start no further recipe after this many minutes, counted for each workload
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    /// Compiler flag for one object of the tuned kernel (net/ipv4/tcp.o=-O3) or for a directory
    /// (net/=-O3); the base kernel does not get it; may be repeated
    #[arg(long, value_name = "PATH=FLAG")]
    pub object_flags: Vec<ObjectFlags>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for TuneOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if self.recipe.as_deref() == Some(AUTO) {
            return auto::run(global, self, output);
        }
        let of_auto = [!self.held_out.is_empty(), self.budget.is_some(), self.stock, !self.tried.is_empty()];
        if of_auto.contains(&true) {
            return Err(Failure::usage("--held-out, --budget, --stock and --try are for --recipe auto"));
        }
        let [workload_name] = &self.workload[..] else {
            return Err(Failure::usage(
                "only --recipe auto tunes for several workloads, one after the other",
            ));
        };
        let exclusions = exclusions(&self.exclude)?;
        let (recipe, why): (Recipe, Option<String>) = match &self.recipe {
            Some(named) => (named.parse().map_err(Failure::usage)?, None),
            None => {
                let (recipe, why) = ranking::best(&RecipeQuery {
                    compiler: self.build.compiler.as_deref(),
                    options: self.of_recipe.options(),
                    object_flags: &self.object_flags,
                    exclusions: &exclusions,
                })?;
                (recipe, Some(why))
            }
        };
        let workload = workload(workload_name, &self.cpus)?;
        let build = build_request(&self.build, LABEL, recipe.default_compiler())?;
        let build = with_needs(build, [&workload]);
        let model = self.model.find(false)?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let settings = TuningSettings {
            options: self.of_recipe.options(),
            object_flags: &self.object_flags,
            exclusions: &exclusions,
            ..TuningSettings::new(&model)
        };
        let request = TuneRequest { build: &build, workload: &workload, recipe, settings };
        if let Some(why) = &why {
            output.note(why);
        }
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            request.dry_run(&mut dry)?;
            return Ok(show_steps(dry, self.format.json, output));
        }
        output.note(&format!("tuning {} for {} ({recipe})", build.source, workload.name));
        let steps = recipe.steps();
        let tuned = tune(&session, &request, &|name, found| {
            let number = 1 + steps.iter().position(|step| *step == name).unwrap_or_default();
            let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
            output.note(&format!("[{number}/{}] {name}{found}", steps.len()));
        })?;
        let page = write_page(&tuned, workload_name)?;
        if self.format.json {
            output.json(&TuneReport { comparison: &tuned.comparison, excluded: &tuned.excluded });
            return Ok(Exit::Ok);
        }
        output.print(&format!("\n{}\n", tuned.proof));
        // Prints one screen; `compare` has a line for each metric, and the page has both.
        output.print(&comparison::changes(&tuned.comparison, output.style()));
        output.print(&crate::commands::bisect::excluded(&tuned.excluded));
        output.print(&format!(
            "\ntuned kernel  {}\nprofiles      {}\n              {}\nreport        {}",
            tuned.directory.join("bzImage").display(),
            tuned.before.path.display(),
            tuned.after.path.display(),
            page.display(),
        ));
        Ok(Exit::Ok)
    }
}

/// Output of `--json`: the comparison, with the exclusions if there are any.
#[derive(Serialize)]
struct TuneReport<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    excluded: &'a [Exclusion],
}

fn write_page(tuned: &TuneResult, workload: &str) -> Result<PathBuf, Failure> {
    let steps: Vec<StepLine> = tuned
        .steps
        .iter()
        .map(|step| {
            let (result, took) = match &step.state {
                StepStatus::Todo => (String::new(), None),
                StepStatus::Found(path) => (path.display().to_string(), None),
                StepStatus::Made(path, took) | StepStatus::Resumed(path, took) => {
                    (path.display().to_string(), Some(*took))
                }
            };
            let resumed = matches!(step.state, StepStatus::Resumed(..));
            StepLine { name: step.name.to_string(), result, took, resumed }
        })
        .collect();
    let commands: Vec<String> = vec![command_line()];
    let page = html::report(&HtmlInput {
        title: &format!("Linux {} tuned for {workload}", tuned.base.manifest.version),
        comparison: Some(&tuned.comparison),
        before: Some(&Profile::load(&tuned.before.path)?),
        after: Some(&Profile::load(&tuned.after.path)?),
        provenance: &provenance(&tuned.base, &tuned.tuned),
        commands: &commands,
        steps: &steps,
        written: &format!("kerntune {}, {}", env!("CARGO_PKG_VERSION"), rfc3339(SystemTime::now())),
    })?;
    let path = tuned.directory.join("report.html");
    kerntune_work::write_atomic(&path, page.as_bytes())?;
    kerntune_tune::vouch(&tuned.directory, "report.html")?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISON: &str = r#"{
  "schema": "kerntune-comparison/1",
  "workload": "rr",
  "machine": "emulator",
  "model": "small",
  "base": {"id": "b", "label": "base", "version": "6.12.9", "compiler": "gcc 12.2.0", "recipe": null},
  "tuned": {"id": "t", "label": "tuned", "version": "6.12.9", "compiler": "gcc 12.2.0", "recipe": "gcc-pgo"},
  "rows": []
}"#;

    #[test]
    fn exclusions_follow_the_comparison() {
        let comparison = Comparison::from_json(COMPARISON).unwrap();
        let json = |excluded: &[Exclusion]| {
            serde_json::to_string_pretty(&TuneReport { comparison: &comparison, excluded }).unwrap()
        };
        let plain = comparison.to_json();
        assert_eq!(json(&[]), plain.trim_end());
        let excluded = Exclusion {
            path: "kernel/fork.o".into(),
            from: None,
            until: None,
            values: false,
            tuned_only: false,
            reason: "hangs".into(),
        };
        let list = "[\n    {\n      \"path\": \"kernel/fork.o\",\n      \"reason\": \"hangs\"\n    }\n  ]";
        let open = plain.trim_end().strip_suffix("\n}").unwrap();
        assert_eq!(json(&[excluded]), format!("{open},\n  \"excluded\": {list}\n}}"));
    }
}
