//! Result of `kerntune prove` in one paragraph: effects shown, confidence, and limits.

use kerntune_stats::{RowVerdict, TimedComparison, TimedRow};
use kerntune_table::number;

/// Describes timed results: numbers of faster and slower rows, the extremes with intervals, and the
/// base kernel's A/A difference.
pub fn timed(comparison: &TimedComparison) -> String {
    let of = |verdict: RowVerdict| -> Vec<&TimedRow> {
        comparison.rows.iter().filter(|row| row.verdict == verdict).collect()
    };
    let faster = of(RowVerdict::Faster);
    let slower = of(RowVerdict::Slower);
    let rows = comparison.rows.len();
    let mut out = format!(
        "By the clock ({}): of {}, {} faster, {} slower, {} the same within {}, {} undecided.",
        comparison.machine,
        counted(rows, "row"),
        faster.len(),
        slower.len(),
        of(RowVerdict::Equivalent).len(),
        per_cent(comparison.options.min_effect * 100.0),
        of(RowVerdict::Inconclusive).len(),
    );
    for (word, rows) in [("Faster", by_size(faster)), ("Slower", by_size(slower))] {
        let (Some(max), Some(min)) = (rows.first(), rows.last()) else { continue };
        out += &match rows.len() {
            1 => format!(" {word}: {max}."),
            _ => format!(" {word}: from {max} to {min}."),
        };
    }
    let aa = comparison.rows.iter().filter_map(|row| row.aa.map(|aa| aa.change_percent.abs()));
    if let Some(aa) = aa.max_by(f64::total_cmp) {
        out += &format!(" The base kernel against itself (A/A) differs by up to {}.", per_cent(aa));
    }
    if let Some(fewest) = comparison.rows.iter().map(|row| row.units[0].min(row.units[1])).min() {
        out += &format!(" {} of each kernel or more, in turn.", counted(fewest, "boot"));
    }
    out
}

/// Describes exact results: the whole path first, then the kernel's, in the terms of
/// [`kerntune_compare::Verdict`].
pub fn exact(comparison: &kerntune_compare::Comparison) -> String {
    let runs = match comparison.runs {
        1 => String::new(),
        runs => format!(", means of {runs} runs begun at as many moments"),
    };
    let sentences = kerntune_compare::Verdict::new(comparison).sentences().join(" ");
    format!("Counted (emulator{runs}): {sentences}")
}

/// Returns the limits of a machine's figures.
pub fn limits(machine: &str) -> &'static str {
    match machine {
        "kvm" => "Times are of a virtual machine: those of both kernels include the overhead of the host.",
        "uml" => {
            "Times are of User-Mode Linux: entry, interrupts, page tables and copies to and from programs are not those of a PC's kernel."
        }
        "remote" => {
            "Times are of that machine and of this workload, contained: the cost of namespaces and of a system \
             call filter is in those of both kernels."
        }
        _ => {
            "Instructions are not time, and misses are a model's: what they cost on a CPU, only a clock \
             shows. Make a package of each kernel with `kerntune package`, boot the kernels in turn, run \
             `kerntune bench run --machine host` under each, and compare the results with `kerntune bench \
             compare`."
        }
    }
}

/// Formats the changes, greatest first.
fn by_size(mut rows: Vec<&TimedRow>) -> Vec<String> {
    rows.sort_by(|a, b| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
    rows.into_iter().map(change).collect()
}

fn change(row: &TimedRow) -> String {
    let high = row.high_percent.map_or("no upper end".into(), |high| number::change(high, 1));
    format!(
        "{} {} % ({} to {high})",
        crate::printable(&row.row),
        number::change(row.change_percent, 1),
        number::change(row.low_percent, 1),
    )
}

fn per_cent(value: f64) -> String {
    format!("{} %", number::fixed(value, 1))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_stats::{
        BenchResults, ComparisonOptions, JoinedResults, MeasuredValue, ResultsRow, RowDirection,
        RESULTS_SCHEMA,
    };

    fn set(name: &str, times: [f64; 2]) -> JoinedResults {
        let rows = ["tcp_rr", "stat"].into_iter().zip(times).map(|(row, time)| ResultsRow {
            suite: "batched".into(),
            row: row.into(),
            unit: "ns/op".into(),
            better: RowDirection::Lower,
            values: (0..8)
                .map(|boot| MeasuredValue {
                    boot,
                    value: time + f64::from(boot % 4),
                    ..MeasuredValue::default()
                })
                .collect(),
            cpu: Vec::new(),
        });
        let results = BenchResults {
            schema: RESULTS_SCHEMA.into(),
            machine: "uml".into(),
            rows: rows.collect(),
            ..BenchResults::default()
        };
        JoinedResults::join(&[(name.to_owned(), results)]).unwrap()
    }

    #[test]
    fn a_paragraph_says_what_was_shown_and_how_sure_it_is() {
        let (base, again) = (set("base", [1000.0, 500.0]), set("again", [1000.0, 500.0]));
        let words = |tuned| {
            let compared = TimedComparison::new(
                &base,
                &set("tuned", tuned),
                Some(&again),
                &ComparisonOptions::default(),
            );
            timed(&compared.unwrap())
        };
        let faster = words([800.0, 500.0]);
        for part in [
            "of 2 rows, 1 faster, 0 slower, 1 the same within 1.0 %, 0 undecided.",
            "Faster: tcp_rr -20.0 % (",
            "8 boots of each",
        ] {
            assert!(faster.contains(part), "{faster}");
        }
        let slower = words([800.0, 600.0]);
        assert!(
            slower.contains("Slower: stat +19.9 % (") && slower.contains("(A/A) differs by up to 0.0 %"),
            "{slower}"
        );
    }

    #[test]
    fn each_machine_says_what_it_leaves_out() {
        assert!(limits("uml").contains("User-Mode Linux") && limits("emulator").contains("not time"));
    }
}
