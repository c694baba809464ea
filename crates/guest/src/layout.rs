//! Lays out the file tree of an image.

use crate::plan;
use crate::resolve::ResolvedImage;
use crate::skeleton;
use crate::tree::{FileTree, TreeNode};
use crate::Result;
use std::path::Path;

/// Adds the guest's own files to the resolved ones, which they never replace. A function of its
/// argument alone.
///
/// # Errors
/// Links in a circle; an entry below a file.
pub(crate) fn lay_out(resolved: ResolvedImage) -> Result<FileTree> {
    let ResolvedImage { files: mut tree, programs, init, plan: init_plan } = resolved;
    for (name, from) in programs {
        tree.put(&Path::new("/kt/bin").join(name), TreeNode::Host { from, mode: 0o755 })?;
    }
    tree.put(Path::new("/init"), init)?;
    let bytes = init_plan.text().as_bytes().to_vec();
    tree.put(Path::new("/kt/plan"), TreeNode::Own { bytes, mode: 0o644 })?;
    if let Some(text) = plan::stubs(&tree.nodes) {
        tree.put(Path::new(plan::STUBS), TreeNode::Own { bytes: text.into_bytes(), mode: 0o644 })?;
    }
    for (path, node) in skeleton::nodes() {
        tree.put(path, node)?;
    }
    tree.check()?;
    Ok(tree)
}
