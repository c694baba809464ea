//! Entries that every guest has.

use crate::tree::TreeNode;
use std::path::Path;

/// Directories that init mounts over, which hides packed files, and init itself.
pub(crate) const HIDDEN: [&str; 6] = ["/run", "/dev", "/proc", "/sys", "/kt", "/init"];

/// Directory for files that programs create; init moves packed files there. It cannot be packed as
/// a whole.
pub(crate) const TMP: &str = "/tmp";

/// Returns the directories, devices and the few files of /etc without which common programs do not
/// start.
pub(crate) fn nodes() -> impl Iterator<Item = (&'static Path, TreeNode)> {
    let dirs = ["/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/kt/out", "/var/tmp"].map(|dir| {
        let mode = if dir.ends_with("tmp") { 0o1777 } else { 0o755 };
        (dir, TreeNode::Dir { mode })
    });
    let devices = [
        ("/dev/console", TreeNode::Char { major: 5, minor: 1, mode: 0o600 }),
        ("/dev/null", TreeNode::Char { major: 1, minor: 3, mode: 0o666 }),
    ];
    let files = [
        (
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        ),
        ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("/etc/hosts", "127.0.0.1 localhost kerntune\n"),
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"),
    ]
    .map(|(path, text)| (path, TreeNode::Own { bytes: text.into(), mode: 0o644 }));
    dirs.into_iter().chain(devices).chain(files).map(|(path, node)| (Path::new(path), node))
}
