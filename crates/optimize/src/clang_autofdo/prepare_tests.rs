use super::super::test_program::{Fixture, BASE_FLAGS};
use super::*;
use crate::clang_autofdo::module_code::hot_modules;
use kerntune_profile::{Block, FunctionIndex};
use std::process::Command;

#[test]
fn a_recording_becomes_a_profile_that_is_named_by_content() {
    let fixture = Fixture::new(BASE_FLAGS);
    let recording = fixture.recording();
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let summary = &profile.summary;
    assert_eq!((summary.functions, summary.c_functions, summary.matched_functions), (40, 40, 40));
    assert_eq!((summary.ranges, summary.branches, summary.hot_functions), (40, 40, 40));
    assert_eq!((summary.attributed_share(), summary.outside_bytes), (1.0, 0));
    assert!(profile.tree().join("kerntune.afdo").is_file());
    let functions = profile.functions().unwrap();
    assert!(functions.iter().all(|f| f.hot && f.in_profile == Some(f.bytes)), "{functions:?}");
    assert_eq!(prepare_profile(&fixture.work, &recording, &fixture.base).unwrap(), profile);
    let other = {
        let mut recording = recording;
        recording.tables.blocks[0].count += 1;
        prepare_profile(&fixture.work, &recording, &fixture.base).unwrap()
    };
    assert_ne!(other.id, profile.id);
}

#[test]
fn a_module_has_its_counts_in_the_same_profile() {
    let fixture = Fixture::new(BASE_FLAGS);
    let mut recording = fixture.recording();
    let without = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    fixture.add_module(BASE_FLAGS, &mut recording);
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    assert_ne!(profile.id, without.id);
    let [of_module] = &profile.summary.modules[..] else { panic!("{:?}", profile.summary) };
    assert_eq!((of_module.module.as_str(), of_module.functions, of_module.matched_functions), ("mod", 1, 1));
    assert_eq!(of_module.attributed_share(), 1.0);
    let image = AutofdoSummary { modules: Vec::new(), ..profile.summary.clone() };
    let before = AutofdoSummary { outside_bytes: image.outside_bytes, ..without.summary };
    assert_eq!(image, before, "the image's figures are the same");
    let functions = profile.functions().unwrap();
    let fast = functions.iter().find(|function| function.module.is_some()).unwrap();
    assert!(fast.name == "fast" && fast.hot && fast.in_profile == Some(fast.bytes), "{fast:?}");
    // The compiler finds image and module in one file.
    let shown = Command::new("llvm-profdata-19")
        .args(["show", "--sample"])
        .arg(profile.tree().join("kerntune.afdo"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("Function: fast:") && shown.contains("Function: ran7:"), "{shown}");
    assert!(!shown.contains("Function: slow:"), "{shown}");
    let evidence = hot_modules((&fixture.base, &fixture.base), &profile.summary.modules, &functions).unwrap();
    assert_eq!((evidence[0].hot, evidence[0].hot_in_front), (1, [0.0; 2]), "slow is in front");
}

#[test]
fn a_module_without_line_tables_is_named_and_the_rest_is_used() {
    let fixture = Fixture::new(BASE_FLAGS);
    let mut recording = fixture.recording();
    fixture.add_module(&[], &mut recording);
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let [of_module] = &profile.summary.modules[..] else { panic!("{:?}", profile.summary) };
    assert_eq!((of_module.attributed_bytes, of_module.functions, of_module.matched_functions), (0, 1, 0));
    assert!(of_module.executed_bytes > 0);
}

#[test]
fn a_recording_of_another_kernel_or_without_edges_is_refused() {
    let fixture = Fixture::new(BASE_FLAGS);
    let mut recording = fixture.recording();
    recording.manifest.kernel.id = "k2".into();
    let error = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap_err().to_string();
    assert!(error.contains("it is of kernel base (k2), not of label-of-k1 (k1)"), "{error}");
    recording.manifest.kernel.id = "k1".into();
    recording.tables.blocks.clear();
    let error = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap_err().to_string();
    assert!(error.contains("--no-edges"), "{error}");
}

#[test]
fn a_kernel_without_debug_information_is_refused_with_the_flag_to_add() {
    let refused = |flags: &[&str]| {
        let fixture = Fixture::new(flags);
        let error = prepare_profile(&fixture.work, &fixture.recording(), &fixture.base).unwrap_err();
        error.to_string()
    };
    assert!(refused(&[]).contains("has no line tables (.debug_line, .debug_info)"));
    let error = refused(&["-gmlt"]);
    assert!(error.contains("-mllvm=-enable-fs-discriminator=true"), "{error}");

    let fixture = Fixture::new(BASE_FLAGS);
    let stripped = Command::new("llvm-strip-19").arg("-g").arg(fixture.base.vmlinux()).status().unwrap();
    assert!(stripped.success());
    let error = prepare_profile(&fixture.work, &fixture.recording(), &fixture.base).unwrap_err().to_string();
    assert!(error.contains("line tables"), "{error}");
}

#[test]
fn a_profile_that_lost_most_of_what_ran_is_refused() {
    let fixture = Fixture::new(BASE_FLAGS);
    let mut recording = fixture.recording();
    // Counts in the startup code of the C library, which has no line tables.
    let startup = recording.tables.symbols.iter_mut().find(|s| s.name == "_start").unwrap();
    startup.file = Some("start.S".into());
    let (address, size) = (startup.address, startup.size);
    let block = recording.tables.blocks[0].clone();
    recording.tables.blocks.push(Block {
        start: address,
        last: address,
        count: 1_000_000_000,
        bytes: size,
        ..block
    });
    let error = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap_err().to_string();
    assert!(error.contains("of what ran, 50 % are needed"), "{error}");

    // Most C functions that ran are missing in the profile.
    let mut recording = fixture.recording();
    let last = recording.tables.symbols.len() as u32;
    for (number, block) in (last..).zip(recording.tables.blocks.clone()) {
        let function = FunctionIndex(number);
        let of = |s: &&kerntune_profile::Symbol| s.address == block.start;
        let mut symbol = recording.tables.symbols.iter().find(of).unwrap().clone();
        (symbol.function, symbol.name) = (function, format!("other{number}"));
        recording.tables.symbols.push(symbol);
    }
    recording.tables.symbols.retain(|s| !s.name.starts_with("ran"));
    let error = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap_err().to_string();
    assert!(error.contains("it has 0 of the 40 functions in C that ran"), "{error}");
}
