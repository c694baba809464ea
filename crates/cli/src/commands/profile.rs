//! The commands `kerntune profile list|show|rebuild|merge|check|transfer|for|remove`.

use super::profile_for::ForOptions;
use clap::Subcommand;
use kerntune_analyze::MissingChunk;
use kerntune_command::{
    command_group, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions,
    ProfileJson, RunSubcommand,
};
use kerntune_optimize::gcc_pgo::WeightedRun;
use kerntune_optimize::own_build::OwnBuild;
use kerntune_optimize::quality::ProfileQuality;
use kerntune_profile::{find, list, remove, Profile};
use kerntune_report::{summary, Report};
use kerntune_tune::merge::merge;
use kerntune_tune::own_build::check;
use kerntune_tune::rebuild::rebuild;
use kerntune_tune::{quality, Recipe};
use std::path::Path;

/// Largest weight of a profile; keeps weighted sums of times far below 2^64 ns.
const MAX_WEIGHT: u64 = 1_000_000;

/// Splits `PROFILE:WEIGHT`; without a weight it is 1. A path may contain colons: only a number
/// after the last one is a weight.
fn weighted(part: &str) -> Result<(&str, u64), Failure> {
    let Some((name, weight)) = part.rsplit_once(':').filter(|(name, _)| !name.is_empty()) else {
        return Ok((part, 1));
    };
    match weight.parse() {
        Ok(weight) if (1..=MAX_WEIGHT).contains(&weight) => Ok((name, weight)),
        _ => Err(Failure::usage(format!(
            "`{part}`: the weight `{weight}` is not a whole number from 1 to {MAX_WEIGHT}"
        ))),
    }
}

/// Describes a chunk of the trace that is missing in the profile.
fn missing(chunk: &MissingChunk) -> String {
    let MissingChunk { chunk, begin_ns, end_ns, events, reason } = chunk;
    let seconds = |ns: &u64| *ns as f64 / 1e9;
    format!(
        "missing: chunk {chunk}, {:.6} to {:.6} s, {events} events: {reason}",
        seconds(begin_ns),
        seconds(end_ns)
    )
}

pub const COMMAND: CommandEntry = command_group::<ProfileCommand>("profile", 45, "Look");

