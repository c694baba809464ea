use super::super::test_program::{Fixture, BASE_FLAGS};
use super::super::{prepare_profile, AutofdoProof};
use super::*;
use crate::RecipeProof;
use std::fs;

/// Flags of a tuned build.
fn tuned_flags(profile: &AutofdoProfile) -> Vec<String> {
    let file = profile.tree().join("kerntune.afdo");
    let more = [
        format!("-fprofile-sample-use={}", file.display()),
        "-mllvm=-sample-profile-check-sample-coverage=101".into(),
    ];
    BASE_FLAGS.iter().map(|flag| flag.to_string()).chain(more).collect()
}

/// Builds the tuned image and its log, and proves it.
fn tuned(fixture: &Fixture, profile: &AutofdoProfile, flags: &[String], built_with: &str) -> AutofdoProof {
    let mut tuned = fixture.base.clone();
    tuned.dir = fixture.path("tuned");
    tuned.manifest.profile_id = Some(built_with.into());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let log = fixture.compile(&flags, &tuned.vmlinux());
    fs::write(tuned.build_log(), log).unwrap();
    prove(&fixture.base, profile, &tuned).unwrap()
}

#[test]
fn a_profile_that_took_is_told_from_one_that_was_ignored() {
    let fixture = Fixture::new(BASE_FLAGS);
    let profile = prepare_profile(&fixture.work, &fixture.recording(), &fixture.base).unwrap();

    let proof = tuned(&fixture, &profile, &tuned_flags(&profile), &profile.id);
    // The functions that ran, and main, of which only calls are known.
    assert!((40..=41).contains(&proof.functions_applied), "{proof:?}");
    assert!(proof.applied_share() > MIN_SHARE, "{proof:?}");
    assert_eq!((proof.base.hot, proof.tuned.hot), (40, 40));
    assert!((0.4..0.6).contains(&proof.base.hot_in_front), "{proof:?}");
    assert!(proof.tuned.hot_in_front > 0.99, "{proof:?}");
    proof.verdict().unwrap();
    let text = proof.to_string();
    assert!(
        text.contains("100.0 % of what ran is in the profile, 40 of 40 functions in C of the image"),
        "{text}"
    );

    let plain: Vec<String> = BASE_FLAGS.iter().map(|flag| flag.to_string()).collect();
    let proof = tuned(&fixture, &profile, &plain, "another");
    let refused = proof.verdict().unwrap_err();
    let reasons = refused.to_string();
    for reason in [
        "built with profile another",
        "Clang applied samples to 0 functions",
        "its code is that of the baseline",
        "the hot one comes first in 5",
    ] {
        assert!(reasons.contains(reason), "{reason}: {reasons}");
    }
}

/// Share that a program of this size reaches at least.
const MIN_SHARE: f64 = 0.4;

#[test]
fn few_samples_are_a_reason() {
    let image = |hot_in_front| HotCodeEvidence { text_bytes: 9, functions: 100, hot: 40, hot_in_front };
    let proof = AutofdoProof {
        schema: SCHEMA.into(),
        kernel: "tuned".into(),
        profile: "p1".into(),
        built_with: Some("p1".into()),
        executed_bytes: 10,
        attributed_bytes: 9,
        functions_ran: 40,
        functions_in_profile: 40,
        elsewhere: None,
        functions_applied: 39,
        functions_not_applied: 1,
        functions_not_used: Vec::new(),
        samples_available: 100,
        samples_applied: 90,
        modules: Vec::new(),
        base: image(0.5),
        tuned: HotCodeEvidence { text_bytes: 8, ..image(0.9) },
    };
    proof.verdict().unwrap();
    let stale = AutofdoProof { samples_applied: 30, ..proof.clone() };
    assert!(stale.verdict().unwrap_err().to_string().contains("only 30.0 % of the samples"));
    let few = AutofdoProof { functions_applied: 31, ..proof.clone() };
    assert!(few.verdict().unwrap_err().reasons[0].contains("31 functions, where 40 ran"));
    let absent = AbsentSources {
        recorded: "k1".into(),
        functions: 2,
        bytes: 3,
        of_bytes: 10,
        files: vec!["arch/x86/mm/fault.c".into()],
    };
    let other = AutofdoProof { elsewhere: Some(absent), ..few.clone() };
    other.verdict().unwrap();
    assert!(
        other.to_string().contains("30.0 % of what ran is of files that this kernel does not have"),
        "{other}"
    );
    let unmoved = AutofdoProof { tuned: HotCodeEvidence { text_bytes: 8, ..image(0.6) }, ..proof };
    assert_eq!(unmoved.verdict().unwrap_err().reasons.len(), 1);
}
