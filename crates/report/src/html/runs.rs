//! The recordings, how they were made, and how to make them again.

use super::escape::Escaped;
use super::{HtmlInput, StepLine};
use crate::unit::readable;
use crate::view::{share, View};
use crate::{health, Result};
use kerntune_compare::number::{fixed, grouped};
use kerntune_compare::KernelRef;
use kerntune_profile::Profile;
use std::fmt::Write;

/// Times and health of each recording.
pub(super) fn section(before: Option<&Profile>, after: Option<&Profile>) -> Result<String> {
    let profiles: Vec<(&str, &Profile)> =
        [("Before", before), ("After", after)].into_iter().filter_map(|(word, p)| Some((word, p?))).collect();
    if profiles.is_empty() {
        return Ok(String::new());
    }
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (_, profile) in &profiles {
        let (manifest, times) = (&profile.manifest, View::new(profile, None)?.times);
        let part = |ns| format!("{} ({} %)", readable(ns), fixed(share(ns, times.elapsed), 2));
        columns.push(vec![
            format!("{} ({})", manifest.kernel.label, manifest.kernel.version),
            manifest.id.clone(),
            manifest.recorded.clone(),
            readable(times.elapsed),
            part(times.busy),
            part(times.idle),
            part(times.user),
            grouped(manifest.events),
            grouped(manifest.lost_events),
        ]);
    }
    let words = [
        "Kernel",
        "Profile",
        "Recorded",
        "Elapsed, virtual time",
        "Accumulated run time",
        "Idle",
        "User code",
        "Events",
        "Lost events",
    ];
    let heads: Vec<&str> = if profiles.len() == 2 { vec!["Before", "After"] } else { vec!["Recording"] };
    let lines = words.iter().enumerate().map(|(at, word)| {
        (word.to_string(), columns.iter().map(|column| Some(column[at].clone())).collect::<Vec<_>>())
    });
    let mut out = pairs("Recordings", &heads, lines);
    for (word, profile) in profiles {
        for note in health::notes(profile) {
            let _ = writeln!(out, "<p class=\"note\"><b>{word}:</b> {}</p>", Escaped(note));
        }
    }
    Ok(out)
}

/// A table of names and one or two values each; a value that is none belongs to the one before.
fn pairs(label: &str, heads: &[&str], lines: impl Iterator<Item = (String, Vec<Option<String>>)>) -> String {
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table class=\"long\">\n<thead>\n\
         <tr><td class=\"first\"></td>"
    );
    for head in heads {
        let _ = write!(out, "<th class=\"text\" scope=\"col\">{head}</th>");
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for (word, values) in lines {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", Escaped(word));
        for (at, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let span = 1 + values[at + 1..].iter().take_while(|next| next.is_none()).count();
            let span = if span > 1 { format!(" colspan=\"{span}\"") } else { String::new() };
            let _ = write!(out, "<td class=\"text\"{span}>{}</td>", Escaped(value));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

/// What the figures are and are not.
pub(super) fn method(input: &HtmlInput) -> String {
    let machine = input
        .comparison
        .map(|comparison| comparison.machine.as_str())
        .or(input.before.or(input.after).map(|profile| profile.manifest.machine.as_str()));
    let Some(machine) = machine else { return String::new() };
    let mut out = String::new();
    if machine == "emulator" {
        out.push_str(
            "<p>The kernel ran unmodified on an emulated machine (QEMU TCG, <code>-icount shift=0</code>, one CPU) in \
             which one instruction takes one nanosecond. Times on this page are therefore instruction counts, not the \
             time of a real CPU: they say how much is executed, and they do not depend on how busy the host was.</p>\n",
        );
    } else {
        let _ = writeln!(out, "<p>Recorded on machine <code>{}</code>.</p>", Escaped(machine));
    }
    if input.comparison.is_some() {
        out.push_str(
            "<p>Path length is the number of kernel instructions per operation, between the marks that the workload sets; \
             taken branches are jumps, calls and returns that were taken, interrupts are none. Both are exact. L1I and iTLB misses come from a \
             model of a CPU's front end that is fed with the exact instruction stream: it has sizes and LRU \
             replacement, and leaves out prefetching, speculation, the micro-op cache and everything that data does. User \
             code runs through the same model but is not in the figures.</p>\n\
             <p>The base kernel ran twice. The difference between its runs (A/A) stands beside each change; a change not \
             larger than that carries a star.</p>\n",
        );
    }
    out
}

/// Both kernels and where everything is from.
pub(super) fn provenance(input: &HtmlInput) -> String {
    let mut lines: Vec<(String, Vec<Option<String>>)> = Vec::new();
    if let Some(comparison) = input.comparison {
        let of = |kernel: &KernelRef| {
            let recipe = kernel.recipe.clone().unwrap_or("none".into());
            [kernel.label.clone(), kernel.version.clone(), kernel.compiler.clone(), recipe, kernel.id.clone()]
        };
        let words = ["Kernel", "Linux", "Compiler", "Recipe", "Id"];
        for ((word, base), tuned) in words.into_iter().zip(of(&comparison.base)).zip(of(&comparison.tuned)) {
            lines.push((word.into(), vec![Some(base), Some(tuned)]));
        }
    }
    for line in input.provenance {
        lines.push((line.what.clone(), vec![Some(line.base.clone()), line.tuned.clone()]));
    }
    if lines.is_empty() {
        return String::new();
    }
    pairs("Provenance", &["Base", "Tuned"], lines.into_iter())
}

/// What was done and how long it took.
pub(super) fn steps(steps: &[StepLine]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Steps\">\n<table class=\"long\">\n<thead>\n\
         <tr><th scope=\"col\">Step</th><th class=\"text\" scope=\"col\">Result</th><th scope=\"col\">Time</th></tr>\n\
         </thead>\n<tbody>\n",
    );
    for step in steps {
        let took = step.took.map_or("done before".into(), |took| {
            let seconds = took.as_secs();
            let time = match seconds {
                0..=99 => format!("{:.1} s", took.as_secs_f64()),
                _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
            };
            // What an earlier call did is not in the time.
            if step.resumed {
                format!("resumed, {time} more")
            } else {
                time
            }
        });
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{took}</td></tr>",
            Escaped(&step.name),
            Escaped(&step.result),
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

/// The commands that do it again.
pub(super) fn commands(commands: &[String]) -> String {
    if commands.is_empty() {
        return String::new();
    }
    format!("<pre><code>{}</code></pre>\n", Escaped(commands.join("\n")))
}
