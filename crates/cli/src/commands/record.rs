//! The command `kerntune record`.

use super::{kernel_for, work, workload};
use crate::args::{GlobalOptions, RecordOptions, TagSource};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use crate::standard_input::command_input;
use kerntune_guest::{check, read_text, AdHocWorkload, MetricValue, Problem, Workload};
use kerntune_kernel::Triggers;
use kerntune_machine::FunctionSelection;
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_trace::stream::StreamSpec;
use kerntune_trace::TagWindow;
use kerntune_tune::detail::{patterns, DetailRequest};
use kerntune_tune::import_mcrae::no_triggers;
use kerntune_tune::outputs::{self, StepFigures};
use kerntune_tune::record::{record_in_detail, CaptureOptions, RecordRequest, Repetition};
use kerntune_tune::Session;
use kerntune_work::IoContext;
use std::path::{Path, PathBuf};

pub fn run(global: &GlobalOptions, options: &RecordOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if options.watch.is_given() {
        return Err(Failure::usage(
            "--rate, --software-clock, --user-chains, --pid, --cgroup, --cpu and --calls are for --live",
        ));
    }
    let work = work(global)?;
    let mut workload = what_runs(options, output)?;
    let input = match &mut workload.context {
        Some(context) => {
            let input = command_input()?;
            context.input = input.file;
            input.note.iter().for_each(|note| output.note(&format!("warning: {note}")));
            input.note
        }
        None => None,
    };
    let kernel = kernel_for(&work, options.kernel.as_deref(), [&workload], output)?;
    let edges = edges(options);
    if options.model.is_asked() && !edges {
        return Err(Failure::usage(
            "--model computes misses from recorded edges: leave out --no-edges, or give --edges with --only \
             and --skip",
        ));
    }
    let model = match edges {
        true => Some(options.model.find(options.detail.data)?),
        false if options.detail.data => {
            return Err(Failure::usage(
                "--data needs the front-end model, and the model needs edges: leave out --no-edges",
            ));
        }
        false => None,
    };
    if options.detail.instructions.is_some() && workload.cpus > 1 {
        return Err(Failure::usage("--instructions needs a guest with one CPU: give --cpus 1"));
    }
    let run = if options.command.is_empty() { &options.run } else { "measured" };
    let session = Session::new(&work, output.progress())?;
    let detail = DetailRequest {
        selection: FunctionSelection {
            only: patterns(&options.detail.only)?,
            skip: patterns(&options.detail.skip)?,
        },
        points: options.detail.point.clone(),
        users: options.detail.user.clone(),
        weights: options.detail.weights,
        data: options.detail.data,
        stream: options
            .detail
            .instructions
            .map(|instructions| StreamSpec { region: options.detail.instructions_of.clone(), instructions }),
        tags: match options.detail.tags {
            Some(TagSource::Window(window)) => Some(window),
            Some(TagSource::Kernel) => {
                let image = kernel.vmlinux();
                let triggers = Triggers::load(&image)?.ok_or_else(|| no_triggers(&image))?;
                Some(TagWindow::Memory(triggers.base))
            }
            None => None,
        },
        proc: options.detail.proc,
    };
    let recorded = record_in_detail(
        &session,
        &RecordRequest {
            kernel: &kernel,
            workload: &workload,
            run,
            capture: CaptureOptions { functions: !options.no_functions, edges },
            model: model.as_ref(),
            repeat: Repetition::Another,
        },
        &detail,
    )?;
    let profile = Profile::load(&recorded.path)?;
    let figures = outputs::of_recording(&workload, run, &recorded.path)?;
    let logs = outputs::step_logs(&workload, run, &recorded.path);
    if options.show_output {
        for log in &logs {
            let text = std::fs::read(log).at("read", log)?;
            output.print(&String::from_utf8_lossy(&text));
        }
    }
    if options.format.json {
        output.print(&with_figures(&summary::SummaryOptions.json(&profile)?, &figures)?);
    } else {
        output.print(&summary::SummaryOptions.text(&profile, output.style())?);
        if !figures.is_empty() {
            output.print(&described(&figures));
        }
        for (log, line) in outputs::missing_files(&workload, run, &recorded.path) {
            output.note(&format!("warning: the program printed `{line}` ({})", log.display()));
        }
        // Other kinds of input were handled before.
        if input.is_none() && workload.context.is_some() {
            command_input()?.note.iter().for_each(|note| output.note(&format!("warning: {note}")));
        }
        let printed: Vec<String> = logs.iter().map(|log| format!("\noutput: {}", log.display())).collect();
        output.note(&format!(
            "\nprofile {}{}\n`kerntune report {}` shows the functions",
            recorded.path.display(),
            printed.concat(),
            recorded.manifest.id
        ));
    }
    Ok(Exit::Ok)
}

