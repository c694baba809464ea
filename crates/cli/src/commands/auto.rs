//! `kerntune tune --recipe auto`.

use super::{build_request, bytes, work, workload};
use crate::args::{Global, Tune};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_compare::{number, Metric};
use kerntune_kernel::Compiler;
use kerntune_optimize::Recipe;
use kerntune_tune::auto::{auto, Auto, AutoRequest, HARM};
use kerntune_tune::{model, steps, Session};
use std::time::Duration;

pub fn run(global: &Global, options: &Tune, output: &Output) -> Result<Exit, Failure> {
    if options.dry_run {
        return Err(Failure::usage("--dry-run shows the steps of one recipe; name one with --recipe"));
    }
    let (tuned_for, held_out) = (workload(&options.workload)?, held_out(options)?);
    let build = build_request(&options.build, "base", Compiler::default())?;
    let model = model::find(&options.model.model)?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?;
    let exclusions = super::exclusions(&options.exclude)?;
    let request = AutoRequest {
        build: &build,
        workload: &tuned_for,
        held_out: &held_out,
        model: &model,
        recipes: Recipe::ALL,
        options: options.of_recipe.options(),
        budget: options.budget.map(|minutes| Duration::from_secs(minutes * 60)),
        object_flags: &options.object_flags,
        exclusions: &exclusions,
    };
    let result = auto(&session, &request, &|recipe, name, found| {
        let steps = steps(recipe);
        let number = 1 + steps.iter().position(|step| *step == name).unwrap_or_default();
        let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
        output.note(&format!("{recipe} [{number}/{}] {name}{found}", steps.len()));
    })?;
    match options.format.json {
        true => output.json(&result),
        false => print(&result, output),
    }
    Ok(Exit::Ok)
}

fn held_out(options: &Tune) -> Result<Vec<kerntune_guest::Workload>, Failure> {
    options.held_out.iter().map(|name| workload(name)).collect()
}

fn print(result: &Auto, output: &Output) {
    let change = |change: f64| format!("{change:+.1} %");
    let best = result.measured.iter().find(|line| Some(&line.kernel) == result.best.as_ref());
    output.print(&match best {
        Some(best) => {
            format!("The best kernel for {} is {} ({}).\n", result.workload, best.label, best.kernel)
        }
        None => format!("No kernel is better for {} than the base kernel.\n", result.workload),
    });
    output.table(
        &[
            "KERNEL",
            "COMPILER",
            "#PATH LENGTH",
            "#TAKEN",
            "#L1I (MODEL)",
            "#ITLB (MODEL)",
            "#SCORE",
            "#TEXT",
            "#IMAGE",
            "#BUILD",
        ],
        result.measured.iter().map(|line| {
            let figure = |at: usize| match line.changes.iter().all(|change| *change == 0.0) {
                true => number::figure(line.totals[at]),
                false => change(line.changes[at]),
            };
            let what = match line.recipe {
                Some(recipe) => recipe.to_string(),
                None => line.label.clone(),
            };
            let mut row = vec![what, line.cc.clone()];
            row.extend((0..Metric::ALL.len()).map(figure));
            row.extend([
                format!("{:.3}", line.score),
                bytes(line.text_bytes),
                bytes(line.image_bytes),
                format!("{:.0} s", line.build_seconds),
            ]);
            row
        }),
    );
    output.print(
        "score  geometric mean of the four ratios to the first kernel; less is better\n\
         model  by a front-end model (docs/measuring.md); the other figures are exact",
    );
    for not_made in &result.not_made {
        output.print(&format!("not made  {}: {}", not_made.recipe, not_made.because));
    }
    for other in &result.held_out {
        let list: Vec<String> = Metric::ALL
            .iter()
            .zip(other.changes)
            .map(|(metric, value)| format!("{} {}", metric.title(), change(value)))
            .collect();
        output.print(&format!("held out  {}: {}", other.workload, list.join(", ")));
        for (operation, value) in &other.harmed {
            output.print(&format!("          longer by more than {HARM} %: {operation}, {}", change(*value)));
        }
    }
}
