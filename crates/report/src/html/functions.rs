//! The functions: one profile's, or two side by side.

use super::escape::{minus, Escaped};
use super::join::{join, Joined};
use super::TOP_FUNCTIONS;
use crate::unit::TimeUnit;
use crate::view::{share, FunctionRow, View};
use crate::Result;
use kerntune_compare::number::{change, fixed, grouped};
use kerntune_profile::{FunctionTotals, Profile};
use std::fmt::Write;

pub(super) fn section(before: Option<&Profile>, after: Option<&Profile>) -> Result<String> {
    let has_functions = |profile: &&Profile| !profile.tables.functions.is_empty();
    match (before.filter(has_functions), after.filter(has_functions)) {
        (Some(before), Some(after)) => both(before, after),
        (Some(profile), None) | (None, Some(profile)) => single(profile),
        (None, None) => Ok(String::new()),
    }
}

fn open(out: &mut String, label: &str) {
    let _ = write!(
        out,
        "<div class=\"filter\" data-filter=\"function-table\"></div>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n\
         <table class=\"sortable\" id=\"function-table\">\n<thead>\n"
    );
}

const CLOSE: &str = "</tbody>\n</table>\n</div>\n";

fn both(before: &Profile, after: &Profile) -> Result<String> {
    let joined = join(before, after)?;
    let shown = &joined[..joined.len().min(TOP_FUNCTIONS)];
    let busy = [before, after].map(|profile| profile.manifest.busy_ns.get());
    let net = |totals: &Option<FunctionTotals>| totals.as_ref().map(|totals| totals.net_ns.get());
    let largest =
        shown.iter().flat_map(|row| [net(&row.before), net(&row.after)]).flatten().max().unwrap_or(0);
    let unit = TimeUnit::for_largest(largest);
    let mut out = format!(
        "<p>The {} functions with the most net time in either kernel, of {}. What the compiler split off or cloned \
         (<code>.isra</code>, <code>.constprop</code>, <code>.part</code>, <code>.cold</code>) counts with its \
         function, and so do functions of the same name; a dash means that it did not run as a function of its own, for \
         example because it was inlined into its callers.</p>\n",
        shown.len(),
        grouped(joined.len() as u64),
    );
    open(&mut out, "Functions before and after");
    let _ = write!(
        out,
        "<tr class=\"groups\"><td class=\"first\"></td><th class=\"edge\" colspan=\"3\" scope=\"colgroup\">Net time, \
         {}</th><th class=\"edge\" colspan=\"2\" scope=\"colgroup\">Calls</th><th class=\"edge\" colspan=\"2\" \
         scope=\"colgroup\">% net</th></tr>\n<tr><th class=\"first\" scope=\"col\" data-at=\"0\">Function</th>\
         <th class=\"edge\" scope=\"col\" data-at=\"1\">before</th><th scope=\"col\" data-at=\"2\">after</th>\
         <th scope=\"col\" data-at=\"3\">change</th><th class=\"edge\" scope=\"col\" data-at=\"4\">before</th>\
         <th scope=\"col\" data-at=\"5\">after</th><th class=\"edge\" scope=\"col\" data-at=\"6\">before</th>\
         <th scope=\"col\" data-at=\"7\">after</th></tr>\n</thead>\n<tbody>\n",
        unit.name(),
    );
    let widest = shown
        .iter()
        .map(|row| net(&row.before).unwrap_or(0).abs_diff(net(&row.after).unwrap_or(0)))
        .max()
        .unwrap_or(0);
    for row in shown {
        joined_line(&mut out, row, unit, busy, widest);
    }
    out.push_str(CLOSE);
    out.push_str(
        "<p class=\"legend\">Net time: in the function itself, without its callees. The bar is the change of net time in \
         absolute terms, the figure beside it in per cent. % net: share of the time in which the CPU was not \
         idle.</p>\n",
    );
    Ok(out)
}