/// Returns the workload: from its file, from COMMAND, or from its file with COMMAND instead of its
/// runs.
fn what_runs(options: &RecordOptions, output: &CliOutput) -> Result<Workload, Failure> {
    if options.command.first().is_some_and(String::is_empty) {
        return Err(Failure::usage("the COMMAND after -- is empty"));
    }
    let Some(name) = &options.workload else {
        if options.command.is_empty() {
            return Err(Failure::usage(
                "name what to run: `kerntune record -- COMMAND`, or --workload NAME (`kerntune workload \
                 list`)",
            ));
        }
        let here = std::env::current_dir()
            .map_err(|error| Failure::usage(format!("the current directory cannot be found: {error}")))?;
        let AdHocWorkload { mut workload, notes } = Workload::of_command(&options.command, &here)?;
        options.cpus.apply_to(&mut workload);
        notes.iter().for_each(|note| output.note(&format!("warning: {note}")));
        return Ok(workload);
    };
    let mut workload = workload(name, &options.cpus)?;
    for problem in problems(name) {
        output.note(&format!("{}:{problem}", name));
    }
    if !options.command.is_empty() {
        workload.run_instead(&options.command);
    }
    Ok(workload)
}

/// Returns what `kerntune workload check` says of a workload's file; nothing of those that come with
/// kerntune.
fn problems(name: &str) -> Vec<Problem> {
    let file = match name.contains('/') || name.ends_with(".toml") {
        true => PathBuf::from(name),
        false => Path::new("workloads").join(format!("{name}.toml")),
    };
    read_text("read workload", &file).map_or(Vec::new(), |text| check(&text, &file))
}

/// Formats the figures that the workload's programs printed, one line each.
fn described(figures: &[StepFigures]) -> String {
    let mut out = String::from("\n");
    for StepFigures { step, figures } in figures {
        for MetricValue { name, value, unit, .. } in figures {
            out.push_str(&format!("{step} printed {name} {value} {unit}\n"));
        }
    }
    out
}

/// Adds the figures that the workload's programs printed, if any, to the JSON summary.
fn with_figures(summary: &str, figures: &[StepFigures]) -> Result<String, Failure> {
    if figures.is_empty() {
        return Ok(summary.to_owned());
    }
    let unreadable =
        |error: serde_json::Error| Failure { exit: Exit::Profile, message: format!("the summary: {error}") };
    let mut json: serde_json::Value = serde_json::from_str(summary).map_err(unreadable)?;
    json["figures"] = serde_json::to_value(figures).map_err(unreadable)?;
    Ok(serde_json::to_string_pretty(&json).map_err(unreadable)? + "\n")
}

/// Returns true if edges and the model's misses are recorded. Both cover the whole kernel, so they
/// are off by default if functions are selected.
fn edges(options: &RecordOptions) -> bool {
    let detail = &options.detail;
    let chosen = !detail.only.is_empty() || !detail.skip.is_empty();
    !options.no_edges && (!chosen || options.edges || detail.weights || detail.data)
}
