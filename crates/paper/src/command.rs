//! The command `kerntune paper`.

use crate::report::{markdown, paper as report, paper_page, study as study_report, survey as survey_report};
use crate::run::paper::{dry_run as dry_run_paper, paper, PaperRequest};
use crate::run::study::{dry_run as dry_run_study, study, StudyRequest};
use crate::run::survey::{dry_run as dry_run_survey, survey, SurveyRequest, SurveyResult};
use crate::{names, FigureReport, Paper, Study, Survey, SurveyFigure, SurveyText};
use clap::{ArgGroup, Args};
use kerntune_command::{
    build_request, command, command_line, exclusions, show_steps, timed_pairs, typical_path, BuildOptions,
    CliOutput, CommandEntry, DryRunOptions, ExcludeOptions, Exit, Failure, FormatOptions, GlobalOptions,
    IntervalOptions, ModelOptions, OutputFile, RecipeFlags, RunSubcommand, TimedFiles, MAX_MINUTES,
};
use kerntune_profile::{rfc3339, Profile};
use kerntune_report::{functions, Report, Selection};
use kerntune_stats::{JoinedResults, TimedComparison};
use kerntune_table::Style;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::{Recipe, RecipeOptions, Session, MAX_RUNS};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entry of the command.
pub const COMMAND: CommandEntry = command::<PaperOptions>("paper", 130, "Compare");

/// Repeat a paper's experiment on today's kernel, and print the paper's tables beside ours
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("experiment").multiple(true).requires("name").args([
    "source", "patch", "config", "fragment", "set", "compiler", "kcflags", "jobs", "recipe", "only", "budget", "values",
    "model", "exclude", "output", "runs", "timed", "interval", "beside",
]))]
pub struct PaperOptions {
    /// The paper: chen, hpux, mckusick, mcrae or yuan; lists the papers if not given
    pub name: Option<String>,
    #[command(flatten)]
    pub build: BuildOptions,
    /// Recipe that tunes the kernels [default: the recipe nearest to the paper's method]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<Recipe>,
    /// Make the tables by this recipe, too, and show its gains beside the others; may be repeated
    #[arg(long, value_name = "RECIPE")]
    pub beside: Vec<Recipe>,
    /// Make only the tables of this workload; may be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Vec<String>,
    /// Start nothing new after this many minutes, and show the results so far; the same command
    /// resumes
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(0..=MAX_MINUTES))]
    pub budget: Option<u64>,
    /// Number of runs of each kernel, each with another start offset; with several runs,
    /// improvements have intervals
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: u32,
    /// Add columns of measured times: timed results of a base kernel and of a tuned kernel for the
    /// paper's workloads, written by `kerntune time` or `kerntune bench run`. Separate several
    /// files of one kernel by commas; may be repeated
    #[arg(long, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub timed: Vec<String>,
    #[command(flatten)]
    pub interval: IntervalOptions,
    #[command(flatten)]
    pub of_recipe: RecipeFlags,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub exclude: ExcludeOptions,
    /// Also write a page: Markdown if the file name ends in .md, otherwise HTML with charts
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for PaperOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let Some(name) = &self.name else { return list(self, output) };
        let of = Paper::named(name).map_err(Failure::usage)?;
        if let Some(study) = &of.study {
            return run_study(global, self, &of, study, output);
        }
        if let Some(survey) = &of.survey {
            return run_survey(global, self, &of, survey, output);
        }
        check_only(self, &of)?;
        let recipe: Recipe = match self.recipe {
            Some(recipe) => recipe,
            None => of.recipe.parse().map_err(Failure::usage)?,
        };
        let build = build_request(&self.build, "base", recipe.default_compiler())?;
        let model = self.model.find(false)?;
        let page = self.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
        let work = self.dry.work(global)?;
        let session = Session::new(&work, output.progress())?.with_jobs(self.build.jobs);
        let exclusions = exclusions(&self.exclude)?;
        let mut of_recipe = self.of_recipe.options();
        recipe.check_options(of_recipe, &[], &exclusions)?;
        // Value profiling as in the paper, if the recipe supports it.
        let as_paper = |recipe: Recipe, options: RecipeOptions| {
            let with_values = RecipeOptions { values: of.values || options.values, ..options };
            match recipe.check_options(with_values, &[], &exclusions) {
                Ok(()) => with_values,
                Err(_) => options,
            }
        };
        of_recipe = as_paper(recipe, of_recipe);
        if self.interval.is_asked() && self.timed.is_empty() {
            return Err(Failure::usage(
                "--interval: give --timed as well: the intervals are those of measured times",
            ));
        }
        let timed = timed_pairs(&self.timed)?;
        let clock: Vec<TimedComparison> =
            timed.iter().map(|files| compared(files, self.interval)).collect::<Result<_, _>>()?;
        let request = PaperRequest {
            paper: &of,
            only: &self.only,
            workloads: &[PathBuf::from("workloads")],
            build: &build,
            recipe,
            options: of_recipe,
            model: &model,
            runs: self.runs,
            budget: self.budget.map(|minutes| Duration::from_secs(minutes * 60)),
            exclusions: &exclusions,
        };
        let beside: Vec<PaperRequest> = self
            .beside
            .iter()
            .filter(|other| **other != recipe)
            .map(|&recipe| {
                let options = as_paper(recipe, RecipeOptions::default());
                PaperRequest { recipe, options, ..request }
            })
            .collect();
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            for request in std::iter::once(&request).chain(&beside) {
                dry_run_paper(&mut dry, request)?;
            }
            return Ok(show_steps(dry, self.format.json, output));
        }
        let make = |request: &PaperRequest| {
            let names = request.recipe.steps();
            paper(&session, request, &|workload, name, found| {
                let number = 1 + names.iter().position(|step| *step == name).unwrap_or_default();
                let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
                output.note(&format!("{workload} [{number}/{}] {name}{found}", names.len()));
            })
        };
        let mut outcome = make(&request)?;
        for other in &beside {
            outcome.add_beside(make(other)?);
        }
        let unused = outcome.time(&clock);
        if !unused.is_empty() {
            output.note(&format!("--timed: no table that was made has these rows: {}", unused.join(", ")));
        }
        outcome.conclude(&of.findings);
        write(page.as_ref(), &outcome, markdown::paper, paper_page::page)?;
        match self.format.json {
            true => output.json(&outcome),
            false => output.print(&report::table(&outcome, output.style())),
        }
        Ok(Exit::Ok)
    }
}

