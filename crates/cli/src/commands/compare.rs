//! `kerntune compare`.

use super::{provenance, work, workload};
use crate::args::{Compare, Global};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_profile::Profile;
use kerntune_report::comparison;
use kerntune_report::html::{report, HtmlInput};
use kerntune_tune::compare::compare;
use kerntune_tune::Session;

pub fn run(global: &Global, options: &Compare, output: &Output) -> Result<Exit, Failure> {
    let html = options.html.as_deref().map(|path| OutputFile::new("--html", path)).transpose()?;
    let work = work(global)?;
    let workload = workload(&options.workload, &options.cpus)?;
    let model = options.model.find(false)?;
    let base = kerntune_kernel::find(&work, &options.base)?;
    let tuned = kerntune_kernel::find(&work, &options.tuned)?;
    let session = Session::new(&work, output.progress())?;
    let compared = compare(&session, &base, &tuned, &workload, &model, options.runs)?;
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
