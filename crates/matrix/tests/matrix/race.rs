//! Several machines on one plan.

use crate::support::{objects, results, MatrixBench, WorkerMachine};
use kerntune_matrix::{states, Error, Store, TaskOutcome, LEASE};
use std::sync::{Arc, Barrier};

#[test]
fn machines_that_race_compute_each_task_once() {
    let bench = MatrixBench::new(2, 4);
    let (alone, store) = (bench.store("alone"), bench.store("store"));
    let single = bench.node("single");
    let plan = bench.plan(&single, &*alone);
    assert!(single.run(&plan, &alone, 2).unwrap().is_whole());

    plan.publish(&*store).unwrap();
    // Long enough for a busy disk, which delays every write.
    let nodes = ["a", "b", "c"].map(|name| WorkerMachine { lease: LEASE, ..bench.node(name) });
    let begin = Barrier::new(nodes.len());
    let made: Vec<usize> = std::thread::scope(|scope| {
        let running: Vec<_> = nodes
            .iter()
            .map(|node| {
                scope.spawn(|| {
                    begin.wait();
                    let summary = node.run(&plan, &store, 2).unwrap();
                    assert!(summary.is_whole(), "{summary:?}");
                    summary.outcomes.values().filter(|outcome| **outcome == TaskOutcome::Made).count()
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.iter().sum::<usize>(), plan.tasks.len(), "{made:?}");
    assert!(states(&plan, &*store).unwrap().iter().all(|task| task.computed == 1));
    assert_eq!(results(&*store), results(&*alone));
    // Packs are equal too, whichever machine built the kernel: the id names the build, the images
    // are its content.
    assert_eq!(store.list("packs/").unwrap(), alone.list("packs/").unwrap());
}

/// Runs a measurement whose kernel exists, while another machine does `before`.
fn raced(
    before: impl Fn(&dyn Store, &str) + Send + Sync + 'static,
) -> (Result<TaskOutcome, Error>, Arc<dyn Store>, String) {
    let bench = MatrixBench::new(1, 1);
    let store = bench.store("store");
    let mut node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    node.compute(&plan, &store, &plan.tasks[0].id).unwrap();
    let task = plan.tasks[1].id.to_string();
    let (theirs, name) = (store.clone(), format!("results/{task}.json"));
    // Computes the right result.
    let right = bench.store("right");
    assert!(bench.node("other").run(&plan, &right, 1).unwrap().is_whole());
    let bytes = right.get(&name).unwrap().unwrap();
    theirs.put("the right one", &bytes).unwrap();
    node.before = Arc::new(move || before(&*theirs, &name));
    (node.compute(&plan, &store, &task), store, task)
}

#[test]
fn the_slower_of_two_throws_its_result_away() {
    let faster = |store: &dyn Store, name: &str| {
        let bytes = store.get("the right one").unwrap().unwrap();
        assert!(store.put_new(name, &bytes).unwrap());
    };
    let (outcome, store, _) = raced(faster);
    assert_eq!(outcome.unwrap(), TaskOutcome::Discarded);
    assert!(objects(&*store, "conflicts/").is_empty());
}

#[test]
fn two_that_disagree_are_told() {
    let (outcome, store, task) = raced(|store, name| {
        let right = String::from_utf8(store.get("the right one").unwrap().unwrap()).unwrap();
        let of: serde_json::Value = serde_json::from_str::<serde_json::Value>(&right).unwrap()["of"].take();
        let mut other = of.clone();
        other["model"] = "another".into();
        assert!(store.put_new(name, &kerntune_work::seal_bytes(&other).unwrap()).unwrap());
    });
    let error = outcome.unwrap_err();
    assert!(matches!(&error, Error::Differs { task: of, .. } if *of == task), "{error}");
    let kept = objects(&*store, "conflicts/");
    assert_eq!(kept.into_values().next(), store.get("the right one").unwrap());
}
