//! Head of the page: identity of the profile, and its totals.

use super::{amount, ProfilePage};
use crate::html::scroll;
use crate::view::{regions, RegionRow, ScopeTimes, ScopeView};
use crate::{health, Result};
use kerntune_profile::{Manifest, Profile};
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::share;
use maud::{html, Markup};

/// Renders the line that identifies the profile, and remarks.
pub(super) fn header(page: &ProfilePage) -> Markup {
    html! {
        (of(page.profile, page.against.map(|_| "first: ")))
        @if let Some(against) = page.against { (of(against, Some("second: "))) }
        @for note in health::notes(page.profile) { p.note { (note) } }
    }
}

fn of(profile: &Profile, which: Option<&str>) -> Markup {
    let manifest = &profile.manifest;
    let recorded = manifest.recorded.split('.').next().unwrap_or_default().replace('T', " ");
    html! {
        p.quiet {
            @if let Some(which) = which { (which) }
            "Linux " (manifest.kernel.version) " (" b { (manifest.kernel.label) } ") on machine " b { (manifest.machine) }
            ", recorded " (recorded) ", profile " code { (manifest.id) }
        }
    }
}

/// Renders the totals, whole and by region.
pub(super) fn figures(page: &ProfilePage) -> Result<Markup> {
    let manifest = &page.profile.manifest;
    let times = ScopeView::new(page.profile, page.region)?.times;
    let mut rows = regions(page.profile);
    rows.retain(|row| page.region.is_none_or(|region| row.name == region));
    Ok(html! {
        (tiles(&times, manifest))
        @if !rows.is_empty() && manifest.sampled.is_none() { (table(&rows, manifest)) }
    })
}

fn tiles(times: &ScopeTimes, manifest: &Manifest) -> Markup {
    let (events, lost) = (manifest.events, manifest.lost_events);
    let (whole, what, gloss) = match &manifest.sampled {
        None if manifest.exact => (
            "instructions, and idle time as such".to_owned(),
            "Events",
            "entries, exits, switches …".to_owned(),
        ),
        None => ("time in regions".to_owned(), "Events", "entries, exits, switches …".to_owned()),
        Some(sampled) => (
            format!("of {} CPUs together", grouped(sampled.cpus)),
            "Samples",
            format!("each stands for {}", amount(sampled.sample_ns.get(), false)),
        ),
    };
    let part = |ns| format!("{} % of elapsed", fixed(share(ns, times.elapsed), 1));
    let tiles = [
        ("Elapsed", amount(times.elapsed, manifest.exact), whole),
        ("Busy", amount(times.busy, manifest.exact), part(times.busy)),
        ("Idle", amount(times.idle, manifest.exact), part(times.idle)),
        ("User code", amount(times.user, manifest.exact), part(times.user)),
        (what, grouped(events), gloss),
        (
            if manifest.sampled.is_some() { "Lost samples" } else { "Lost events" },
            grouped(lost),
            match lost {
                0 if manifest.sampled.is_some() => "all were kept".into(),
                0 => "the trace is whole".into(),
                _ => "see the note".into(),
            },
        ),
    ];
    html! {
        ul.tiles aria-label="Times" {
            @for (what, value, gloss) in tiles {
                li { span.what { (what) } " " span.change { (value) } " " span.from { (gloss) } }
            }
        }
    }
}

/// Renders path length and other rates by region.
fn table(rows: &[RegionRow], manifest: &Manifest) -> Markup {
    let (branches, model) = (manifest.capture.edges, manifest.capture.model);
    let mut heads = vec!["operations", "elapsed", "idle", "path length", "user instr./op"];
    heads.extend(branches.then_some("taken branches/op"));
    heads.extend(model.then_some(["L1I misses/op", "iTLB misses/op"]).into_iter().flatten());
    let counters = |row: &RegionRow| {
        let mut counters = vec![row.kernel_instructions, row.user_instructions];
        counters.extend(branches.then_some(row.taken_branches));
        counters.extend(model.then_some([row.l1i_misses, row.itlb_misses]).into_iter().flatten());
        counters
    };
    let table = html! {
        table {
            thead { tr { th.first scope="col" { "Mark" } @for head in heads { th scope="col" { (head) } } } }
            tbody {
                @for row in rows {
                    tr {
                        th.first scope="row" {
                            (row.name) @if row.count > 1 { " " span.quiet { "× " (grouped(row.count)) } }
                        }
                        td { (grouped(row.operations)) }
                        td { (amount(row.elapsed, manifest.exact)) }
                        td { (amount(row.idle, manifest.exact)) }
                        @for counter in counters(row) {
                            td { (row.per_operation(counter).map_or("–".into(), figure)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        details.marks open {
            summary { "By mark (path length: kernel instructions per operation)" }
            (scroll("Figures by mark", &table))
        }
    }
}
