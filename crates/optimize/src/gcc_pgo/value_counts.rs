//! Totals of a training's value counters: their number, the targets of indirect calls, and what GCC
//! can use.

use super::value_health::ValueHealth;
use super::ObjectCounts;
use kerntune_convert::gcda::{CounterKind, Gcda, TopN};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Most sites named.
const MAX_NAMED: usize = 50;

/// Value counters of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ValueSummary {
    /// Totals by kind, named as by `gcov-dump`: `indirect_call`, `topn`, `pow2` …
    pub kinds: BTreeMap<String, CounterKindSummary>,
    /// Values that were added to lists: the totals of all `indirect_call` and `topn`.
    pub listed: u64,
    /// Indirect calls from instrumented code to instrumented code.
    pub indirect_calls: u64,
    /// Indirect calls to the usual target of their site, one that has at least half of the site's
    /// calls.
    pub usual_calls: u64,
    /// Sites whose usual target is defined in their own object, the only ones that GCC turns into
    /// direct calls.
    pub promotable_sites: u64,
    /// Calls of these sites to their usual target.
    pub promotable_calls: u64,
    /// Sites with the most calls, 50 at most.
    pub sites: Vec<IndirectSite>,
    /// Figures of the kernel's hooks about themselves, one for each run that has them.
    pub health: Vec<ValueHealth>,
}

/// Counters of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CounterKindSummary {
    /// Instrumented places: lists for `indirect_call` and `topn`, counters for the others.
    pub places: u64,
    /// Places with a count above 0.
    pub used: u64,
}

/// Place in the source with an indirect call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndirectSite {
    /// Calling function.
    pub caller: String,
    /// Object of the calling function.
    pub object: String,
    /// Number of the indirect call in its function, from 0, in the compiler's order.
    pub number: u64,
    /// Number of calls.
    pub calls: u64,
    /// Most frequent target; `None` for a function without counters.
    pub target: Option<String>,
    /// Object that defines the target.
    pub target_object: Option<String>,
    /// Number of calls to that target.
    pub target_calls: u64,
}

impl IndirectSite {
    /// Checks whether one target has at least half of the calls; GCC ignores others.
    pub fn is_usual(&self) -> bool {
        self.calls > 0 && self.target_calls.saturating_mul(2) >= self.calls
    }

    /// Checks whether the usual target is in the same object, so that GCC can call it directly.
    pub fn is_promotable(&self) -> bool {
        self.is_usual() && self.target_object.as_ref() == Some(&self.object)
    }
}

impl ValueSummary {
    /// Computes the totals from files and the counts of the same objects; `None` without value
    /// counters.
    pub(super) fn of<'a>(
        files: impl Iterator<Item = &'a Gcda>,
        counts: &[ObjectCounts],
        health: Vec<ValueHealth>,
    ) -> Option<Self> {
        let by_ident = idents(counts);
        let mut summary = Self { health, ..Self::default() };
        for (gcda, object) in files.zip(counts) {
            let names: HashMap<u32, &str> =
                object.functions.iter().map(|f| (f.ident, f.name.as_str())).collect();
            for function in &gcda.functions {
                let caller = names.get(&function.ident).copied().unwrap_or_default();
                for counters in function.counters.iter().filter(|c| c.kind != CounterKind::Arcs) {
                    let kind = summary.kinds.entry(counters.kind.name().into()).or_default();
                    let Some(lists) = counters.top_n() else {
                        kind.places += counters.values.len() as u64;
                        kind.used += counters.values.iter().filter(|value| *value != 0).count() as u64;
                        continue;
                    };
                    kind.places += lists.len() as u64;
                    kind.used += lists.iter().filter(|list| list.total > 0).count() as u64;
                    summary.listed = lists.iter().fold(summary.listed, |sum, l| sum.saturating_add(l.total));
                    if counters.kind == CounterKind::IndirectCall {
                        let sites = (0u64..).zip(&lists).filter(|(_, list)| list.total > 0);
                        summary.sites.extend(
                            sites.map(|(number, list)| site(caller, &object.object, number, list, &by_ident)),
                        );
                    }
                }
            }
        }
        if summary.kinds.is_empty() {
            return None;
        }
        summary.count();
        Some(summary)
    }

    /// Sums up the sites, and keeps the first ones.
    fn count(&mut self) {
        let sum = |calls: &mut dyn Iterator<Item = u64>| calls.fold(0, u64::saturating_add);
        let promotable = || self.sites.iter().filter(|site| site.is_promotable());
        self.promotable_sites = promotable().count() as u64;
        self.promotable_calls = sum(&mut promotable().map(|site| site.target_calls));
        self.indirect_calls = sum(&mut self.sites.iter().map(|site| site.calls));
        let usual = self.sites.iter().filter(|site| site.is_usual());
        self.usual_calls = sum(&mut usual.map(|site| site.target_calls));
        self.sites.sort_by(|a, b| {
            let key = |site: &IndirectSite| (site.object.clone(), site.caller.clone(), site.number);
            b.calls.cmp(&a.calls).then_with(|| key(a).cmp(&key(b)))
        });
        self.sites.truncate(MAX_NAMED);
    }

    /// Returns the number of places of a kind, by name, with a count above 0.
    pub fn used(&self, kind: &str) -> u64 {
        self.kinds.get(kind).map_or(0, |kind| kind.used)
    }
}

