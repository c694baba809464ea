//! Tests with two programs in place of kernels: the same source with some functions changed.

use super::*;
use crate::{test_kernel, Error};
use kerntune_kernel::Kernel;
use kerntune_profile::{
    merge, Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, KernelId, Manifest, Profile,
    RegionStats, Symbol, Tables, Ticks,
};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Executions of each function, and its source in the first and in the second kernel.
const FUNCTIONS: &[(&str, u64, &str, &str)] = &[
    ("constant", 40_000, "return x > 5 ? x * 3 : helper(x);", "return x > 1000 ? x * 3 : helper(x);"),
    ("offset", 30_000, "return p->b + helper(p->b);", "return p->c + helper(p->c);"),
    ("branch", 20_000, "return x + helper(x);", "if (x > 7) sink++; return x + helper(x);"),
    ("callee", 5_000, "return 1 + helper(x);", "return 1 + other(x);"),
    ("gone", 4_000, "return x ^ helper(x + 1);", ""),
    ("never", 0, "return x - 1;", "return x - 2;"),
];

struct Fixture {
    _dir: TempDir,
    one: Kernel,
    two: Kernel,
}

fn source(two: bool) -> String {
    let mut text = String::from(
        "struct pair { int a, b, c, d[100]; };\nint sink;\n\
         __attribute__((noipa)) int helper(int x) { return x ^ sink; }\n\
         __attribute__((noipa)) int other(int x) { return x + sink; }\n",
    );
    if two {
        text.push_str(
            "__attribute__((noipa)) int pushes_the_rest_on(int x) { return x * sink + helper(x); }\n",
        );
    }
    for (name, _, one, other) in FUNCTIONS {
        let body = if two { other } else { one };
        if !body.is_empty() {
            text.push_str(&format!(
                "__attribute__((noipa)) int {name}(int x, struct pair *p) {{ {body} }}\n"
            ));
        }
    }
    text.push_str("int _start(void) { return 0; }\n");
    text
}

fn compile(dir: &Path, two: bool, flags: &[&str], image: &Path) {
    fs::create_dir_all(image.parent().unwrap()).unwrap();
    fs::write(dir.join("all.c"), source(two)).unwrap();
    let output = Command::new("gcc")
        .current_dir(dir)
        .args(["-O2", "-nostdlib", "-static", "-no-pie", "all.c", "-o"])
        .arg(image)
        .args(flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Fixture {
    fn new() -> Self {
        Self::with(&[])
    }

    /// Compiles the second kernel with these flags.
    fn with(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let one = test_kernel::kernel(&dir.path().join("one"), "k1", "6.12.115");
        let two = test_kernel::kernel(&dir.path().join("two"), "k2", "6.12.117");
        compile(dir.path(), false, &[], &one.vmlinux());
        compile(dir.path(), true, flags, &two.vmlinux());
        Self { _dir: dir, one, two }
    }

    /// Recording in which `_start` calls each function, which runs from end to end; so does
    /// `helper`.
    fn recording(&self) -> Profile {
        let image = LinkedCode::load(&self.one).unwrap();
        let functions = || image.symbols().functions().iter().zip(0usize..);
        let start = image.symbols().address_of("_start").unwrap();
        let ran = |name: &str| FUNCTIONS.iter().find(|f| f.0 == name).map_or(0, |f| f.1);
        let mut tables = Tables::default();
        let mut executed = 0;
        for (function, at) in functions() {
            tables.symbols.push(Symbol {
                function: FunctionIndex(at as u32),
                name: function.name.clone(),
                address: Address(function.address),
                size: function.size,
                file: None,
                module: None,
            });
            let count = if function.name == "helper" { 100_000 } else { ran(&function.name) };
            if count == 0 {
                continue;
            }
            let steps = image.shape(at).unwrap().steps;
            let last = steps.last().unwrap();
            executed += count * steps.len() as u64;
            tables.blocks.push(Block {
                start: Address(function.address),
                last: Address(last.address),
                count,
                instructions: Instructions(steps.len() as u64),
                bytes: last.address + last.length - function.address,
            });
            let (source, target) = (Address(start), Address(function.address));
            tables.edges.push(Edge { source, target, count, kind: EdgeKind::Call });
        }
        tables.regions.push(region(executed));
        let kernel = KernelId { id: "k1".into(), label: "label-of-k1".into(), version: "6.12.115".into() };
        Profile { manifest: Manifest::new("r1", kernel, "rr", "emulator"), tables }
    }

    fn ask<'a>(&'a self, recording: &'a Profile, kernel: &'a Kernel) -> GateInput<'a> {
        GateInput { recording, recorded: Some(&self.one), kernel, recipe: None, halves: None }
    }
}