/// Compares timed results of a base kernel and a tuned kernel.
fn compared([base, tuned]: &[TimedFiles; 2], interval: IntervalOptions) -> Result<TimedComparison, Failure> {
    let options = kerntune_stats::ComparisonOptions { method: interval.method(), ..Default::default() };
    Ok(TimedComparison::new(&JoinedResults::join(base)?, &JoinedResults::join(tuned)?, None, &options)?)
}

/// Writes the result to the requested file, if any: as Markdown if its name ends in .md, otherwise
/// as an HTML page.
fn write<T>(
    file: Option<&OutputFile>,
    outcome: &T,
    markdown: fn(&T, &[String], &str) -> String,
    page: fn(&T, &[String], &str) -> String,
) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let written = format!("kerntune {}, {}", env!("CARGO_PKG_VERSION"), rfc3339(SystemTime::now()));
    let make = match file.path().extension() {
        Some(extension) if extension == "md" => markdown,
        _ => page,
    };
    file.write(make(outcome, &[command_line()], &written).as_bytes())?;
    Ok(())
}

/// Rejects options that apply only to papers that tune kernels with a recipe.
fn refuse_recipes(options: &PaperOptions, more: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    let of_recipes = [
        ("--recipe", options.recipe.is_some()),
        ("--beside", !options.beside.is_empty()),
        ("--budget", options.budget.is_some()),
        ("--exclude", !options.exclude.exclude.is_empty()),
        ("--values", options.of_recipe.values),
        ("--runs", options.runs > 1),
        ("--timed", !options.timed.is_empty()),
        ("--interval", options.interval.is_asked()),
    ];
    match of_recipes.iter().chain(more).find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} is for papers that tune kernels by a recipe; {why}")))
        }
        None => Ok(()),
    }
}

