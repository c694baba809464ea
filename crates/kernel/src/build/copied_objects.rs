//! Copies of a kernel's kept objects, from which another build goes on.

use crate::link::borrowed::{discard_outputs, BorrowedObjects};
use crate::make::build_tree::BuildTree;
use crate::make::copy::copy_tree;
use crate::{Kernel, Result};
use kerntune_work::{IoContext, WorkDir};
use std::fs::{self, File, FileTimes};
use std::path::Path;

/// Name in a partial directory of the objects while they are copied.
pub(crate) const COPY: &str = "objects";

/// Puts a copy of the objects of `kernel` into `tree`, which is empty, in the directory `partial`.
///
/// # Errors
/// Objects that are missing, damaged or not ours; files that cannot be copied.
pub(crate) fn begin_with(work: &WorkDir, kernel: &Kernel, partial: &Path, tree: &BuildTree) -> Result<()> {
    let copied = partial.join(COPY);
    let borrowed = BorrowedObjects::borrow(work, kernel)?;
    copy_tree(borrowed.build(), &copied)?;
    let from = borrowed.tree().top().to_owned();
    drop(borrowed);
    discard_outputs(&copied, kernel.manifest.arch)?;
    rename_commands(&copied, &from, tree.top())?;
    tree.take(&copied)
}

/// Replaces the path `from` by `to` in the commands that Kbuild recorded. It names its own tools
/// (objtool) by absolute paths, and compiles a tool whose command differs again, and then every
/// object.
fn rename_commands(directory: &Path, from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (format!("{}/", from.display()), format!("{}/", to.display()));
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).at("list", &directory)? {
            let entry = entry.at("list", &directory)?;
            let (path, kind) = (entry.path(), entry.file_type().at("look at", entry.path())?);
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "cmd" || end == "d") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                if text.contains(&from) {
                    let times = fs::metadata(&path).and_then(|of| of.modified()).at("look at", &path)?;
                    fs::write(&path, text.replace(&from, &to)).at("write", &path)?;
                    let written = File::options().write(true).open(&path).at("open", &path)?;
                    written.set_times(FileTimes::new().set_modified(times)).at("date", &path)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn commands_name_the_new_directory_and_keep_their_dates() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (Path::new("/w/kernels/aa.partial/linux"), Path::new("/w/kernels/bb.partial/linux"));
        let tool = dir.path().join("tools/objtool");
        fs::create_dir_all(&tool).unwrap();
        let before = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let write = |name: &str, text: &str| {
            let path = tool.join(name);
            fs::write(&path, text).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_times(FileTimes::new().set_modified(before)).unwrap();
        };
        write(
            ".check.o.cmd",
            "cmd_/w/kernels/aa.partial/linux/build/x := gcc /w/kernels/aa.partial/linux2\n",
        );
        write("check.o", "/w/kernels/aa.partial/linux/build/x");
        rename_commands(dir.path(), from, to).unwrap();
        let text = |name: &str| fs::read_to_string(tool.join(name)).unwrap();
        let renamed = "cmd_/w/kernels/bb.partial/linux/build/x := gcc /w/kernels/aa.partial/linux2\n";
        assert_eq!(text(".check.o.cmd"), renamed);
        assert_eq!(text("check.o"), "/w/kernels/aa.partial/linux/build/x");
        for name in [".check.o.cmd", "check.o"] {
            assert_eq!(fs::metadata(tool.join(name)).unwrap().modified().unwrap(), before, "{name}");
        }
    }
}
