//! `kerntune guard record --program` and `guard check --program`.

use super::check::GuardCheckOptions;
use super::reports::write_reports;
use super::{cell, label, project, source_of, GuardRecordOptions, GuardSubjectOptions};
use kerntune_command::{show_steps, CliOutput, Exit, Failure, GlobalOptions, OutputFile};
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_guard::{
    check_programs, measure_programs, CheckedFigure, CheckedProgramRow, FaultKind, GuardProject,
    ProgramBaseline, ProgramChange, ProgramCheck, ProgramCheckCell, ProgramMetric,
};
use kerntune_kernel::{preview, Kernel};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;

/// Returns the kernel that runs the programs: the one that was named, or that of a source, built in
/// the only variant of the guard file.
fn kernel(session: &Session, project: &GuardProject, asked: &GuardSubjectOptions) -> Result<Kernel, Failure> {
    if let Some(name) = &asked.kernel {
        return Ok(kerntune_kernel::find(session.work, name)?);
    }
    let variant = project.variant("--program", [None, None])?;
    let (_, source) = source_of(project, asked.source.as_ref())?;
    Ok(cell::build_kernel(session, project, (source, &label(&variant)), &variant, None)?)
}

/// Adds the steps of a measurement to a dry run.
fn dry_run(dry: &mut DryRun, project: &GuardProject, asked: &GuardSubjectOptions) -> Result<(), Failure> {
    let named = asked.kernel.as_deref();
    let built = named.map(|name| kerntune_kernel::find(dry.session().work, name)).transpose()?;
    if built.is_none() {
        let variant = project.variant("--program", [None, None])?;
        let (_, source) = source_of(project, asked.source.as_ref())?;
        let label = label(&variant);
        let request = cell::build_request(project, (source, &label), &variant, None)?;
        dry.add("kernel", format!("build the kernel {label}"), None, |dry| {
            Some(preview(dry.session().work, &request).ok()?.into())
        });
    }
    for work in &project.works {
        dry.runs(format!("run {} with its program's functions", work.name), &work.workload, "measured", 1);
    }
    Ok(())
}

pub fn record(
    global: &GlobalOptions,
    options: &GuardRecordOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let project = &project(&options.of)?;
    let path = project.baseline(options.output.as_deref());
    let file = OutputFile::new("--output", &path)?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_run(&mut dry, project, &options.subject)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let kernel = kernel(&session, project, &options.subject)?;
    let baseline = ProgramBaseline::of(measure_programs(&session, project, &kernel)?);
    file.write_json(&baseline)?;
    if options.format.json {
        output.json(&baseline);
        return Ok(Exit::Ok);
    }
    output.print(&format!("{}\n", on_kernel(&baseline)));
    let headings = [
        "WORKLOAD",
        "ROW",
        "#OPERATIONS",
        "#USER CODE",
        "#KERNEL",
        "#CALLS",
        "#MEMORY FAULTS",
        "#FILE FAULTS",
    ];
    output.table(
        &headings,
        baseline.cells.iter().flat_map(|cell| {
            cell.rows.iter().map(|row| {
                let operations = row.kernel.operations.max(1) as f64;
                let each = |count: u64| count as f64 / operations;
                vec![
                    cell.workload.clone(),
                    row.kernel.row.clone(),
                    grouped(row.kernel.operations),
                    figure(each(row.user_instructions)),
                    figure(row.kernel.path()),
                    fixed(each(row.calls()), 3),
                    fixed(each(row.faults(FaultKind::Memory)), 3),
                    fixed(each(row.faults(FaultKind::File)), 3),
                ]
            })
        }),
    );
    output.print(&format!(
        "\nuser code, kernel: instructions of an operation; calls: system calls; faults: page faults (docs/guard-programs.md).\n\
         All are exact.\n\nwritten to {}",
        path.display()
    ));
    Ok(Exit::Ok)
}

fn on_kernel(baseline: &ProgramBaseline) -> String {
    baseline.kernel().map_or_else(String::new, |of| {
        format!("programs on kernel {} ({}, Linux {})", of.label, of.id, of.version)
    })
}

pub fn check(
    global: &GlobalOptions,
    options: &GuardCheckOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let project = &project(&options.of)?;
    let reports = options.reports.files()?;
    // Missing figures are reported before anything runs.
    let path = project.baseline(options.baseline.as_deref());
    let baseline = ProgramBaseline::read(&path)?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    // Without a name, the kernel of the figures, if it is here.
    let known = baseline.kernel().filter(|of| kerntune_kernel::find(&work, &of.id).is_ok());
    let subject = match (&options.subject.kernel, &options.subject.source, known) {
        (None, None, Some(known)) => {
            GuardSubjectOptions { kernel: Some(known.id.clone()), ..Default::default() }
        }
        _ => options.subject.clone(),
    };
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_run(&mut dry, project, &subject)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let kernel = kernel(&session, project, &subject)?;
    let measured = measure_programs(&session, project, &kernel)?;
    let found = check_programs(&session, project, &kernel, (&baseline, &path), &measured, options.all)?;
    write_reports(reports, &found.suites(), &options.of.file)?;
    match options.format.json {
        true => output.json(&found),
        false => print(&found, output),
    }
    Ok(if found.findings == 0 { Exit::Ok } else { Exit::Findings })
}

