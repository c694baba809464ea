//! Remarks on a profile's anomalies and limits, in sentences.

use crate::sampled;
use kerntune_profile::{Anomaly, AnomalyWeight, Profile};
use kerntune_table::number::grouped;
use kerntune_table::{printable, Document, TextDetail, TextRole};

/// Returns one sentence for each remark that a reader needs; empty if there are none.
pub(crate) fn notes(profile: &Profile) -> Vec<String> {
    with_sampling(profile, sampled::notes(&profile.manifest))
}

/// Returns the remarks of texts without and with details; those on the sampling differ.
pub(crate) fn by_detail(profile: &Profile) -> [(TextDetail, Vec<String>); 2] {
    let brief = with_sampling(profile, sampled::brief_notes(&profile.manifest));
    [(TextDetail::Brief, brief), (TextDetail::Verbose, notes(profile))]
}

fn with_sampling(profile: &Profile, mut notes: Vec<String>) -> Vec<String> {
    let manifest = &profile.manifest;
    if manifest.lost_events > 0 && manifest.sampled.is_some() {
        notes.push(format!(
            "{} samples were lost: their time is in no function, because it is not known which ran.",
            grouped(manifest.lost_events)
        ));
    } else if manifest.lost_events > 0 {
        notes.push(Anomaly::LostEvents.sentence(&grouped(manifest.lost_events), &grouped(manifest.events)));
    }
    if !manifest.capture.functions {
        notes.push("Functions were not captured: there is no table of functions.".into());
    }
    for (name, &count) in manifest.health.iter().filter(|(_, count)| **count > 0) {
        let counted = [grouped(count), grouped(manifest.events)];
        notes.push(match Anomaly::from_name(name) {
            Some(Anomaly::ClockErrors) => clock(count, manifest.health.get(Anomaly::ClockErrorNs.name())),
            Some(Anomaly::UnnamedNs) => unnamed(profile, count),
            Some(anomaly) if anomaly.weight() == AnomalyWeight::Harmless => continue,
            Some(anomaly) => anomaly.sentence(&counted[0], &counted[1]),
            // Another version may have counters that this one does not know.
            None => format!("{}: {}.", name.replace('_', " "), counted[0]),
        });
    }
    notes
}

/// Adds the remarks as lines after an empty one.
pub(crate) fn add(document: &mut Document, profile: &Profile) {
    for (detail, notes) in by_detail(profile) {
        for (at, note) in notes.iter().enumerate() {
            document.detailed(detail, TextRole::Plain, if at == 0 { "\n" } else { "" });
            line(document, detail, note);
        }
    }
}

/// Adds the remarks on one of two profiles, `A` or `B`.
pub(crate) fn add_side(document: &mut Document, side: &str, profile: &Profile) {
    for (detail, notes) in by_detail(profile) {
        notes.iter().for_each(|note| line(document, detail, &format!("{side}: {note}")));
    }
}

fn line(document: &mut Document, detail: TextDetail, note: &str) {
    document.detailed(detail, TextRole::Bad, "note");
    document.detailed(detail, TextRole::Plain, format!("  {}\n", printable(note)));
}

/// Describes in one sentence how far the guest's clock and the recorder's count differed.
fn clock(times: u64, ns: Option<&u64>) -> String {
    let times = match times {
        1 => "once".to_owned(),
        more => format!("{} times", grouped(more)),
    };
    let ns = ns.map(|ns| format!(", by {} ns in all", grouped(*ns))).unwrap_or_default();
    format!(
        "The guest's clock and the count of instructions differed {times}{ns}: run/recording.json says where, \
         docs/measuring.md why."
    )
}

/// Describes in one sentence the share of code without a name, such as a module's without symbols.
fn unnamed(profile: &Profile, ns: u64) -> String {
    let busy = profile.tables.regions.iter().map(|region| region.busy_ticks.get());
    let busy = busy.fold(0, u64::saturating_add).max(ns).max(1);
    format!(
        "{:.2} % of the time ({} ns) ran in code that no symbol names: it is in the row `[unknown code]`.",
        100.0 * ns as f64 / busy as f64,
        grouped(ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_difference_is_one_line() {
        let line = |ns| {
            format!(
                "The guest's clock and the count of instructions differed {ns}: run/recording.json says \
                 where, docs/measuring.md why."
            )
        };
        assert_eq!(clock(1, Some(&3)), line("once, by 3 ns in all"));
        assert_eq!(clock(5, Some(&1_234)), line("5 times, by 1,234 ns in all"));
        assert_eq!(clock(2, None), line("2 times"));
    }
}
