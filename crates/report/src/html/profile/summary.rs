//! What the profile is of and how it went, at the head of the page.

use super::ProfilePage;
use crate::html::escape::Escaped;
use crate::unit::readable;
use crate::view::{regions, share, RegionRow, Times, View};
use crate::{health, Result};
use kerntune_compare::number::{figure, fixed, grouped};
use std::fmt::Write;

pub(super) fn header(out: &mut String, page: &ProfilePage) -> Result<()> {
    let manifest = &page.profile.manifest;
    let _ = writeln!(
        out,
        "<p class=\"quiet\">Linux {} (<b>{}</b>) on machine <b>{}</b>, recorded {}. Profile <code>{}</code>.</p>",
        Escaped(&manifest.kernel.version),
        Escaped(&manifest.kernel.label),
        Escaped(&manifest.machine),
        Escaped(manifest.recorded.split('.').next().unwrap_or_default().replace('T', " ")),
        Escaped(&manifest.id),
    );
    for note in health::notes(page.profile) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", Escaped(note));
    }
    let times = View::new(page.profile, page.region)?.times;
    tiles(out, &times, manifest.events, manifest.lost_events);
    let rows: Vec<RegionRow> = regions(page.profile)
        .into_iter()
        .filter(|row| page.region.is_none_or(|region| row.name == region))
        .collect();
    table(out, &rows, manifest.capture.edges, manifest.capture.model);
    Ok(())
}

fn tiles(out: &mut String, times: &Times, events: u64, lost: u64) {
    let part = |ns| format!("{} % of elapsed", fixed(share(ns, times.elapsed), 1));
    let tiles = [
        ("Elapsed", readable(times.elapsed), "virtual time in regions".into()),
        ("Busy", readable(times.busy), part(times.busy)),
        ("Idle", readable(times.idle), part(times.idle)),
        ("User code", readable(times.user), part(times.user)),
        ("Events", grouped(events), "entries, exits, switches …".into()),
        (
            "Lost events",
            grouped(lost),
            if lost == 0 { "the trace is whole".into() } else { "see the note".into() },
        ),
    ];
    out.push_str("<ul class=\"tiles\" aria-label=\"Times\">\n");
    for (what, value, gloss) in tiles {
        let _ = writeln!(
            out,
            "<li><span class=\"what\">{what}</span> <span class=\"change\">{value}</span> \
             <span class=\"from\">{gloss}</span></li>"
        );
    }
    out.push_str("</ul>\n");
}

/// Path length and the like, by mark.
fn table(out: &mut String, rows: &[RegionRow], branches: bool, model: bool) {
    if rows.is_empty() {
        return;
    }
    let mut heads = vec!["operations", "elapsed", "idle", "path length", "user instr./op"];
    heads.extend(branches.then_some("taken branches/op"));
    heads.extend(model.then_some(["L1I misses/op", "iTLB misses/op"]).into_iter().flatten());
    out.push_str(
        "<details class=\"marks\" open>\n<summary>By mark (path length: kernel instructions per operation)</summary>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures by mark\">\n<table>\n<thead>\n\
         <tr><th class=\"first\" scope=\"col\">Mark</th>",
    );
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in rows {
        let _ = write!(out, "<tr><th class=\"first\" scope=\"row\">{}", Escaped(&row.name));
        if row.count > 1 {
            let _ = write!(out, " <span class=\"quiet\">× {}</span>", grouped(row.count));
        }
        let _ = write!(
            out,
            "</th><td>{}</td><td>{}</td><td>{}</td>",
            grouped(row.operations),
            readable(row.elapsed),
            readable(row.idle)
        );
        let mut counters = vec![row.kernel_instructions, row.user_instructions];
        counters.extend(branches.then_some(row.taken_branches));
        counters.extend(model.then_some([row.l1i_misses, row.itlb_misses]).into_iter().flatten());
        for counter in counters {
            let _ = write!(out, "<td>{}</td>", row.per_operation(counter).map_or("–".into(), figure));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n</details>\n");
}
