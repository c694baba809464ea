//! A plan on one machine.

use crate::support::{objects, results, MatrixBench};
use kerntune_matrix::{launch, retry, states, Error, MatrixPlan, Task, TaskOutcome, TaskPool, TaskProgress};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Acceptance: the same cells with two setups.
#[test]
fn figures_depend_neither_on_directory_nor_cores_nor_load() {
    let bench = MatrixBench::new(2, 3);
    let (a, b) = (bench.store("store-a"), bench.store("store-b"));
    let one = bench.node("one");
    let plan = bench.plan(&one, &*a);
    assert_eq!((plan.tasks.len(), plan.cells.len()), (8, 6));
    assert!(one.run(&plan, &a, 1).unwrap().is_whole());

    let other = bench.node("a place/with another name".replace(' ', "-").as_str());
    let again = bench.plan(&other, &*b);
    assert_eq!(again.id(), plan.id(), "the same inputs, by content");
    // Load: threads that only spin.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let summary = other.run(&again, &b, 4);
        stop.store(true, Ordering::Relaxed);
        assert!(summary.unwrap().is_whole());
    });
    let (ours, theirs) = (results(&*a), results(&*b));
    assert_eq!(ours.len(), 8);
    assert_eq!(ours, theirs);

    // Results that exist are found, here and by a machine that has nothing else.
    let third = bench.node("third");
    for node in [&one, &third] {
        let summary = node.run(&plan, &a, 2).unwrap();
        assert!(summary.is_whole() && summary.outcomes.is_empty() && summary.elsewhere == 8, "{summary:?}");
    }
    let all = states(&plan, &*a).unwrap();
    assert!(all
        .iter()
        .all(|task| (task.claims, task.computed) == (1, 1) && task.progress == TaskProgress::Done));
    let cells = kerntune_matrix::results(&plan, &*a, &one.work).unwrap();
    let figures = cells[0].figures.as_ref().unwrap();
    assert_eq!(
        figures.operations.iter().map(|of| of.operation.as_str()).collect::<Vec<_>>(),
        ["getpid", "file_rr", "pipe_rr", "list_rr", "packet_rr"]
    );
    assert!(kerntune_matrix::log(&plan, &*a, &plan.cells[0]).unwrap().contains("a log"));
}