fn print(found: &ProgramCheck, output: &CliOutput) {
    if let Some(cell) = found.cells.first() {
        let of = &cell.kernel;
        output.print(&format!("programs on kernel {} ({}, Linux {})\n", of.label, of.id, of.version));
    }
    output.table(
        &["WORKLOAD", "ROW", "FIGURE OF AN OPERATION", "#BEFORE", "#NOW", "#CHANGE %", "VERDICT"],
        found.cells.iter().flat_map(|cell| cell.rows.iter().flat_map(move |row| lines(cell, row))),
    );
    for cell in &found.cells {
        for row in &cell.missing {
            output.print(&format!("missing     {row} of {}: only one of the two has it", cell.workload));
        }
    }
    for (cell, row) in found.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row))) {
        for figure in row.figures.iter() {
            explain(cell, row, figure, output);
        }
    }
    let figures: usize = found.suites().iter().map(|suite| suite.cases.len()).sum();
    output.print(&match found.findings {
        0 => format!("\nNone of {figures} figures grew by more than its tolerance."),
        findings => format!("\n{findings} of {figures} figures are findings."),
    });
    output.print(
        "\nwhole path: user code and kernel, without work that is put off, in instructions. memory and file faults: page\n\
         faults (docs/guard-programs.md). All are exact.",
    );
}

fn lines(cell: &ProgramCheckCell, row: &CheckedProgramRow) -> Vec<Vec<String>> {
    let line = |(at, of): (usize, &CheckedFigure)| {
        let names = if at == 0 { [cell.workload.clone(), row.row.clone()] } else { Default::default() };
        let [workload, name] = names;
        let [before, now] = of.values.map(|value| value_text(of.metric, value));
        let verdict = match (of.grew, of.fell) {
            (true, _) => "GREW",
            (false, true) => "fell",
            _ if of.metric == ProgramMetric::Whole => "",
            _ => "same",
        };
        let change = of.change_percent.map_or("-".into(), |change| format!("{change:+.3}"));
        let metric = match of.metric.unit() {
            "instructions" => format!("{}, instructions", of.metric.name()),
            _ => of.metric.name().to_owned(),
        };
        vec![workload, name, metric, before, now, change, verdict.to_owned()]
    };
    row.figures.iter().enumerate().map(line).collect()
}

fn value_text(metric: ProgramMetric, value: f64) -> String {
    match metric {
        ProgramMetric::Whole | ProgramMetric::User | ProgramMetric::Kernel => figure(value),
        _ => fixed(value, 3),
    }
}

fn explain(cell: &ProgramCheckCell, row: &CheckedProgramRow, of: &CheckedFigure, output: &CliOutput) {
    let changes: Vec<&ProgramChange> =
        row.changes.iter().filter(|change| change.metric == of.metric).collect();
    if changes.is_empty() {
        return;
    }
    let signed = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "+" };
        format!("{sign}{}", value_text(of.metric, value.abs()))
    };
    let change = signed(of.values[1] - of.values[0]);
    output.print(&format!(
        "\n{} of {}: {}, {change} {}/op",
        row.row,
        cell.workload,
        of.metric.name(),
        of.metric.unit()
    ));
    let what = match of.metric {
        ProgramMetric::User => "FUNCTION",
        ProgramMetric::MemoryFaults | ProgramMetric::FileFaults => "PAGE OF",
        ProgramMetric::SystemCalls => "SYSTEM CALL",
        ProgramMetric::Whole | ProgramMetric::Kernel => "CALL OR FAULT",
    };
    let unit = format!("#{}/OP", of.metric.unit().to_uppercase());
    let by: &[&str] = if of.metric == ProgramMetric::User { &[] } else { &["BY"] };
    output.table(
        &[&[unit.as_str(), "#BEFORE", "#NOW", what], by, &["SOURCE"]].concat(),
        changes.iter().map(|change| {
            let place = change.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
            let [before, now] = change.values.map(|value| value_text(of.metric, value));
            let mut line =
                vec![signed(change.values[1] - change.values[0]), before, now, change.name.clone()];
            line.extend(change.caller.clone());
            line.push(place.unwrap_or_default());
            line
        }),
    );
}
