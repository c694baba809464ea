//! Complete kernel for tests, without a build.

use kerntune_kernel::{CompilerIdentity, Kernel, KernelManifest, SourceRecord, TaskLayout, SCHEMA};
use std::fs;
use std::path::Path;

/// Creates the kernel `id` in `dir`, of the given version.
pub(crate) fn kernel(dir: &Path, id: &str, version: &str) -> Kernel {
    let program = "/usr/bin/clang-19".into();
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("bzImage"), "image").unwrap();
    Kernel {
        dir: dir.to_owned(),
        manifest: KernelManifest {
            schema: SCHEMA.into(),
            id: id.into(),
            label: format!("label-of-{id}"),
            aliases: vec![],
            version: version.into(),
            arch: Default::default(),
            source: SourceRecord { origin: "debian:6.12".into(), hash: "0".into(), patches: vec![] },
            config_hash: "1".into(),
            compiler: CompilerIdentity { program, version: "Debian clang version 19.1.7".into() },
            cc: "clang-19".into(),
            kcflags: vec![],
            object_flags: vec![],
            object_groups: vec![],
            make_vars: vec![],
            movable: false,
            order_id: None,
            rewrite_id: None,
            recipe: None,
            profile_id: None,
            base_id: None,
            built: "2025-01-01T00:00:00Z".into(),
            build_seconds: 1.0,
            objects: 1,
            text_bytes: 1,
            image_bytes: 1,
            build_path: "/w/k.partial/build".into(),
            task: TaskLayout { pid_offset: 1, tgid_offset: 2, comm_offset: 3 },
            structures: Default::default(),
            warnings: vec![],
        },
    }
}
