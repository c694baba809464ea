//! The command `kerntune compare`.

use super::{provenance, work_to_read, workload};
use crate::args::{CompareOptions, GlobalOptions};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::CliOutput;
use kerntune_profile::Profile;
use kerntune_report::comparison;
use kerntune_report::html::{layouts, report, HtmlInput};
use kerntune_tune::compare::{across_models, compare, CompareEffort, MODELS};
use kerntune_tune::model::{self, Model};
use kerntune_tune::Session;

pub fn run(global: &GlobalOptions, options: &CompareOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let html = options.html.as_deref().map(|path| OutputFile::new("--html", path)).transpose()?;
    let work = work_to_read(global)?;
    let workload = workload(&options.workload, &options.cpus)?;
    let model = options.model.find(false)?;
    let picture = options.picture.as_deref().map(|path| OutputFile::new("--picture", path)).transpose()?;
    let models = options.models.as_deref().map(find_models).transpose()?;
    let base = kerntune_kernel::find(&work, &options.base)?;
    let tuned = kerntune_kernel::find(&work, &options.tuned)?;
    let session = Session::new(&work, output.progress())?;
    let effort = CompareEffort {
        runs: options.runs.unwrap_or(1),
        seeds: options.seeds,
        layouts: options.layouts.unwrap_or(0),
        offsets_as_needed: options.runs.is_none(),
    };
    if options.seeds > 1 && !workload.takes_seed("measured") {
        output.note(&format!(
            "note: no command of workload {} takes {{seed}}: seeds change only the random numbers of the \
             guest's kernel, and of programs that get them from it",
            workload.name
        ));
    }
    let mut compared = compare(&session, &base, &tuned, &workload, &model, effort)?;
    if let Some(models) = &models {
        compared.comparison.models = Some(across_models(&session, [&base, &tuned], &workload, models)?);
    }
    if let (Some(file), Some(picture)) = (&picture, layouts::picture(&compared.comparison)) {
        file.write(picture.as_bytes())?;
    }
    if let Some(html) = &html {
        let page = report(&HtmlInput {
            title: &format!(
                "{} against {} running {}",
                tuned.manifest.label, base.manifest.label, workload.name
            ),
            comparison: Some(&compared.comparison),
            before: Some(&Profile::load(&compared.base.path)?),
            after: Some(&Profile::load(&compared.tuned.path)?),
            provenance: &provenance(&base, &tuned),
            ..HtmlInput::default()
        })?;
        html.write(page.as_bytes())?;
    }
    if options.format.json {
        output.print(&compared.comparison.to_json());
    } else {
        output.print(&comparison::table(&compared.comparison, output.style()));
    }
    Ok(Exit::Ok)
}

/// Loads the named front-end models, or the default set if none is named.
fn find_models(names: &[String]) -> Result<Vec<Model>, Failure> {
    let none = names.iter().all(String::is_empty);
    let names: Vec<&str> = if none { MODELS.to_vec() } else { names.iter().map(String::as_str).collect() };
    Ok(names.into_iter().map(model::find).collect::<Result<_, _>>()?)
}
