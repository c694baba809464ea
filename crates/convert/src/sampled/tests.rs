//! Tests of the builder.

use super::*;

#[test]
fn a_function_has_its_stacks_once() {
    let mut stacks = SampledStacks::default();
    let [a, b] = ["a", "b"].map(|name| stacks.function(name, None, None));
    assert_eq!(stacks.function("a", None, None), a);
    let [a, b] = [a, b].map(StackFrame::Function);
    stacks.add(StackRoot::Thread("x"), &[a, b, a], 2);
    stacks.add(StackRoot::Thread("x"), &[a, StackFrame::User], 5);
    stacks.add(StackRoot::Idle, &[], 1);
    let tables = stacks.finish("samples", 10).unwrap();
    let figures: Vec<_> =
        tables.functions.iter().map(|row| (row.self_ticks.get(), row.total_ticks.get())).collect();
    assert_eq!(figures, [(20, 70), (0, 20)]);
    let arcs: Vec<_> =
        tables.arcs.iter().map(|arc| (arc.caller, arc.callee.get(), arc.total_ticks.get())).collect();
    assert_eq!(arcs, [(FunctionIndex(0), 1, 20), (FunctionIndex(1), 0, 20), (FunctionIndex::NONE, 0, 70)]);
    let region = &tables.regions[0];
    assert_eq!(
        (region.busy_ticks, region.user_ticks, region.unattributed_ticks),
        (Ticks(80), Ticks(50), Ticks(10))
    );
    let threads: Vec<_> =
        tables.threads.iter().map(|row| (row.comm.as_str(), row.self_ticks.get())).collect();
    assert_eq!(threads, [("x", 70), ("[idle task]", 10)]);
    assert_eq!(tables.paths.iter().map(|path| path.self_ticks.get()).sum::<u64>(), 80);
}

#[test]
fn times_that_overflow_are_refused() {
    let mut stacks = SampledStacks::default();
    stacks.add(StackRoot::Interrupt, &[StackFrame::Unattributed], u64::MAX / 2);
    assert!(stacks.finish("samples", 3).is_none());
    let mut stacks = SampledStacks::default();
    for _ in 0..2 {
        stacks.add(StackRoot::Interrupt, &[], u64::MAX);
    }
    assert!(stacks.finish("samples", 1).is_none());
}
