//! Merge of two profiles of one object, by the rules of `libgcc/libgcov-merge.c`.

use super::*;
use crate::{Error, Result};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of values per place in libgcov (`GCOV_TOPN_MAXIMUM_TRACKED_VALUES`).
const MAX_TRACKED: usize = 32;

/// Weights of two profiles in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeWeights {
    /// Factor of the first profile.
    pub a: u32,
    /// Factor of the second profile.
    pub b: u32,
}

impl MergeWeights {
    /// Equal weights of 1.
    pub const EQUAL: Self = Self { a: 1, b: 1 };

    /// Returns `x·a + y·b`, saturating.
    fn sum(self, x: i64, y: i64) -> i64 {
        let sum = i128::from(x) * i128::from(self.a) + i128::from(y) * i128::from(self.b);
        sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

pub(super) fn merge(a: &Gcda, b: &Gcda, weights: MergeWeights) -> Result<Gcda> {
    same("byte order", a.byte_order, b.byte_order)?;
    same("compiler version", a.version, b.version)?;
    same("compilation stamp", a.stamp, b.stamp)?;
    same("unit checksum", a.checksum, b.checksum)?;
    same("number of functions", a.functions.len(), b.functions.len())?;
    let functions = a.functions.iter().zip(&b.functions);
    Ok(Gcda {
        summary: a.summary.zip(b.summary).map(|(a, b)| ObjectSummary {
            runs: a.runs.saturating_add(b.runs),
            sum_max: u32::try_from(weights.sum(a.sum_max.into(), b.sum_max.into())).unwrap_or(u32::MAX),
        }),
        functions: functions.map(|(a, b)| merge_function(a, b, weights)).collect::<Result<_>>()?,
        end_marker: a.end_marker || b.end_marker,
        ..*a
    })
}

fn merge_function(a: &GcdaFunction, b: &GcdaFunction, weights: MergeWeights) -> Result<GcdaFunction> {
    let (a, b, weights) = match (a.is_absent(), b.is_absent()) {
        (false, false) => (a, b, weights),
        // Present in one program only: its counters alone are used.
        (false, true) => (a, a, MergeWeights { b: 0, ..weights }),
        (true, false) => (b, b, MergeWeights { a: 0, ..weights }),
        (true, true) => return Ok(GcdaFunction::default()),
    };
    same("function ident", a.ident, b.ident)?;
    let of = |what: &str| format!("{what} of function {}", a.ident);
    same(&of("source checksum"), a.lineno_checksum, b.lineno_checksum)?;
    same(&of("control-flow checksum"), a.cfg_checksum, b.cfg_checksum)?;
    let kinds = |f: &GcdaFunction| f.counters.iter().map(|c| c.kind).collect::<Vec<_>>();
    same(&of("counter kinds"), kinds(a), kinds(b))?;
    let mut counters = Vec::with_capacity(a.counters.len());
    for (x, y) in a.counters.iter().zip(&b.counters) {
        let values = if x.kind.is_top_n() {
            merge_top_n(a.ident, x, y, weights)?
        } else {
            same(&of("number of counters"), x.values.len(), y.values.len())?;
            merge_values(x, y, weights)
        };
        counters.push(CounterRecord { kind: x.kind, values });
    }
    Ok(GcdaFunction { counters, ..*a })
}

fn merge_values(x: &CounterRecord, y: &CounterRecord, weights: MergeWeights) -> CounterValues {
    if let (CounterValues::Zeros(count), CounterValues::Zeros(_)) = (&x.values, &y.values) {
        return CounterValues::Zeros(*count);
    }
    let used = |value: i64, weight: u32| if weight == 0 { 0 } else { value };
    let pairs = x.values.iter().zip(y.values.iter());
    CounterValues::Listed(match x.kind {
        CounterKind::Ior | CounterKind::Conditions | CounterKind::Paths => {
            pairs.map(|(x, y)| used(x, weights.a) | used(y, weights.b)).collect()
        }
        CounterKind::TimeProfiler => pairs
            .map(|(x, y)| match (used(x, weights.a), used(y, weights.b)) {
                (0, time) | (time, 0) => time,
                (x, y) => x.min(y),
            })
            .collect(),
        _ => pairs.map(|(x, y)| weights.sum(x, y)).collect(),
    })
}

fn merge_top_n(
    ident: u32,
    x: &CounterRecord,
    y: &CounterRecord,
    weights: MergeWeights,
) -> Result<CounterValues> {
    let lists = |c: &CounterRecord| c.top_n().ok_or(Error::ValueLists { function: ident, kind: c.kind });
    let (x, y) = (lists(x)?, lists(y)?);
    same(&format!("number of value lists of function {ident}"), x.len(), y.len())?;
    let mut merged = Vec::new();
    for (x, y) in x.iter().zip(&y) {
        let TopN { total, incomplete, pairs } = merge_list(x, y, weights);
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        merged.extend([if incomplete { -total } else { total }, pairs.len() as i64]);
        merged.extend(pairs.into_iter().flat_map(|(value, count)| [value, count]));
    }
    Ok(CounterValues::Listed(merged))
}

fn merge_list(x: &TopN, y: &TopN, weights: MergeWeights) -> TopN {
    let mut total = 0_u64;
    let mut incomplete = false;
    let mut counts = BTreeMap::<i64, i64>::new();
    for (list, weight) in [(x, weights.a), (y, weights.b)].into_iter().filter(|&(_, weight)| weight > 0) {
        total = total.saturating_add(list.total.saturating_mul(weight.into()));
        incomplete |= list.incomplete;
        for &(value, count) in &list.pairs {
            let sum = counts.entry(value).or_default();
            *sum = sum.saturating_add(count.saturating_mul(weight.into()));
        }
    }
    let mut pairs: Vec<_> = counts.into_iter().collect();
    pairs.sort_by_key(|&(value, count)| (Reverse(count), value));
    incomplete |= pairs.len() > MAX_TRACKED;
    pairs.truncate(MAX_TRACKED);
    TopN { total, incomplete, pairs }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, a: T, b: T) -> Result<()> {
    if a == b {
        Ok(())
    } else {
        Err(Error::Mismatch { what: format!("{what} is {a:?} in one and {b:?} in the other") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(counters: Vec<CounterRecord>) -> Gcda {
        Gcda {
            byte_order: ByteOrder::Little,
            version: GcovVersion(u32::from_be_bytes(*b"B22*")),
            stamp: 7,
            checksum: 0,
            summary: None,
            functions: vec![
                GcdaFunction { ident: 1, lineno_checksum: 2, cfg_checksum: 3, counters },
                GcdaFunction::default(),
            ],
            end_marker: false,
        }
    }

    fn one(kind: CounterKind, values: &[i64]) -> Gcda {
        object(vec![CounterRecord { kind, values: CounterValues::Listed(values.to_vec()) }])
    }

    fn merged(kind: CounterKind, a: &[i64], b: &[i64], weights: MergeWeights) -> Vec<i64> {
        let merged = merge(&one(kind, a), &one(kind, b), weights).unwrap();
        merged.functions[0].counters[0].values.iter().collect()
    }

    #[test]
    fn each_kind_has_its_rule() {
        let w = MergeWeights { a: 2, b: 3 };
        assert_eq!(merged(CounterKind::Arcs, &[1, 10, i64::MAX], &[1, 0, 1], w), [5, 20, i64::MAX]);
        assert_eq!(merged(CounterKind::Ior, &[0b101], &[0b110], w), [0b111]);
        assert_eq!(merged(CounterKind::Ior, &[0b101], &[0b110], MergeWeights { a: 1, b: 0 }), [0b101]);
        assert_eq!(merged(CounterKind::TimeProfiler, &[5, 0, 9], &[3, 4, 0], w), [3, 4, 9]);
        assert_eq!(
            merged(CounterKind::IndirectCall, &[30, 2, 7, 10, 8, 20], &[-5, 1, 7, 5], w),
            [-75, 2, 8, 40, 7, 35]
        );
    }

    #[test]
    fn value_lists_keep_the_32_most_frequent_and_say_so() {
        let list = |first: i64| {
            let pairs = (first..first + 20).flat_map(|value| [value, value]);
            [210, 20].into_iter().chain(pairs).collect::<Vec<_>>()
        };
        let values = merged(CounterKind::TopN, &list(1), &list(101), MergeWeights::EQUAL);
        assert_eq!(values[..4], [-420, 32, 120, 120]);
        assert_eq!(values.len(), 2 + 2 * 32);
        let raw = one(CounterKind::TopN, &[1, 1, 2]);
        assert!(matches!(merge(&raw, &raw, MergeWeights::EQUAL), Err(Error::ValueLists { function: 1, .. })));
    }

    #[test]
    fn a_function_of_one_program_only_is_kept() {
        let a = one(CounterKind::Arcs, &[4]);
        let mut b = a.clone();
        b.functions[0] = GcdaFunction::default();
        let w = MergeWeights { a: 2, b: 3 };
        assert_eq!(merge(&a, &b, w).unwrap().total(), 8);
        assert_eq!(merge(&b, &a, w).unwrap().total(), 12);
    }

    #[test]
    fn another_build_is_refused_with_the_difference() {
        let a = one(CounterKind::Arcs, &[4]);
        let mut b = a.clone();
        b.functions[0].cfg_checksum = 4;
        let error = merge(&a, &b, MergeWeights::EQUAL).unwrap_err().to_string();
        assert!(
            error.contains("control-flow checksum of function 1 is 3 in one and 4 in the other"),
            "{error}"
        );
        let error = merge(&a, &one(CounterKind::Arcs, &[4, 5]), MergeWeights::EQUAL).unwrap_err().to_string();
        assert!(error.contains("number of counters of function 1"), "{error}");
    }

    #[test]
    fn zeros_of_any_number_cost_nothing() {
        let zeros =
            object(vec![CounterRecord { kind: CounterKind::Arcs, values: CounterValues::Zeros(1 << 28) }]);
        assert_eq!(merge(&zeros, &zeros, MergeWeights::EQUAL).unwrap(), zeros);
        assert_eq!(Gcda::parse(&zeros.to_bytes()).unwrap(), zeros);
    }
}
