//! The command `kerntune trim`.

use super::{build_request, bytes, work, workload};
use crate::args::{GlobalOptions, TrimOptions};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::CliOutput;
use kerntune_compare::number::figure;
use kerntune_guest::{read_text, Workload};
use kerntune_kernel::Compiler;
use kerntune_tune::base::{with_needs, LABEL};
use kerntune_tune::trim::{trim, KeepReason, KernelSize, TrimRequest, TrimResult};
use kerntune_tune::Session;
use std::path::Path;
use std::time::Duration;

/// Label of a base kernel that is built with non-default options.
const CHANGED: &str = "trim-base";

/// Rows of a table without `--all`.
const ROWS: usize = 12;

pub fn run(global: &GlobalOptions, options: &TrimOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let file = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let workloads = options
        .workload
        .iter()
        .map(|name| workload(name, &options.cpus))
        .collect::<Result<Vec<Workload>, _>>()?;
    workloads.iter().try_for_each(|workload| workload.require_run("measured"))?;
    let label = if options.build.is_default() { LABEL } else { CHANGED };
    let build = with_needs(build_request(&options.build, label, Compiler::default())?, &workloads);
    let keep = keep(&options.keep)?;
    let model = options.model.find(false)?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?.with_jobs(options.build.jobs);
    let request = TrimRequest {
        build: &build,
        workloads: &workloads,
        keep: &keep,
        least_percent: options.min_percent,
        no_modules: options.no_modules,
        model: &model,
        runs: options.runs,
        budget: options.budget.map(|minutes| Duration::from_secs(minutes * 60)),
        plan_only: options.dry_run,
    };
    let found = trim(&session, &request, &|what| output.note(&format!("trimming: {what}")))?;
    if let Some(file) = &file {
        file.write(fragment(&found).as_bytes())?;
    }
    match options.format.json {
        true => output.json(&found),
        false => print(&found, options.all, output),
    }
    if let Some(file) = file.filter(|_| !options.format.json) {
        let path = file.path().display();
        output.print(&format!("\nwritten to {path}; build it with: kerntune kernel build --fragment {path}"));
    }
    Ok(Exit::Ok)
}

/// Returns the patterns of `--keep`, with files replaced by their lines.
fn keep(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut patterns = Vec::new();
    for word in given {
        match word.strip_prefix('@') {
            Some(path) => {
                let text = read_text("read", Path::new(path))?;
                let lines =
                    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                patterns.extend(lines.map(String::from));
            }
            None => patterns.push(word.clone()),
        }
    }
    let is_pattern = |c: char| c.is_ascii_alphanumeric() || "_*".contains(c);
    match patterns.iter().find(|pattern| pattern.is_empty() || !pattern.chars().all(is_pattern)) {
        Some(bad) => Err(Failure::usage(format!(
            "--keep: `{bad}` is not the name of an option; write CONFIG_NAME or NAME, with * for any part of \
             it"
        ))),
        None => Ok(patterns),
    }
}

/// Returns a config fragment that switches the options off.
fn fragment(found: &TrimResult) -> String {
    let workloads = found.workloads.join(", ");
    let head =
        format!("# Options of which {workloads} and the functional checks run nothing (kerntune trim).\n");
    found.lines.iter().fold(head, |text, line| match line.strip_suffix("=n") {
        Some(option) => text + &format!("# {option} is not set\n"),
        None => text + line + "\n",
    })
}

