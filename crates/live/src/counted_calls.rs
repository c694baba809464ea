//! Merging of counted calls into tables of sampled times.

use crate::aggregate::CallTable;
use kerntune_profile::{CallArc, CallKind, CounterTotal, FunctionIndex, FunctionStats};
use kerntune_symbols::FunctionTable;
use std::collections::BTreeMap;

/// Ways in which kernel code reaches a counted function.
///
/// A count has the caller but not the kind of the call. If samples have seen the arc, its kind is
/// used; otherwise it is a call.
const CALL_KINDS: [CallKind; 5] =
    [CallKind::Call, CallKind::Jump, CallKind::Syscall, CallKind::Exception, CallKind::Interrupt];

/// Adds the counts to the rows of functions and arcs, with new rows for functions that were never
/// sampled. The rows stay sorted.
pub(crate) fn add(calls: &CallTable, functions: &mut Vec<FunctionStats>, arcs: &mut Vec<CallArc>) {
    let mut of_functions: BTreeMap<FunctionIndex, FunctionStats> =
        functions.drain(..).map(|row| (row.function, row)).collect();
    let mut of_arcs: BTreeMap<(FunctionIndex, FunctionIndex, CallKind), CallArc> =
        arcs.drain(..).map(|row| ((row.caller, row.callee, row.how), row)).collect();
    for ((caller, callee), count) in calls.rows() {
        let (caller, callee) = (caller.map_or(FunctionIndex::NONE, FunctionIndex), FunctionIndex(callee));
        let seen = CALL_KINDS.into_iter().find(|how| of_arcs.contains_key(&(caller, callee, *how)));
        let how = seen.unwrap_or(CallKind::Call);
        let arc = of_arcs.entry((caller, callee, how)).or_insert(CallArc {
            caller,
            callee,
            how,
            ..CallArc::default()
        });
        arc.calls = arc.calls.saturating_add(count);
        let function = of_functions
            .entry(callee)
            .or_insert(FunctionStats { function: callee, ..FunctionStats::default() });
        function.calls = function.calls.saturating_add(count);
    }
    functions.extend(of_functions.into_values());
    arcs.extend(of_arcs.into_values());
}

/// Returns the counted system calls by name.
pub(crate) fn system_calls(calls: &CallTable, table: &FunctionTable, source: &str) -> Vec<CounterTotal> {
    let (mut by_name, mut inner) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    for ((_, callee), count) in calls.rows() {
        let Some(function) = table.functions().get(callee as usize) else { continue };
        let name = function.name.as_str();
        let of = |prefix: &str| name.strip_prefix(prefix);
        let (sums, name) = match (of("__x64_sys_"), of("__ia32_sys_"), of("__do_sys_")) {
            (Some(name), ..) => (&mut by_name, name.to_string()),
            (_, Some(name), _) => (&mut by_name, format!("{name} (32 bits)")),
            (.., Some(name)) => (&mut inner, name.to_string()),
            _ => continue,
        };
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
    // For a call without arguments, the inner name is an alias of the outer function; otherwise the
    // outer function calls it.
    for (name, count) in inner {
        by_name.entry(name).or_insert(count);
    }
    let row =
        |(name, count)| CounterTotal { kind: "syscall".into(), name, count, source: source.to_string() };
    by_name.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::Ticks;

    #[test]
    fn counts_go_to_the_arcs_that_samples_saw_and_to_new_ones() {
        let sampled = |caller, callee, how| CallArc {
            region: 0,
            caller,
            callee: FunctionIndex(callee),
            how,
            calls: 0,
            ended: 0,
            total_ticks: Ticks(7),
        };
        let mut arcs = vec![
            sampled(FunctionIndex(1), 2, CallKind::Syscall),
            sampled(FunctionIndex(2), 3, CallKind::Call),
        ];
        let mut calls = CallTable::new(9);
        calls.add(Some(1), Some(2), 10);
        calls.add(Some(2), Some(3), 20);
        calls.add(Some(9), Some(3), 1);
        calls.add(None, Some(2), 2);
        let mut functions = Vec::new();
        add(&calls, &mut functions, &mut arcs);
        let arcs: Vec<_> = arcs
            .iter()
            .map(|arc| (arc.caller, arc.callee.0, arc.how, arc.calls, arc.total_ticks.get()))
            .collect();
        let expected = [
            (FunctionIndex(1), 2, CallKind::Syscall, 10, 7),
            (FunctionIndex(2), 3, CallKind::Call, 20, 7),
            (FunctionIndex(9), 3, CallKind::Call, 1, 0),
            (FunctionIndex::NONE, 2, CallKind::Call, 2, 0),
        ];
        assert_eq!(arcs, expected);
        let functions: Vec<_> = functions.iter().map(|row| (row.function.0, row.calls)).collect();
        assert_eq!(functions, [(2, 12), (3, 21)]);
    }
}
