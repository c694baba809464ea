use super::*;
use crate::clang_autofdo::test_program::{Fixture, BASE_FLAGS};
use crate::clang_autofdo::{prepare_profile, AutofdoProfile};
use crate::{Error, RecipeProof};
use kerntune_convert::propeller::read_map;
use kerntune_kernel::Kernel;
use kerntune_profile::{Address, Block, Instructions, Profile};
use std::collections::HashMap;
use std::fs;

const MAP: &[&str] = &["-ffunction-sections", "-fbasic-block-address-map"];

fn with_map() -> Fixture {
    Fixture::new(&[BASE_FLAGS, MAP].concat())
}

/// Recording in which all blocks of the functions that ran were executed, except the second one.
fn recording(fixture: &Fixture) -> Profile {
    let mut recording = fixture.recording();
    let ran: HashMap<u64, String> =
        recording.tables.symbols.iter().map(|symbol| (symbol.address.get(), symbol.name.clone())).collect();
    let map = read_map(&units::BlockMapImage::load(&fixture.base).unwrap().map).unwrap();
    let ran = map.iter().filter(|function| ran[&function.address].starts_with("ran"));
    let blocks = ran.flat_map(|function| {
        let ran = function.blocks.iter().enumerate().filter(|(at, block)| *at != 1 && block.bytes > 0);
        ran.map(|(_, block)| Block {
            start: Address(block.address),
            last: Address(block.end() - 1),
            count: 1_000_000,
            instructions: Instructions(3),
            bytes: block.bytes,
        })
    });
    recording.tables.blocks = blocks.collect();
    recording
}

fn prepared(fixture: &Fixture) -> (AutofdoProfile, PreparedBlocks) {
    let recording = recording(fixture);
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let blocks = prepare_blocks(&fixture.work, &recording, &fixture.base, &profile).unwrap();
    assert_eq!(prepare_blocks(&fixture.work, &recording, &fixture.base, &profile).unwrap(), blocks);
    (profile, blocks)
}

/// Compiles the fixture's source with these flags; the kernel's manifest names the blocks.
fn tuned(fixture: &Fixture, blocks: &PreparedBlocks, name: &str, flags: &[&str]) -> Kernel {
    let mut kernel = crate::test_kernel::kernel(&fixture.path(name), name, "6.12.117");
    kernel.manifest.profile_id = Some(blocks.id.clone());
    fixture.compile(&[BASE_FLAGS, &["-ffunction-sections"], flags].concat(), &kernel.vmlinux());
    kernel
}

#[test]
fn clang_puts_blocks_as_the_list_says_and_the_image_shows_it() {
    let fixture = with_map();
    let (_, blocks) = prepared(&fixture);
    let summary = &blocks.summary;
    assert_eq!((summary.ran, summary.listed, summary.left_out.len()), (40, 40, 0));
    assert_eq!(summary.blocks[0] - summary.blocks[1], 40, "one of each is left to the rest");
    assert!(summary.bytes[1] < summary.bytes[0] && summary.taken[1] <= summary.taken[0], "{summary:?}");
    assert!(blocks.tree().join("kerntune.afdo").is_file());

    let list = blocks.tree().join("kerntune-blocks.txt");
    let with_list = format!("-fbasic-block-sections=list={}", list.display());
    let proof = prove(&blocks, &tuned(&fixture, &blocks, "k2", &[&with_list])).unwrap();
    proof.verdict().unwrap();
    assert_eq!((proof.asked, proof.fitting, proof.split), (40, 40, 40), "{proof}");
    assert!(proof.bytes[1] < proof.bytes[0], "{proof}");
    assert!(proof.to_string().contains("40 of 40 that can be told from namesakes"), "{proof}");

    let without = prove(&blocks, &tuned(&fixture, &blocks, "k3", &[])).unwrap().verdict().unwrap_err();
    assert!(without.to_string().contains("0 of 40 functions have the blocks together"), "{without}");
    let mut other = tuned(&fixture, &blocks, "k4", &[&with_list]);
    other.manifest.profile_id = None;
    let other = prove(&blocks, &other).unwrap().verdict().unwrap_err();
    assert!(other.to_string().contains("it was built with none"), "{other}");
}

#[test]
fn a_kernel_without_a_map_is_refused_and_so_is_a_list_of_nobody() {
    let fixture = Fixture::new(BASE_FLAGS);
    let recording = fixture.recording();
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let error = prepare_blocks(&fixture.work, &recording, &fixture.base, &profile).unwrap_err();
    assert!(matches!(error, Error::NoBlockMap { .. }), "{error}");
    assert!(error.to_string().contains(".llvm_bb_addr_map"), "{error}");

    let fixture = with_map();
    let recording = self::recording(&fixture);
    let profile = prepare_profile(&fixture.work, &recording, &fixture.base).unwrap();
    let stripped =
        std::process::Command::new("llvm-strip-19").arg("-g").arg(fixture.base.vmlinux()).status().unwrap();
    assert!(stripped.success());
    let error = prepare_blocks(&fixture.work, &recording, &fixture.base, &profile).unwrap_err().to_string();
    assert!(error.contains("0 can be named in a list") && error.contains("-gmlt"), "{error}");
}

#[test]
fn counts_of_each_block_can_be_looked_at() {
    let fixture = with_map();
    let (_, blocks) = prepared(&fixture);
    let counts = fs::read_to_string(blocks.dir.join("counts.tsv")).unwrap();
    assert!(counts.starts_with("function\tblock\tbytes\tcount\tplace\n"));
    let never = counts.lines().filter(|line| line.ends_with("\t0\t-")).count();
    assert_eq!((never, counts.lines().count() as u64), (40, 1 + blocks.summary.blocks[0]));
}

#[test]
fn a_list_for_builds_of_ones_own_holds_whatever_they_call_the_unit() {
    use kerntune_convert::own_build::SourceNames;
    use kerntune_convert::propeller::{parse_list, portable_list};
    let fixture = with_map();
    let (_, blocks) = prepared(&fixture);
    let (text, summary) = block_list(&fixture.work, &recording(&fixture), &fixture.base).unwrap();
    assert_eq!(summary, blocks.summary);
    let entries = parse_list(&text).unwrap();
    let alone = portable_list(&entries, |_| false, &SourceNames::in_tree());
    assert!(!alone.contains("\nm "), "{alone}");
    // Clang is given `all.c`, and skips the entries with other units.
    let shared = text.replace("m all.c", "m ../all.c");
    let shared = portable_list(&parse_list(&shared).unwrap(), |_| true, &SourceNames::in_tree());
    assert!(shared.contains("m all.c\nf ran0\n") && shared.contains("m ../all.c\nf ran0\n"), "{shared}");
    for (name, list) in [("k5", alone), ("k6", shared)] {
        let path = fixture.path(&format!("{name}.txt"));
        fs::write(&path, list).unwrap();
        let flag = format!("-fbasic-block-sections=list={}", path.display());
        let proof = prove(&blocks, &tuned(&fixture, &blocks, name, &[&flag])).unwrap();
        assert_eq!((proof.asked, proof.fitting, proof.split), (40, 40, 40), "{name}: {proof}");
    }
}
