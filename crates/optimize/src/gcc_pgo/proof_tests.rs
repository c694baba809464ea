use super::*;
use crate::gcc_pgo::{ColdPlacement, FunctionCounts};
use crate::RecipeProof;

fn function(ident: u32, name: &str, file: &str, line: u32, total: u64) -> FunctionCounts {
    FunctionCounts { ident, name: name.into(), file: file.into(), line, total }
}

/// Two objects that share an inline function of a header.
fn counts() -> Vec<ObjectCounts> {
    let header = |ident, total| function(ident, "list_add", "/s/list.h", 150, total);
    vec![
        ObjectCounts {
            object: "mm/slub.o".into(),
            functions: vec![
                function(1, "slab_free", "/s/mm/slub.c", 40, 600),
                function(2, "slab_debug", "/s/mm/slub.c", 80, 0),
                header(3, 100),
            ],
        },
        ObjectCounts {
            object: "net/core.o".into(),
            functions: vec![function(4, "send", "/s/net/core.c", 7, 270), header(5, 30)],
        },
    ]
}

fn log(lines: &str) -> GccLog {
    GccLog::parse(&format!("  CC      mm/slub.o\n  CC      net/core.o\n{lines}"), "/w/build")
}

#[test]
fn without_complaints_all_counts_matched() {
    let matched = MatchedCounts::of(&counts(), &log(""));
    assert_eq!((matched.objects, matched.functions, matched.lost.len()), (2, 4, 0));
    assert_eq!(matched.share(), 1.0);
}

#[test]
fn a_refused_function_takes_its_own_counts_with_it() {
    let line =
        "/s/net/core.c:7:1: warning: the control flow of function 'send' does not match its profile data \
                (counter 'arcs') [-Wcoverage-mismatch]";
    let matched = MatchedCounts::of(&counts(), &log(line));
    assert_eq!(
        matched.lost,
        [LostFunction { name: "send".into(), object: "net/core.o".into(), counts: 270 }]
    );
    assert!((matched.share() - 0.73).abs() < 1e-9);
    assert_eq!((matched.objects, matched.functions), (2, 3));
}

#[test]
fn of_a_headers_function_the_worst_is_assumed() {
    let line =
        "/s/list.h:150:1: warning: the control flow of function 'list_add' does not match its profile data\n";
    let matched = MatchedCounts::of(&counts(), &log(line));
    assert_eq!((matched.lost.len(), matched.lost[0].counts), (1, 100));
    let matched = MatchedCounts::of(&counts(), &log(&line.repeat(2)));
    assert_eq!(matched.lost.iter().map(|l| l.counts).collect::<Vec<_>>(), [100, 30]);
}

#[test]
fn an_object_that_was_not_compiled_or_read_loses_all() {
    let only_one = GccLog::parse("  CC      mm/slub.o\n", "/w/build");
    assert!((MatchedCounts::of(&counts(), &only_one).share() - 0.7).abs() < 1e-9);
    let line = "/s/mm/slub.c: warning: '/w/build/mm/slub.gcda' profile count data file not found\n";
    let matched = MatchedCounts::of(&counts(), &log(line));
    assert_eq!((matched.objects, matched.lost.len()), (1, 2));
    assert!((matched.share() - 0.3).abs() < 1e-9);
}

fn image(cold_parts: u64, text_bytes: u64, never_ran: u64, ran_in_front: f64) -> ColdCodeEvidence {
    let placement = |among_cold| ColdPlacement { among_cold, of: 1000 };
    let (never_ran, ran) = (placement(never_ran), placement(3));
    ColdCodeEvidence { cold_parts, text_bytes, never_ran, ran, ran_in_front }
}

fn good() -> GccPgoProof {
    GccPgoProof {
        schema: SCHEMA.into(),
        kernel: "tuned".into(),
        profile: "p".into(),
        built_with: Some("p".into()),
        objects_with_profile: 1000,
        objects_without_summary: 0,
        objects_matched: 998,
        functions_with_counts: 4000,
        functions_matched: 3999,
        functions_mismatched: vec![LostFunction {
            name: "send".into(),
            object: "net/core.o".into(),
            counts: 270,
        }],
        share_of_counts_matched: 0.999,
        functions_not_in_profile: 12,
        functions_moved: 0,
        untrained_as_base: false,
        base: image(1089, 10_500_000, 30, 0.5),
        tuned: image(1668, 7_800_000, 970, 0.95),
        sections: Some(SectionEvidence { objects: 998, with_hot: 200, with_unlikely: 900 }),
        values: None,
    }
}

