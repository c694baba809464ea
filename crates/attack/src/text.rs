//! Readers of text: settings, manifests, and output of other programs.

use kerntune_guest::{
    last_lines, ConsoleMessage, DiscoveredFiles, InitPlan, MetricDirection, Workload, WorkloadMetric,
    WorkloadStep,
};
use kerntune_layout::FrontEndConfig;
use std::borrow::Cow;
use std::path::Path;

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A workload file, without access to the host.
pub fn workload(bytes: &[u8]) {
    let text = text(bytes);
    match Workload::parse(&text, Path::new("attack.toml")) {
        Ok(workload) => {
            let plan = InitPlan::of(&workload);
            assert!(plan.text().ends_with('\n'));
            kerntune_guest::fuzz_entry::shell_words(&workload);
        }
        Err(error) => assert!(!error.to_string().contains('\u{1b}'), "escapes in a message"),
    }
}

/// A front-end model.
pub fn model(bytes: &[u8]) {
    let Ok(model) = FrontEndConfig::parse(&text(bytes)) else { return };
    assert_eq!(FrontEndConfig::parse(&model.to_toml()).expect("what we write is read"), model);
}

/// A paper's figures, and a list of objects to leave out.
pub fn paper(bytes: &[u8]) {
    let text = text(bytes);
    let _ = kerntune_paper::Paper::parse(&text, "attack.toml");
    let _ = kerntune_optimize::gcc_pgo::Exclusions::parse(&text);
}

/// An environment block of GRUB.
pub fn grub_env(bytes: &[u8]) {
    let Ok(mut block) = kerntune_deploy::EnvBlock::read(bytes) else { return };
    let again = kerntune_deploy::EnvBlock::read(&block.bytes()).expect("what we write is read");
    assert_eq!(again, block);
    if block.set("next_entry", "kerntune-deploy").is_ok() {
        assert_eq!(block.get("next_entry"), Some("kerntune-deploy"));
    }
    assert_eq!(block.bytes().len(), kerntune_deploy::BLOCK_BYTES);
}

/// A guard file, a baseline, and a source file in which a function is located.
pub fn guard(bytes: &[u8]) {
    let text = text(bytes);
    let rows_of = |name: &str| match name {
        "rr" => Ok(vec!["tcp_rr".to_owned(), "pipe_rr".to_owned()]),
        other => Err(format!("there is no workload {other}")),
    };
    match kerntune_guard::GuardFile::parse(&text, &rows_of) {
        Ok(file) => assert!(!file.workloads.is_empty() && !file.compilers.is_empty()),
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(
                problems.iter().all(|problem| !problem.to_string().contains('\u{1b}')),
                "escapes in a message"
            );
        }
    }
    if let Ok(baseline) = serde_json::from_slice::<kerntune_guard::Baseline>(bytes) {
        for cell in &baseline.cells {
            let _ =
                (baseline.cell_for(cell), cell.rows.iter().map(kerntune_guard::RowFigure::path).sum::<f64>());
        }
    }
    if let Ok(baseline) = serde_json::from_slice::<kerntune_guard::ProgramBaseline>(bytes) {
        for row in baseline.cells.iter().flat_map(|cell| &cell.rows) {
            let _ = (row.whole(), row.faults(kerntune_guard::FaultKind::File), row.kernel.path());
        }
    }
    let _ = kerntune_guard::lines::locate_function(
        "a.c",
        "send",
        [Some(&text), Some("int send(void)\n{\n\tput();\n}\n")],
    );
}

/// Results of a benchmark.
pub fn bench_results(bytes: &[u8]) {
    let Ok(results) = kerntune_stats::BenchResults::parse("attack", &text(bytes)) else { return };
    for row in &results.rows {
        let _ = (row.name(), row.spread());
    }
}

/// Manifests of profiles, kernels, images, and recordings.
pub fn json_manifests(bytes: &[u8]) {
    let _ = serde_json::from_slice::<kerntune_profile::Manifest>(bytes);
    let _ = serde_json::from_slice::<kerntune_kernel::KernelManifest>(bytes);
    let _ = serde_json::from_slice::<kerntune_guest::ImageManifest>(bytes);
    let _ = serde_json::from_slice::<kerntune_trace::loaded::LoadedCode>(bytes);
    if let Ok(recording) = serde_json::from_slice::<kerntune_trace::Recording>(bytes) {
        // The trace that the recording describes is missing.
        let trace: &[u8] = b"";
        let _ = kerntune_analyze::TraceFile::open(&trace, &recording);
    }
}

/// A matrix's plan file, and the files that its machines exchange.
pub fn matrix(bytes: &[u8]) {
    let _ = kerntune_matrix::PlanFile::parse(&text(bytes), Path::new("attack.toml"));
    kerntune_matrix::fuzz_entry::objects(bytes);
    kerntune_matrix::fuzz_entry::answers(bytes);
    let to = tempfile::tempdir().expect("a directory");
    kerntune_matrix::fuzz_entry::pack(bytes, to.path());
}

/// A list of functions in order.
pub fn function_order(bytes: &[u8]) {
    let Ok(order) = kerntune_kernel::FunctionOrder::parse(&text(bytes)) else { return };
    let _ = (order.text(), order.id());
}

/// A kernel's configuration, and other files of Kbuild.
pub fn kernel_config(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::text(&text(bytes));
}

/// A guest's console, in pieces.
pub fn console(bytes: &[u8]) {
    kerntune_machine::fuzz_entry::console(bytes);
    for line in text(bytes).lines() {
        let _ = ConsoleMessage::parse(line);
    }
    assert!(!last_lines(&text(bytes)).contains('\u{1b}'));
}

/// Lines of a command's first run.
pub fn discovered_files(bytes: &[u8]) {
    match DiscoveredFiles::parse(&text(bytes)) {
        Ok(found) => assert!(found.paths.keys().all(|path| path.is_absolute())),
        Err(error) => assert!(!error.to_string().contains('\u{1b}'), "escapes in a message"),
    }
}

/// Output of a step, checked.
pub fn step_output(bytes: &[u8]) {
    let step = WorkloadStep {
        fail: vec!["Failed requests: +[1-9]".into()],
        expect: vec!["Complete requests: +1000".into()],
        metrics: vec![WorkloadMetric {
            name: "rps".into(),
            regex: r"Requests per second: +(\S+)".into(),
            unit: "requests/s".into(),
            better: MetricDirection::Higher,
        }],
        ..WorkloadStep::default()
    };
    if let Ok(figures) = step.judge(&text(bytes)) {
        assert!(figures.iter().all(|figure| figure.value.is_finite()));
    }
}

/// Output of a suite's program.
pub fn suite_lines(bytes: &[u8]) {
    kerntune_tune::fuzz_entry::suite_lines(&text(bytes));
}

/// The archive that a guest sends. Nothing is unpacked outside of its directory.
pub fn results(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let archive = dir.path().join("out.tar");
    std::fs::write(&archive, bytes).expect("written");
    kerntune_machine::fuzz_entry::results(&archive, &dir.path().join("out"));
    let beside = std::fs::read_dir(dir.path()).expect("listed").count();
    assert!(beside <= 2, "something was unpacked elsewhere");
    assert_eq!(std::fs::read(&archive).expect("read"), bytes, "the archive was overwritten");
}

/// Logs of BOLT and of compilers.
pub fn tool_output(bytes: &[u8]) {
    kerntune_optimize::foreign::logs(&text(bytes));
}
