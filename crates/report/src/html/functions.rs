//! Tables of functions: one profile's, or two side by side.

use super::join::{join, JoinedFunction};
use super::{minus, scroll, TOP_FUNCTIONS};
use crate::unit::{DisplayUnit, TickUnit};
use crate::view::{FunctionRow, ScopeTimes, ScopeView};
use crate::{sampled, Result};
use kerntune_profile::{FunctionTotals, Profile};
use kerntune_table::number::{change, fixed, grouped};
use kerntune_table::share;
use maud::{html, Markup};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Display;

pub(super) fn section(before: Option<&Profile>, after: Option<&Profile>) -> Result<Option<Markup>> {
    let has_functions = |profile: &&Profile| !profile.tables.functions.is_empty();
    Ok(match (before.filter(has_functions), after.filter(has_functions)) {
        (Some(before), Some(after)) => Some(both(before, after)?),
        (Some(profile), None) | (None, Some(profile)) => Some(single(profile)?),
        (None, None) => None,
    })
}

fn table(label: &str, head: &Markup, body: &Markup) -> Markup {
    html! {
        div.filter data-filter="function-table" {}
        (scroll(label, &html! { table.sortable id="function-table" { thead { (head) } tbody { (body) } } }))
    }
}

fn both(before: &Profile, after: &Profile) -> Result<Markup> {
    let joined = join(before, after)?;
    let shown = &joined[..joined.len().min(TOP_FUNCTIONS)];
    let busy = [before, after].map(|profile| profile.manifest.busy_ticks.get());
    let net = |totals: &Option<FunctionTotals>| totals.as_ref().map(|totals| totals.self_ticks.get());
    let largest =
        shown.iter().flat_map(|row| [net(&row.before), net(&row.after)]).flatten().max().unwrap_or(0);
    let unit = TickUnit::common_to([before, after]).unit(largest);
    let widest = shown
        .iter()
        .map(|row| net(&row.before).unwrap_or(0).abs_diff(net(&row.after).unwrap_or(0)))
        .max()
        .unwrap_or(0);
    let head = html! {
        tr.groups {
            td.first {}
            th.edge colspan="3" scope="colgroup" { "Net, " (unit.name()) }
            th.edge colspan="2" scope="colgroup" { "Calls" }
            th.edge colspan="2" scope="colgroup" { "% net" }
        }
        tr {
            th.first scope="col" data-at="0" { "Function" }
            @for (head, at) in ["before", "after", "change", "before", "after", "before", "after"].iter().zip(1..) {
                th class=[[1, 4, 6].contains(&at).then_some("edge")] scope="col" data-at=(at) { (head) }
            }
        }
    };
    let body = html! { @for row in shown { (joined_line(row, unit, busy, widest)) } };
    Ok(html! {
        p {
            "The " (shown.len()) " functions with the most net time in either kernel, of " (grouped(joined.len() as u64))
            ". What the compiler split off or cloned (" code { ".isra" } ", " code { ".constprop" } ", " code { ".part" }
            ", " code { ".cold" } ") counts with its function, and so do functions of the same name. A function that is inlined \
            in one kernel only counts as its caller in both, which is named \"with\" it, so that inlining alone changes no row; \
            a dash means that it did not run."
        }
        (table("Functions before and after", &head, &body))
        p.legend {
            "Net time: in the function itself, without its callees. The bar shows the absolute change of net \
             time, the figure beside it the change in per cent. % net: share of the time in which the CPU \
             was not idle."
        }
    })
}

fn joined_line(row: &JoinedFunction, unit: DisplayUnit, busy: [u64; 2], widest: u64) -> Markup {
    let sides = [&row.before, &row.after];
    let nets = sides.map(|side| side.as_ref().map(|totals| totals.self_ticks.get()));
    let [first, second] = nets.map(|net| net.unwrap_or(0));
    // A function in only one kernel was inlined into others or came out of them: its time alone is
    // neither better nor worse.
    let kind = match second.cmp(&first) {
        _ if nets.contains(&None) => "same",
        Ordering::Less => "lower",
        Ordering::Equal => "same",
        Ordering::Greater => "higher",
    };
    let percent = (first > 0).then(|| 100.0 * (second as f64 - first as f64) / first as f64);
    let text = match (percent, nets[1]) {
        (_, None) => "gone".into(),
        (None, _) => "new".into(),
        (Some(percent), _) => minus(&format!("{} %", change(percent, 1))),
    };
    let width = 90.0 * share(first.abs_diff(second), widest) / 100.0;
    let shares = nets.into_iter().zip(busy).map(|(net, busy)| net.map(|net| share(net, busy)));
    html! {
        tr {
            th.first scope="row" {
                code { (row.name) }
                @if !row.with.is_empty() { " with " (named(&row.with)) }
            }
            @for (at, net) in nets.into_iter().enumerate() { (cell(at == 0, net, |net| unit.format(net))) }
            td class={ "delta " (kind) } data-v=(i128::from(second) - i128::from(first)) {
                i class=(kind) style=(format!("width:{width:.0}%")) {}
                b { (text) }
            }
            // The cold part alone has no calls of its own.
            @for (at, side) in sides.into_iter().enumerate() {
                (cell(at == 0, side.as_ref().map(|totals| totals.calls), grouped))
            }
            @for (at, share) in shares.enumerate() { (cell(at == 0, share, |share| fixed(share, 2))) }
        }
    }
}

