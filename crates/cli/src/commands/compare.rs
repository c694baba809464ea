//! The command `kerntune compare`.

use super::{explain, provenance};
use clap::Args;
use kerntune_command::{
    command, show_steps, workload, CliOutput, CommandEntry, CpuOptions, DryRunOptions, Exit, Failure,
    FormatOptions, GlobalOptions, ModelOptions, OutputFile, RunSubcommand,
};
use kerntune_profile::Profile;
use kerntune_report::comparison;
use kerntune_report::html::{layouts, report, HtmlInput};
use kerntune_tune::compare::{self, across_models, compare, CompareEffort, MODELS};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::model::{self, Model};
use kerntune_tune::{Session, MAX_LAYOUTS, MAX_RUNS};
use std::path::PathBuf;

pub const COMMAND: CommandEntry = command::<CompareOptions>("compare", 105, "Compare");

/// Smallest value of `--layouts`: fewer layouts give no meaningful quartiles.
const MIN_LAYOUTS: i64 = 4;

/// Run a workload on two kernels and compare them exactly; explain the difference by function
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The base kernel: label, beginning of an id, or directory
    pub base: String,
    /// The kernel to compare with it
    pub tuned: String,
    /// The workload: a name or a .toml file
    #[arg(long)]
    pub workload: String,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub cpus: CpuOptions,
    /// Explain, function by function, why one kernel needs fewer instructions: what the compiler did
    /// to each, and what that brought
    #[arg(long, conflicts_with_all = ["runs", "seeds", "layouts", "models", "picture", "html"])]
    pub explain: bool,
    /// With --explain: show every function, not only those that explain most of the difference
    #[arg(long, requires = "explain")]
    pub all: bool,
    /// Number of runs of each kernel, each with another start offset: if processes wait for each
    /// other, the path depends on the time of the start [default: 1, and 4 if user code runs
    /// differently on the two kernels]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: Option<u32>,
    /// Number of seeds of the workload; --runs runs are made with each. A seed changes the random
    /// numbers of the guest's kernel, of programs that get them from the kernel, and of programs
    /// whose command takes {seed} (docs/measuring.md)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Measure layout sensitivity: also run the workload on the base kernel with its functions in N
    /// random orders, and show both kernels among these layouts. A base kernel that is not
    /// --movable is rebuilt as movable
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(MIN_LAYOUTS..=i64::from(MAX_LAYOUTS)))]
    pub layouts: Option<u32>,
    /// Also compute the change, as a range, under models of several CPUs, each with a front end
    /// that waits and with one that runs ahead (docs/models.md); or under the named models
    #[arg(long, value_name = "MODEL,…", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "")]
    pub models: Option<Vec<String>>,
    /// Also draw the layouts into this SVG file
    #[arg(long, value_name = "FILE", requires = "layouts")]
    pub picture: Option<PathBuf>,
    /// Also write the comparison as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub dry: DryRunOptions,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for CompareOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let html = self.html.as_deref().map(|path| OutputFile::new("--html", path)).transpose()?;
        let work = self.dry.work_to_read(global)?;
        let workload = workload(&self.workload, &self.cpus)?;
        let model = self.model.find(false)?;
        let picture = self.picture.as_deref().map(|path| OutputFile::new("--picture", path)).transpose()?;
        let models = self.models.as_deref().map(find_models).transpose()?;
        let base = kerntune_kernel::find(&work, &self.base)?;
        let tuned = kerntune_kernel::find(&work, &self.tuned)?;
        let session = Session::new(&work, output.progress())?;
        let effort = match self.explain {
            true => CompareEffort::default(),
            false => CompareEffort {
                runs: self.runs.unwrap_or(1),
                seeds: self.seeds,
                layouts: self.layouts.unwrap_or(0),
                offsets_as_needed: self.runs.is_none(),
            },
        };
        if self.dry.dry_run {
            let mut dry = DryRun::new(&session);
            let kernels = [&base, &tuned];
            compare::dry_run(&mut dry, kernels, &workload, &model, effort)?;
            if let Some(models) = &models {
                compare::dry_run_across_models(&mut dry, kernels, &workload, models)?;
            }
            return Ok(show_steps(dry, self.format.json, output));
        }
        if self.explain {
            let explained = kerntune_tune::explain::explain(&session, [&base, &tuned], &workload, &model)?;
            match self.format.json {
                true => output.json(&explained),
                false => explain::print(&explained, self.all, output),
            }
            return Ok(Exit::Ok);
        }
        if self.seeds > 1 && !workload.takes_seed("measured") {
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
        if self.format.json {
            output.print(&compared.comparison.to_json());
        } else {
            output.print(&comparison::table(&compared.comparison, output.style()));
        }
        Ok(Exit::Ok)
    }
}

/// Loads the named front-end models, or the default set if none is named.
fn find_models(names: &[String]) -> Result<Vec<Model>, Failure> {
    let none = names.iter().all(String::is_empty);
    let names: Vec<&str> = if none { MODELS.to_vec() } else { names.iter().map(String::as_str).collect() };
    Ok(names.into_iter().map(model::find).collect::<Result<_, _>>()?)
}
