//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::claim::Claim;
use crate::store::wire;
use crate::Plan;
use std::path::Path;

/// Objects of a store: plans, claims and results.
pub fn objects(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Claim>(bytes);
    let _ = serde_json::from_slice::<crate::Figures>(bytes);
    let _ = serde_json::from_slice::<crate::Built>(bytes);
    if let Ok(plan) = serde_json::from_slice::<Plan>(bytes) {
        for cell in &plan.cells {
            assert_eq!(plan.cell(&cell.name()).map(crate::Cell::name).ok(), Some(cell.name()));
        }
        let _ = crate::slurm::arrays(&plan, |_| true);
    }
}

/// Answers of the helper for object stores.
pub fn answers(mut bytes: &[u8]) {
    while wire::answer(&mut bytes).is_ok() {}
}

/// A packed kernel.
pub fn pack(bytes: &[u8], to: &Path) {
    let _ = crate::pack::unpack(bytes, to);
}
