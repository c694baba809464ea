//! Figures of a profile that a paper's file can name.

use kerntune_profile::{CallKind, Profile, RegionScope, Symbol};
use serde::Deserialize;
use wildmatch::WildMatch;

/// Measured quantity of some regions. Names of functions may have `*` for any part, or be a
/// directory (`mm/`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Mean instructions of a call of these functions, callees included.
    PerCall(Vec<String>),
    /// Self time of these functions, in percent of the busy time.
    BusyPercent(Vec<String>),
    /// Self time of these functions, in percent of the kernel's time.
    KernelPercent(Vec<String>),
    /// Self time of this many functions, those with the most, in percent of the busy time.
    LargestPercent(usize),
    /// Calls of these functions per operation.
    Calls(Vec<String>),
    /// Kernel instructions per operation.
    PathLength,
    /// User instructions per operation.
    UserLength,
    /// Context switches per operation.
    Switches,
    /// Interrupts of these names per operation.
    Interrupts(Vec<String>),
    /// Moves of threads to another CPU, per operation.
    Migrations,
    /// Data lines that were not in the first cache, per operation (model).
    L1dMisses,
    /// Data lines that were in no cache, or that another CPU's cache had written, per operation
    /// (model).
    L3Misses,
    /// Data lines that were not in the first cache, by call paths through these functions, per
    /// operation (model).
    L1dMissesIn(Vec<String>),
    /// Translations for data that the first-level TLB did not have, per operation (model).
    DtlbMisses,
    /// Page-table walks for data: translations that no TLB had, per operation (model).
    DataWalks,
    /// Time in which no CPU ran, in percent.
    IdlePercent,
    /// User code, in percent of the busy time.
    UserPercent,
    /// Work of a function's calls before they reach another function.
    Before(BoundaryPath),
}

/// Path from a function to a boundary, read from the trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundaryPath {
    /// Function whose calls are counted.
    pub of: String,
    /// Function that ends the path.
    pub until: String,
    /// Counted quantity.
    pub count: PathCount,
}

/// Quantity counted before a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathCount {
    /// Number of calls.
    Calls,
    /// Number of different functions.
    Functions,
    /// Number of instructions.
    Instructions,
}

