//! `kerntune report PROFILE html` on a synthetic profile with a trace.

#[path = "../../report/tests/synthetic/mod.rs"]
mod synthetic;

use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Makes a work directory with the profile, and with its recording if `trace` is set.
fn work(run: &synthetic::SyntheticRun, trace: bool) -> TempDir {
    let work = tempfile::tempdir().unwrap();
    let profile = work.path().join("profiles/p-synthetic");
    fs::create_dir_all(profile.join("run")).unwrap();
    run.profile.save(&profile).unwrap();
    if trace {
        fs::write(profile.join("run/trace.kt"), &run.trace).unwrap();
        fs::write(profile.join("run/recording.json"), serde_json::to_vec(&run.recording).unwrap()).unwrap();
    }
    kerntune_work::seal(&profile, "profiles", &run.profile.manifest.id, &[]).unwrap();
    work
}

fn html(work: &TempDir, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.arg("--dir").arg(work.path()).args(["report", "p-synthetic", "html", "--output"]);
    command.arg(work.path().join("page.html")).args(more).output().unwrap()
}

fn page(work: &TempDir) -> String {
    fs::read_to_string(work.path().join("page.html")).unwrap()
}

#[test]
fn the_page_has_a_timeline_where_there_is_a_trace() {
    let run = synthetic::run(100);
    let whole = work(&run, true);
    let output = html(&whole, &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(page(&whole).contains("Timeline: time by thread"));

    // The whole trace is on the page if it fits; otherwise the page names the command that shows
    // the rest.
    assert!(page(&whole).contains("The whole trace is on the page"));
    assert!(html(&whole, &["--size-limit", "0"]).status.success());
    assert!(page(&whole).contains("are not on the page"));
    // Two profiles.
    assert!(html(&whole, &["--against", "p-synthetic"]).status.success());
    assert!(page(&whole).contains("<title>base and base on made-up</title>"));

    let bare = work(&run, false);
    assert!(html(&bare, &["--region", "open"]).status.success());
    assert!(page(&bare).contains("Timeline: none"));
    assert!(page(&bare).contains("<title>Kernel profile of made-up: open</title>"));
}

#[test]
fn what_cannot_be_is_said() {
    let run = synthetic::run(100);
    let whole = work(&run, true);
    let output = html(&whole, &["--region", "udp"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no region \"udp\""));

    let trace = whole.path().join("profiles/p-synthetic/run/trace.kt");
    fs::write(&trace, &run.trace[..run.trace.len() / 2]).unwrap();
    let output = html(&whole, &[]);
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert!(!whole.path().join("page.html").exists());
}

/// Runs `scripts/check-page`, which uses the page in Chromium. Skipped if there is no browser,
/// unless KERNTUNE_BROWSER requires one (as in `make check`).
#[test]
fn the_page_does_what_it_should_in_a_browser() {
    let run = synthetic::run(400);
    let work = work(&run, true);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check-page");
    let output = Command::new(script)
        .arg(env!("CARGO_BIN_EXE_kerntune"))
        .arg(work.path())
        .args(["p-synthetic", "p-synthetic"])
        .output()
        .unwrap();
    if output.status.code() == Some(77) && std::env::var_os("KERNTUNE_BROWSER").is_none() {
        eprintln!("no browser is here: {}", String::from_utf8_lossy(&output.stderr).trim());
        return;
    }
    assert!(output.status.success(), "{output:?}");
}
