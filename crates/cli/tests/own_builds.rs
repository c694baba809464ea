//! Files for kernels that users build themselves (docs/own-builds.md): what fits which file, commands
//! that are printed, and objects of the real kernel compiled by them. `crates/tune/tests` has whole
//! builds.

use crate::support::{self, fails, json, kerntune, said, workload};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Records a workload on the base kernel; returns the profile.
fn recorded(directory: &TempDir) -> String {
    let step = "command = [\"rr\", \"--only\", \"pipe_rr,stat\"]\n";
    let text = format!(
        "description = \"x\"\n[training]\n[[training.step]]\n{step}[measured]\n[[measured.step]]\n{step}"
    );
    let file = workload(directory, &text);
    let kernel = support::base_kernel();
    let recording = ["record", "--kernel", &kernel, "--workload", &file, "--no-functions", "--json"];
    json(recording)["profile"].as_str().unwrap().to_string()
}

/// Exports; returns what was printed beside results.
fn export(directory: &Path, arguments: &[&str]) -> String {
    let output = kerntune(["export"]).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stderr).unwrap()
}

/// Runs the printed command that begins with `program`; returns what it said.
fn run_printed(directory: &Path, printed: &str, program: &str) -> String {
    let command = printed.lines().find(|line| line.starts_with(program)).unwrap();
    let output = Command::new("sh").arg("-c").arg(command).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{command}: {}", said(&output));
    said(&output)
}

#[test]
fn a_profile_is_exported_where_it_fits_and_refused_by_name_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let (profile, place) = (recorded(&directory), directory.path());
    let refused = |format: &str, words: &[&str]| {
        fails(kerntune(["export", format, &profile]).current_dir(place), 7, words);
    };
    refused("afdo", &["kernel base", "has no line tables"]);
    refused("propeller", &["kernel base has no map of its blocks"]);
    refused("gcda", &["kernel base", "counts no arcs", "profile for"]);

    let printed = export(place, &["bolt", &profile]);
    let log = run_printed(place, &printed, "llvm-bolt-19 ");
    assert!(log.contains("functions were overwritten"), "{log}");
    assert!(place.join("bolt.txt.vmlinux").is_file() && place.join("vmlinux.bolt").is_file());

    let printed = export(place, &["order", &profile, "--form", "script"]);
    let script = fs::read_to_string(place.join("order.lds")).unwrap();
    assert!(script.contains("\n*(.text.vfs_write .text.hot.vfs_write)\n"), "{script}");
    let to = place.join("arch/x86/kernel");
    fs::create_dir_all(&to).unwrap();
    fs::write(to.join("vmlinux.lds.S"), "\t.text : {\n\t\tTEXT_TEXT\n\t}\n").unwrap();
    run_printed(place, &printed, "sed ");
    let text = fs::read_to_string(to.join("vmlinux.lds.S")).unwrap();
    let include = format!(
        "\t.text : {{\n#include \"{}\"\n\t\tTEXT_TEXT\n*(.text.[0-9a-zA-Z_]*)\n",
        place.join("order.lds").display()
    );
    assert!(text.starts_with(&include), "{text}");
    let printed = export(place, &["order", &profile]);
    assert!(
        printed.contains("--symbol-ordering-file=") && printed.contains("-ffunction-sections"),
        "{printed}"
    );
    assert!(fs::read_to_string(place.join("order.txt")).unwrap().lines().any(|line| line == "vfs_write"));

    // The base kernel itself took nothing.
    let kernel = support::work_dir().join("kernels").join(support::base_kernel()).join("vmlinux");
    let image = kernel.to_str().unwrap();
    let words = ["did not take the profile", "65 % are needed"];
    let output = kerntune(["profile", "check", &profile, "--kernel", image]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = said(&output);
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    let built = kerntune(["profile", "check", &profile, "--kernel", image, "--json"]).output().unwrap();
    let built: serde_json::Value = serde_json::from_slice(&built.stdout).unwrap();
    assert_eq!(
        (built["schema"].as_str(), built["verdict"].as_str()),
        (Some("kerntune-own-build/1"), Some("refused"))
    );
    let refused = ["neither --recipe nor --against"];
    fails(
        &mut kerntune(["profile", "check", &profile, "--kernel", image, "--recipe", "layout"]),
        2,
        &refused,
    );
}

#[test]
fn one_command_writes_all_files_and_the_lines_that_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("profiles");
    let to = place.to_str().unwrap();
    let made =
        json(["profile", "for", "--source", "debian:6.12", "--workload", "rr", "--output", to, "--json"]);
    assert!(made["schema"].as_str().unwrap().starts_with("kerntune-own-build-files/"), "{made}");
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    let readme = read("README.md");
    for word in ["## make, in the source tree", "-fprofile-use=", "PKGBUILD", "%build", "debian/rules"] {
        assert!(readme.contains(word), "{word} is not in:\n{readme}");
    }
    assert!(read("gcda/objects").lines().any(|object| object == "net/ipv4/tcp.o"));
    assert!(place.join("gcda/net#ipv4#tcp.gcda").is_file());
    assert!(read("order.txt").lines().any(|name| name == "tcp_sendmsg"));
    assert!(read("order.lds").contains("*(.text.tcp_sendmsg .text.hot.tcp_sendmsg)"));
    let again = ["profile", "for", "--source", "debian:6.12", "--workload", "rr", "--output", to];
    fails(&mut kerntune(again), 2, &["profiles", "not empty"]);
}
