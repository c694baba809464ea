//! Readers of text: settings, manifests, and what other programs print.

use kerntune_guest::{last_lines, Better, ConsoleMessage, Metric, Plan, Step, Workload};
use kerntune_layout::FrontEndConfig;
use std::borrow::Cow;
use std::path::Path;

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A workload file, without asking the host.
pub fn workload(bytes: &[u8]) {
    let text = text(bytes);
    match Workload::parse(&text, Path::new("attack.toml")) {
        Ok(workload) => {
            let plan = Plan::of(&workload);
            assert!(plan.text().ends_with('\n'));
            kerntune_guest::foreign::shell_words(&workload);
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

/// What is guarded, figures to be committed, and a source file in which a function is looked for.
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
    let _ =
        kerntune_guard::lines::place("a.c", "send", [Some(&text), Some("int send(void)\n{\n\tput();\n}\n")]);
}

/// Results of a benchmark.
pub fn bench_results(bytes: &[u8]) {
    let Ok(results) = kerntune_stats::Results::parse("attack", &text(bytes)) else { return };
    for row in &results.rows {
        let _ = (row.name(), row.spread());
    }
}

/// Manifests of profiles, kernels, images, and recordings.
pub fn json_manifests(bytes: &[u8]) {
    let _ = serde_json::from_slice::<kerntune_profile::Manifest>(bytes);
    let _ = serde_json::from_slice::<kerntune_kernel::KernelManifest>(bytes);
    let _ = serde_json::from_slice::<kerntune_guest::Manifest>(bytes);
    if let Ok(recording) = serde_json::from_slice::<kerntune_trace::Recording>(bytes) {
        // The trace that it describes is not there, or shorter.
        let trace: &[u8] = b"";
        let _ = kerntune_analyze::TraceFile::open(&trace, &recording);
    }
}

/// A matrix's plan file, and what machines that work on it leave for each other.
pub fn matrix(bytes: &[u8]) {
    let _ = kerntune_matrix::PlanFile::parse(&text(bytes), Path::new("attack.toml"));
    kerntune_matrix::foreign::objects(bytes);
    kerntune_matrix::foreign::answers(bytes);
    let to = tempfile::tempdir().expect("a directory");
    kerntune_matrix::foreign::pack(bytes, to.path());
}

/// A list of functions in order.
pub fn function_order(bytes: &[u8]) {
    let Ok(order) = kerntune_kernel::FunctionOrder::parse(&text(bytes)) else { return };
    let _ = (order.text(), order.id());
}

/// A kernel's configuration, and what Kbuild leaves for us.
pub fn kernel_config(bytes: &[u8]) {
    kerntune_kernel::parsers::text(&text(bytes));
}

/// A guest's console, in pieces.
pub fn console(bytes: &[u8]) {
    kerntune_machine::foreign::console(bytes);
    for line in text(bytes).lines() {
        let _ = ConsoleMessage::parse(line);
    }
    assert!(!last_lines(&text(bytes)).contains('\u{1b}'));
}

/// What a step prints, judged.
pub fn step_output(bytes: &[u8]) {
    let step = Step {
        fail: vec!["Failed requests: +[1-9]".into()],
        expect: vec!["Complete requests: +1000".into()],
        metrics: vec![Metric {
            name: "rps".into(),
            regex: r"Requests per second: +(\S+)".into(),
            unit: "requests/s".into(),
            better: Better::Higher,
        }],
        ..Step::default()
    };
    if let Ok(figures) = step.judge(&text(bytes)) {
        assert!(figures.iter().all(|figure| figure.value.is_finite()));
    }
}

/// What a suite's program prints.
pub fn suite_lines(bytes: &[u8]) {
    kerntune_tune::foreign::suite_lines(&text(bytes));
}

/// What a guest sends. Nothing of it gets out of the directory for it.
pub fn results(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let archive = dir.path().join("out.tar");
    std::fs::write(&archive, bytes).expect("written");
    kerntune_machine::foreign::results(&archive, &dir.path().join("out"));
    let beside = std::fs::read_dir(dir.path()).expect("listed").count();
    assert!(beside <= 2, "something was unpacked elsewhere");
    assert_eq!(std::fs::read(&archive).expect("read"), bytes, "the archive was overwritten");
}

/// Logs of BOLT and of compilers.
pub fn tool_output(bytes: &[u8]) {
    kerntune_optimize::foreign::logs(&text(bytes));
}
