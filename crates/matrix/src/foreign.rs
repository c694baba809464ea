//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::store::wire;
use crate::{claim, made, turn, Plan, Result, Store};
use kerntune_work::Id;
use std::path::Path;

/// A store whose objects all have the same bytes.
struct Uniform<'a> {
    bytes: &'a [u8],
    names: Vec<String>,
}

impl Store for Uniform<'_> {
    fn url(&self) -> String {
        "memory".into()
    }

    fn get(&self, _: &str) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.bytes.to_vec()))
    }

    fn put_new(&self, _: &str, _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn put(&self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn list(&self, start: &str) -> Result<Vec<String>> {
        Ok(self.names.iter().filter(|name| name.starts_with(start)).cloned().collect())
    }

    fn delete(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

/// Objects of a store: plans, claims, results and failures.
pub fn objects(bytes: &[u8]) {
    let task: Id = "0123456789abcdef".parse().expect("sixteen digits");
    let plan = blake3::hash(bytes).to_hex()[..16].to_owned();
    let names = vec![format!("claims/{task}/0001"), format!("plans/{plan}.json")];
    let store = Uniform { bytes, names };
    let _ = claim::last(&store, &task);
    let _ = made::read(&store, &task);
    let _ = turn::why_failed(&store, &task);
    // Without its hash, so that mutations reach what lies behind it.
    let _ = serde_json::from_slice::<crate::Figures>(bytes);
    let _ = serde_json::from_slice::<crate::Built>(bytes);
    let _ = serde_json::from_slice::<claim::Claim>(bytes);
    let _ = Plan::load(&store, &plan);
    // Whatever its code and its hash: mutations of one that has them do not reach further.
    if let Ok(plan) = serde_json::from_slice::<Plan>(bytes) {
        let _ = plan.check();
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
