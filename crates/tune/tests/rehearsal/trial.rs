//! `ablate`: changes alone, all but one, and together, on the stand-in kernel.

use crate::support::{build_request, TestBench};
use kerntune_compare::{Metric, TOTAL};
use kerntune_kernel::BuildRequest;
use kerntune_tune::trial::{keep, parse, trial, ChangeVerdict, TrialChange, TrialRequest, TrialResult};
use kerntune_tune::{Error, Session};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Extra work that each of two switches avoids.
const PACKET: (&str, &str, &str) = (
    "net/packet.c",
    "#include <linux/kernel.h>\n",
    "#include <linux/kernel.h>\n\nenum { FAST_A = 0 };\n\n\
     static noinline void slow(void)\n{\n\tu32 left = 10;\n\n\tdo\n\t\tasm volatile(\"\" : \"+r\"(left));\n\twhile (--left);\n}\n\nenum { FAST_B = 0 };\n",
);
const DELIVER: (&str, &str, &str) = (
    "net/packet.c",
    "\tdelivered[socket]++;\n",
    "\tif (!FAST_A && !FAST_B)\n\t\tslow();\n\tdelivered[socket]++;\n",
);
/// Three layers that only pass a value on.
const LAYERS: (&str, &str, &str) = (
    "net/checksum.c",
    "u16 checksum(",
    "static noinline u32 layer3(u32 sum)\n{\n\tasm volatile(\"\" : \"+r\"(sum));\n\treturn sum;\n}\n\n\
     static noinline u32 layer2(u32 sum)\n{\n\tsum = layer3(sum);\n\tasm volatile(\"\" : \"+r\"(sum));\n\treturn sum;\n}\n\n\
     static noinline u32 layer1(u32 sum)\n{\n\tsum = layer2(sum);\n\tasm volatile(\"\" : \"+r\"(sum));\n\treturn sum;\n}\n\n\
     u16 checksum(",
);
const CALL: (&str, &str, &str) = ("net/checksum.c", "\tif (count)\n", "\tsum = layer1(sum);\n\tif (count)\n");

/// A source tree that is edited to make patches.
struct TestTree {
    dir: PathBuf,
}

impl TestTree {
    /// Copies the edited files of the stand-in kernel.
    fn new(dir: PathBuf) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rehearsal/kernel");
        for side in ["a/net", "b/net"] {
            fs::create_dir_all(dir.join(side)).unwrap();
            for file in ["packet.c", "checksum.c"] {
                fs::copy(source.join("net").join(file), dir.join(side).join(file)).unwrap();
            }
        }
        Self { dir }
    }

    /// Makes a patch of these edits. With `kept`, the tree keeps them for later patches.
    fn patch(&self, name: &str, edits: &[(&str, &str, &str)], kept: bool) -> PathBuf {
        for (file, before, after) in edits {
            let path = self.dir.join("b").join(file);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(before), "{file}: {before}");
            fs::write(&path, text.replacen(before, after, 1)).unwrap();
        }
        let diff = Command::new("diff").current_dir(&self.dir).args(["-ru", "a", "b"]).output().unwrap();
        let patch = self.dir.join(format!("{name}.patch"));
        fs::write(&patch, diff.stdout).unwrap();
        let (from, to) = if kept { ("b", "a") } else { ("a", "b") };
        for file in ["net/packet.c", "net/checksum.c"] {
            fs::copy(self.dir.join(from).join(file), self.dir.join(to).join(file)).unwrap();
        }
        patch
    }
}

fn change(name: &str, patch: &Path) -> TrialChange {
    TrialChange { name: name.into(), patches: vec![patch.into()], ..TrialChange::default() }
}

fn run(bench: &TestBench, session: &Session, build: &BuildRequest, changes: &[TrialChange]) -> TrialResult {
    trial(session, &request(bench, build, changes), &|_| {}).unwrap()
}

fn request<'a>(
    bench: &'a TestBench,
    build: &'a BuildRequest,
    changes: &'a [TrialChange],
) -> TrialRequest<'a> {
    TrialRequest {
        build,
        workload: &bench.workload,
        changes,
        model: &bench.model,
        metric: Metric::PathLength,
        operation: TOTAL,
        runs: 8,
        alone: false,
        budget: None,
    }
}