#[test]
fn a_good_proof_is_accepted_told_and_read_back() {
    let proof = good();
    proof.verdict().unwrap();
    let as_base = image(1668, 10_600_000, 30, 0.95);
    GccPgoProof { untrained_as_base: true, tuned: as_base, ..good() }.verdict().unwrap();
    let text = proof.to_string();
    for part in ["998 of 1000", "99.9 % matched", "-25.7 %", "1089 → 1668", "3.0 % → 97.0 %", "lost: send"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json = serde_json::to_string(&proof).unwrap();
    assert_eq!(serde_json::from_str::<GccPgoProof>(&json).unwrap(), proof);
}

#[test]
fn the_silent_trap_is_refused_by_the_image_alone() {
    let proof = GccPgoProof { tuned: good().base, ..good() };
    let refused = proof.verdict().unwrap_err();
    assert_eq!(refused.reasons.len(), 3, "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("its code is that of the baseline") && text.contains("30 are in the cold code"),
        "{text}"
    );
}

#[test]
fn each_failure_has_its_reason() {
    let refusal = |proof: GccPgoProof| proof.verdict().unwrap_err().to_string();
    let text = refusal(GccPgoProof { built_with: None, ..good() });
    assert!(text.contains("built with profile none"), "{text}");
    let text = refusal(GccPgoProof { objects_without_summary: 1000, ..good() });
    assert!(text.contains("1000 of 1000 .gcda files have no program summary"), "{text}");
    let text = refusal(GccPgoProof { share_of_counts_matched: 0.6, ..good() });
    assert!(
        text.contains("only 60.0 % of the counts matched") && text.contains("send in net/core.o"),
        "{text}"
    );
    // Other flags changed the code, but the profile did not.
    let other = || GccPgoProof { tuned: image(1100, 10_600_000, 40, 0.52), ..good() };
    let text = refusal(other());
    assert!(text.contains("4 %; 70 % are needed, the baseline has 3 %"), "{text}");
    assert!(text.contains("in 52 % (65 % are needed, the baseline has 50 %)"), "{text}");
    let text = refusal(GccPgoProof { untrained_as_base: true, ..other() });
    assert!(text.contains("65 % are needed") && !text.contains("70 % are needed"), "{text}");
}

fn values(direct: usize, promotable_sites: u64) -> ValueEvidence {
    let site = DirectSite {
        address: 0x1000,
        function: "pipe_read".into(),
        target: "anon_pipe_buf_release".into(),
        then: crate::gcc_pgo::PromotedCallForm::Inlined,
    };
    let counted =
        ValueSummary { promotable_sites, indirect_calls: 1000, usual_calls: 905, ..Default::default() };
    let transformed = ValueTransforms { calls: 70, divisions: 12, sizes: 34 };
    ValueEvidence { counted, transformed, direct: Some(vec![site; direct]) }
}

#[test]
fn values_that_gcc_did_not_use_are_refused() {
    let proof = GccPgoProof { values: Some(values(26, 50)), ..good() };
    proof.verdict().unwrap();
    let text = proof.to_string();
    let inlined = "anon_pipe_buf_release in pipe_read (inlined)";
    for part in ["90.5 % to their site's usual target", "26 places", inlined, "12 divisions and 34 sizes"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let unused =
        |direct, sites| ValueEvidence { transformed: ValueTransforms::default(), ..values(direct, sites) };
    let refusal = GccPgoProof { values: Some(unused(0, 50)), ..good() }.verdict().unwrap_err().to_string();
    assert!(refusal.contains("at 50 places, and GCC used none"), "{refusal}");
    // Evidence of the image suffices, and so does GCC's; and a workload may call nothing
    // indirectly.
    for kept in [unused(26, 50), values(0, 50), unused(0, 3)] {
        GccPgoProof { values: Some(kept), ..good() }.verdict().unwrap();
    }
}
