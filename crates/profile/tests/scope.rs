//! Scopes without some regions, and scopes of single regions.

mod support;

use kerntune_profile::{RegionScope, Tables};
use support::region;

#[test]
fn without_a_name_leaves_what_is_within() {
    let regions = [("reading", 0), ("around", 0), ("reading", 1), ("a", 1), ("b", 2), ("a", 1), ("c", 0)];
    let rows = regions.iter().zip(0..).map(|((name, depth), at)| region(at, name, *depth, 10));
    let tables = Tables { regions: rows.collect(), ..Tables::default() };
    let scope = RegionScope::without(&tables, &["around", "reading"]);
    let wanted: Vec<u32> = (0..7).filter(|region| scope.contains(*region)).collect();
    assert_eq!((wanted, scope.outermost()), (vec![3, 4, 5, 6], &[3, 5, 6][..]));
    assert_eq!(RegionScope::without(&tables, &[]), RegionScope::all(&tables));
    let rows = RegionScope::rows(&tables, |row| row.name == "reading" && row.depth > 0);
    assert_eq!(rows.outermost(), &[2]);
    assert!(rows.contains(2) && !rows.contains(0));
}