#[test]
fn a_machine_that_has_nothing_takes_kernels_out_of_the_store() {
    let bench = MatrixBench::new(1, 2);
    let store = bench.store("store");
    let builder = bench.node("builder");
    let plan = bench.plan(&builder, &*store);
    let build = &plan.tasks[0];
    assert_eq!(builder.compute(&plan, &store, &build.id).unwrap(), TaskOutcome::Made);
    let other = bench.node("other");
    // No compiler was needed there: the kernel came from the store.
    assert_eq!(other.compute(&plan, &store, &plan.tasks[1].id).unwrap(), TaskOutcome::Made);
    let content = |room: std::path::PathBuf| {
        let ids = fs::read_dir(&room).unwrap().map(|entry| entry.unwrap().path());
        let id = ids.into_iter().find(|path| path.join("kernel.json").is_file()).unwrap();
        kerntune_kernel::Kernel::load(&id).unwrap().content().unwrap()
    };
    // The received kernel stays apart from those built there.
    let received = other.work.root().join(".matrix/kernels");
    assert_eq!(content(builder.work.root().join("kernels")), content(received));
    assert!(kerntune_kernel::list(&other.work).unwrap().is_empty());
    // A kernel that is damaged in the store is refused by name.
    let pack = store.list("packs/").unwrap().remove(0);
    let mut bytes = store.get(&pack).unwrap().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    store.put(&pack, &bytes).unwrap();
    let third = bench.node("third");
    let error = third.compute(&plan, &store, &plan.tasks[2].id);
    match error {
        Ok(TaskOutcome::Failed(why)) => assert!(why.contains(&pack) && why.contains("damaged"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fails_is_kept_and_what_needs_it_is_not_begun() {
    let bench = MatrixBench::new(1, 1);
    fs::write(
        bench.path("w0.toml"),
        "name = \"w0\"\n[[measured.step]]\ncommand = [\"rr\"]\nexpect = [\"never said\"]\n",
    )
    .unwrap();
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    let summary = node.run(&plan, &store, 2).unwrap();
    assert!(!summary.is_whole());
    let measure = &plan.tasks[1].id;
    assert!(
        matches!(&summary.outcomes[measure], TaskOutcome::Failed(why) if why.contains("never said")),
        "{summary:?}"
    );
    // It is not tried again without a request.
    let again = node.run(&plan, &store, 2).unwrap();
    assert!(matches!(&again.outcomes[measure], TaskOutcome::Failed(_)));
    assert_eq!(states(&plan, &*store).unwrap()[1].claims, 1);
    retry(&plan, &*store).unwrap();
    node.run(&plan, &store, 2).unwrap();
    assert_eq!(states(&plan, &*store).unwrap()[1].claims, 2);

    // A failed build blocks the tasks that need it.
    let bench = MatrixBench::new(0, 2);
    let path = bench.path("plan.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + "[[configuration]]\nname = \"bad\"\nkcflags = [\"-fno-such-flag\"]\n").unwrap();
    let plan = bench.plan(&node, &*store);
    let summary = node.run(&plan, &store, 2).unwrap();
    assert!(matches!(&summary.outcomes[&plan.tasks[0].id], TaskOutcome::Failed(_)));
    assert_eq!(summary.blocked.len(), 2);
}

#[test]
fn a_machine_that_would_compute_something_else_leaves_it_to_others() {
    let bench = MatrixBench::new(1, 1);
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    node.compute(&plan, &store, &plan.tasks[0].id).unwrap();
    let mut other = bench.node("other");
    other.identity = Some("another emulator".into());
    let measure = &plan.tasks[1].id;
    assert_eq!(other.compute(&plan, &store, measure).unwrap(), TaskOutcome::Refused(vec!["machine".into()]));
    let summary = other.run(&plan, &store, 1).unwrap();
    assert!(!summary.is_whole());
    assert_eq!(states(&plan, &*store).unwrap()[1].claims, 0, "it was not claimed");
    assert_eq!(node.compute(&plan, &store, measure).unwrap(), TaskOutcome::Made);
}

#[test]
fn what_was_lost_is_gone_on_with() {
    let bench = MatrixBench::new(1, 3);
    let store = bench.store("store");
    let mut node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    // The second guest of this machine is lost: an error of the machine, not of the task.
    let count = Arc::new(AtomicUsize::new(0));
    let lost = count.clone();
    node.before = Arc::new(move || {
        if lost.fetch_add(1, Ordering::SeqCst) == 1 {
            panic!("the machine is lost");
        }
    });
    let summary = node.run(&plan, &store, 1).unwrap();
    assert_eq!(summary.errors.len(), 1, "{summary:?}");
    assert!(matches!(summary.errors[0].1, Error::Panicked));
    let before = results(&*store);
    assert_eq!(before.len(), 3);
    let summary = node.run(&plan, &store, 1).unwrap();
    assert!(summary.is_whole());
    assert_eq!(summary.outcomes.len(), 1, "nothing that was whole is computed twice");
    let after = results(&*store);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)) && after.len() == 4);
}

#[test]
fn a_process_that_is_killed_is_begun_again_and_not_for_ever() {
    let bench = MatrixBench::new(1, 1);
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    let run = |kills: usize| {
        let begun = AtomicUsize::new(0);
        let one = |task: &Task| match begun.fetch_add(1, Ordering::SeqCst) < kills {
            true => {
                let mut command = Command::new("sh");
                command.args(["-c", "echo working; kill -9 $$"]);
                launch(command, &*store, task, &bench.path("log"))
            }
            false => node.compute(&plan, &store, &task.id),
        };
        TaskPool { plan: &plan, store: &*store, cores: 1, run: &one, confirm: false, on_event: &|_, _, _| () }
            .run()
            .unwrap()
    };
    let summary = run(3);
    assert!(matches!(&summary.errors[..], [(_, Error::Lost { signal: 9, last, .. })] if last == "working"));
    assert_eq!((summary.blocked.len(), results(&*store).len()), (1, 0));
    assert_eq!(fs::read_to_string(bench.path("log")).unwrap(), "working\n");
    assert!(run(2).is_whole());
}

#[test]
fn commands_run_in_directories_of_their_own() {
    let bench = MatrixBench::new(1, 1);
    fs::write(bench.path("tolerances.toml"), "x = 1\n").unwrap();
    let path = bench.path("plan.toml");
    let text = fs::read_to_string(&path).unwrap();
    let command =
        "[[command]]\nname = \"guard\"\narguments = [\"guard\", \"check\"]\nfiles = [\"tolerances.toml\"]\n";
    fs::write(&path, text + command).unwrap();
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    assert!(node.run(&plan, &store, 2).unwrap().is_whole());
    let cells = kerntune_matrix::results(&plan, &*store, &node.work).unwrap();
    assert_eq!(cells[1].output.as_deref(), Some("guard check in tolerances.toml"));
    // Other content makes another task.
    fs::write(bench.path("tolerances.toml"), "x = 2\n").unwrap();
    let other = bench.plan(&node, &*store);
    assert_ne!(other.cells[1].task, plan.cells[1].task);
    assert_eq!(other.cells[0].task, plan.cells[0].task);
}

#[test]
fn plans_are_found_by_the_beginning_of_their_id_and_refused_if_damaged() {
    let bench = MatrixBench::new(1, 1);
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    let id = plan.id();
    assert_eq!(MatrixPlan::load(&*store, &id[..6]).unwrap(), plan);
    assert!(matches!(MatrixPlan::load(&*store, "zz"), Err(Error::NoPlan { .. })));
    assert!(matches!(MatrixPlan::load(&*store, ""), Err(Error::NoPlan { .. })));
    let (name, bytes) = objects(&*store, "plans/").pop_first().unwrap();
    let text = String::from_utf8(bytes).unwrap().replace("w0", "w9");
    store.put(&name, text.as_bytes()).unwrap();
    let error = MatrixPlan::load(&*store, &id).unwrap_err().to_string();
    assert!(error.contains(&name) && error.contains("damaged"), "{error}");
}
