//! Entry points for fuzzing: parsers that are otherwise private.

use crate::store::wire;
use crate::{claim, task_result, worker, MatrixPlan, Result, Store};
use kerntune_work::Id;
use std::path::Path;

/// A store in which every object has the same bytes.
struct UniformStore<'a> {
    bytes: &'a [u8],
    names: Vec<String>,
}

impl Store for UniformStore<'_> {
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

/// Parses the bytes as each kind of object: plan, claim, result, failure.
pub fn objects(bytes: &[u8]) {
    let task: Id = "0123456789abcdef".parse().expect("sixteen digits");
    let plan = blake3::hash(bytes).to_hex()[..16].to_owned();
    let names = vec![format!("claims/{task}/0001"), format!("plans/{plan}.json")];
    let store = UniformStore { bytes, names };
    let _ = claim::last(&store, &task);
    let _ = task_result::read(&store, &task);
    let _ = worker::why_failed(&store, &task);
    // Bypasses the seal's hash, so that mutations reach the parsers behind it.
    let _ = serde_json::from_slice::<crate::RunCounters>(bytes);
    let _ = serde_json::from_slice::<crate::BuiltKernel>(bytes);
    let _ = serde_json::from_slice::<claim::Claim>(bytes);
    let _ = MatrixPlan::load(&store, &plan);
    // Bypasses the checks of code and hash, which nearly every mutation would fail.
    if let Ok(plan) = serde_json::from_slice::<MatrixPlan>(bytes) {
        let _ = plan.check();
        for cell in &plan.cells {
            assert_eq!(plan.cell(&cell.name()).map(crate::MatrixCell::name).ok(), Some(cell.name()));
        }
        let _ = crate::slurm::arrays(&plan, |_| true);
    }
}

/// Parses replies of the helper for object stores.
pub fn answers(mut bytes: &[u8]) {
    while wire::read_reply(&mut bytes).is_ok() {}
}

/// Unpacks a packed kernel.
pub fn pack(bytes: &[u8], to: &Path) {
    let _ = crate::pack::unpack(bytes, to);
}
