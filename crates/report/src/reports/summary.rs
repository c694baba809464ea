//! What a profile is of, how it went, and what each region took.

use super::{entry, Entry, Report};
use crate::columns::{Cell, Columns, Side};
use crate::comparison::model_files;
use crate::style::{printable, Role};
use crate::unit::{readable, Measure, TimeUnit};
use crate::view::{self, share, RegionRow, Times, View};
use crate::{counted, health, sampled, Result, Style};
use clap::Args;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_profile::{ModelEvent, Profile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-summary/2";

/// `kerntune report PROFILE summary`.
pub const ENTRY: Entry = entry::<Options>("summary", 0);

/// What the profile is of, how it went, and figures for each region
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct Options;

fn region_table(profile: &Profile, regions: &[RegionRow]) -> Columns {
    let capture = &profile.manifest.capture;
    let unit = TimeUnit::for_largest(regions.iter().map(|row| row.elapsed).max().unwrap_or(0));
    let elapsed = format!("elapsed\n{}", unit.name());
    let events = events(profile);
    let heads = [
        ("region", Side::Left),
        ("operations", Side::Right),
        (elapsed.as_str(), Side::Right),
        ("idle\n%", Side::Right),
        ("path length\ninstr./op", Side::Right),
        ("user\ninstr./op", Side::Right),
        ("taken\nbranches/op", Side::Right),
        ("L1I misses\n/op, model", Side::Right),
        ("iTLB misses\n/op, model", Side::Right),
    ];
    let more = events.iter().map(|&event| (title(event), Side::Right));
    let mut table = Columns::with(heads.into_iter().chain(more));
    for row in regions {
        // What was not captured is not zero, it is not known.
        let counts = profile.manifest.sampled.is_none();
        let per = |known: bool, counter| match row.per_operation(counter).filter(|_| known) {
            Some(value) => Cell::from(figure(value)),
            None => "-".into(),
        };
        let cells: [Cell; 9] = [
            printable(&row.name).into(),
            grouped(row.operations).into(),
            unit.format(row.elapsed).into(),
            fixed(share(row.idle, row.elapsed), 2).into(),
            per(counts, row.kernel_instructions),
            per(counts, row.user_instructions),
            per(row.taken_branches > 0, row.taken_branches),
            per(capture.model, row.l1i_misses),
            per(capture.model, row.itlb_misses),
        ];
        let more = events.iter().map(|event| match row.events.get(event) {
            Some(&count) => per(true, count),
            None => "-".into(),
        });
        table.row_of(cells.into_iter().chain(more).collect());
    }
    table
}

/// The kinds of events that the model has counted behind the first level: none of most models.
fn events(profile: &Profile) -> BTreeSet<ModelEvent> {
    profile.tables.model_events.iter().map(|row| row.event).collect()
}

fn title(event: ModelEvent) -> &'static str {
    match event {
        ModelEvent::L2Miss => "L2 misses\n/op, model",
        ModelEvent::BtbL2Hit => "late targets\n/op, model",
        ModelEvent::BtbMiss => "BTB misses\n/op, model",
        ModelEvent::Misprediction => "mispredicted\n/op, model",
        ModelEvent::DirectionMisprediction => "directions\nwrong/op, model",
    }
}

/// All counts beside a profile.
const COUNTED: &[&str] = &["interrupt", "softirq", "switch", "syscall", "process", "time"];

fn legend(profile: &Profile) -> Vec<String> {
    if profile.manifest.sampled.is_some() {
        return Vec::new();
    }
    let mut lines =
        vec!["Path length, branches and misses are of kernel code, per operation between marks.".into()];
    if let (true, Some(model)) = (profile.manifest.capture.model, &profile.manifest.model) {
        lines.push(format!("model  figures of a front-end model, {}", model_files(model)));
    }
    lines
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    profile: &'a str,
    kernel: &'a kerntune_profile::KernelId,
    workload: &'a str,
    run: &'static str,
    machine: &'a str,
    exact: bool,
    unit: &'static str,
    model: Option<&'a str>,
    recorded: &'a str,
    #[serde(flatten)]
    times: JsonTimes,
    events: u64,
    lost_events: u64,
    health: &'a BTreeMap<String, u64>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<sampled::JsonSampled<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted: Vec<counted::JsonCounted<'a>>,
    regions: Vec<JsonRegion>,
}

#[derive(Serialize)]
struct JsonTimes {
    elapsed_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "unattributed")]
    unattributed_ns: u64,
}

impl From<Times> for JsonTimes {
    fn from(times: Times) -> Self {
        Self {
            elapsed_ns: times.elapsed,
            busy_ns: times.busy,
            idle_ns: times.idle,
            user_ns: times.user,
            unattributed_ns: times.unattributed,
        }
    }
}