#[test]
fn what_changes_bring_is_measured_alone_and_together() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let tree = TestTree::new(bench.path("tree"));
    let add_layers = tree.patch("add-layers", &[LAYERS, CALL], false);
    let mut build = build_request("base");
    build.patches = vec![tree.patch("planted", &[PACKET, DELIVER, LAYERS, CALL], true)];
    let flip = |name, switch: &str| {
        let (before, after) = (format!("{switch} = 0"), format!("{switch} = 1"));
        change(name, &tree.patch(name, &[("net/packet.c", &before, &after)], false))
    };
    let (a, b) = (flip("avoid-a", "FAST_A"), flip("avoid-b", "FAST_B"));
    let (file, without, with) = CALL;
    let layers = change("no-layers", &tree.patch("no-layers", &[(file, with, without)], false));
    let broken =
        change("broken", &tree.patch("broken", &[("net/packet.c", "FAST_A = 0", "FAST_A = \"")], false));
    let changes = [a, b, layers, broken];
    let found = run(&bench, &session, &build, &changes);
    assert_eq!((found.aa, found.runs, found.spread, found.time_was_up), (0.0, 1, 0.0, false));
    let of = |name: &str| found.judged.iter().find(|line| line.change == name).unwrap();
    let alone = |name: &str| of(name).alone.unwrap_or_else(|| panic!("{name}: {:#?}", found.tried));

    // A change that breaks the build makes every set that contains it unusable, and no other.
    assert_eq!((of("broken").alone, of("broken").verdict), (None, ChangeVerdict::NotUsable));
    assert_eq!((found.sum, found.joint), (None, None));
    let because =
        found.tried.iter().find(|tried| tried.changes == ["broken"]).unwrap().because.clone().unwrap();
    assert!(because.contains("packet.c") || because.contains("make"), "{because}");

    // The work that both switches avoid is gained once.
    assert_eq!(alone("avoid-a"), alone("avoid-b"));
    assert!(alone("avoid-a") < -found.noise && alone("no-layers") < -found.noise, "{found:?}");
    let verdicts = ["avoid-a", "avoid-b"].map(|name| of(name).verdict);
    assert!(
        verdicts.contains(&ChangeVerdict::Kept) && verdicts.contains(&ChangeVerdict::Covered),
        "{verdicts:?}"
    );
    assert_eq!(of("no-layers").verdict, ChangeVerdict::Kept);
    assert_eq!(
        found.kept_difference,
        Some(alone("avoid-a") + alone("no-layers")),
        "what is apart adds up exactly"
    );

    // Without the broken change all others can be combined, and the pair with the same gain is
    // reported.
    let found = run(&bench, &session, &build, &changes[..3]);
    let (sum, joint) = (found.sum.unwrap(), found.joint.unwrap());
    assert_eq!(joint - sum, -alone("avoid-a"), "{found:?}");
    let [pair] = &found.pairs[..] else { panic!("{:?}", found.pairs) };
    assert_eq!(pair.changes, ["avoid-a", "avoid-b"]);
    assert_eq!(found.judged[2].interplay, None);

    // With `alone`, the same changes are kept, and only one set contains the broken change.
    let with_broken = Cell::new(0);
    let tell = |names: &[&str]| with_broken.set(with_broken.get() + u32::from(names.contains(&"broken")));
    let only = TrialRequest { alone: true, ..request(&bench, &build, &changes) };
    let only = trial(&session, &only, &tell).unwrap();
    assert_eq!((only.judged[0].last, only.joint, only.pairs.len()), (None, None, 0));
    assert_eq!((&only.kept, only.kept_difference), (&found.kept, Some(joint)));
    assert_eq!(with_broken.get(), 1);

    // Three layers cost exactly what their removal gains.
    let added = run(&bench, &session, &build_request("base"), &[change("layers", &add_layers)]);
    assert_eq!(added.judged[0].alone, Some(-alone("no-layers")));
    assert_eq!((added.judged[0].verdict, added.kept.len()), (ChangeVerdict::Worse, 0));

    let out = bench.path("kept");
    let kept: Vec<&TrialChange> = changes.iter().filter(|change| found.kept.contains(&change.name)).collect();
    keep(&out, &kept).unwrap();
    assert_eq!(fs::read_to_string(out.join("patches/series")).unwrap().lines().count(), 2);
}

#[test]
fn a_trial_that_was_stopped_goes_on_where_it_was() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let tree = TestTree::new(bench.path("tree"));
    let patch = tree.patch("layers", &[LAYERS, CALL], false);
    let (build, changes) = (build_request("base"), [change("layers", &patch)]);
    let request =
        |budget| TrialRequest { operation: "packet_rr", budget, ..request(&bench, &build, &changes) };
    let begun = Cell::new(0);
    let tell = |_: &[&str]| begun.set(begun.get() + 1);
    let stopped = trial(&session, &request(Some(Duration::ZERO)), &tell).unwrap();
    assert_eq!((stopped.time_was_up, stopped.judged[0].alone, begun.get()), (true, None, 0));
    let whole = trial(&session, &request(None), &tell).unwrap();
    assert_eq!((whole.time_was_up, begun.get()), (false, 1));
    assert!(whole.judged[0].alone.unwrap() > 0.0 && whole.unit.ends_with("/op"), "{whole:?}");

    let nothing = TrialRequest { operation: "nothing", ..request(None) };
    assert!(matches!(trial(&session, &nothing, &tell), Err(Error::NoFigure { .. })));
    let two =
        "[[change]]\nname = \"a\"\nrecipe = \"gcc-pgo\"\n[[change]]\nname = \"b\"\nrecipe = \"magic\"\n";
    let two = parse(two, Path::new("two.toml")).unwrap();
    assert!(matches!(
        trial(&session, &TrialRequest { changes: &two, ..request(None) }, &tell),
        Err(Error::UnknownRecipe { .. })
    ));
}
