//! A tuned kernel that fails is built again without the objects that break it.

use crate::support::TestBench;
use kerntune_compare::{Metric, TOTAL};
use kerntune_kernel::ObjectFlags;

#[test]
fn an_object_that_makes_the_tuned_kernel_panic_is_left_out() {
    let bench = TestBench::new();
    let work = bench.work("work");
    let session = bench.session(&work);
    let broken = [ObjectFlags::add("mm/slab.o", "-DBROKEN")];
    let (tuned, _) = bench.tune(&session, &broken).unwrap();
    let [excluded] = &tuned.excluded[..] else { panic!("{:?}", tuned.excluded) };
    assert_eq!((excluded.path.as_str(), excluded.tuned_only), ("mm/slab.o", true));
    assert!(excluded.reason.contains("panic: kmalloc: the free list is damaged"), "{}", excluded.reason);
    let path_length = tuned.comparison.row(TOTAL, Metric::PathLength).unwrap();
    assert!(path_length.tuned < path_length.base, "all others have their profile: {path_length:?}");

    let (again, there) = bench.tune(&session, &broken).unwrap();
    assert_eq!((again.excluded, there), (tuned.excluded, again.steps.len()));
}