#[derive(Serialize)]
struct JsonRegion {
    name: String,
    count: u64,
    operations: u64,
    elapsed_ns: u64,
    idle_ns: u64,
    kernel_instructions: u64,
    user_instructions: u64,
    path_length: Option<f64>,
    user_path_length: Option<f64>,
    taken_branches: Option<f64>,
    l1i_misses: Option<f64>,
    itlb_misses: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    model_events: BTreeMap<&'static str, Option<f64>>,
}

impl Report for Options {
    fn names_its_profile(&self) -> bool {
        true
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (manifest, times) = (&profile.manifest, View::new(profile, None)?.times);
        let mut out = String::new();
        let mut line = |word: &str, text: String| {
            out.push_str(&style.paint(Role::Head, &format!("{word:<9}")));
            out.push_str(&format!("  {}\n", printable(&text)));
        };
        let kernel = &manifest.kernel;
        line("profile", manifest.id.clone());
        line("kernel", format!("{}: Linux {} ({})", kernel.label, kernel.version, kernel.id));
        line("workload", format!("{}, {} run", manifest.workload, manifest.run));
        let repeats = match (manifest.exact, &manifest.sampled) {
            (true, _) => "exact: figures repeat to the instruction",
            (false, Some(_)) => "sampled",
            (false, None) => "timed",
        };
        line("machine", format!("{} ({repeats})", manifest.machine));
        line("recorded", manifest.recorded.clone());
        let percent = |ns| fixed(share(ns, times.elapsed), 2);
        line(
            "elapsed",
            match &manifest.sampled {
                Some(s) => format!(
                    "{} ({} CPUs in {})",
                    readable(times.elapsed),
                    grouped(s.cpus),
                    readable(s.wall_ns.get())
                ),
                None if manifest.exact => {
                    format!("{} of virtual time (an instruction is 1 ns)", readable(times.elapsed))
                }
                None => readable(times.elapsed),
            },
        );
        let measure = Measure::of(profile);
        line("busy", format!("{} ({} %)", measure.readable(times.busy), percent(times.busy)));
        line("idle", format!("{} ({} %)", readable(times.idle), percent(times.idle)));
        line("user", format!("{} ({} %)", measure.readable(times.user), percent(times.user)));
        let events = if manifest.sampled.is_some() { "samples" } else { "events" };
        line(events, format!("{}, {} lost", grouped(manifest.events), grouped(manifest.lost_events)));
        if let Some(sampled) = &manifest.sampled {
            line("source", format!("{}: {}", sampled.source, sampled.period));
            line("memory", format!("at most {} KiB", grouped(sampled.bound_bytes.div_ceil(1024))));
        }
        let notes = health::notes(profile);
        if notes.is_empty() {
            line("health", "good: every event was kept and attributed".into());
        }
        for note in notes {
            out.push_str(&style.paint(Role::Bad, "note     "));
            out.push_str(&format!("  {}\n", printable(&note)));
        }
        let regions = view::regions(profile);
        if !regions.is_empty() {
            out.push('\n');
            out.push_str(&region_table(profile, &regions).render(style));
            out.push('\n');
            for legend in legend(profile) {
                out.push_str(&style.paint(Role::Faint, &legend));
                out.push('\n');
            }
        }
        out.push_str(&counted::text(profile, &["time", "switch", "process"], crate::TOP, style));
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let manifest = &profile.manifest;
        let region = |row: RegionRow| {
            let model = |counter| row.per_operation(counter).filter(|_| manifest.capture.model);
            let counted = |counter| row.per_operation(counter).filter(|_| manifest.sampled.is_none());
            JsonRegion {
                path_length: counted(row.kernel_instructions),
                user_path_length: counted(row.user_instructions),
                taken_branches: row.per_operation(row.taken_branches).filter(|_| row.taken_branches > 0),
                l1i_misses: model(row.l1i_misses),
                itlb_misses: model(row.itlb_misses),
                model_events: row
                    .events
                    .iter()
                    .map(|(event, &n)| (event.word(), row.per_operation(n)))
                    .collect(),
                name: row.name,
                count: row.count,
                operations: row.operations,
                elapsed_ns: row.elapsed,
                idle_ns: row.idle,
                kernel_instructions: row.kernel_instructions,
                user_instructions: row.user_instructions,
            }
        };
        crate::to_json(&Json {
            schema: SCHEMA,
            profile: &manifest.id,
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            run: manifest.run.word(),
            machine: &manifest.machine,
            exact: manifest.exact,
            unit: Measure::of(profile).word(),
            model: manifest.model.as_deref(),
            recorded: &manifest.recorded,
            times: View::new(profile, None)?.times.into(),
            events: manifest.events,
            lost_events: manifest.lost_events,
            health: &manifest.health,
            notes: health::notes(profile),
            sampled: sampled::json(profile),
            counted: counted::json(profile, COUNTED),
            regions: view::regions(profile).into_iter().map(region).collect(),
        })
    }
}
