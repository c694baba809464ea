//! Summary of a profile: identity, totals, quality, and figures of each region.

use super::{entry, Entry, Report};
use crate::comparison::model_files;
use crate::unit::{readable, DisplayUnit, TickUnit};
use crate::view::{self, RegionRow, ScopeTimes, ScopeView};
use crate::{counted, health, sampled, Result};
use clap::Args;
use kerntune_profile::{KernelId, ModelEvent, Profile};
use kerntune_table::number::{fixed, grouped};
use kerntune_table::{printable, share, Columns, Document, Table, TextDetail, TextRole};
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-summary/2";

/// Registry entry of `kerntune report PROFILE summary`.
pub const ENTRY: Entry = entry::<SummaryOptions>("summary", 0);

/// Description of the JSON form.
const ABOUT: &str = "Identity, totals and quality of a profile, and figures of each region.";

/// Kinds of running kernel counts, in JSON and in texts.
const COUNT_KINDS: &[&str] =
    &["interrupt", "softirq", "switch", "migration", "fault", "syscall", "process", "time"];
const TEXT_COUNT_KINDS: &[&str] = &["time", "switch", "process"];

/// Identity, totals and quality of the profile, and figures for each region
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct SummaryOptions;

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

fn regions<'a>(profile: &'a Profile, rows: Vec<RegionRow>) -> Table<'a, RegionRow> {
    let unit = DisplayUnit::for_largest(rows.iter().map(|row| row.elapsed).max().unwrap_or(0));
    let mut columns = Columns::<RegionRow>::new();
    columns.add("name", "Name of the operation.", |row| row.name.clone()).head("region");
    columns.add("count", "Regions of that name, which are added up.", |row| row.count);
    columns.add("operations", "Operations done.", |row| row.operations).head("operations");
    columns.add("elapsed_ns", "Time, regions within included.", |row| row.elapsed).head("elapsed").unit(unit);
    columns.add("idle_ns", "Idle time, regions within included.", |row| row.idle);
    columns.text_only("idle\n%", |row| share(row.idle, row.elapsed)).decimals(2);
    columns.add("kernel_instructions", "Instructions of the kernel.", |row| row.kernel_instructions);
    columns.add("user_instructions", "Instructions of user code.", |row| row.user_instructions);
    // Figures that were not captured are unknown, not 0.
    let (is_counted, has_model) = (profile.manifest.sampled.is_none(), profile.manifest.capture.model);
    let mut per = |key, help, head: &str, is_known: bool, count: fn(&RegionRow) -> Option<u64>| {
        let figure = move |row: &RegionRow| row.per_operation(count(row).filter(|_| is_known)?);
        // Of a sampled profile, no count is known.
        columns.add(key, help, figure).head(head).null("-").only_if(is_counted);
    };
    let help = "Kernel instructions per operation; null without operations, as all that follow.";
    per("path_length", help, "path length\ninstr./op", is_counted, |row| Some(row.kernel_instructions));
    let help = "User instructions per operation.";
    per("user_path_length", help, "user\ninstr./op", is_counted, |row| Some(row.user_instructions));
    let help = "Taken kernel branches per operation; null if not captured.";
    per("taken_branches", help, "taken\nbranches/op", true, |row| {
        Some(row.taken_branches).filter(|count| *count > 0)
    });
    let help = "L1I misses of kernel code per operation in the model; null without one.";
    per("l1i_misses", help, "L1I misses\n/op, model", has_model, |row| Some(row.l1i_misses));
    let help = "iTLB misses of kernel code per operation in the model; null without one.";
    per("itlb_misses", help, "iTLB misses\n/op, model", has_model, |row| Some(row.itlb_misses));
    for event in events(profile) {
        columns
            .text_only(title(event), move |row| {
                row.events.get(&event).and_then(|count| row.per_operation(*count))
            })
            .null("-")
            .only_if(is_counted);
    }
    let help = "Other events of kernel code per operation, of models with a second-level cache or a branch \
                predictor: `l2_miss`, `btb_l2_hit`, `btb_miss`, `misprediction`, `direction_misprediction`.";
    columns
        .add("model_events", help, |row| {
            let event = |(event, count): (&ModelEvent, &u64)| (event.as_str(), row.per_operation(*count));
            let events: BTreeMap<_, _> = row.events.iter().map(event).collect();
            (!events.is_empty()).then_some(events)
        })
        .optional();
    Table::new("regions", rows, columns)
        .help("By name, in the order in which they first began.")
        .default_rows(usize::MAX)
        .hidden_if_empty()
}

