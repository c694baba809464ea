//! Init of a guest: its form, and its seed.

use crate::plan::InitPlan;
use crate::programs::{compile_init, InitExtensions};
use crate::skeleton::TMP;
use crate::tree::{FileTree, TreeNode};
use crate::{Error, Result, Workload, SEED};
use kerntune_work::{IoContext, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Compiles the init that the plan and the files ask for, and that loads modules if there are any.
pub(crate) fn compile(
    work: &WorkDir,
    workload: &Workload,
    plan: &InitPlan,
    files: &FileTree,
    modules: bool,
) -> Result<TreeNode> {
    let below_tmp = |path: &PathBuf| path.starts_with(TMP) && path != Path::new(TMP);
    let commands = plan.is_escaped() || files.nodes.keys().any(below_tmp);
    let from =
        compile_init(work, InitExtensions { commands, proc: workload.proc, modules, times: workload.times })?;
    let mode = 0o755;
    if workload.seed == SEED {
        return Ok(TreeNode::Host { from, mode });
    }
    Ok(TreeNode::Own { bytes: with_seed(fs::read(&from).at("read", &from)?, workload.seed)?, mode })
}

/// Seed of the guest's random numbers, as in `embedded/guest/init/system.c`.
pub(crate) const RANDOM_BYTES: &[u8] = b"kerntune guest: a fixed seed, so that two runs do the same work";

/// Patches another seed into init, which otherwise stays the same, so that nothing else changes or
/// moves.
pub(crate) fn with_seed(mut init: Vec<u8>, seed: u32) -> Result<Vec<u8>> {
    let places: Vec<usize> = init
        .windows(RANDOM_BYTES.len())
        .enumerate()
        .filter(|(_, at)| *at == RANDOM_BYTES)
        .map(|(at, _)| at)
        .collect();
    let [at] = places[..] else {
        let output = format!("the bytes of its random numbers are in it {} times and not once", places.len());
        return Err(Error::Compile {
            program: "init".into(),
            output,
            help: "use the Debian release's own gcc",
        });
    };
    let text = format!("{:-<width$}", format!("kerntune guest: seed {seed} "), width = RANDOM_BYTES.len());
    init[at..at + RANDOM_BYTES.len()].copy_from_slice(text.as_bytes());
    Ok(init)
}
