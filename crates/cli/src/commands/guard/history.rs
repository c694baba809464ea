//! The command `kerntune guard history`.

use super::{dry_commits, dry_workloads, of_kernel, project, GuardFileOptions, GuardVariantOptions};
use clap::Args;
use kerntune_command::{
    show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, OutputFile,
};
use kerntune_compare::number::{figure, fixed};
use kerntune_guard::cell::CellFigures;
use kerntune_guard::{CommitLedger, GitTree, GuardProject, HistoryPoint, RowHistory, RowSeries};
use kerntune_report::html::history::{
    history, HistoryPage, HistoryPoint as PagePoint, HistoryRow, HistoryStep,
};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GuardHistoryOptions {
    #[command(flatten)]
    pub of: GuardFileOptions,
    /// A built kernel: label, beginning of an id, or directory; may be repeated, oldest first
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// Commits of the git tree, from A to B, along first parents
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub commits: Option<(String, String)>,
    /// The git tree [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Measure commits that have no figures yet; without this option, only commits with figures are
    /// shown
    #[arg(long, requires = "commits")]
    pub measure: bool,
    #[command(flatten)]
    pub variant: GuardVariantOptions,
    /// Also write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Parses `A..B` into its two commits.
fn range(text: &str) -> Result<(String, String), String> {
    match text.split_once("..") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() && !to.starts_with('.') => {
            Ok((from.to_owned(), to.to_owned()))
        }
        _ => Err("write A..B, two commits".into()),
    }
}

pub fn run(
    global: &GlobalOptions,
    options: &GuardHistoryOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let page = options.html.as_deref().map(|path| OutputFile::new("--html", path)).transpose()?;
    if options.kernel.is_empty() && options.commits.is_none() {
        return Err(Failure::usage("name kernels with --kernel, or commits with --commits A..B"));
    }
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    if options.dry.dry_run {
        return dry_run(&session, &project, options, output);
    }
    let mut points: Vec<(HistoryPoint, Vec<CellFigures>)> = Vec::new();
    for name in &options.kernel {
        let (subject, measured) = of_kernel(&session, &project, name)?;
        let about = measured.first().map_or(String::new(), |of| format!("Linux {}", of.cell.kernel.version));
        let point = HistoryPoint {
            label: name.clone(),
            about: format!("{about}, {}", subject.what),
            commit: None,
            failure: None,
        };
        points.push((point, measured.into_iter().map(|of| of.cell).collect()));
    }
    if let Some((from, to)) = &options.commits {
        points.extend(commits(&session, &project, options, [from, to], output)?);
    }
    let found = RowHistory::of(&project, points);
    if let Some(file) = page {
        file.write(drawn(&found).as_bytes())?;
    }
    match options.format.json {
        true => output.json(&found),
        false => print(&found, output),
    }
    Ok(Exit::Ok)
}

/// Shows the steps: the kernels that are run, and commits without figures with `--measure`.
fn dry_run(
    session: &Session,
    project: &GuardProject,
    options: &GuardHistoryOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let mut dry = DryRun::new(session);
    for name in &options.kernel {
        dry_workloads(&mut dry, project, Some(&kerntune_kernel::find(session.work, name)?))?;
    }
    if let Some((from, to)) = options.commits.as_ref().filter(|_| options.measure) {
        let tree = GitTree::open(session.work, &project.tree()?)?;
        let from = tree.commit(from)?;
        let others = tree.between(&from.id, &tree.commit(to)?.id)?;
        let others = others.iter().map(|id| tree.commit(id)).collect::<Result<Vec<_>, _>>()?;
        let names = [options.variant.configuration.as_deref(), options.variant.compiler.as_deref()];
        let variant = project.variant("history", names)?;
        dry_commits(&mut dry, project, &tree, &variant, &[vec![from], others].concat())?;
    }
    Ok(show_steps(dry, options.format.json, output))
}

