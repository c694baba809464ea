//! The command `kerntune guard bisect`.

use super::{dry_commits, project, text, GuardFileOptions, GuardVariantOptions};
use clap::Args;
use kerntune_command::{show_steps, CliOutput, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions};
use kerntune_compare::number::fixed;
use kerntune_guard::{bisect, BisectRequest, BisectResult, CommitVerdict, GitTree, TriedCommit};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::Session;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GuardBisectOptions {
    /// A commit before the path got longer
    pub good: String,
    /// A commit after the path got longer
    pub bad: String,
    #[command(flatten)]
    pub of: GuardFileOptions,
    /// The git tree [default: the `git` of the guard file]
    #[arg(long, value_name = "DIR")]
    pub git: Option<PathBuf>,
    /// Test only this workload of the guard file
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Test only this row [default: the row that grew most]
    #[arg(long, value_name = "ROW")]
    pub row: Option<String>,
    #[command(flatten)]
    pub variant: GuardVariantOptions,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

pub fn run(
    global: &GlobalOptions,
    options: &GuardBisectOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let names = [options.variant.configuration.as_deref(), options.variant.compiler.as_deref()];
    let variant = project.variant("bisect", names)?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    let tree = GitTree::open(&work, &project.tree()?)?;
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        let [good, bad] = [tree.commit(&options.good)?, tree.commit(&options.bad)?];
        let between = tree.suspects(&bad.id, std::slice::from_ref(&good.id))?.len();
        dry_commits(&mut dry, &project, &tree, &variant, &[good, bad])?;
        let more = between.next_power_of_two().ilog2();
        let what = format!("build and run about {more} of the {between} commits between, each halfway");
        dry.add("bisect", what, None, |dry| {
            let work = project.works.first()?;
            Some(dry.of_runs(&work.workload, "measured", more))
        });
        return Ok(show_steps(dry, options.format.json, output));
    }
    let search = BisectRequest {
        good: &options.good,
        bad: &options.bad,
        workload: options.workload.as_deref(),
        row: options.row.as_deref(),
        variant: &variant,
    };
    let found = bisect(&session, &project, &tree, &search, &|tried| output.note(&line(tried)))?;
    match options.format.json {
        true => output.json(&found),
        false => print(&found, output),
    }
    // A single commit is a success; several that cannot be separated are a finding.
    Ok(if found.first_bad.is_some() { Exit::Ok } else { Exit::Findings })
}

fn verdict_name(judged: CommitVerdict) -> &'static str {
    match judged {
        CommitVerdict::Good => "good",
        CommitVerdict::Bad => "bad",
        CommitVerdict::Skipped => "skipped",
    }
}

fn line(tried: &TriedCommit) -> String {
    let path = tried.path.map_or_else(String::new, |path| format!(", {} instructions/op", fixed(path, 2)));
    format!("{} {}{path}: {}", tried.commit.short(), verdict_name(tried.judged), tried.commit.subject)
}

fn print(found: &BisectResult, output: &CliOutput) {
    let [(good, before), (bad, after)] = &found.ends;
    output.print(&format!(
        "{} of {}: {} instructions/op at {}, {} at {}; {} commits between\n",
        found.row,
        found.workload,
        fixed(*before, 2),
        good.short(),
        fixed(*after, 2),
        bad.short(),
        found.commits
    ));
    output.table(
        &["COMMIT", "#INSTRUCTIONS/OP", "#OBJECTS", "#SECONDS", "VERDICT", "SUBJECT"],
        found.tried.iter().map(|tried| {
            let first = |why: &String| why.lines().next().unwrap_or_default().to_owned();
            let subject = match &tried.because {
                Some(why) => format!("{} ({})", tried.commit.subject, first(why)),
                None => tried.commit.subject.clone(),
            };
            vec![
                tried.commit.short().to_owned(),
                tried.path.map_or("-".into(), |path| fixed(path, 2)),
                tried.objects.map_or("-".into(), |objects| objects.to_string()),
                format!("{:.1}", tried.seconds),
                verdict_name(tried.judged).into(),
                subject,
            ]
        }),
    );
    output.print(&format!(
        "\n{} commits tried, {} kernels built, {} skipped, {:.0} s",
        found.tried.len(),
        found.builds,
        found.skipped,
        found.seconds
    ));
    match &found.first_bad {
        Some(commit) => output.print(&format!(
            "\nfirst with the longer path: {} ({}, {})",
            commit.short(),
            commit.subject,
            commit.date
        )),
        None => {
            output
                .print("\nfirst with the longer path: one of these; those that were skipped have no figures");
            for commit in &found.suspects {
                output.print(&format!("  {} {}", commit.short(), commit.subject));
            }
        }
    }
    if let (Some(explained), Some(against)) = (&found.explained, &found.against) {
        output.print(&format!("\n{} against {}:", found.row, against.short()));
        text::explain(explained, output);
    }
}
