//! A store that an attacker may write: false plans, results and packs.

use crate::support::{objects, results, MatrixBench, WorkerMachine};
use kerntune_matrix::{Error, MatrixPlan, Store, TaskOutcome, Trust};
use kerntune_stats::SplitMix64;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Every file below a directory with its content, except those of work directories and stores.
fn tree(root: &Path, except: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if except.contains(&name.as_str()) {
                continue;
            }
            let kind = path.symlink_metadata().unwrap();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.insert(name, fs::read(&path).unwrap());
            } else {
                found.insert(name, fs::read_link(&path).unwrap().display().to_string().into_bytes());
            }
        }
    }
    found
}

/// The sealed value of an object.
fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice::<Value>(bytes).unwrap()["of"].take()
}

fn seal(value: &Value) -> Vec<u8> {
    kerntune_work::seal_bytes(value).unwrap()
}

/// Puts a plan into the store after `change`, with the right id.
fn put_plan(store: &dyn Store, plan: &MatrixPlan, change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::to_value(plan).unwrap();
    change(&mut value);
    let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
    bytes.push(b'\n');
    let id = blake3::hash(&bytes).to_hex()[..16].to_owned();
    store.put(&format!("plans/{id}.json"), &bytes).unwrap();
    id
}

#[test]
fn a_result_that_was_changed_is_refused_by_all_who_read_it() {
    let bench = MatrixBench::new(1, 1);
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    assert!(node.run(&plan, &store, 1).unwrap().is_whole());
    let whole = results(&*store);
    let mut refused = 0;
    for (name, bytes) in &whole {
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            store.put(name, &changed).unwrap();
            let shown = kerntune_matrix::results(&plan, &*store, &node.work);
            assert!(matches!(shown, Err(Error::Object { .. })), "{name} {at}");
            refused += 1;
        }
        store.put(name, bytes).unwrap();
    }
    assert!(refused > 200, "{refused}");
    // A kernel's result with a changed content hash is refused as well.
    let build = &plan.tasks[0].id;
    let text = String::from_utf8(whole[&format!("results/{build}.json")].clone()).unwrap();
    store
        .put(&format!("results/{build}.json"), text.replace("\"content\": \"", "\"content\": \"0").as_bytes())
        .unwrap();
    assert!(matches!(node.compute(&plan, &store, build), Err(Error::Object { .. })));
}

/// Changes an object: a bit, a digit, a cut, one more byte, another object's bytes.
fn changed(random: &mut SplitMix64, whole: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let at = random.index(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => bytes.insert(at, random.below(256) as u8),
        3 => bytes.clear(),
        4 => bytes.clone_from(&others[random.index(others.len())]),
        _ => {
            let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
            if let Some(at) = digits.get(random.index(digits.len())) {
                bytes[*at] = b'0' + random.below(10) as u8;
            }
        }
    }
    bytes
}

