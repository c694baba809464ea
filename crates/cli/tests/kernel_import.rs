//! `kerntune kernel import`, and `record` on what it makes.

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

    // Nor a configuration.
    let alone = ["kernel", "import", "--image", &image];
    support::fails(&mut support::kerntune(alone), 2, &["CONFIG_IKCONFIG", "--config"]);
    let nothing = dir.path().display().to_string();
    support::fails(&mut support::kerntune(["kernel", "import", &nothing]), 2, &["no kernel was built there"]);
}

/// Imports the planted kernel, which has debug information of one object, from a directory like that
/// of its build.
#[test]
fn offsets_are_those_that_the_compiler_gave() {
    let built = support::json(["kernel", "show", &support::planted_kernel(), "--json"]);
    let kernel = PathBuf::from(built["path"].as_str().unwrap());
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("arch/x86/boot")).unwrap();
    for (from, to) in [("bzImage", "arch/x86/boot/bzImage"), ("config", ".config"), ("vmlinux", "vmlinux")] {
        fs::copy(kernel.join(from), tree.path().join(to)).unwrap();
    }
    let tree = tree.path().display().to_string();
    let work = tempfile::tempdir().unwrap();
    let work = work.path().display().to_string();
    let imported = support::json(["kernel", "import", "--dir", &work, &tree, "--label", "mine", "--json"]);
    assert_eq!(imported["task"], built["task"]);
    assert_eq!(imported["label"], "mine");
    let again = support::json(["kernel", "import", "--dir", &work, &tree, "--json"]);
    assert_eq!(again["id"], imported["id"]);
    let sources =
        fs::read_to_string(PathBuf::from(imported["path"].as_str().unwrap()).join("sources.tsv")).unwrap();
    assert!(sources.contains("\tkernel/kt_planted.c\n"), "{sources}");

    let reproduce = ["kernel", "reproduce", "mine", "--dir", &work];
    support::fails(&mut support::kerntune(reproduce), 2, &["6.12.117-kt was imported as shipped"]);
}

/// The distribution's kernel, which a command is recorded on where no kernel was built.
#[test]
fn a_command_runs_on_the_kernel_of_the_distribution() {
    let Some(_) = kerntune_kernel::ShippedKernel::prepared() else {
        println!("not tried, because scripts/setup could download no kernel");
        return;
    };
    let work = tempfile::tempdir().unwrap();
    let work = work.path().display().to_string();
    let record = || support::json(["record", "--dir", &work, "--no-edges", "--json", "--", "true"]);
    let (first, second) = (record(), record());
    let kernels = support::json(["kernel", "list", "--dir", &work, "--json"]);
    let [kernel] = &kernels.as_array().unwrap()[..] else { panic!("{kernels}") };
    assert!(kernel["source"]["origin"].as_str().unwrap().starts_with("shipped:"), "{kernel}");
    assert_eq!((&first["lost_events"], &second["lost_events"]), (&0.into(), &0.into()));
    assert_eq!((&first["busy"], &first["events"]), (&second["busy"], &second["events"]));
    assert_ne!(first["profile"], second["profile"]);
    let id = first["profile"].as_str().unwrap();
    let subsystems = support::json(["report", id, "subsystems", "--dir", &work, "--json"]).to_string();
    for directory in ["\"mm\"", "\"fs\"", "\"kernel\""] {
        assert!(subsystems.contains(directory), "{directory}: {subsystems}");
    }
}
