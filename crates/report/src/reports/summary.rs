//! Summary of a profile: identity, totals, quality, and figures of each region.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use crate::comparison::model_files;
use kerntune_table::{printable, TextRole};
use crate::unit::{readable, DisplayUnit, TickUnit};
use crate::view::{self, RegionRow, ScopeTimes, ScopeView};
use kerntune_table::share;
use crate::{counted, health, sampled, Result, Style};
use clap::Args;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_profile::{ModelEvent, Profile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-summary/2";

/// Registry entry of `kerntune report PROFILE summary`.
pub const ENTRY: Entry = entry::<SummaryOptions>("summary", 0);

/// Identity, totals and quality of the profile, and figures for each region
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct SummaryOptions;

fn region_table(profile: &Profile, regions: &[RegionRow]) -> TableBuilder {
    let capture = &profile.manifest.capture;
    let unit = DisplayUnit::for_largest(regions.iter().map(|row| row.elapsed).max().unwrap_or(0));
    let elapsed = format!("elapsed\n{}", unit.name());
    let events = events(profile);
    // Of a sampled profile, no count is known.
    let known = if profile.manifest.sampled.is_some() { 4 } else { usize::MAX };
    let heads = [
        ("region", Alignment::Left),
        ("operations", Alignment::Right),
        (elapsed.as_str(), Alignment::Right),
        ("idle\n%", Alignment::Right),
        ("path length\ninstr./op", Alignment::Right),
        ("user\ninstr./op", Alignment::Right),
        ("taken\nbranches/op", Alignment::Right),
        ("L1I misses\n/op, model", Alignment::Right),
        ("iTLB misses\n/op, model", Alignment::Right),
    ];
    let more = events.iter().map(|&event| (title(event), Alignment::Right));
    let mut table = TableBuilder::with(heads.into_iter().chain(more).take(known));
    for row in regions {
        // Figures that were not captured are unknown, not 0.
        let counts = profile.manifest.sampled.is_none();
        let per = |known: bool, counter| match row.per_operation(counter).filter(|_| known) {
            Some(value) => TextCell::from(figure(value)),
            None => "-".into(),
        };
        let cells: [TextCell; 9] = [
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
        table.row_of(cells.into_iter().chain(more).take(known).collect());
    }
    table
}

/// Returns the model events beyond the first cache level that were counted; most models have none.
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

/// Kinds of running kernel counts that are shown.
const COUNT_KINDS: &[&str] = &["interrupt", "softirq", "switch", "syscall", "process", "time"];

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

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct SummaryReport<'a> {
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
    busy_ticks: u64,
    idle_ns: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "unattributed")]
    unattributed_ticks: u64,
}

impl From<ScopeTimes> for JsonTimes {
    fn from(times: ScopeTimes) -> Self {
        Self {
            elapsed_ns: times.elapsed,
            busy_ticks: times.busy,
            idle_ns: times.idle,
            user_ticks: times.user,
            unattributed_ticks: times.unattributed,
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

impl Report for SummaryOptions {
    fn names_its_profile(&self) -> bool {
        true
    }

    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let (manifest, times) = (&profile.manifest, ScopeView::new(profile, None)?.times);
        let mut out = String::new();
        let mut line = |word: &str, text: String| {
            out.push_str(&style.paint(TextRole::Head, &format!("{word:<9}")));
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
                // Of what was watched alone, the time is that of the CPUs that ran it.
                Some(s) => format!(
                    "{}{} ({} CPUs in {})",
                    readable(times.elapsed),
                    if s.filter.is_some() { " of CPU time" } else { "" },
                    grouped(s.cpus),
                    readable(s.wall_ns.get())
                ),
                None if manifest.exact => {
                    format!("{} of virtual time (an instruction is 1 ns)", readable(times.elapsed))
                }
                None => readable(times.elapsed),
            },
        );
        let measure = TickUnit::of(profile);
        line("busy", format!("{} ({} %)", measure.readable(times.busy), percent(times.busy)));
        line("idle", format!("{} ({} %)", readable(times.idle), percent(times.idle)));
        line("user", format!("{} ({} %)", measure.readable(times.user), percent(times.user)));
        let events = if manifest.sampled.is_some() { "samples" } else { "events" };
        line(events, format!("{}, {} lost", grouped(manifest.events), grouped(manifest.lost_events)));
        if let Some(sampled) = &manifest.sampled {
            let period = if style.verbose { format!(": {}", sampled.period) } else { String::new() };
            line("source", format!("{}{period}", sampled.source));
            line("memory", format!("at most {} KiB", grouped(sampled.bound_bytes.div_ceil(1024))));
        }
        let notes = health::text_notes(profile, style);
        if notes.is_empty() {
            line("health", "good: every event was kept and attributed".into());
        }
        for note in notes {
            out.push_str(&style.paint(TextRole::Bad, "note     "));
            out.push_str(&format!("  {}\n", printable(&note)));
        }
        let regions = view::regions(profile);
        if !regions.is_empty() {
            out.push('\n');
            out.push_str(&region_table(profile, &regions).render(style));
            out.push('\n');
            for legend in legend(profile) {
                out.push_str(&style.paint(TextRole::Faint, &legend));
                out.push('\n');
            }
        }
        out.push_str(&counted::text(profile, &["time", "switch", "process"], crate::DEFAULT_ROWS, style));
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
                    .map(|(event, &n)| (event.as_str(), row.per_operation(n)))
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
        crate::to_json(&SummaryReport {
            schema: SCHEMA,
            profile: &manifest.id,
            kernel: &manifest.kernel,
            workload: &manifest.workload,
            run: manifest.run.as_str(),
            machine: &manifest.machine,
            exact: manifest.exact,
            unit: TickUnit::of(profile).name(),
            model: manifest.model.as_deref(),
            recorded: &manifest.recorded,
            times: ScopeView::new(profile, None)?.times.into(),
            events: manifest.events,
            lost_events: manifest.lost_events,
            health: &manifest.health,
            notes: health::notes(profile),
            sampled: sampled::json(profile),
            counted: counted::json(profile, COUNT_KINDS),
            regions: view::regions(profile).into_iter().map(region).collect(),
        })
    }
}
