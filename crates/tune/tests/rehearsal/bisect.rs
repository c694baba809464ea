//! `bisect`: finds the object that breaks a kernel.

use crate::support::{build_request, session, TestBench};
use kerntune_kernel::{build, BuildRequest, Kernel, ObjectFlags};
use kerntune_tune::bisect::{bisect, judge, KernelFailure};
use kerntune_tune::Session;
use kerntune_work::NoProgress;

/// Objects that are compiled differently and still work.
const OTHERS: [&str; 4] = ["fs/", "kernel/", "mm/", "net/"];

fn kernel(session: &Session, label: &str, broken: Option<&str>) -> Kernel {
    let mut object_flags: Vec<ObjectFlags> = Vec::new();
    if let Some(object) = broken {
        object_flags.extend(OTHERS.map(|path| ObjectFlags::add(path, "-O1")));
        object_flags.push(ObjectFlags::add(object, "-DBROKEN"));
    }
    let request = BuildRequest { object_flags, keep_objects: true, ..build_request(label) };
    build(session.work, &request, &NoProgress).unwrap()
}

#[test]
fn the_one_object_that_is_broken_is_found() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = session(bench.machine(), &work);
    let good = kernel(&session, "good", None);

    let bad = kernel(&session, "wrong-answers", Some("net/checksum.o"));
    let failure = judge(&session, &bad, &good).unwrap().unwrap();
    let KernelFailure::Differs { checks } = &failure else { panic!("{failure}") };
    let checks: Vec<_> = checks.iter().map(|differing| differing.check.as_str()).collect();
    assert_eq!(checks, ["packets_are_dropped", "packets_arrive"]);
    let found = bisect(&session, &bad, &good).unwrap();
    let culprits: Vec<_> = found.culprits.iter().map(|culprit| &culprit.objects[..]).collect();
    assert_eq!(culprits, [["net/checksum.o"]]);
    assert_eq!(found.culprits[0].failure, failure);
    assert!(found.objects >= 8, "{found:?}");
    // None, all, four halvings, the culprit alone, and all but the culprit.
    assert!(found.mixes <= 8, "{found:?}");
    assert_eq!(bisect(&session, &bad, &good).unwrap(), found, "found again");

    let bad = kernel(&session, "does-not-boot", Some("fs/pipe.o"));
    let failure = judge(&session, &bad, &good).unwrap().unwrap();
    assert!(matches!(failure, KernelFailure::Dies { .. }), "{failure}");
    let found = bisect(&session, &bad, &good).unwrap();
    assert_eq!(found.culprits[0].objects, ["fs/pipe.o"]);
    assert_eq!(judge(&session, &good, &good).unwrap(), None);
}
