//! Remarks and figures of sampled times.

use crate::unit::readable;
use kerntune_profile::{Manifest, Profile, SamplingSummary, Ticks};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document};

/// Head of a column of standard errors.
pub(crate) const ERROR: &str = "±";

/// Meaning of the JSON member `error`.
pub(crate) const ERROR_HELP: &str = "Only of a sampled profile: standard error of `self`.";

/// Returns a number of calls for JSON; `None` if calls of the function were not counted.
pub(crate) fn calls_of(profile: &Profile, calls: u64) -> Option<u64> {
    (calls > 0 || !is(profile)).then_some(calls)
}

/// Checks whether times were sampled, so that single calls have no times.
pub(crate) fn is(profile: &Profile) -> bool {
    profile.manifest.sampled.is_some()
}

/// Checks whether the profile has counts of calls.
pub(crate) fn has_calls(profile: &Profile) -> bool {
    profile.manifest.sampled.as_ref().is_none_or(|sampled| sampled.calls.is_some())
}

/// Returns the standard error of a time, in ns; `None` if the time was measured.
pub(crate) fn error_ns(profile: &Profile, ns: u64) -> Option<u64> {
    profile.manifest.sampled.as_ref().map(|sampled| sampled.error(Ticks(ns)).get())
}

/// Returns sentences on the sampling and on what is missing; empty for measured profiles.
pub(crate) fn notes(manifest: &Manifest) -> Vec<String> {
    let Some(sampled) = &manifest.sampled else { return Vec::new() };
    let mut notes = vec![how(sampled)];
    notes.push(match &sampled.calls {
        None => "Sampling counts no calls: times are of all calls together, and elapsed is time on the stack.".into(),
        Some(counter) => format!(
            "Calls were counted, not sampled ({counter}); a function without a number was not counted. Times are of all calls \
             together, and elapsed is time on the stack."
        ),
    });
    if let Some(bias) = &sampled.bias {
        notes.push(format!("Bias: {bias}."));
    }
    notes.extend(sampled.filter.as_ref().map(watched));
    notes.extend(lacks(manifest).map(|note| format!("{note}.")));
    notes
}

/// Returns [`notes`] in at most a short line each, without reasons.
pub(crate) fn brief_notes(manifest: &Manifest) -> Vec<String> {
    let Some(sampled) = &manifest.sampled else { return Vec::new() };
    let each = readable(sampled.sample_ns.get());
    let mut notes = vec![format!(
        "Sampled, not exact: {} samples of {each}; {ERROR} is the standard error.",
        grouped(sampled.samples)
    )];
    notes.push(match &sampled.calls {
        None => "Sampling counts no calls; elapsed is time on the stack.".into(),
        Some(counter) => {
            format!("Calls were counted by {}; a function without a number was not counted.", clause(counter))
        }
    });
    notes.extend(sampled.bias.as_ref().map(|bias| format!("Bias: {}.", clause(bias))));
    notes.extend(sampled.filter.as_ref().map(watched));
    notes.extend(lacks(manifest).map(|note| format!("{}.", clause(note))));
    notes.push("`-v` gives reasons.".into());
    notes
}

fn watched(filter: &String) -> String {
    format!("Watched: {filter}, and nothing else.")
}

/// Returns what the collector lacked on this machine.
fn lacks(manifest: &Manifest) -> impl Iterator<Item = &str> {
    manifest.sources.iter().filter_map(|source| source.strip_prefix("note: "))
}

/// Returns a remark without its reason: up to a colon, a semicolon or a parenthesis.
fn clause(note: &str) -> &str {
    let end = [": ", "; ", " ("].into_iter().filter_map(|end| note.find(end)).min();
    &note[..end.unwrap_or(note.len())]
}

fn how(sampled: &SamplingSummary) -> String {
    let cpus = if sampled.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", grouped(sampled.cpus)) };
    format!(
        "Sampled, not exact: {} samples by {} on {cpus} in {}; each stands for {}, and {ERROR} is the standard error \
         (√n samples).",
        grouped(sampled.samples),
        sampled.source,
        readable(sampled.wall_ns.get()),
        readable(sampled.sample_ns.get()),
    )
}

/// Meaning of the JSON member `sampled`.
pub(crate) const HELP: &str = "Only of a sampled profile: how it was sampled.";

/// Adds the description of the sampling as `sampled`; measured profiles have none.
pub(crate) fn add(document: &mut Document, profile: &Profile) {
    document.record("sampled", HELP, columns(), profile.manifest.sampled.clone());
}

/// Declares the members of the description.
pub(crate) fn columns<'a>() -> Columns<'a, SamplingSummary> {
    let mut fields = Columns::<SamplingSummary>::new();
    fields.add("source", "Sampler: `perf: cpu-clock`, `perf: cycles`.", |row| row.source.clone());
    fields.add("samples", "Samples that were kept.", |row| row.samples);
    fields.add(
        "sample_ns",
        "Time that each stands for; a time divided by it is its number of samples.",
        |row| row.sample_ns.get(),
    );
    fields.add("cpus", "CPUs that were watched.", |row| row.cpus);
    fields.add("wall_ns", "Time for which they were watched.", |row| row.wall_ns.get());
    fields.add("period", "Choice of the moments.", |row| row.period.clone());
    fields.add("bias", "Code that has more or less than its time.", |row| row.bias.clone());
    fields.add("filter", "What was watched, if not everything.", |row| row.filter.clone());
    fields.add(
        "calls",
        "Counter of calls, and of which functions: `kgmon: calls of all functions`.",
        |row| row.calls.clone(),
    );
    fields
        .add("bound_bytes", "Greatest memory of the collector's tables and buffers.", |row| row.bound_bytes);
    fields
}