/// Rejects a workload of `--only` that the paper does not have.
fn check_only(options: &PaperOptions, of: &Paper) -> Result<(), Failure> {
    let known = workloads(of);
    match options.only.iter().find(|name| !known.contains(&name.as_str())) {
        Some(other) => Err(Failure::usage(format!(
            "--only {other}: the paper {} has the workloads {}",
            of.name,
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Runs a paper whose kernels differ by patches, not by a recipe.
fn run_study(
    global: &GlobalOptions,
    options: &PaperOptions,
    of: &Paper,
    wanted: &Study,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let more = [("--only", !options.only.is_empty()), ("--model", options.model.is_asked())];
    refuse_recipes(options, &more, &format!("{} changes its kernels by patches", of.name))?;
    let build = build_request(&options.build, "base", Default::default())?;
    let page = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    let request =
        StudyRequest { paper: of, study: wanted, workloads: &[PathBuf::from("workloads")], build: &build };
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_run_study(&mut dry, &request)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let outcome = study(&session, &request, &|kernel, what| output.note(&format!("{kernel}: {what}")))?;
    write(page.as_ref(), &outcome, study_report::markdown, study_report::page)?;
    match options.format.json {
        true => output.json(&outcome),
        false => output.print(&study_report::table(&outcome, output.style())),
    }
    Ok(Exit::Ok)
}

/// Runs a paper that examines a kernel and changes nothing.
fn run_survey(
    global: &GlobalOptions,
    options: &PaperOptions,
    of: &Paper,
    wanted: &Survey,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    refuse_recipes(options, &[], &format!("{} looks at one kernel", of.name))?;
    check_only(options, of)?;
    let build = build_request(&options.build, "base", Default::default())?;
    let (model, data_model) = (options.model.find(false)?, options.model.find(true)?);
    let page = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let work = options.dry.work(global)?;
    let session = Session::new(&work, output.progress())?;
    let request = SurveyRequest {
        paper: of,
        survey: wanted,
        workloads: &[PathBuf::from("workloads")],
        build: &build,
        model: &model,
        data_model: &data_model,
        only: &options.only,
    };
    if options.dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_run_survey(&mut dry, &request)?;
        return Ok(show_steps(dry, options.format.json, output));
    }
    let SurveyResult { mut outcome, profiles } = survey(&session, &request, &|what| output.note(what))?;
    for figure in &wanted.figures {
        let text = match profiles.get(&figure.at) {
            Some(directory) => figure_text(figure, directory)
                .unwrap_or_else(|failure| format!("Not made: {}\n", failure.message)),
            None => "Not made: its workload was not recorded.\n".into(),
        };
        let (title, about, at) = (figure.title.clone(), figure.about.clone(), figure.at.clone());
        outcome.figures.push(SurveyText { title, about, at, text });
    }
    write(page.as_ref(), &outcome, survey_report::markdown, survey_report::page)?;
    match options.format.json {
        true => output.json(&outcome),
        false => output.print(&survey_report::table(&outcome, output.style())),
    }
    Ok(Exit::Ok)
}

/// Returns the report for a figure of the paper, as text.
fn figure_text(figure: &SurveyFigure, directory: &Path) -> Result<String, Failure> {
    let profile = Profile::load(directory)?;
    let region = figure.at.region.as_deref();
    match &figure.shows {
        FigureReport::Functions => {
            let select = Selection { top: Some(figure.top), region: region.map(String::from) };
            Ok(functions::FunctionsOptions { select, ..Default::default() }.text(&profile, Style::PLAIN)?)
        }
        FigureReport::Path(name) => {
            let text = typical_path(directory, &profile, name, region)?;
            let lines: Vec<&str> = text.lines().collect();
            let rest = lines.len().saturating_sub(figure.top);
            let more = if rest > 0 { format!("… {rest} more lines\n") } else { String::new() };
            let text: String = lines.iter().take(figure.top).map(|line| format!("{line}\n")).collect();
            Ok(text + &more)
        }
    }
}

/// Returns the workloads of the paper's tables, without repetitions.
fn workloads(paper: &Paper) -> Vec<&str> {
    let study = paper.study.iter().map(|study| study.workload.as_str());
    let places = paper.survey.iter().flat_map(|survey| survey.places());
    let surveyed = places.map(|place| place.workload.as_str());
    let mut names: Vec<&str> = paper
        .experiments
        .iter()
        .map(|experiment| experiment.workload.as_str())
        .chain(study)
        .chain(surveyed)
        .collect();
    names.dedup();
    names
}

#[derive(serde::Serialize)]
struct ListedPaper {
    name: String,
    title: String,
    authors: String,
    published: String,
    recipe: String,
    workloads: Vec<String>,
}

fn list(options: &PaperOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let mut papers = Vec::new();
    for name in names() {
        let paper = Paper::named(name).map_err(Failure::usage)?;
        let workloads = workloads(&paper).into_iter().map(String::from).collect();
        let Paper { name, title, authors, published, recipe, .. } = paper;
        papers.push(ListedPaper { name, title, authors, published, recipe, workloads });
    }
    match options.format.json {
        true => output.json(&serde_json::json!({ "schema": "kerntune-papers/1", "papers": papers })),
        false => output.table(
            &["PAPER", "RECIPE", "WORKLOADS", "TITLE", "PUBLISHED"],
            papers
                .into_iter()
                .map(|of| ListedPaper {
                    recipe: if of.recipe.is_empty() { "-".into() } else { of.recipe },
                    ..of
                })
                .map(|of| vec![of.name, of.recipe, of.workloads.join(", "), of.title, of.published]),
        ),
    }
    Ok(Exit::Ok)
}