fn region(executed: u64) -> RegionStats {
    let time = Ticks(executed);
    RegionStats {
        name: "all".into(),
        elapsed_ticks: time,
        busy_ticks: time,
        operations: 1,
        kernel_instructions: Instructions(executed),
        ..RegionStats::default()
    }
}

fn refused(quality: &ProfileQuality) -> Vec<&str> {
    quality.findings.iter().filter(|f| f.refused).map(|f| f.check.as_str()).collect()
}

#[test]
fn a_recording_of_the_kernel_itself_matches_whole() {
    let fixture = Fixture::new();
    let recording = fixture.recording();
    let quality = check(&fixture.ask(&recording, &fixture.one)).unwrap();
    quality.verdict().unwrap();
    let matched = quality.matched.as_ref().unwrap();
    assert_eq!((quality.coverage, quality.usable()), (Some(1.0), 1.0));
    assert_eq!((matched.ran.functions, matched.same.functions, matched.blocks), (6, 6, 6));
    assert_eq!((matched.matched_blocks, matched.branches), (6, [6, 6]));
    assert_eq!(matched.lost, []);
    assert!(quality.to_string().ends_with("verdict     fit for use"), "{quality}");
}

#[test]
fn a_recording_of_another_kernel_is_carried_as_far_as_blocks_match() {
    let fixture = Fixture::new();
    let recording = fixture.recording();
    let quality = check(&fixture.ask(&recording, &fixture.two)).unwrap();
    assert_eq!(refused(&quality), ["kernel"]);
    let said = quality.verdict().unwrap_err().to_string();
    assert!(said.contains("kerntune profile transfer r1 --to k2"), "{said}");
    let matched = quality.matched.as_ref().unwrap();
    let fates: Vec<_> = matched.lost.iter().map(|lost| (lost.name.as_str(), lost.fate)).collect();
    assert_eq!(fates, [("gone", LossReason::Gone)], "{quality}");
    assert_eq!((matched.same.functions, matched.changed.functions, matched.gone.functions), (3, 2, 1));
    let lost: u64 = matched.lost.iter().map(|lost| lost.instructions).sum();
    let score = matched.score;
    assert_eq!(score.exact + score.loose, matched.matched_instructions);
    assert_eq!((lost, score.carried() + lost), (score.lost, matched.ran.instructions));

    let (transferred, told) = transfer(&recording, &fixture.one, &fixture.two, 50).unwrap();
    told.verdict().unwrap();
    assert_eq!(transferred.manifest.kernel.id, "k2");
    let image = LinkedCode::load(&fixture.two).unwrap();
    let of = |name: &str| {
        let at = image.symbols().address_of(name).unwrap();
        transferred.tables.blocks.iter().find(|block| block.start.get() == at).map(|block| block.count)
    };
    let counts = ["helper", "constant", "offset", "branch", "callee"].map(of);
    assert_eq!(counts, [100_000, 40_000, 30_000, 20_000, 5_000].map(Some));
    // `callee` calls it, and nothing else does.
    assert_eq!(of("other"), Some(5_000));
    // Block sizes are those of the second kernel: `cmp $1000` takes more bytes than `cmp $5`.
    for block in &transferred.tables.blocks {
        let at = image.symbols().lookup(block.start.get()).unwrap();
        if !["helper", "constant", "offset"].contains(&image.symbols().functions()[at].name.as_str()) {
            continue;
        }
        let steps = image.shape(at).unwrap().steps;
        assert_eq!(block.instructions.get(), steps.len() as u64);
        assert_eq!(block.bytes, steps.iter().map(|step| step.length).sum::<u64>());
    }
    let start = image.symbols().address_of("_start").unwrap();
    let recorded = transferred.tables.edges.iter().filter(|edge| edge.source.get() == start);
    assert_eq!(recorded.count(), 5);

    // The loss is known from the transferred profile alone, and from sums of such profiles.
    for profile in [&transferred, &merge(&[(&transferred, 3)]).unwrap()] {
        let again = check(&GateInput { recorded: None, ..fixture.ask(profile, &fixture.two) }).unwrap();
        again.verdict().unwrap();
        assert_eq!(again.coverage.unwrap(), quality.usable());
    }
}

