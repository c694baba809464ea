//! `kerntune tune`.

use super::{build_request, bytes, provenance, work, workload};
use crate::args::{Global, Tune};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::ranking::{self, Asked};
use kerntune_compare::number::{figure, grouped};
use kerntune_kernel::Estimate;
use kerntune_profile::{rfc3339, Profile};
use kerntune_report::comparison;
use kerntune_report::html::{self, HtmlInput, StepLine};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::{tune, Recipe, Session, State, StepName, StepState, TuneRequest, Tuned};
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// The word for all recipes.
const AUTO: &str = "auto";

pub fn run(global: &Global, options: &Tune, output: &Output) -> Result<Exit, Failure> {
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
            let (recipe, why) = ranking::best(&Asked {
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
    let request = TuneRequest {
        build: &build,
        workload: &workload,
        recipe,
        options: options.of_recipe.options(),
        model: &model,
        object_flags: &options.object_flags,
        exclusions: &exclusions,
    };
    if let Some(why) = &why {
        output.note(why);
    }
    if options.dry_run {
        // Before the plan: what cannot be built is no plan.
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
        output.print(&with_exclusions(&tuned));
        return Ok(Exit::Ok);
    }
    output.print(&format!("\n{}\n", tuned.proof));
    // One screen; `compare` has a line for each metric, the page has both.
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

/// The comparison, and what was excluded, if anything was.
fn with_exclusions(tuned: &Tuned) -> String {
    let json = tuned.comparison.to_json();
    if tuned.excluded.is_empty() {
        return json;
    }
    let list = serde_json::to_string_pretty(&tuned.excluded).unwrap_or_default().replace('\n', "\n  ");
    match json.trim_end().strip_suffix('}') {
        Some(open) => format!("{},\n  \"excluded\": {list}\n}}\n", open.trim_end()),
        None => json,
    }
}

/// A step as `--dry-run --json` shows it.
#[derive(Serialize)]
struct Planned<'a> {
    step: StepName,
    what: &'static str,
    /// Where its result is, if it is done.
    result: Option<PathBuf>,
    /// Of a step that compiles a kernel and is to be done.
    estimate: Option<&'a Estimate>,
}

fn dry_run(steps: &[StepState], estimates: &[(StepName, Estimate)], json: bool, output: &Output) {
    let of_step = |step: &StepState| {
        let is_it = |(name, _): &&(StepName, Estimate)| *name == step.name && step.state == State::Todo;
        estimates.iter().find(is_it).map(|(_, estimate)| estimate)
    };
    if json {
        let planned = |step: &StepState| Planned {
            step: step.name,
            what: step.name.about(),
            result: match &step.state {
                State::Todo => None,
                State::Found(path) | State::Made(path, _) | State::Resumed(path, _) => Some(path.clone()),
            },
            estimate: of_step(step),
        };
        let steps: Vec<Planned> = steps.iter().map(planned).collect();
        output.json(&serde_json::json!({ "schema": "kerntune-steps/1", "steps": steps }));
        return;
    }
    output.table(
        &["#STEP", "WHAT", "STATE"],
        steps.iter().enumerate().map(|(at, step)| {
            let state = match (&step.state, of_step(step)) {
                (State::Todo, None) => "to do".into(),
                (State::Todo, Some(of)) => format!(
                    "to do: ~{} objects, ~{} min, ~{}",
                    grouped(of.objects),
                    figure(of.minutes),
                    bytes(of.disk_bytes)
                ),
                (State::Found(path) | State::Made(path, _) | State::Resumed(path, _), _) => {
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

fn write_page(tuned: &Tuned, workload: &str) -> Result<PathBuf, Failure> {
    let steps: Vec<StepLine> = tuned
        .steps
        .iter()
        .map(|step| {
            let (result, took) = match &step.state {
                State::Todo => (String::new(), None),
                State::Found(path) => (path.display().to_string(), None),
                State::Made(path, took) | State::Resumed(path, took) => {
                    (path.display().to_string(), Some(*took))
                }
            };
            let resumed = matches!(step.state, State::Resumed(..));
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