/// Renders the first few names, and the number of the others.
fn named(names: &BTreeSet<String>) -> Markup {
    const MAX_NAMES: usize = 3;
    let few: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    html! {
        span title=(names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")) {
            (few.join(", "))
            @if names.len() > MAX_NAMES { " and " (names.len() - MAX_NAMES) " more" }
        }
    }
}

/// Renders a sortable cell; `edge` begins a group of columns.
fn cell<T: Display + Copy>(edge: bool, value: Option<T>, format: impl Fn(T) -> String) -> Markup {
    let data = value.map_or(String::new(), |value| value.to_string());
    html! { td class=[edge.then_some("edge")] data-v=(data) { (value.map_or("–".into(), format)) } }
}

fn single(profile: &Profile) -> Result<Markup> {
    let ScopeView { mut functions, times } = ScopeView::new(profile, None)?;
    let all = functions.len();
    functions.sort_by(|a, b| b.totals.self_ticks.cmp(&a.totals.self_ticks).then_with(|| a.name.cmp(&b.name)));
    functions.truncate(TOP_FUNCTIONS);
    let largest = |of: fn(&FunctionTotals) -> u64| {
        TickUnit::of(profile).unit(functions.iter().map(|row| of(&row.totals)).max().unwrap_or(0))
    };
    let units = [
        largest(|totals| totals.total_ticks.get()),
        largest(|totals| totals.self_ticks.get()),
        largest(|totals| totals.max_ticks.get()),
    ];
    let [elapsed, net, call] = units.map(DisplayUnit::name);
    if sampled::is(profile) {
        return Ok(sampled_single(profile, &functions, all, &times, units[0]));
    }
    let heads = [
        format!("elapsed, {elapsed}"),
        format!("net, {net}"),
        "calls".into(),
        "ended".into(),
        format!("open net, {net}"),
        format!("max, {call}"),
        format!("avg, {call}"),
        format!("min, {call}"),
        "% real".into(),
        "% net".into(),
        "% kernel".into(),
    ];
    let head = html! {
        tr {
            th.first scope="col" data-at="0" { "Function" }
            @for (head, at) in heads.iter().zip(1..) { th scope="col" data-at=(at) { (head) } }
        }
    };
    let time = |ns: u64, unit: usize| cell(false, Some(ns), |ns| units[unit].format(ns));
    let line = |row: &FunctionRow| {
        let FunctionRow { name, totals, .. } = row;
        let open = totals.open_ticks();
        let sign = if open < 0 { "-" } else { "" };
        html! {
            tr {
                th.first scope="row" { code { (name) } }
                (time(totals.total_ticks.get(), 0))
                (time(totals.self_ticks.get(), 1))
                (cell(false, Some(totals.calls), grouped))
                (cell(false, Some(totals.ended), grouped))
                td data-v=(open) { (sign) (units[1].format(open.unsigned_abs())) }
                @for ns in [totals.max_ticks, totals.avg_ticks(), totals.min_ticks] {
                    (cell(false, (totals.ended > 0).then_some(ns.get()), |ns| units[2].format(ns)))
                }
                (shares(row, &times))
            }
        }
    };
    let body = html! { @for row in &functions { (line(row)) } };
    Ok(html! {
        p { "The " (functions.len()) " functions with the most net time, of " (grouped(all as u64)) "." }
        (table("Functions", &head, &body))
    })
}

/// Renders the cells of a function's shares: of all time, of busy time, and of the kernel's.
fn shares(row: &FunctionRow, times: &ScopeTimes) -> Markup {
    let [real, net] =
        [times.elapsed, times.busy].map(|whole| Some(share(row.totals.self_ticks.get(), whole)));
    html! {
        @for percent in [real, net, row.kernel_percent(times)] {
            (cell(false, percent, |percent| fixed(percent, 2)))
        }
    }
}

/// Renders a sampled profile's functions, without times of single calls; calls only if counted by
/// other means.
fn sampled_single(
    profile: &Profile,
    functions: &[FunctionRow],
    all: usize,
    times: &ScopeTimes,
    unit: DisplayUnit,
) -> Markup {
    let name = unit.name();
    let has_calls = sampled::has_calls(profile);
    let mut heads =
        vec![format!("elapsed, {name}"), format!("net, {name}"), format!("{} net, {name}", sampled::ERROR)];
    if has_calls {
        heads.push("calls".into());
    }
    heads.extend(["% real", "% net", "% kernel"].map(String::from));
    let head = html! {
        tr {
            th.first scope="col" data-at="0" { "Function" }
            @for (head, at) in heads.iter().zip(1..) { th scope="col" data-at=(at) { (head) } }
        }
    };
    let body = html! {
        @for row in functions {
            @let totals = &row.totals;
            @let net = totals.self_ticks.get();
            tr {
                th.first scope="row" { code { (row.name) } }
                (cell(false, Some(totals.total_ticks.get()), |ns| unit.format(ns)))
                (cell(false, Some(net), |ns| unit.format(ns)))
                (cell(false, sampled::error_ns(profile, net), |ns| unit.format(ns)))
                @if has_calls { (cell(false, sampled::calls_of(profile, totals.calls), grouped)) }
                (shares(row, times))
            }
        }
    };
    html! {
        p { "The " (functions.len()) " functions with the most net time, of " (grouped(all as u64)) "." }
        (table("Functions", &head, &body))
    }
}