#[test]
fn a_transfer_to_the_kernel_itself_changes_no_count() {
    let fixture = Fixture::new();
    let recording = fixture.recording();
    let image = LinkedCode::load(&fixture.one).unwrap();
    let (tables, matched) = transfer::transfer(&recording.tables, &image, &image);
    let mut blocks = recording.tables.blocks.clone();
    blocks.sort_by_key(|block| block.start);
    assert_eq!(tables.blocks, blocks);
    let mut edges = recording.tables.edges.clone();
    edges.sort_by_key(|edge| edge.target);
    assert_eq!(tables.edges, edges);
    assert_eq!(matched.score.exact, matched.ran.instructions);
}

#[test]
fn other_flags_keep_the_flow() {
    let fixture = Fixture::with(&["-fno-omit-frame-pointer", "-mno-red-zone"]);
    let recording = fixture.recording();
    let quality = check(&fixture.ask(&recording, &fixture.two)).unwrap();
    let matched = quality.matched.unwrap();
    // A leaf has no frame, whatever the flags are.
    assert_eq!((matched.same.functions, matched.same_flow.functions), (2, 1), "{:?}", matched.lost);
    let transferred = transfer(&recording, &fixture.one, &fixture.two, 50).unwrap().0;
    let image = LinkedCode::load(&fixture.two).unwrap();
    // The others are transferred by block.
    let whole = transferred.tables.blocks.iter().filter(|block| {
        let at = image.symbols().lookup(block.start.get()).unwrap();
        ["helper", "constant", "offset"].contains(&image.symbols().functions()[at].name.as_str())
    });
    let counts: u64 = whole.clone().map(|block| block.count).sum();
    assert_eq!(counts, 170_000);
    for block in whole {
        let at = image.symbols().lookup(block.start.get()).unwrap();
        let last = image.shape(at).unwrap().steps.last().unwrap().address;
        assert_eq!(block.last.get(), last, "its last instruction is the last");
    }
}

#[test]
fn too_little_is_not_carried_and_carried_little_is_not_used() {
    let fixture = Fixture::new();
    let mut recording = fixture.recording();
    let gone = LinkedCode::load(&fixture.one).unwrap().symbols().address_of("gone").unwrap();
    for block in &mut recording.tables.blocks {
        if block.start.get() == gone {
            recording.tables.regions[0].kernel_instructions += block.instructions * 99 * block.count;
            block.count *= 100;
        }
    }
    let said = transfer(&recording, &fixture.one, &fixture.two, 50).unwrap_err().to_string();
    assert!(said.contains("50 % are needed. Most of what is lost is in gone"), "{said}");
    let quality = check(&fixture.ask(&recording, &fixture.two)).unwrap();
    let said = quality.verdict().unwrap_err().to_string();
    assert!(said.contains("is the same here, and 50 % are needed to transfer it"), "{said}");
    // A lower limit allows the transfer.
    let (mut transferred, _) = transfer(&recording, &fixture.one, &fixture.two, 1).unwrap();
    check(&fixture.ask(&transferred, &fixture.two)).unwrap().verdict().unwrap();
    transferred.manifest.carried.as_mut().unwrap().at_least_percent = 50;
    let quality = check(&fixture.ask(&transferred, &fixture.two)).unwrap();
    assert_eq!(refused(&quality), ["coverage"]);

    let same = transfer(&recording, &fixture.one, &fixture.one, 50).unwrap_err();
    assert!(matches!(same, Error::NothingToTransfer { .. }), "{same}");
    let gone = check(&GateInput { recorded: None, ..fixture.ask(&recording, &fixture.two) }).unwrap();
    let said = gone.verdict().unwrap_err().to_string();
    assert!(said.contains("not in the work directory any more"), "{said}");
}