/// `KERNTUNE_ATTACK_MUTATIONS` is the number of changed objects; `make attack` asks for more.
#[test]
fn no_change_of_an_object_gives_another_figure() {
    let bench = MatrixBench::new(1, 2);
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    assert!(node.run(&plan, &store, 1).unwrap().is_whole());
    // A machine that trusts the store.
    let reader = bench.node("reader");
    let show = || -> Result<String, Error> {
        let loaded = MatrixPlan::load(&*store, &plan.id())?;
        let cells = kerntune_matrix::results(&loaded, &*store, &reader.work)?;
        kerntune_matrix::states(&loaded, &*store)?;
        Ok(serde_json::to_string(&cells).unwrap())
    };
    let right = show().unwrap();
    let all: Vec<(String, Vec<u8>)> =
        objects(&*store, "").into_iter().filter(|(name, _)| !name.starts_with("packs/")).collect();
    let bytes: Vec<Vec<u8>> = all.iter().map(|(_, bytes)| bytes.clone()).collect();
    let asked = std::env::var("KERNTUNE_ATTACK_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let before = tree(bench.dir.path(), &["store", "node", "reader"]);
    let mut random = SplitMix64(45);
    let (mut refused, mut same) = (0, 0);
    for _ in 0..asked.unwrap_or(500) * 6 {
        let (name, whole) = &all[random.index(all.len())];
        let bytes = changed(&mut random, whole, &bytes);
        if bytes == *whole {
            continue;
        }
        // Written directly, as by a disk or a hand: the store would wait for the disk.
        fs::write(bench.path("store").join(name), &bytes).unwrap();
        match show() {
            Ok(shown) => {
                same += 1;
                assert_eq!(shown, right, "{name}");
            }
            Err(_) => refused += 1,
        }
        fs::write(bench.path("store").join(name), whole).unwrap();
    }
    assert_eq!(tree(bench.dir.path(), &["store", "node", "reader"]), before);
    println!("{refused} changes of objects refused, {same} not concerned");
}

#[test]
fn a_plan_whose_names_leave_the_directory_is_refused() {
    let bench = MatrixBench::new(1, 1);
    fs::write(bench.path("f.txt"), "x\n").unwrap();
    let text = fs::read_to_string(bench.path("plan.toml")).unwrap();
    let command = "[[command]]\nname = \"x\"\narguments = [\"--version\"]\nfiles = [\"f.txt\"]\n";
    fs::write(bench.path("plan.toml"), text + command).unwrap();
    let store = bench.store("store");
    let node = bench.node("node");
    let plan = bench.plan(&node, &*store);
    let at = |what: &str| plan.tasks.iter().position(|task| task.title.starts_with(what)).unwrap();
    let (build, measure, command) = (at("build"), at("measure"), at("command"));
    type Change = Box<dyn Fn(&mut Value)>;
    let set = |path: String, to: Value| -> Change {
        Box::new(move |plan| *plan.pointer_mut(&path).unwrap_or_else(|| panic!("{path}")) = to.clone())
    };
    let task = |number: usize, rest: &str| format!("/tasks/{number}/{rest}");
    let given = json!({"given": {"id": "./../../victim", "content": "0"}});
    let changes: Vec<Change> = vec![
        set(task(build, "id"), "../../../victim".into()),
        set(task(build, "id"), "0123456789abcdef".into()),
        set(task(build, "what/label"), "x\nDepends: y".into()),
        set(task(build, "what/label"), "$(reboot)".into()),
        set(task(build, "what/patches"), json!(["../../etc/hostname"])),
        set(task(build, "what/source"), json!({"commit": {"tree": "/x", "commit": "--output=/victim"}})),
        set(task(measure, "what/kernel"), given),
        set(task(measure, "what/kernel"), json!({"of": "../../victim"})),
        set(task(measure, "needs"), json!([])),
        set(task(command, "what/files/0/0"), "/victim/f".into()),
        set(task(command, "what/files/0/0"), "../../../victim/f".into()),
        set(task(command, "what/files/0/1"), "../precious".into()),
        set("/texts".into(), json!({"../precious": "x"})),
        set("/cells/0/task".into(), "../../../victim".into()),
    ];
    let before = tree(bench.dir.path(), &["store", "node"]);
    for (number, change) in changes.iter().enumerate() {
        let id = put_plan(&*store, &plan, change);
        let error = MatrixPlan::load(&*store, &id).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Object { .. }), "{number}: {error}");
    }
    // A file of another name, with matching inputs and id, is written below the task's directory
    // alone.
    assert!(MatrixPlan::load(&*store, &put_plan(&*store, &plan, |_| ())).is_ok());
    assert_eq!(tree(bench.dir.path(), &["store", "node"]), before);
}

#[test]
fn a_plan_of_others_runs_nothing_here_unless_it_is_trusted() {
    let bench = MatrixBench::new(1, 1);
    let text = fs::read_to_string(bench.path("plan.toml")).unwrap();
    let command =
        "[[command]]\nname = \"x\"\narguments = [\"record\", \"--live\", \"--\", \"touch\", \"/x\"]\n";
    fs::write(bench.path("plan.toml"), text + command).unwrap();
    let store = bench.store("store");
    let author = bench.node("author");
    let plan = bench.plan(&author, &*store);
    let mut node = bench.node("node");
    node.trust = Trust::default();
    for (title, words) in [("command", "record --live -- touch /x"), ("build", "make runs what stands there")]
    {
        let task = plan.tasks.iter().find(|task| task.title.starts_with(title)).unwrap();
        let error = node.compute(&plan, &store, &task.id).unwrap_err();
        assert!(matches!(&error, Error::Untrusted { .. }) && error.to_string().contains(words), "{error}");
    }
    assert!(results(&*store).is_empty() && objects(&*store, "failures/").is_empty(), "others may run them");
    // A task that runs only in a guest is computed.
    author.compute(&plan, &store, &plan.tasks[0].id).unwrap();
    let measure = plan.tasks.iter().find(|task| task.title.starts_with("measure")).unwrap();
    assert_eq!(node.compute(&plan, &store, &measure.id).unwrap(), TaskOutcome::Made);
}

/// A plan of two kernels and two workloads, computed by an honest machine, with its store and
/// results.
fn computed(bench: &MatrixBench) -> (MatrixPlan, Arc<dyn Store>, BTreeMap<String, Vec<u8>>) {
    let store = bench.store("honest");
    let node = bench.node("author");
    let plan = bench.plan(&node, &*store);
    assert!(node.run(&plan, &store, 1).unwrap().is_whole());
    let right = results(&*store);
    (plan, store, right)
}

