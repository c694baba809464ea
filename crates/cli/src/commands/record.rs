//! `kerntune record`.

use super::{work, workload};
use crate::args::{Global, Record};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_guest::{Run, Step};
use kerntune_machine::Selection;
use kerntune_profile::Profile;
use kerntune_report::summary;
use kerntune_tune::detail::{patterns, Detail};
use kerntune_tune::record::{record_in_detail, Capture, RecordRequest, Repeat};
use kerntune_tune::{model, Session};

pub fn run(global: &Global, options: &Record, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let mut workload = workload(&options.workload)?;
    if !options.command.is_empty() {
        let step = Step {
            region: Some("command".into()),
            operations: Some(1),
            command: options.command.clone(),
            limit_seconds: None,
            metrics: Vec::new(),
        };
        workload.measured = Run { warmup: Vec::new(), steps: vec![step] };
    }
    let kernel = kerntune_kernel::find(&work, &options.kernel)?;
    let edges = edges(options);
    let model = match edges {
        true => Some(model::find(&options.model.model).map_err(Failure::from)?),
        false => None,
    };
    let session = Session::new(&work, output.progress())?;
    let detail = Detail {
        selection: Selection { only: patterns(&options.detail.only)?, skip: patterns(&options.detail.skip)? },
        points: options.detail.point.clone(),
        users: options.detail.user.clone(),
        weights: options.detail.weights,
        tags: options.detail.tags,
    };
    let recorded = record_in_detail(
        &session,
        &RecordRequest {
            kernel: &kernel,
            workload: &workload,
            run: if options.command.is_empty() { &options.run } else { "measured" },
            capture: Capture { functions: !options.no_functions, edges },
            model: model.as_ref(),
            repeat: Repeat::Another,
        },
        &detail,
    )?;
    let profile = Profile::load(&recorded.path)?;
    if options.format.json {
        output.print(&summary::json(&profile)?);
    } else {
        output.print(&summary::text(&profile, output.style())?);
        output.note(&format!(
            "\nprofile {}\n`kerntune report {}` shows the functions",
            recorded.path.display(),
            recorded.manifest.id
        ));
    }
    Ok(Exit::Ok)
}

/// Whether edges and the model's misses are recorded. Both are of the whole kernel: who chooses functions does not
/// ask for them.
fn edges(options: &Record) -> bool {
    let detail = &options.detail;
    let chosen = !detail.only.is_empty() || !detail.skip.is_empty();
    !options.no_edges && (!chosen || options.edges || detail.weights)
}