/// List, show and remove profiles
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// List profiles, oldest first
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the provenance of a profile
    Show {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Analyze the trace of a profile again, and keep the result as another profile
    Rebuild {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        /// Leave out damaged chunks of the trace, and list them
        #[arg(long)]
        partial: bool,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Add up profiles of one kernel, each times its weight, into one profile for several workloads
    Merge {
        /// PROFILE or PROFILE:WEIGHT; the weight is a whole number up to 1,000,000 [default: 1]
        #[arg(required = true, value_name = "PROFILE[:WEIGHT]")]
        parts: Vec<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Check how well a profile fits a kernel, and suggest what to do if it does not
    /// (docs/quality.md)
    Check {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md); or a
        /// directory of .gcda files as collected from debugfs
        #[arg(default_value = "latest")]
        profile: String,
        /// The kernel to check against: label, beginning of an id, or directory [default: the
        /// recorded kernel]; or the vmlinux of a kernel that you built with files of this profile
        /// (docs/own-builds.md)
        #[arg(long)]
        kernel: Option<String>,
        /// The recipe that will use the profile
        #[arg(long)]
        recipe: Option<Recipe>,
        /// A second recording of the training run, preferably with another seed: compare the hot
        /// functions of both
        #[arg(long, value_name = "PROFILE")]
        against: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Transfer a profile to another kernel: counts of functions and blocks that match, completed
    /// where code changed
    #[command(alias = "carry")]
    Transfer {
        /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
        /// `latest:workload=rr,kernel=base` (docs/profiler.md)
        profile: String,
        /// The other kernel: label, beginning of an id, or directory
        #[arg(long, value_name = "KERNEL")]
        to: String,
        /// Smallest share of the executed instructions, in percent, whose counts must be matched or
        /// inferred in the other kernel
        #[arg(long, alias = "at-least", value_name = "PERCENT", default_value_t = kerntune_optimize::quality::MIN_TRANSFERRED_PERCENT, value_parser = clap::value_parser!(u64).range(1..=100))]
        min_percent: u64,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Record a workload on a kernel of your source, and write the files that your own build takes
    /// (docs/own-builds.md)
    For(Box<ForOptions>),
    /// Delete profiles
    Remove {
        /// Beginnings of ids, or directories
        #[arg(required = true)]
        profiles: Vec<String>,
    },
}

impl RunSubcommand<GlobalOptions> for ProfileCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if let Self::For(options) = self {
            return options.run(global, output);
        }
        let work = work_to_read(global)?;
        match self {
            Self::List { format } => {
                let listing = list(&work)?;
                for damaged in &listing.damaged {
                    output.damaged(damaged);
                }
                if format.json {
                    let shown: Vec<ProfileJson> =
                        listing.entries.iter().map(|e| ProfileJson::new(&e.path, &e.manifest)).collect();
                    output.json(&shown);
                } else if listing.entries.is_empty() && listing.damaged.is_empty() {
                    let directory = work.root().join(kerntune_profile::KIND);
                    output.note(&kerntune_profile::Error::NoProfiles { directory }.to_string());
                } else if !listing.entries.is_empty() {
                    output.table(
                        &["ID", "KERNEL", "WORKLOAD", "RUN", "MACHINE", "#EVENTS", "DATE"],
                        listing.entries.iter().map(|entry| {
                            let m = &entry.manifest;
                            vec![
                                m.id.clone(),
                                m.kernel.label.clone(),
                                m.workload.clone(),
                                m.run.to_string(),
                                m.machine.clone(),
                                m.events.to_string(),
                                m.recorded.clone(),
                            ]
                        }),
                    );
                }
            }
            Self::Show { profile, format } => {
                let entry = find(&work, profile)?;
                if format.json {
                    output.json(&ProfileJson::new(&entry.path, &entry.manifest));
                } else {
                    let profile = Profile::load(&entry.path)?;
                    output.print(&format!("{}\n", entry.path.display()));
                    output.print(&summary::SummaryOptions.text(&profile, output.style())?);
                }
            }
            Self::Rebuild { profile, partial, format } => {
                let entry = find(&work, profile)?;
                let rebuilt = rebuild(&work, &entry.path, *partial, output.progress())?;
                for chunk in &rebuilt.missing {
                    output.note(&missing(chunk));
                }
                if format.json {
                    output.json(&ProfileJson::new(&rebuilt.path, &rebuilt.manifest));
                } else {
                    output.print(&format!("{}\n", rebuilt.path.display()));
                }
            }
            Self::Merge { parts, format } => {
                let parts = parts.iter().map(|part| weighted(part)).collect::<Result<Vec<_>, _>>()?;
                let merged = merge(&work, &parts)?;
                if format.json {
                    output.json(&ProfileJson::new(&merged.path, &merged.manifest));
                    return Ok(Exit::Ok);
                }
                output.table(
                    &["PROFILE", "KERNEL", "WORKLOAD", "RUN", "#WEIGHT", "#SHARE"],
                    merged.parts.iter().map(|part| {
                        let m = &part.manifest;
                        let share = format!("{:.1} %", part.busy_share * 100.0);
                        let weight = part.weight.to_string();
                        vec![
                            m.id.clone(),
                            m.kernel.label.clone(),
                            m.workload.clone(),
                            m.run.to_string(),
                            weight,
                            share,
                        ]
                    }),
                );
                output.print(&format!(
                    "\nshare  of the busy time in the merged profile\n{}",
                    merged.path.display()
                ));
            }
            Self::For(_) => {}
            Self::Check { profile, kernel: Some(image), recipe, against, format }
                if Path::new(image).is_file() =>
            {
                if recipe.is_some() || against.is_some() || quality::is_counters(profile) {
                    return Err(Failure::usage(
                        "--kernel is an image that you built: give a profile with it, and neither --recipe nor --against",
                    ));
                }
                return Ok(show_own_build(&check(&work, profile, Path::new(image))?, format.json, output));
            }
            Self::Check { profile, kernel, recipe, against, format } => {
                let quality = if quality::is_counters(profile) {
                    let Some(kernel) = kernel else {
                        return Err(Failure::usage(
                            "a directory of .gcda files does not name its kernel: give it with --kernel",
                        ));
                    };
                    if let Some(other) = recipe.filter(|recipe| recipe.name() != "gcc-pgo") {
                        return Err(Failure::usage(format!("--recipe {other}: .gcda files are for gcc-pgo")));
                    }
                    let runs = [Some(profile), against.as_ref()];
                    let runs: Vec<WeightedRun> =
                        runs.into_iter().flatten().map(|run| WeightedRun::from(Path::new(run))).collect();
                    quality::check_counters(&work, &runs, kernel, &mut |text| output.note(text))?
                } else {
                    quality::check(&work, profile, kernel.as_deref(), *recipe, against.as_deref())?
                };
                return Ok(show_quality(&quality, format.json, output));
            }
            Self::Transfer { profile, to, min_percent, format } => {
                let carried = quality::transfer(&work, profile, to, *min_percent)?;
                if format.json {
                    output.json(&ProfileJson::new(&carried.path, &carried.manifest));
                    return Ok(Exit::Ok);
                }
                output.print(&format!("{}\n\n{}", carried.quality, carried.path.display()));
            }
            Self::Remove { profiles } => {
                for wanted in profiles {
                    output.note(&format!("removed {}", remove(&work, wanted)?.display()));
                }
            }
        }
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show { .. })
    }
}

fn show_quality(quality: &ProfileQuality, json: bool, output: &CliOutput) -> Exit {
    if json {
        output.json(&with_verdict(quality));
    } else {
        output.print(&quality.to_string());
    }
    match quality.verdict() {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Findings,
    }
}

/// Shows whether the user's own build took the profile.
fn show_own_build(built: &OwnBuild, json: bool, output: &CliOutput) -> Exit {
    let verdict = built.verdict();
    if json {
        let mut value = serde_json::to_value(built).unwrap_or_default();
        value["verdict"] = if verdict.is_ok() { "taken" } else { "refused" }.into();
        output.json(&value);
    } else {
        let words = match &verdict {
            Ok(()) => "taken: compiler and linker took the profile".to_string(),
            Err(refused) => refused.to_string(),
        };
        output.print(&format!("{built}\n{words}"));
    }
    match verdict {
        Ok(()) => Exit::Ok,
        Err(_) => Exit::Findings,
    }
}

/// Returns the figures together with the verdict.
fn with_verdict(quality: &ProfileQuality) -> serde_json::Value {
    let mut value = serde_json::to_value(quality).unwrap_or_default();
    value["usable"] = quality.usable().into();
    value["verdict"] = if quality.verdict().is_ok() { "fit" } else { "refused" }.into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_follows_the_last_colon() {
        assert_eq!(weighted("82e6").unwrap(), ("82e6", 1));
        assert_eq!(weighted("./a:b:3").unwrap(), ("./a:b", 3));
        for bad in ["a:0", "a:x", "a:1000001", "a:-1"] {
            assert!(weighted(bad).unwrap_err().message.contains("whole number"), "{bad}");
        }
    }
}