fn joined_line(out: &mut String, row: &Joined, unit: TimeUnit, busy: [u64; 2], widest: u64) {
    let _ = write!(out, "<tr><th class=\"first\" scope=\"row\"><code>{}</code></th>", Escaped(&row.name));
    let sides = [&row.before, &row.after];
    let nets = sides.map(|side| side.as_ref().map(|totals| totals.net_ns.get()));
    let mut class = " class=\"edge\"";
    for net in nets {
        cell(out, class, net, |net| unit.format(net));
        class = "";
    }
    let [first, second] = nets.map(|net| net.unwrap_or(0));
    // A function that is only in one kernel went into others or came out of them: its time alone
    // says nothing of better or worse.
    let kind = match second.cmp(&first) {
        _ if nets.contains(&None) => "same",
        std::cmp::Ordering::Less => "lower",
        std::cmp::Ordering::Equal => "same",
        std::cmp::Ordering::Greater => "higher",
    };
    let percent = (first > 0).then(|| 100.0 * (second as f64 - first as f64) / first as f64);
    let text = match (percent, nets[1]) {
        (_, None) => "gone".into(),
        (None, _) => "new".into(),
        (Some(percent), _) => minus(&format!("{} %", change(percent, 1))),
    };
    let width = 90.0 * share(first.abs_diff(second), widest) / 100.0;
    let _ = write!(
        out,
        "<td class=\"delta {kind}\" data-v=\"{}\"><i class=\"{kind}\" style=\"width:{width:.0}%\"></i><b>{text}</b></td>",
        i128::from(second) - i128::from(first),
    );
    class = " class=\"edge\"";
    for side in sides {
        // The cold part alone has no calls of its own.
        cell(out, class, side.as_ref().map(|totals| totals.calls), grouped);
        class = "";
    }
    class = " class=\"edge\"";
    for (net, busy) in nets.into_iter().zip(busy) {
        match net {
            Some(net) => {
                let percent = share(net, busy);
                let _ = write!(out, "<td{class} data-v=\"{percent}\">{}</td>", fixed(percent, 2));
            }
            None => cell(out, class, None, grouped),
        }
        class = "";
    }
    out.push_str("</tr>\n");
}

fn cell(out: &mut String, class: &str, value: Option<u64>, format: impl Fn(u64) -> String) {
    let _ = match value {
        Some(value) => write!(out, "<td{class} data-v=\"{value}\">{}</td>", format(value)),
        None => write!(out, "<td{class} data-v=\"\">–</td>"),
    };
}

fn single(profile: &Profile) -> Result<String> {
    let View { mut functions, times } = View::new(profile, None)?;
    let all = functions.len();
    functions.sort_by(|a, b| b.totals.net_ns.cmp(&a.totals.net_ns).then_with(|| a.name.cmp(&b.name)));
    functions.truncate(TOP_FUNCTIONS);
    let largest = |of: fn(&FunctionTotals) -> u64| {
        TimeUnit::for_largest(functions.iter().map(|row| of(&row.totals)).max().unwrap_or(0))
    };
    let units = [
        largest(|totals| totals.elapsed_ns.get()),
        largest(|totals| totals.net_ns.get()),
        largest(|totals| totals.max_ns.get()),
    ];
    let mut out = format!(
        "<p>The {} functions with the most net time, of {}.</p>\n",
        functions.len(),
        grouped(all as u64)
    );
    open(&mut out, "Functions");
    let names = units.map(TimeUnit::name);
    out.push_str("<tr><th class=\"first\" scope=\"col\" data-at=\"0\">Function</th>");
    for (at, head) in [
        format!("elapsed, {}", names[0]),
        format!("net, {}", names[1]),
        "calls".into(),
        "ended".into(),
        format!("open net, {}", names[1]),
        format!("max, {}", names[2]),
        format!("avg, {}", names[2]),
        format!("min, {}", names[2]),
        "% real".into(),
        "% net".into(),
    ]
    .iter()
    .enumerate()
    {
        let _ = write!(out, "<th scope=\"col\" data-at=\"{}\">{head}</th>", at + 1);
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for FunctionRow { name, totals, .. } in &functions {
        let _ = write!(out, "<tr><th class=\"first\" scope=\"row\"><code>{}</code></th>", Escaped(name));
        let per_call = |ns: u64| (totals.ended > 0).then_some(ns);
        cell(&mut out, "", Some(totals.elapsed_ns.get()), |ns| units[0].format(ns));
        cell(&mut out, "", Some(totals.net_ns.get()), |ns| units[1].format(ns));
        cell(&mut out, "", Some(totals.calls), grouped);
        cell(&mut out, "", Some(totals.ended), grouped);
        let open = totals.open_ns();
        let sign = if open < 0 { "-" } else { "" };
        let _ = write!(out, "<td data-v=\"{open}\">{sign}{}</td>", units[1].format(open.unsigned_abs()));
        for ns in [totals.max_ns, totals.avg_ns(), totals.min_ns] {
            cell(&mut out, "", per_call(ns.get()), |ns| units[2].format(ns));
        }
        for whole in [times.elapsed, times.busy] {
            let percent = share(totals.net_ns.get(), whole);
            let _ = write!(out, "<td data-v=\"{percent}\">{}</td>", fixed(percent, 2));
        }
        out.push_str("</tr>\n");
    }
    out.push_str(CLOSE);
    Ok(out)
}
