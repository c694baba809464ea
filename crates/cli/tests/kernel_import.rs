//! `kerntune kernel import`: what is refused. The images of distributions are not here.

use crate::support;
use std::fs;
use std::path::PathBuf;

#[test]
fn other_and_stripped_kernels_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let base = support::json(["kernel", "show", &support::base_kernel(), "--json"]);
    let kernel = PathBuf::from(base["path"].as_str().unwrap());
    let at = |name: &str| kernel.join(name).display().to_string();
    let (image, config) = (at("bzImage"), at("config"));
    let import = |more: &[&str]| {
        let files = ["kernel", "import", "--image", &image, "--config", &config];
        support::kerntune([&files[..], more].concat())
    };

    let other = std::env::current_exe().unwrap().display().to_string();
    support::fails(&mut import(&["--vmlinux", &other]), 2, &["of another kernel than", "build id"]);

    let stripped = dir.path().join("vmlinux");
    fs::copy(kernel.join("vmlinux"), &stripped).unwrap();
    assert!(std::process::Command::new("strip").arg(&stripped).status().unwrap().success());
    let stripped = stripped.display().to_string();
    support::fails(&mut import(&["--vmlinux", &stripped]), 2, &["no symbols", "leave it out"]);

    // The base kernel carries no type information.
    support::fails(&mut import(&[]), 2, &["CONFIG_DEBUG_INFO_BTF"]);
}
