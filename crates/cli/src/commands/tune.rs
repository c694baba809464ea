//! The command `kerntune tune`.

use super::{build_request, bytes, provenance, work, workload};
use crate::args::{GlobalOptions, TuneOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use crate::ranking::{self, RecipeQuery};
use kerntune_compare::number::{figure, grouped};
use kerntune_compare::Comparison;
use kerntune_kernel::BuildEstimate;
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_profile::{rfc3339, Profile};
use kerntune_report::comparison;
use kerntune_report::html::{self, HtmlInput, StepLine};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::{
    tune, Recipe, Session, StepName, StepProgress, StepStatus, TuneRequest, TuneResult, TuningSettings,
};
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// Value of `--recipe` that tries all recipes.
const AUTO: &str = "auto";

pub fn run(global: &GlobalOptions, options: &TuneOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if options.recipe.as_deref() == Some(AUTO) {
        return super::auto::run(global, options, output);
    }
    let of_auto =
        [!options.held_out.is_empty(), options.budget.is_some(), options.stock, !options.only.is_empty()];
    if of_auto.contains(&true) {
        return Err(Failure::usage("--held-out, --budget, --stock and --try are for --recipe auto"));
    }
    let [workload_name] = &options.workload[..] else {
        return Err(Failure::usage("only --recipe auto tunes for several workloads, one after the other"));
    };
    let exclusions = super::exclusions(&options.exclude)?;
    let (recipe, why): (Recipe, Option<String>) = match &options.recipe {
        Some(named) => (named.parse().map_err(Failure::usage)?, None),
        None => {
            let (recipe, why) = ranking::best(&RecipeQuery {
                compiler: options.build.compiler.as_deref(),
                options: options.of_recipe.options(),
                object_flags: &options.object_flags,
                exclusions: &exclusions,
            })?;
            (recipe, Some(why))
        }
    };
    let workload = workload(workload_name, &options.cpus)?;
    let build = build_request(&options.build, LABEL, recipe.default_compiler())?;
    let build = with_needs(build, [&workload]);
    let model = options.model.find(false)?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?.with_jobs(options.build.jobs);
    let settings = TuningSettings {
        options: options.of_recipe.options(),
        object_flags: &options.object_flags,
        exclusions: &exclusions,
        ..TuningSettings::new(&model)
    };
    let request = TuneRequest { build: &build, workload: &workload, recipe, settings };
    if let Some(why) = &why {
        output.note(why);
    }
    if options.dry_run {
        // Estimated before the plan is printed, because a kernel that cannot be built is an error.
        let estimates = request.estimate(&session)?;
        dry_run(&request.plan(&session)?.steps(), &estimates, options.format.json, output);
        return Ok(Exit::Ok);
    }
    output.note(&format!("tuning {} for {} ({recipe})", build.source, workload.name));
    let steps = recipe.steps();
    let tuned = tune(&session, &request, &|name, found| {
        let number = 1 + steps.iter().position(|step| *step == name).unwrap_or_default();
        let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
        output.note(&format!("[{number}/{}] {name}{found}", steps.len()));
    })?;
    let page = write_page(&tuned, workload_name)?;
    if options.format.json {
        output.json(&TuneReport { comparison: &tuned.comparison, excluded: &tuned.excluded });
        return Ok(Exit::Ok);
    }
    output.print(&format!("\n{}\n", tuned.proof));
    // Prints one screen; `compare` has a line for each metric, and the page has both.
    output.print(&comparison::changes(&tuned.comparison, output.style()));
    output.print(&super::bisect::excluded(&tuned.excluded));
    output.print(&format!(
        "\ntuned kernel  {}\nprofiles      {}\n              {}\nreport        {}",
        tuned.directory.join("bzImage").display(),
        tuned.before.path.display(),
        tuned.after.path.display(),
        page.display(),
    ));
    Ok(Exit::Ok)
}

/// Output of `--json`: the comparison, with the exclusions if there are any.
#[derive(Serialize)]
struct TuneReport<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    excluded: &'a [Exclusion],
}

/// A step in the output of `--dry-run --json`.
#[derive(Serialize)]
struct PlannedStep<'a> {
    step: StepName,
    what: &'static str,
    /// Path of the result; `None` if the step is not done.
    result: Option<PathBuf>,
    /// Estimate for a step that will compile a kernel.
    estimate: Option<&'a BuildEstimate>,
}

fn dry_run(steps: &[StepProgress], estimates: &[(StepName, BuildEstimate)], json: bool, output: &CliOutput) {
    let of_step = |step: &StepProgress| {
        let is_it =
            |(name, _): &&(StepName, BuildEstimate)| *name == step.name && step.state == StepStatus::Todo;
        estimates.iter().find(is_it).map(|(_, estimate)| estimate)
    };
    if json {
        let planned = |step: &StepProgress| PlannedStep {
            step: step.name,
            what: step.name.about(),
            result: match &step.state {
                StepStatus::Todo => None,
                StepStatus::Found(path) | StepStatus::Made(path, _) | StepStatus::Resumed(path, _) => {
                    Some(path.clone())
                }
            },
            estimate: of_step(step),
        };
        let steps: Vec<PlannedStep> = steps.iter().map(planned).collect();
        output.json(&serde_json::json!({ "schema": "kerntune-steps/1", "steps": steps }));
        return;
    }
    output.table(
        &["#STEP", "WHAT", "STATE"],
        steps.iter().enumerate().map(|(at, step)| {
            let state = match (&step.state, of_step(step)) {
                (StepStatus::Todo, None) => "to do".into(),
                (StepStatus::Todo, Some(of)) => format!(
                    "to do: ~{} objects, ~{} min, ~{}",
                    grouped(of.objects),
                    figure(of.minutes),
                    bytes(of.disk_bytes)
                ),
                (StepStatus::Found(path) | StepStatus::Made(path, _) | StepStatus::Resumed(path, _), _) => {
                    format!("done: {}", path.display())
                }
            };
            vec![(at + 1).to_string(), step.name.to_string(), state]
        }),
    );
    if let Some(estimate) = steps.iter().find_map(of_step) {
        output.print(&format!(
            "\nEstimates rest on {}. Other work on this machine makes it longer, objects from a cache shorter; \
             a build directory goes when its kernel is made.",
            estimate.rests_on
        ));
    }
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
    let commands: Vec<String> = vec![super::command_line()];
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