/// Returns the commits of the range that have figures; with `--measure`, measures those without.
fn commits(
    session: &Session,
    project: &GuardProject,
    options: &GuardHistoryOptions,
    [from, to]: [&str; 2],
    output: &CliOutput,
) -> Result<Vec<(HistoryPoint, Vec<CellFigures>)>, Failure> {
    let tree = GitTree::open(session.work, &project.tree()?)?;
    let names = [options.variant.configuration.as_deref(), options.variant.compiler.as_deref()];
    let variant = project.variant("history", names)?;
    let ledgers =
        project.works.iter().map(|work| CommitLedger::open(session, project, &tree, &variant, work));
    let ledgers = ledgers.collect::<kerntune_guard::Result<Vec<_>>>()?;
    let from = tree.commit(from)?;
    let mut ids = vec![from.id.clone()];
    ids.extend(tree.between(&from.id, &tree.commit(to)?.id)?);
    let mut points = Vec::new();
    for id in ids {
        let commit = tree.commit(&id)?;
        let (mut cells, mut failure, mut known) = (Vec::new(), None, false);
        for ledger in &ledgers {
            let entry = match ledger.lookup(&id) {
                Some(entry) => Some(entry),
                None if options.measure => {
                    output.note(&format!("{} {}", commit.short(), commit.subject));
                    Some(ledger.entry(&commit)?)
                }
                None => None,
            };
            let Some(entry) = entry else { continue };
            known = true;
            cells.extend(entry.cell);
            failure = failure.or(entry.failure);
        }
        if known {
            let (label, about) = (commit.short().to_owned(), commit.subject.clone());
            points.push((HistoryPoint { label, about, commit: Some(commit), failure }, cells));
        }
    }
    Ok(points)
}

fn series_name(of: &RowSeries) -> String {
    let names = [&of.workload, &of.configuration, &of.compiler];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect();
    format!("{}: {}", names.join(", "), of.row)
}

fn print(found: &RowHistory, output: &CliOutput) {
    output.table(
        &["ROW", "#FIRST", "#LAST", "#CHANGE %", "#STEPS", "#BETWEEN STEPS %"],
        found.series.iter().map(|of| {
            let mut known = of.path.iter().flatten();
            let first = known.next().copied();
            let last = known.last().copied().or(first);
            let change = first.zip(last).and_then(|(a, b)| kerntune_guard::judge::percent(a, b));
            vec![
                series_name(of),
                first.map_or("-".into(), figure),
                last.map_or("-".into(), figure),
                change.map_or("-".into(), |change| format!("{change:+.3}")),
                of.steps.len().to_string(),
                fixed(of.spread_percent, 4),
            ]
        }),
    );
    let mut some = false;
    for of in &found.series {
        for step in &of.steps {
            if !some {
                output.print("\nsteps:");
                some = true;
            }
            let point = &found.points[step.at];
            output.print(&format!(
                "  {}  {} → {} ({})  {} {}",
                series_name(of),
                figure(step.path[0]),
                figure(step.path[1]),
                step.change_percent.map_or("new".into(), |change| format!("{change:+.3} %")),
                point.label,
                point.about
            ));
        }
    }
    let missing = found.points.iter().filter(|point| point.failure.is_some()).count();
    output.print(&format!("\n{} places, {missing} of them without figures", found.points.len()));
}

fn drawn(found: &RowHistory) -> String {
    let points: Vec<PagePoint> = found
        .points
        .iter()
        .map(|point| PagePoint {
            label: point.label.clone(),
            about: point.about.clone(),
            failure: point.failure.clone(),
        })
        .collect();
    let row = |of: &RowSeries| HistoryRow {
        name: series_name(of),
        values: of.path.clone(),
        steps: of.steps.iter().map(|step| HistoryStep { at: step.at, values: step.path }).collect(),
        spread_percent: of.spread_percent,
    };
    let rows: Vec<HistoryRow> = found.series.iter().map(row).collect();
    let written = format!("kerntune {}", env!("CARGO_PKG_VERSION"));
    history(&HistoryPage { points: &points, rows: &rows, unit: "instructions/op", written: &written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends() {
        assert_eq!(range("v6.1..v6.12"), Ok(("v6.1".into(), "v6.12".into())));
        for bad in ["", "a", "..", "a..", "..b", "a...b"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
