//! The command `kerntune optimize`.

use super::{work, workload};
use crate::args::{GlobalOptions, OptimizeOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use kerntune_compare::Metric;
use kerntune_guest::Workload;
use kerntune_kernel::Arch;
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_optimize::BoxedProof;
use kerntune_tune::cross::{cross, CrossRequest, CrossResult};
use kerntune_tune::optimize::{optimize, OptimizeRequest};
use kerntune_tune::{Recipe, Session, SuppliedProfile, TuningSettings};
use serde::Serialize;
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

pub fn run(global: &GlobalOptions, options: &OptimizeOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let recipe: Recipe = options.recipe.parse().map_err(Failure::usage)?;
    let work = work(global)?;
    let workload = workload(&options.workload, &options.cpus)?;
    let base = kerntune_kernel::find(&work, &options.kernel)?;
    let session = Session::on(base.manifest.arch, &work, output.progress())?.with_jobs(options.jobs);
    let exclusions = super::exclusions(&options.exclude)?;
    let model = options.model.find(false)?;
    let settings = TuningSettings {
        options: options.of_recipe.options(),
        exclusions: &exclusions,
        ..TuningSettings::new(&model)
    };
    if !options.cross.is_empty() {
        let mut workloads = vec![workload];
        for name in &options.cross {
            workloads.push(super::workload(name, &options.cpus)?);
        }
        let request = CrossRequest { recipe, settings, together: options.together, jobs: options.jobs };
        let matrix = cross(&session, &base, &workloads, &request)?;
        match options.format.json {
            true => output.json(&matrix),
            false => print(&matrix, output),
        }
        return Ok(Exit::Ok);
    }
    if options.model.is_asked() && !recipe.uses_model() {
        return Err(Failure::usage(format!(
            "leave out --model: it is for --cross and for recipes that order functions, and recipe {recipe} \
             does not"
        )));
    }
    let supplied = match (&options.gcda, &options.profile) {
        (Some(directory), _) => Some(SuppliedProfile::Counters(directory.clone())),
        (None, Some(profile)) => {
            Some(SuppliedProfile::Recording(kerntune_profile::find(&work, profile)?.path))
        }
        (None, None) => None,
    };
    let also = options.also.iter().map(|(name, times)| Ok((super::workload(name, &options.cpus)?, *times)));
    let also: Vec<(Workload, u32)> = also.collect::<Result<_, Failure>>()?;
    let settings = TuningSettings { supplied: supplied.as_ref(), also_trained_on: &also, ..settings };
    let request = OptimizeRequest { workload: &workload, recipe, settings, jobs: options.jobs };
    let optimized = optimize(&session, base, &request)?;
    if options.format.json {
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
