//! The command `kerntune tune --recipe auto`.

use super::TuneOptions;
use crate::commands::bytes;
use kerntune_command::{
    build_request, exclusions, show_steps, workload, CliOutput, Exit, Failure, GlobalOptions,
};
use kerntune_compare::{number, Metric};
use kerntune_guest::Workload;
use kerntune_kernel::Compiler;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_tune::auto::{self, auto, AutoRequest, AutoResult, CandidateKernel, HARM};
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::{Recipe, Session, TuningSettings};
use std::time::Duration;

pub fn run(global: &GlobalOptions, options: &TuneOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let tuned_for: Vec<Workload> =
        options.workload.iter().map(|name| workload(name, &options.cpus)).collect::<Result<_, _>>()?;
    let held_out = held_out(options)?;
    let build = with_needs(build_request(&options.build, LABEL, Compiler::default())?, &tuned_for);
    let model = options.model.find(false)?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?.with_jobs(options.build.jobs);
    let exclusions = exclusions(&options.exclude)?;
    let asked = |recipe: &Recipe| match options.tried.is_empty() {
        true => options.stock || !recipe.is_upstream(),
        false => options.tried.contains(recipe) || (options.stock && recipe.is_upstream()),
    };
    let recipes: Vec<Recipe> = Recipe::all().filter(asked).collect();
    let of_recipe = options.of_recipe.options();
    let is_known = |recipe: &Recipe| recipe.check_options(of_recipe, &[], &Exclusions::default());
    // Recipes that do not accept an option run without it; an option that no recipe accepts is an
    // error.
    if let Some(Err(unknown)) = recipes.iter().map(is_known).reduce(|one, other| one.or(other)) {
        return Err(unknown.into());
    }
    let settings = TuningSettings {
        options: of_recipe,
        object_flags: &options.object_flags,
        exclusions: &exclusions,
        ..TuningSettings::new(&model)
    };
    let requests: Vec<AutoRequest> = tuned_for
        .iter()
        .map(|workload| AutoRequest {
            build: &build,
            workload,
            held_out: &held_out,
            recipes: &recipes,
            settings,
            budget: options.budget.map(|minutes| Duration::from_secs(minutes * 60)),
        })
        .collect();
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        requests.iter().try_for_each(|request| auto::dry_run(&mut dry, request))?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let mut results = Vec::new();
    for request in &requests {
        results.push(auto(&session, request, &|recipe, name, found| {
            let steps = recipe.steps();
            let number = 1 + steps.iter().position(|step| *step == name).unwrap_or_default();
            let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
            let workload = &request.workload.name;
            output.note(&format!("{workload}, {recipe} [{number}/{}] {name}{found}", steps.len()));
        })?);
    }
    match (options.format.json, &results[..]) {
        (true, [one]) => output.json(one),
        (true, several) => output.json(&several),
        (false, results) => results.iter().for_each(|result| print(result, output)),
    }
    Ok(Exit::Ok)
}

fn held_out(options: &TuneOptions) -> Result<Vec<Workload>, Failure> {
    options.held_out.iter().map(|name| workload(name, &options.cpus)).collect()
}

fn print(result: &AutoResult, output: &CliOutput) {
    let change = |change: f64| format!("{change:+.1} %");
    let best = result.measured.iter().find(|line| Some(&line.kernel) == result.best.as_ref());
    output.print(&match best {
        Some(best) => {
            format!("The best kernel for {} is {} ({}).\n", result.workload, best.label, best.kernel)
        }
        None => format!("No kernel is better for {} than the base kernel.\n", result.workload),
    });
    let base = result.measured.first().map(|line| line.label.as_str()).unwrap_or_default();
    table(&format!("against {base}"), result, &|line| (line.changes, line.cycles_change), output);
    if result.measured.iter().any(|line| line.changes != line.changes_same_compiler) {
        let same = |line: &CandidateKernel| (line.changes_same_compiler, line.cycles_change_same_compiler);
        table("against the same compiler's base kernel", result, &same, output);
    }
    output.print(
        "cycles  model: instructions, branches and misses, each times its cost (docs/measuring.md)\n\
         model   by a front-end model; path lengths and taken branches are exact\n",
    );
    for stock in &result.against_stock {
        let cycles = stock.cycles_change.map(|value| format!(", model cycles {}", change(value)));
        output.print(&format!(
            "best against {}{}: {}{}",
            stock.recipe,
            if stock.beaten { "" } else { " (NOT BEATEN)" },
            list(&stock.changes, &change),
            cycles.unwrap_or_default()
        ));
    }
    for not_made in &result.not_made {
        output.print(&format!("not made  {}: {}", not_made.recipe, not_made.because));
    }
    for other in &result.held_out {
        output.print(&format!("held out  {}: {}", other.workload, list(&other.changes, &change)));
        for (operation, value) in &other.harmed {
            output.print(&format!("          longer by more than {HARM} %: {operation}, {}", change(*value)));
        }
    }
}

fn list(changes: &[f64; 4], change: &dyn Fn(f64) -> String) -> String {
    let one = |(metric, value): (Metric, &f64)| format!("{} {}", metric.title(), change(*value));
    Metric::COUNTED.into_iter().zip(changes).map(one).collect::<Vec<_>>().join(", ")
}

/// Changes of the metrics and of model cycles of a kernel, in percent.
type KernelChanges = ([f64; 4], Option<f64>);

/// Prints a table of all kernels, with the changes that `changes` selects. The base kernel, which
/// has no changes, is shown with its figures.
fn table(
    heading: &str,
    result: &AutoResult,
    changes: &dyn Fn(&CandidateKernel) -> KernelChanges,
    output: &CliOutput,
) {
    output.print(&format!("{}, {heading}:", result.workload));
    output.table(
        &[
            "KERNEL",
            "COMPILER",
            "#PATH LENGTH",
            "#TAKEN",
            "#L1I (MODEL)",
            "#ITLB (MODEL)",
            "#CYCLES (MODEL)",
            "#TEXT",
            "#IMAGE",
            "#BUILD",
        ],
        result.measured.iter().map(|line| {
            let (changes, cycles_change) = changes(line);
            let is_base = changes.iter().all(|change| *change == 0.0);
            let figure = |at: usize| match is_base {
                true => number::figure(line.totals[at]),
                false => format!("{:+.1} %", changes[at]),
            };
            let what = line.recipe.map_or_else(|| line.label.clone(), |recipe| recipe.to_string());
            let mut row = vec![what, line.cc.clone()];
            row.extend((0..Metric::COUNTED.len()).map(figure));
            let cycles = match (is_base, line.model_cycles, cycles_change) {
                (true, Some(cycles), _) => number::figure(cycles),
                (false, _, Some(change)) => format!("{change:+.1} %"),
                _ => String::new(),
            };
            row.extend([
                cycles,
                bytes(line.text_bytes),
                bytes(line.image_bytes),
                format!("{:.0} s", line.build_seconds),
            ]);
            row
        }),
    );
}
