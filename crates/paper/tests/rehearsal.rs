//! `paper`: a paper's table with our figures beside it.

use crate::support::{build_request, recipe, TestBench, WORKLOAD};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_paper::run::paper::{paper, PaperRequest};
use kerntune_paper::{ExperimentState, Paper};
use std::fs;

/// A fictitious paper.
const PAPER: &str = "name = \"stand-in\"\ntitle = \"On rehearsals\"\nauthors = \"A. Nobody\"\npublished = \"nowhere\"\n\
    machine = \"none\"\nrecipe = \"gcc-pgo\"\n\
    [[experiment]]\ntitle = \"Packets\"\nworkload = \"stand-in\"\n\
    [[experiment.row]]\nname = \"packet\"\noperation = \"packet_rr\"\nunit = \"us\"\nbetter = \"lower\"\n\
    base = 2.0\noptimized = 1.0\nimprovement = \"100%\"\n\
    [[experiment.row]]\nname = \"receive\"\nfunction = \"do_syscall_64\"\npart = \"total\"\nunit = \"us\"\nbetter = \"lower\"\n\
    base = 2.0\noptimized = 1.0\nimprovement = \"100%\"\n\
    [[experiment]]\ntitle = \"Two hosts\"\nworkload = \"stand-in\"\nuntuned_cpu = 1\n\
    [[experiment.row]]\nname = \"packet\"\noperation = \"packet_rr\"\nunit = \"us\"\nbetter = \"lower\"\n\
    base = 2.0\noptimized = 1.0\nimprovement = \"100%\"\n\
    [[experiment]]\ntitle = \"Nothing\"\nworkload = \"no-such-workload\"\n\
    [[experiment.row]]\nname = \"none\"\noperation = \"none\"\nunit = \"us\"\nbetter = \"lower\"\n\
    base = 2.0\noptimized = 1.0\nimprovement = \"100%\"\n";

#[test]
fn a_papers_table_has_our_figures_and_one_that_fails_says_why() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let workloads = bench.path("workloads");
    fs::create_dir(&workloads).unwrap();
    fs::write(workloads.join("stand-in.toml"), WORKLOAD).unwrap();
    let (build, exclusions) = (build_request("base"), Exclusions::default());
    let request = PaperRequest {
        paper: &Paper::parse(PAPER, "stand-in.toml").unwrap(),
        only: &[],
        workloads: &[workloads],
        build: &build,
        recipe: recipe("gcc-pgo"),
        options: Default::default(),
        model: &bench.model,
        runs: 1,
        budget: None,
        exclusions: &exclusions,
    };
    let outcome = paper(&session, &request, &|_, _, _| {}).unwrap();
    let [made, one_host, not_made] = &outcome.experiments[..] else { panic!("{outcome:?}") };
    let ExperimentState::Measured(measured) = &made.state else { panic!("{:?}", made.state) };
    for row in &measured.rows {
        let ours = row.ours.as_ref().unwrap_or_else(|| panic!("{row:?}"));
        assert_eq!(ours.exact.base, ours.exact.base_again, "{row:?}");
        assert!(ours.exact.tuned < ours.exact.base && !ours.exact.within_noise, "{row:?}");
    }
    // The stand-in machine has one CPU, which cannot be two hosts.
    let ExperimentState::NotMade { because } = &one_host.state else { panic!("{:?}", one_host.state) };
    assert!(because.contains("does not say what each CPU did in region"), "{because}");
    assert!(
        matches!(&not_made.state, ExperimentState::NotMade { because } if because.contains("no-such-workload"))
    );
    let summary = outcome.summary();
    assert_eq!((summary.better, summary.worse, summary.same, summary.without), (2, 0, 0, 0));
}
