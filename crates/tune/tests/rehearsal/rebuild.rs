//! Repeated analysis of a recording.

use crate::support::{build_request, TestBench};
use kerntune_kernel::build;
use kerntune_profile::{Anomaly, Profile};
use kerntune_tune::rebuild::rebuild;
use kerntune_tune::record::{record, CaptureOptions, RecordRequest, Repetition};
use kerntune_work::NoProgress;

#[test]
fn a_rebuilt_profile_differs_in_its_id_and_sources_alone() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let kernel = build(&work, &build_request("base"), &NoProgress).unwrap();
    let request = RecordRequest {
        kernel: &kernel,
        workload: &bench.workload,
        run: "measured",
        capture: CaptureOptions { functions: true, edges: true },
        model: Some(&bench.model),
        repeat: Repetition::Number(0),
    };
    let recorded = record(&session, &request).unwrap();
    // As if the guest had had a disk in a file of the host, and requests that could not be read.
    let mut old = Profile::load(&recorded.path).unwrap();
    old.manifest.set_anomaly(Anomaly::HostDisks, 1);
    old.manifest.set_anomaly(Anomaly::UnreadIo, 2);
    old.manifest = old.save(&recorded.path).unwrap();

    let rebuilt = rebuild(&work, &recorded.path, false, &NoProgress).unwrap();
    let mut new = Profile::load(&rebuilt.path).unwrap();
    assert_eq!(new.manifest.sources.len(), old.manifest.sources.len() + 1);
    new.manifest.id.clone_from(&old.manifest.id);
    new.manifest.sources.clone_from(&old.manifest.sources);
    assert_eq!(new.manifest, old.manifest);
}
