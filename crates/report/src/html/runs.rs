//! Recordings of the page, their method, and the commands that reproduce them.

use super::{amount, scroll, HtmlInput, StepLine};
use crate::view::ScopeView;
use crate::{health, Result};
use kerntune_compare::KernelRef;
use kerntune_profile::Profile;
use kerntune_table::number::{fixed, grouped};
use kerntune_table::share;
use maud::{html, Markup};

/// Renders times and health of each recording.
pub(super) fn section(before: Option<&Profile>, after: Option<&Profile>) -> Result<Option<Markup>> {
    let profiles: Vec<(&str, &Profile)> =
        [("Before", before), ("After", after)].into_iter().filter_map(|(word, p)| Some((word, p?))).collect();
    if profiles.is_empty() {
        return Ok(None);
    }
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (_, profile) in &profiles {
        let (manifest, times) = (&profile.manifest, ScopeView::new(profile, None)?.times);
        let figure = |ns| amount(ns, manifest.exact);
        let part = |ns| format!("{} ({} %)", figure(ns), fixed(share(ns, times.elapsed), 2));
        columns.push(vec![
            format!("{} ({})", manifest.kernel.label, manifest.kernel.version),
            manifest.id.clone(),
            manifest.recorded.clone(),
            figure(times.elapsed),
            part(times.busy),
            part(times.idle),
            part(times.user),
            grouped(manifest.events),
            grouped(manifest.lost_events),
        ]);
    }
    let sampled = profiles.iter().any(|(_, profile)| profile.manifest.sampled.is_some());
    let exact = profiles.iter().all(|(_, profile)| profile.manifest.exact);
    let words = [
        "Kernel",
        "Profile",
        "Recorded",
        if sampled { "Elapsed, all CPUs together" } else { "Elapsed, virtual time" },
        if exact { "Instructions" } else { "Accumulated run time" },
        "Idle",
        "User code",
        if sampled { "Samples" } else { "Events" },
        if sampled { "Lost samples" } else { "Lost events" },
    ];
    let heads: Vec<&str> = if profiles.len() == 2 { vec!["Before", "After"] } else { vec!["Recording"] };
    let lines = words.iter().enumerate().map(|(at, word)| {
        (word.to_string(), columns.iter().map(|column| Some(column[at].clone())).collect::<Vec<_>>())
    });
    Ok(Some(html! {
        (pairs("Recordings", &heads, lines))
        @for (word, profile) in profiles {
            @for note in health::notes(profile) { p.note { b { (word) ":" } " " (note) } }
        }
    }))
}

/// Renders a table of names with one or two values each; a missing second value means that both are
/// the same.
fn pairs(label: &str, heads: &[&str], lines: impl Iterator<Item = (String, Vec<Option<String>>)>) -> Markup {
    let table = html! {
        table.long {
            thead { tr { td.first {} @for head in heads { th.text scope="col" { (head) } } } }
            tbody {
                @for (word, values) in lines {
                    tr {
                        th scope="row" { (word) }
                        @for (at, value) in values.iter().enumerate() {
                            @if let Some(value) = value {
                                @let span = 1 + values[at + 1..].iter().take_while(|next| next.is_none()).count();
                                td.text colspan=[(span > 1).then_some(span)] { (value) }
                            }
                        }
                    }
                }
            }
        }
    };
    scroll(label, &table)
}

/// Explains the meaning and the limits of the figures.
pub(super) fn method(input: &HtmlInput) -> Option<Markup> {
    let of_profile = || Some(input.before.or(input.after)?.manifest.machine.as_str());
    let machine = input.comparison.map(|comparison| comparison.machine.as_str()).or_else(of_profile)?;
    Some(html! {
        @if machine == "emulator" {
            p {
                "The kernel ran unmodified on an emulated machine (QEMU TCG, " code { "-icount shift=0" }
                ", one CPU) in which one instruction takes one nanosecond. Figures on this page are \
                 therefore numbers of instructions, not the time of a real CPU: they say how much was \
                 executed, and do not depend on the load of the host."
            }
        } @else {
            p { "Recorded on machine " code { (machine) } "." }
            @for sampled in [input.before, input.after].into_iter().flatten().filter_map(|of| of.manifest.sampled.as_ref()) {
                p { "Samples: " (sampled.period) "." }
            }
        }
        @if input.comparison.is_some() {
            p {
                "Path length is the number of kernel instructions per operation, between the marks that the workload \
                 sets; taken branches are jumps, calls and returns that were taken, interrupts are none. Both are exact. \
                 L1I and iTLB misses come from a model of a CPU's front end that is fed with the exact instruction \
                 stream: it has sizes and LRU replacement, and leaves out prefetching, speculation, the micro-op cache \
                 and everything that data does. User code runs through the same model; figures that say user or whole are of it, or of \
                 kernel and user code together."
            }
            p {
                "The base kernel ran twice. The difference between its runs (A/A) stands beside each change; a change \
                 not larger than that carries a star."
            }
        }
    })
}

/// Renders the provenance of both kernels.
pub(super) fn provenance(input: &HtmlInput) -> Option<Markup> {
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
    (!lines.is_empty()).then(|| pairs("Provenance", &["Base", "Tuned"], lines.into_iter()))
}

/// Renders the steps with their durations.
pub(super) fn steps(steps: &[StepLine]) -> Option<Markup> {
    let table = html! {
        table.long {
            thead { tr { th scope="col" { "Step" } th.text scope="col" { "Result" } th scope="col" { "Time" } } }
            tbody {
                @for step in steps {
                    tr { th scope="row" { (step.name) } td.text { (step.result) } td { (took(step)) } }
                }
            }
        }
    };
    (!steps.is_empty()).then(|| scroll("Steps", &table))
}

fn took(step: &StepLine) -> String {
    let Some(took) = step.took else { return "done before".into() };
    let seconds = took.as_secs();
    let time = match seconds {
        0..=99 => format!("{:.1} s", took.as_secs_f64()),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    };
    // The time of an earlier run is not included.
    match step.resumed {
        true => format!("resumed, {time} more"),
        false => time,
    }
}

/// Renders the commands that reproduce the results.
pub(super) fn commands(commands: &[String]) -> Option<Markup> {
    (!commands.is_empty()).then(|| html! { pre { code { (commands.join("\n")) } } })
}
