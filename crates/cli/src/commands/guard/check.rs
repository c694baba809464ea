//! The command `kerntune guard check`.

use super::{measure, of_kernel, project, text};
use crate::args::{GlobalOptions, GuardCheckOptions};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::CliOutput;
use kerntune_guard::{check, junit, Baseline, CheckBase};
use kerntune_tune::Session;

pub fn run(global: &GlobalOptions, options: &GuardCheckOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let junit_file = options.junit.as_deref().map(|path| OutputFile::new("--junit", path)).transpose()?;
    // Missing figures are reported before anything runs.
    let path = project.baseline(options.baseline.as_deref());
    let baseline = match options.against {
        None => Some(Baseline::read(&path)?),
        Some(_) => None,
    };
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?;
    let base = options.against.as_deref().map(|name| of_kernel(&session, &project, name)).transpose()?;
    let (subject, measured) = measure(&session, &project, &options.subject, output)?;
    let against = match (&baseline, &base) {
        (_, Some((subject, measured))) => CheckBase::Measured(subject, measured),
        (Some(baseline), None) => CheckBase::File(baseline, &path),
        (None, None) => return Err(Failure::usage("name what to compare it with: --baseline or --against")),
    };
    let found = check(&session, &project, &against, (&subject, &measured), options.all)?;
    if let Some(file) = junit_file {
        file.write(junit(&found).as_bytes())?;
    }
    match options.format.json {
        true => output.json(&found),
        false => text::check(&found, output),
    }
    match &found.remeasured()[..] {
        [] => {}
        why if options.strict => {
            let message = format!(
                "{}; --strict wants the file's own figures: make them again with `kerntune guard record`",
                why.join("; ")
            );
            return Err(Failure { exit: Exit::Profile, message });
        }
        // The JSON output has the reasons too; the note is for the log.
        why if options.format.json => why.iter().for_each(|why| output.note(&format!("note: {why}"))),
        _ => {}
    }
    Ok(if found.findings == 0 { Exit::Ok } else { Exit::Findings })
}
