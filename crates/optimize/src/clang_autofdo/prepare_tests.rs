use super::super::test_program::{Fixture, BASE_FLAGS};
use super::*;
use kerntune_profile::{Block, FunctionIndex};
use std::process::Command;

#[test]
fn a_recording_becomes_a_profile_that_is_named_by_content() {
    let fixture = Fixture::new(BASE_FLAGS);
    let recording = fixture.recording();
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let summary = profile.summary;
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