/// A copy of an honest store.
fn copy(bench: &MatrixBench, from: &dyn Store, name: &str) -> Arc<dyn Store> {
    let to = bench.store(name);
    for (object, bytes) in objects(from, "") {
        to.put(&object, &bytes).unwrap();
    }
    to
}

#[test]
fn what_an_honest_machine_computed_is_confirmed() {
    let bench = MatrixBench::new(1, 2);
    let (plan, store, right) = computed(&bench);
    let mut node = bench.node("second");
    let shown = kerntune_matrix::results(&plan, &*store, &node.work).unwrap();
    assert!(shown.iter().all(|cell| !cell.confirmed));
    node.trust.confirm = true;
    let summary = node.run(&plan, &store, 1).unwrap();
    assert!(
        summary.is_whole() && summary.outcomes.values().all(|outcome| *outcome == TaskOutcome::Confirmed),
        "{summary:?}"
    );
    assert!(kerntune_matrix::results(&plan, &*store, &node.work).unwrap().iter().all(|cell| cell.confirmed));
    assert_eq!(results(&*store), right);
    // A result that is replaced later differs from the one that this machine computed.
    let name = format!("results/{}.json", plan.cells[0].task);
    let mut lie = value(&right[&name]);
    lie["total"]["operations"] = 1.into();
    store.put(&name, &seal(&lie)).unwrap();
    let error = kerntune_matrix::results(&plan, &*store, &node.work).unwrap_err();
    assert!(matches!(error, Error::Replaced { .. }), "{error}");
}

/// Two honest machines that confirm, and one that writes anything into the store.
#[test]
fn a_liar_changes_no_figure_and_writes_nothing_outside() {
    let bench = MatrixBench::new(2, 1);
    let (plan, honest, right) = computed(&bench);
    fs::create_dir(bench.path("victim")).unwrap();
    fs::write(bench.path("victim/data"), "precious").unwrap();
    let of = |number: usize| format!("results/{}.json", plan.tasks[number].id);
    let built = |number: usize| value(&right[&of(number)]);
    let pack = |number: usize| format!("packs/{}.tar.zst", built(number)["kernel"].as_str().unwrap());
    let with = |number: usize, key: &str, to: Value| {
        let mut lie = value(&right[&of(number)]);
        lie[key] = to;
        (of(number), seal(&lie))
    };
    let measure = 2;
    let mut figures = value(&right[&of(measure)]);
    figures["operations"][0]["path_length"] = 91_686.into();
    let mut other = built(1);
    other["task"] = built(0)["task"].clone();
    let lies: Vec<(&str, (String, Vec<u8>))> = vec![
        ("a figure", (of(measure), seal(&figures))),
        ("an id", with(0, "kernel", "./../../victim".into())),
        ("an absolute id", with(0, "kernel", bench.path("victim").display().to_string().into())),
        ("another kernel", (of(0), seal(&other))),
        ("another content", with(0, "content", "0000000000000000".into())),
        ("another's result", (of(0), right[&of(1)].clone())),
        ("a pack", (pack(0), honest.get(&pack(1)).unwrap().unwrap())),
        ("no pack", (pack(0), b"nonsense".to_vec())),
        ("a claim", (format!("claims/{}/0002", plan.tasks[measure].id), b"{}".to_vec())),
    ];
    for (number, (what, (name, bytes))) in lies.iter().enumerate() {
        let store = copy(&bench, &*honest, &format!("lied-{number}"));
        store.put(name, bytes).unwrap();
        // One machine that has nothing yet, and one that computed the truth before.
        let names = [format!("a-{number}"), "b".to_owned()];
        let except: Vec<String> = names
            .iter()
            .cloned()
            .chain(["honest".into(), "author".into(), format!("lied-{number}")])
            .collect();
        let except: Vec<&str> = except.iter().map(String::as_str).collect();
        let before = tree(bench.dir.path(), &except);
        for name in &names {
            let mut node: WorkerMachine = bench.node(name);
            node.trust.confirm = true;
            // It may end with an error, but not with other counters.
            let summary = node.run(&plan, &store, 1);
            let Ok(cells) = kerntune_matrix::results(&plan, &*store, &node.work) else { continue };
            let truth = kerntune_matrix::results(&plan, &*honest, &bench.node("author").work).unwrap();
            for cell in cells.iter().filter(|cell| cell.confirmed) {
                let same = truth.iter().find(|other| other.task == cell.task).unwrap();
                assert_eq!(cell.figures, same.figures, "{what}");
            }
            assert!(
                !summary.is_ok_and(|summary| summary.is_whole()) || cells.iter().all(|cell| cell.confirmed),
                "{what}"
            );
        }
        assert_eq!(tree(bench.dir.path(), &except), before, "{what}");
        assert_eq!(fs::read_to_string(bench.path("victim/data")).unwrap(), "precious", "{what}");
    }
}
