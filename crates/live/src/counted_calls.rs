//! Calls that were counted, beside times that were sampled.

use crate::aggregate::Calls;
use kerntune_profile::{CallArc, Counted, FunctionIndex, FunctionStats, How, Nanoseconds};
use kerntune_symbols::Table;
use std::collections::BTreeMap;

/// How the kernel's own code reaches a function that a count has for called.
///
/// A count says who called and not how. Samples have seen some of these arcs; those that they have not are calls.
const HOWS: [How; 5] = [How::Call, How::Jump, How::Syscall, How::Exception, How::Interrupt];

/// Puts the counts into the rows of functions and arcs, and adds rows for what was called and never sampled. Both stay in order.
pub(crate) fn add(calls: &Calls, functions: &mut Vec<FunctionStats>, arcs: &mut Vec<CallArc>) {
    let mut of_functions: BTreeMap<FunctionIndex, FunctionStats> =
        functions.drain(..).map(|row| (row.function, row)).collect();
    let mut of_arcs: BTreeMap<(FunctionIndex, FunctionIndex, How), CallArc> =
        arcs.drain(..).map(|row| ((row.caller, row.callee, row.how), row)).collect();
    for ((caller, callee), count) in calls.rows() {
        let (caller, callee) = (caller.map_or(FunctionIndex::NONE, FunctionIndex), FunctionIndex(callee));
        let seen = HOWS.into_iter().find(|how| of_arcs.contains_key(&(caller, callee, *how)));
        let how = seen.unwrap_or(How::Call);
        let arc = of_arcs.entry((caller, callee, how)).or_insert(CallArc {
            region: 0,
            caller,
            callee,
            how,
            calls: 0,
            ended: 0,
            elapsed_ns: Nanoseconds::ZERO,
        });
        arc.calls = arc.calls.saturating_add(count);
        let function = of_functions.entry(callee).or_insert(FunctionStats {
            region: 0,
            function: callee,
            calls: 0,
            ended: 0,
            net_ns: Nanoseconds::ZERO,
            ended_net_ns: Nanoseconds::ZERO,
            elapsed_ns: Nanoseconds::ZERO,
            max_ns: Nanoseconds::ZERO,
            min_ns: Nanoseconds::ZERO,
            slowest_ns: Nanoseconds::ZERO,
            slowest_at_ns: Nanoseconds::ZERO,
        });
        function.calls = function.calls.saturating_add(count);
    }
    functions.extend(of_functions.into_values());
    arcs.extend(of_arcs.into_values());
}

/// System calls among the counts, by name.
pub(crate) fn system_calls(calls: &Calls, table: &Table, source: &str) -> Vec<Counted> {
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
    // Of a call without arguments the inner name is another name of the outer function; else it is called by that one.
    for (name, count) in inner {
        by_name.entry(name).or_insert(count);
    }
    let row = |(name, count)| Counted { kind: "syscall".into(), name, count, source: source.to_string() };
    by_name.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_to_the_arcs_that_samples_saw_and_to_new_ones() {
        let sampled = |caller, callee, how| CallArc {
            region: 0,
            caller,
            callee: FunctionIndex(callee),
            how,
            calls: 0,
            ended: 0,
            elapsed_ns: Nanoseconds(7),
        };
        let mut arcs =
            vec![sampled(FunctionIndex(1), 2, How::Syscall), sampled(FunctionIndex(2), 3, How::Call)];
        let mut calls = Calls::new(9);
        calls.add(Some(1), Some(2), 10);
        calls.add(Some(2), Some(3), 20);
        calls.add(Some(9), Some(3), 1);
        calls.add(None, Some(2), 2);
        let mut functions = Vec::new();
        add(&calls, &mut functions, &mut arcs);
        let arcs: Vec<_> = arcs
            .iter()
            .map(|arc| (arc.caller, arc.callee.0, arc.how, arc.calls, arc.elapsed_ns.get()))
            .collect();
        let expected = [
            (FunctionIndex(1), 2, How::Syscall, 10, 7),
            (FunctionIndex(2), 3, How::Call, 20, 7),
            (FunctionIndex(9), 3, How::Call, 1, 0),
            (FunctionIndex::NONE, 2, How::Call, 2, 0),
        ];
        assert_eq!(arcs, expected);
        let functions: Vec<_> = functions.iter().map(|row| (row.function.0, row.calls)).collect();
        assert_eq!(functions, [(2, 12), (3, 21)]);
    }
}