impl Measure {
    /// Returns the unit of the figure.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::PerCall(_) => "instructions/call",
            Measure::BusyPercent(_) | Measure::LargestPercent(_) => "% of busy",
            Measure::KernelPercent(_) => "% of kernel",
            Measure::Calls(_) => "calls/op",
            Measure::PathLength | Measure::UserLength => "instructions/op",
            Measure::Switches => "switches/op",
            Measure::Interrupts(_) => "interrupts/op",
            Measure::Migrations => "migrations/op",
            Measure::L1dMisses | Measure::L1dMissesIn(_) | Measure::L3Misses | Measure::DtlbMisses => {
                "misses/op, model"
            }
            Measure::DataWalks => "walks/op, model",
            Measure::IdlePercent => "% of time",
            Measure::UserPercent => "% of busy",
            Measure::Before(BoundaryPath { count, .. }) => match count {
                PathCount::Calls => "calls",
                PathCount::Functions => "functions",
                PathCount::Instructions => "instructions",
            },
        }
    }

    /// Computes the figure of a profile. Returns `None` if no such event happened, and for
    /// [`Measure::Before`], which needs the trace.
    pub fn of(&self, profile: &Profile, region: Option<&str>) -> Option<f64> {
        let tables = &profile.tables;
        let scope = match region {
            Some(name) => RegionScope::named(tables, name)?,
            None => RegionScope::all(tables),
        };
        let totals = scope.totals(profile);
        let per_operation =
            |count: u64| (totals.operations > 0).then(|| count as f64 / totals.operations as f64);
        let percent = |part: u64, whole: u64| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
        let functions = || tables.totals(|region| scope.contains(region));
        let net = |names: &[String]| -> u64 {
            let chosen = chosen(&tables.symbols, names);
            functions().iter().filter(|row| chosen(row.function.get())).map(|row| row.self_ticks.get()).sum()
        };
        let calls = |names: &[String]| -> u64 {
            let chosen = chosen(&tables.symbols, names);
            functions().iter().filter(|row| chosen(row.function.get())).map(|row| row.calls).sum()
        };
        let user = || {
            let rows = tables.regions.iter().filter(|row| scope.outermost().contains(&row.region));
            rows.map(|row| row.user_instructions.0).sum::<u64>()
        };
        match self {
            Measure::PerCall(names) => {
                let chosen = chosen(&tables.symbols, names);
                let rows = functions().into_iter().filter(|row| chosen(row.function.get()));
                let sum =
                    rows.fold((0u64, 0u64), |sum, row| (sum.0 + row.ended, sum.1 + row.total_ticks.get()));
                (sum.0 > 0).then(|| sum.1 as f64 / sum.0 as f64)
            }
            Measure::BusyPercent(names) => percent(net(names), totals.busy_ticks.get()),
            Measure::KernelPercent(names) => {
                percent(net(names), functions().iter().map(|row| row.self_ticks.get()).sum())
            }
            Measure::LargestPercent(count) => {
                let mut all: Vec<u64> = functions().iter().map(|row| row.self_ticks.get()).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                percent(all.iter().take(*count).sum(), totals.busy_ticks.get())
            }
            Measure::Calls(names) => per_operation(calls(names)),
            Measure::PathLength => per_operation(totals.kernel_instructions),
            Measure::UserLength => per_operation(user()),
            Measure::Switches => {
                let rows = tables.switches.iter().filter(|row| scope.contains(row.region));
                per_operation(rows.map(|row| row.count).sum())
            }
            Measure::Interrupts(names) => {
                let chosen = chosen(&tables.symbols, names);
                let rows = tables
                    .arcs
                    .iter()
                    .filter(|row| scope.contains(row.region) && row.how == CallKind::Interrupt);
                per_operation(rows.filter(|row| chosen(row.callee.get())).map(|row| row.calls).sum())
            }
            Measure::Migrations => {
                let rows = tables.migrations.iter().filter(|row| scope.contains(row.region));
                per_operation(rows.map(|row| row.count).sum())
            }
            Measure::L1dMisses | Measure::L3Misses | Measure::DtlbMisses | Measure::DataWalks => {
                let rows = || tables.data_accesses.iter().filter(|row| scope.contains(row.region));
                let sum = match self {
                    Measure::L1dMisses => rows().map(|row| row.l1d_misses).sum(),
                    Measure::DtlbMisses => rows().map(|row| row.dtlb_misses).sum(),
                    Measure::DataWalks => rows().map(|row| row.walks).sum(),
                    _ => rows().map(|row| row.l3_misses + row.transfers).sum(),
                };
                per_operation(sum).filter(|_| rows().next().is_some())
            }
            Measure::L1dMissesIn(names) => {
                let patterns: Vec<WildMatch> = names.iter().map(|name| WildMatch::new(name)).collect();
                let is_below = |path: &str| {
                    path.split(';').any(|name| patterns.iter().any(|pattern| pattern.matches(name)))
                };
                let rows = || tables.data_paths.iter().filter(|row| scope.contains(row.region));
                let below = rows().filter(|row| is_below(&row.path)).map(|row| row.l1d_misses).sum();
                per_operation(below).filter(|_| rows().next().is_some())
            }
            Measure::IdlePercent => percent(totals.idle_ticks.get(), totals.elapsed_ticks.get()),
            Measure::UserPercent => percent(totals.user_ticks.get(), totals.busy_ticks.get()),
            Measure::Before(_) => None,
        }
    }
}

/// Returns a filter on function numbers: by name without the compiler's suffixes, or by directory.
fn chosen<'a>(symbols: &'a [Symbol], names: &[String]) -> impl Fn(u32) -> bool + 'a {
    let (directories, names): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| name.ends_with('/'));
    let patterns: Vec<WildMatch> = names.iter().map(|name| WildMatch::new(name)).collect();
    move |number| {
        let Some(symbol) = symbols.get(number as usize) else { return false };
        let plain = symbol.name.split('.').next().unwrap_or_default();
        let file = symbol.file.as_deref().unwrap_or_default();
        patterns.iter().any(|pattern| pattern.matches(plain) || pattern.matches(&symbol.name))
            || directories.iter().any(|directory| file.starts_with(directory.as_str()))
    }
}