fn print(found: &TrimResult, all: bool, output: &CliOutput) {
    let workloads = found.workloads.join(", ");
    let off = found.off.len();
    let change = |before: u64, after: u64| format!("{:+.1} %", 100.0 * (after as f64 / before as f64 - 1.0));
    match &found.trimmed {
        Some(trimmed) => output.print(&format!(
            "Switched off {off} options that {workloads} and the functional checks do not use: text {}, \
             image {}.\n",
            change(found.base.text_bytes, trimmed.text_bytes),
            change(found.base.image_bytes, trimmed.image_bytes)
        )),
        None if found.paths.is_empty() && off == 0 => output.print("No option can go.\n"),
        None => {
            let gone: u64 = found.gone.iter().map(|gone| gone.gone_bytes).sum();
            output.print(&format!(
                "{off} options that {workloads} and the functional checks do not use could go: {} of \
                 functions. Nothing was built.\n",
                bytes(gone)
            ));
        }
    }
    let row = |name: &str, size: &KernelSize| {
        vec![
            name.to_string(),
            size.id.clone(),
            size.options.to_string(),
            size.functions.to_string(),
            kib(size.text_bytes),
            kib(size.image_bytes),
        ]
    };
    let sizes =
        std::iter::once(row("base", &found.base)).chain(found.trimmed.iter().map(|of| row("trimmed", of)));
    output.table(&["KERNEL", "ID", "#OPTIONS", "#FUNCTIONS", "#TEXT KIB", "#IMAGE KIB"], sizes);
    if !found.paths.is_empty() {
        output.print("");
        let row = |of: &kerntune_tune::trim::WorkloadPath| {
            vec![
                of.workload.clone(),
                figure(of.base),
                figure(of.trimmed),
                format!("{:+.3}", 100.0 * (of.trimmed / of.base - 1.0)),
                format!("{:.3}", 100.0 * of.noise / of.base),
                of.runs.to_string(),
                if of.longer { "longer" } else { "not longer" }.to_string(),
            ]
        };
        let heads = ["WORKLOAD", "#BASE", "#TRIMMED", "#CHANGE %", "#NOISE %", "#RUNS", "PATH"];
        output.table(&heads, found.paths.iter().map(row));
        output.print("kernel instructions, exact; differences below the noise mean nothing");
    }
    let limit = if all { usize::MAX } else { ROWS };
    output.print("\nwhat goes, by directory");
    let gone = found.gone.iter().take(limit);
    output.table(
        &["DIRECTORY", "#TEXT KIB", "#GONE KIB", "#GONE %"],
        gone.map(|gone| {
            let percent = format!("{:.0}", 100.0 * gone.gone_bytes as f64 / gone.text_bytes.max(1) as f64);
            vec![gone.directory.clone(), kib(gone.text_bytes), kib(gone.gone_bytes), percent]
        }),
    );
    output.print("\nthe largest options that go (files of nested options count for each)");
    let rows = found.off.iter().take(limit);
    output.table(
        &["OPTION", "#FILES", "#TEXT KIB"],
        rows.map(|off| vec![off.option.clone(), off.files.to_string(), kib(off.text_bytes)]),
    );
    output.print("\nthe largest options that stay");
    let rows =
        found.stay.iter().filter(|stays| all || !matches!(stays.because, KeepReason::Ran { .. })).take(limit);
    output.table(
        &["OPTION", "#TEXT KIB", "BECAUSE"],
        rows.map(|stays| vec![stays.option.clone(), kib(stays.text_bytes), because(&stays.because)]),
    );
    if !all {
        output.print("options whose code ran are not listed here; --all lists everything");
    }
    if found.modules_off > 0 {
        output.print(&format!("\n{} modules, and support for them, are not built", found.modules_off));
    }
    if !found.went_with_them.is_empty() {
        output.print(&format!(
            "\n{} options without files of their own went with them",
            found.went_with_them.len()
        ));
    }
    if !found.on_instead.is_empty() {
        output.print(&format!("on instead: {}", found.on_instead.join(", ")));
    }
    if found.time_was_up {
        output.print("the time was up before every option was tried: more could go");
    }
    output.print(
        "\nWhat did not run here may run elsewhere: other hardware, an error, another program. Name it with --keep, or name its workload.",
    );
}

fn kib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1024.0)
}

fn because(because: &KeepReason) -> String {
    match because {
        KeepReason::Ran { file, function } => format!("{function} of {file} ran"),
        KeepReason::Asked { why } => why.clone(),
        KeepReason::Needed { by } => format!("{by} needs it"),
        KeepReason::Selected => "something that stays selects it".into(),
        KeepReason::Untried => "the time was up before it was tried by itself".into(),
        KeepReason::Fails => "the kernel is not usable without it".into(),
    }
}