fn lines(document: &mut Document, profile: &Profile, times: &ScopeTimes) {
    let manifest = &profile.manifest;
    let mut line = |detail: TextDetail, role: TextRole, word: &str, text: &str| {
        document.detailed(detail, role, format!("{word:<9}"));
        document.detailed(detail, TextRole::Plain, format!("  {}\n", printable(text)));
    };
    let mut head = |word: &str, text: String| line(TextDetail::Always, TextRole::Head, word, &text);
    let kernel = &manifest.kernel;
    head("profile", manifest.id.clone());
    head("kernel", format!("{}: Linux {} ({})", kernel.label, kernel.version, kernel.id));
    head("workload", format!("{}, {} run", manifest.workload, manifest.run));
    if let Some(status) = manifest.exit_status {
        head("status", format!("the command ended with status {status}"));
    }
    let elapsed = readable(times.elapsed);
    let (repeats, elapsed) = match &manifest.sampled {
        Some(sampled) => {
            let wall = readable(sampled.wall_ns.get());
            // Of what was watched alone, the time is that of the CPUs that ran it.
            let of = if sampled.filter.is_some() { " of CPU time" } else { "" };
            ("sampled", format!("{elapsed}{of} ({} CPUs in {wall})", grouped(sampled.cpus)))
        }
        None if manifest.exact => (
            "exact: figures repeat to the instruction",
            format!("{elapsed} of virtual time (an instruction is 1 ns)"),
        ),
        None => ("timed", elapsed),
    };
    head("machine", format!("{} ({repeats})", manifest.machine));
    head("recorded", manifest.recorded.clone());
    head("elapsed", elapsed);
    let percent = |ticks| fixed(share(ticks, times.elapsed), 2);
    let code = |ticks| format!("{} ({} %)", TickUnit::of(profile).readable(ticks), percent(ticks));
    head("busy", code(times.busy));
    head("idle", format!("{} ({} %)", readable(times.idle), percent(times.idle)));
    head("user", code(times.user));
    let events = if manifest.sampled.is_some() { "samples" } else { "events" };
    head(events, format!("{}, {} lost", grouped(manifest.events), grouped(manifest.lost_events)));
    if let Some(sampled) = &manifest.sampled {
        line(TextDetail::Brief, TextRole::Head, "source", &sampled.source);
        line(
            TextDetail::Verbose,
            TextRole::Head,
            "source",
            &format!("{}: {}", sampled.source, sampled.period),
        );
        let mut head = |word: &str, text: String| line(TextDetail::Always, TextRole::Head, word, &text);
        head("memory", format!("at most {} KiB", grouped(sampled.bound_bytes.div_ceil(1024))));
    }
    for (detail, notes) in health::by_detail(profile) {
        if notes.is_empty() {
            line(detail, TextRole::Head, "health", "good: every event was kept and attributed");
        }
        notes.iter().for_each(|note| line(detail, TextRole::Bad, "note", note));
    }
}

impl Report for SummaryOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let (manifest, times) = (&profile.manifest, ScopeView::new(profile, None)?.times);
        let mut document = Document::new(SCHEMA, ABOUT);
        document.names_its_subject = true;
        let mut kernel = Columns::<KernelId>::new();
        kernel.add("id", "Id of the kernel.", |kernel| kernel.id.clone());
        kernel.add("label", "Its name.", |kernel| kernel.label.clone());
        kernel.add("version", "Its release.", |kernel| kernel.version.clone());
        document.field("profile", "Id of the profile.", &manifest.id);
        document.object("kernel", "Kernel that ran.", kernel, &manifest.kernel);
        document.field("workload", "Name of the workload.", &manifest.workload);
        document.field("run", "`training` or `measured`.", manifest.run.as_str());
        let help = "Status of the command that ran, as a shell has it; null if it was 0, or of a workload.";
        document.field("exit_status", help, manifest.exit_status.map(u32::from));
        document.field("machine", "Name of the machine.", &manifest.machine);
        document.field("exact", "Figures are counted by instruction, not timed.", manifest.exact);
        document.field(
            "unit",
            "Unit of figures of code: `instructions` on the exact machine, else `ns`.",
            TickUnit::of(profile).name(),
        );
        document.field("model", "Front-end model that counted misses.", manifest.model.as_deref());
        document.field("recorded", "End of the run, RFC 3339, UTC.", &manifest.recorded);
        times.add(&mut document);
        document.field("events", "Events of the profile.", manifest.events);
        document.field(
            "lost_events",
            "Events that were seen and could not be kept; 0 in a good profile.",
            manifest.lost_events,
        );
        document.field(
            "health",
            "Counts of anomalies, and of what was checked, by name: see [profile.md](profile.md).",
            manifest.health.clone(),
        );
        document.field(
            "notes",
            "What a reader has to know of these, in sentences for people, whose texts are not part of the \
             contract; empty if all is well.",
            health::notes(profile),
        );
        sampled::add(&mut document, profile);
        lines(&mut document, profile, &times);
        let rows = view::regions(profile);
        let has_regions = !rows.is_empty();
        document.table(regions(profile, rows));
        if has_regions {
            document.text("\n");
            legend(profile).iter().for_each(|line| document.note(line));
        }
        counted::add(&mut document, profile, COUNT_KINDS, TEXT_COUNT_KINDS, None);
        Ok(document)
    }
}