#[test]
fn what_would_do_nothing_is_refused() {
    let fixture = Fixture::new();
    let ask = |change: &dyn Fn(&mut Profile)| {
        let mut recording = fixture.recording();
        change(&mut recording);
        check(&fixture.ask(&recording, &fixture.one)).unwrap()
    };
    let empty = ask(&|recording| recording.tables.blocks.clear());
    assert_eq!(refused(&empty), ["counts"]);
    assert!(empty.verdict().unwrap_err().to_string().contains("--no-edges"));
    let overflowed = ask(&|recording| recording.tables.blocks[0].count = u64::MAX);
    assert!(refused(&overflowed).contains(&"overflow"), "{overflowed}");
    let half = ask(&|recording| recording.tables.regions[0].kernel_instructions = Instructions(10_000_000));
    assert_eq!(refused(&half), ["coverage"], "{half}");
    // The code of one of two CPUs is in the sums of the regions, but not in the tables.
    let one_of_two = ask(&|recording| {
        let region = &mut recording.tables.regions[0];
        region.kernel_instructions += region.kernel_instructions;
        region.kernel_taken_branches = 2 * recording.tables.edges.iter().map(|edge| edge.count).sum::<u64>();
    });
    assert_eq!(refused(&one_of_two), ["coverage", "branches"], "{one_of_two}");
    assert!(one_of_two.verdict().unwrap_err().to_string().contains("50.0 %"), "{one_of_two}");
    assert!(one_of_two.to_string().contains("those of one CPU"), "{one_of_two}");
    let silent = ask(&|recording| {
        recording.manifest.health.insert("silent_cpus".into(), 1);
    });
    assert_eq!(refused(&silent), ["cpus"], "{silent}");
    assert!(silent.to_string().contains("\n  left out    1 CPUs have no sample\n"), "{silent}");
    let strange = |percent: u64| {
        ask(&|recording| {
            let fitting = recording.tables.blocks.iter().map(|block| block.count).sum::<u64>();
            recording.manifest.health.insert("strange_runs".into(), fitting * percent / (100 - percent));
        })
    };
    assert!(refused(&strange(4)).is_empty(), "{}", strange(4));
    assert_eq!(refused(&strange(10)), ["runs"], "{}", strange(10));
    let (text, json) = (strange(4).to_string(), serde_json::to_value(strange(4)).unwrap());
    assert!(text.contains(" runs between two branches do not fit the kernel's code\n"), "{text}");
    assert!(json["left_out"]["strange_runs"].as_u64().is_some_and(|count| count > 0), "{json}");
    let elsewhere = ask(&|recording| {
        for block in &mut recording.tables.blocks {
            (block.start, block.last) = (Address(0x7000_0000), Address(0x7000_0000));
        }
    });
    assert_eq!(refused(&elsewhere), ["blocks"], "{elsewhere}");
    let little = ask(&|recording| {
        recording.tables.blocks.truncate(1);
        recording.tables.blocks[0].count = 3;
        recording.tables.regions.clear();
    });
    little.verdict().unwrap();
    assert!(little.to_string().contains("warning     only"), "{little}");

    let (one, mut two) = (fixture.recording(), fixture.recording());
    let halves = |two: &Profile| {
        let halves = Some(("both", [&one, two]));
        check(&GateInput { halves, ..fixture.ask(&one, &fixture.one) }).unwrap()
    };
    assert_eq!(halves(&two).overlap.unwrap().hot[0].overlap, 1.0);
    let helper = LinkedCode::load(&fixture.one).unwrap().symbols().address_of("helper").unwrap();
    two.tables.blocks.retain(|block| block.start.get() == helper);
    two.tables.blocks[0].start = Address(helper);
    let apart = halves(&two).overlap.unwrap().hot[0];
    assert!(apart.overlap < 1.0 && apart.common == 1, "{apart:?}");
}

#[test]
fn straight_code_is_measured_from_instruction_to_instruction() {
    let fixture = Fixture::new();
    let image = LinkedCode::load(&fixture.one).unwrap();
    let at = image.symbols().lookup(image.symbols().address_of("branch").unwrap()).unwrap();
    let steps = image.shape(at).unwrap().steps;
    let (first, last) = (steps.first().unwrap(), steps.last().unwrap());
    let bytes = last.address + last.length - first.address;
    assert_eq!(image.straight(first.address, last.address), Some((steps.len() as u64, bytes)));
    assert_eq!(image.straight(last.address, last.address), Some((1, last.length)));
    let long = steps.iter().find(|step| step.length > 1).unwrap();
    assert_eq!(image.straight(first.address, long.address + 1), None);
    assert_eq!(image.straight(last.address, first.address), None);
    assert_eq!(image.straight(0x7000_0000, 0x7000_0004), None);
    assert_eq!(
        (image.branch(last.address), image.branch(0x7000_0000)),
        (EdgeKind::Return, EdgeKind::Unknown)
    );
    assert!(steps.iter().any(|step| image.branch(step.address) == EdgeKind::Call));
}

#[test]
fn what_a_recipe_needs_is_a_finding() {
    let fixture = Fixture::new();
    let recording = fixture.recording();
    let refusal = GateFinding::refused("recipe", "toy does not take it".into(), "take another".into());
    let recipe = Some(RecipeAnswer { recipe: "toy", refusal: Some(&refusal) });
    let quality = check(&GateInput { recipe, ..fixture.ask(&recording, &fixture.one) }).unwrap();
    assert_eq!(quality.recipe.as_deref(), Some("toy"));
    assert!(quality.verdict().unwrap_err().to_string().contains("toy does not take"));
}