/// Returns the functions by ident; targets are recorded by ident as well.
fn idents(counts: &[ObjectCounts]) -> HashMap<u32, (&str, &str)> {
    let all = counts.iter().flat_map(|o| o.functions.iter().map(move |f| (f, o.object.as_str())));
    all.map(|(function, object)| (function.ident, (function.name.as_str(), object))).collect()
}

fn site(
    caller: &str,
    object: &str,
    number: u64,
    list: &TopN,
    by_ident: &HashMap<u32, (&str, &str)>,
) -> IndirectSite {
    let max = list.pairs.iter().max_by_key(|(_, times)| *times);
    let ident = max.and_then(|(ident, _)| u32::try_from(*ident).ok());
    let target = ident.and_then(|ident| by_ident.get(&ident));
    IndirectSite {
        caller: caller.into(),
        object: object.into(),
        number,
        calls: list.total,
        target: target.map(|(name, _)| (*name).into()),
        target_object: target.map(|(_, object)| (*object).into()),
        target_calls: max.map_or(0, |(_, times)| u64::try_from(*times).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcc_pgo::FunctionCounts;
    use kerntune_convert::gcda::{ByteOrder, CounterRecord, CounterValues, GcdaFunction, GcovVersion};

    fn object(name: &str, functions: &[(u32, &str)]) -> ObjectCounts {
        let function = |(ident, name): &(u32, &str)| FunctionCounts {
            ident: *ident,
            name: (*name).into(),
            file: "f.c".into(),
            line: 1,
            total: 1,
        };
        ObjectCounts { object: name.into(), functions: functions.iter().map(function).collect() }
    }

    fn file(ident: u32, records: &[(CounterKind, &[i64])]) -> Gcda {
        let record = |(kind, values): &(CounterKind, &[i64])| CounterRecord {
            kind: *kind,
            values: CounterValues::Listed(values.to_vec()),
        };
        let counters = records.iter().map(record).collect();
        Gcda {
            byte_order: ByteOrder::Little,
            version: GcovVersion(0x4232_322a),
            stamp: 1,
            checksum: 0,
            summary: None,
            functions: vec![GcdaFunction { ident, lineno_checksum: 1, cfg_checksum: 1, counters }],
            end_marker: false,
        }
    }

    #[test]
    fn targets_are_named_and_those_of_the_same_object_are_gccs() {
        let counts = [object("a.o", &[(1, "caller"), (2, "near")]), object("b.o", &[(3, "far")])];
        // Near, far, unknown target, no target with half of the calls, never called.
        let calls: &[i64] = &[100, 2, 2, 90, 3, 10, 50, 1, 3, 50, 7, 1, 99, 7, 10, 3, 2, 4, 3, 3, 5, 1, 0, 0];
        let files = [
            file(
                1,
                &[(CounterKind::Arcs, &[5]), (CounterKind::IndirectCall, calls), (CounterKind::Ior, &[0, 8])],
            ),
            file(3, &[(CounterKind::TopN, &[4, 1, 4096, 4])]),
        ];
        let summary = ValueSummary::of(files.iter(), &counts, Vec::new()).unwrap();
        let told: Vec<_> = summary.sites.iter().map(|s| (s.number, s.calls, s.target.as_deref())).collect();
        let (near, far) = (Some("near"), Some("far"));
        assert_eq!(told, [(0, 100, near), (1, 50, far), (3, 10, near), (2, 7, None)]);
        assert!(summary.sites.iter().all(|site| site.caller == "caller" && site.object == "a.o"));
        assert_eq!((summary.promotable_sites, summary.promotable_calls), (1, 90));
        assert_eq!((summary.indirect_calls, summary.usual_calls), (167, 147));
        assert_eq!(summary.listed, 171);
        let kind = |name: &str| summary.kinds[name];
        assert_eq!(kind("indirect_call"), CounterKindSummary { places: 5, used: 4 });
        assert_eq!((kind("topn").used, kind("ior")), (1, CounterKindSummary { places: 2, used: 1 }));
        assert!(!summary.kinds.contains_key("arcs"));
    }

    #[test]
    fn arcs_alone_are_no_values() {
        let files = [file(1, &[(CounterKind::Arcs, &[5])])];
        assert_eq!(ValueSummary::of(files.iter(), &[object("a.o", &[])], Vec::new()), None);
    }
}
