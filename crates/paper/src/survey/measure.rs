//! A figure of a profile, by a name that a paper's file can give.

use kerntune_profile::{How, Profile, Scope, Symbol};
use serde::Deserialize;
use wildmatch::WildMatch;

/// What is measured in some regions. Functions are named with `*` for any part, or as a directory (`mm/`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Instructions of a call of these functions, callees included, on average.
    PerCall(Vec<String>),
    /// Share of the busy time that is spent in these functions themselves, per cent.
    BusyPercent(Vec<String>),
    /// Share of the kernel's time that is, per cent.
    KernelPercent(Vec<String>),
    /// Share of the busy time that so many functions take together, those with the most, per cent.
    LargestPercent(usize),
    /// Calls of these functions per operation.
    Calls(Vec<String>),
    /// Kernel instructions per operation.
    PathLength,
    /// User instructions per operation.
    UserLength,
    /// Context switches per operation.
    Switches,
    /// Interrupts of this name per operation.
    Interrupts(Vec<String>),
    /// Threads that went to another CPU, per operation.
    Migrations,
    /// Lines of data that the first cache did not have, per operation (model).
    L1dMisses,
    /// Lines of data that no cache had, or that another CPU's had written, per operation (model).
    L3Misses,
    /// Share of the time in which no CPU ran, per cent.
    IdlePercent,
    /// Share of the busy time that is user code, per cent.
    UserPercent,
    /// What calls of a function do before they reach another.
    Before(Before),
}

/// The way to a boundary: it is read from the trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// Whose calls.
    pub of: String,
    /// What they reach.
    pub until: String,
    /// What is counted.
    pub count: Counted,
}

/// What is counted before a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Calls.
    Calls,
    /// Different functions.
    Functions,
    /// Instructions.
    Instructions,
}

impl Measure {
    /// The unit of its figure.
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
            Measure::L1dMisses | Measure::L3Misses => "misses/op, model",
            Measure::IdlePercent => "% of time",
            Measure::UserPercent => "% of busy",
            Measure::Before(Before { count, .. }) => match count {
                Counted::Calls => "calls",
                Counted::Functions => "functions",
                Counted::Instructions => "instructions",
            },
        }
    }

    /// The figure; none where nothing of the kind happened, and for [`Measure::Before`], which no table has.
    pub fn of(&self, profile: &Profile, region: Option<&str>) -> Option<f64> {
        let tables = &profile.tables;
        let scope = match region {
            Some(name) => Scope::named(tables, name)?,
            None => Scope::all(tables),
        };
        let totals = scope.totals(profile);
        let per_operation =
            |count: u64| (totals.operations > 0).then(|| count as f64 / totals.operations as f64);
        let percent = |part: u64, whole: u64| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
        let functions = || tables.totals(|region| scope.contains(region));
        let net = |names: &[String]| -> u64 {
            let chosen = chosen(&tables.symbols, names);
            functions().iter().filter(|row| chosen(row.function.get())).map(|row| row.net_ns.get()).sum()
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
                    rows.fold((0u64, 0u64), |sum, row| (sum.0 + row.ended, sum.1 + row.elapsed_ns.get()));
                (sum.0 > 0).then(|| sum.1 as f64 / sum.0 as f64)
            }
            Measure::BusyPercent(names) => percent(net(names), totals.busy_ns.get()),
            Measure::KernelPercent(names) => {
                percent(net(names), functions().iter().map(|row| row.net_ns.get()).sum())
            }
            Measure::LargestPercent(count) => {
                let mut all: Vec<u64> = functions().iter().map(|row| row.net_ns.get()).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                percent(all.iter().take(*count).sum(), totals.busy_ns.get())
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
                let rows =
                    tables.arcs.iter().filter(|row| scope.contains(row.region) && row.how == How::Interrupt);
                per_operation(rows.filter(|row| chosen(row.callee.get())).map(|row| row.calls).sum())
            }
            Measure::Migrations => {
                let rows = tables.migrations.iter().filter(|row| scope.contains(row.region));
                per_operation(rows.map(|row| row.count).sum())
            }
            Measure::L1dMisses | Measure::L3Misses => {
                let rows = || tables.data_accesses.iter().filter(|row| scope.contains(row.region));
                let sum = match self {
                    Measure::L1dMisses => rows().map(|row| row.l1d_misses).sum(),
                    _ => rows().map(|row| row.l3_misses + row.transfers).sum(),
                };
                per_operation(sum).filter(|_| rows().next().is_some())
            }
            Measure::IdlePercent => percent(totals.idle_ns.get(), totals.elapsed_ns.get()),
            Measure::UserPercent => percent(totals.user_ns.get(), totals.busy_ns.get()),
            Measure::Before(_) => None,
        }
    }
}

/// Whether the function of a number is one of these: by its name without what the compiler adds to it, or its directory.
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
