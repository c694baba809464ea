//! The real program on real kernels: one program of tests, in which a file is a module.
//!
//! `cargo test --release -p kerntune-cli --test cli tune::` runs those of `tune.rs`. Two run at a time, where there are two CPUs.

mod anatomy;
mod attack;
mod bad_input;
mod bench;
mod bench_compare;
mod bench_correlate;
mod bisect;
mod champsim;
mod characterise;
mod clock;
mod contain;
mod data;
mod disk;
mod document_commands;
mod exact;
mod exports;
mod figures;
mod first_session;
mod foreign;
mod function_graph;
mod gprof;
mod guard;
mod html;
mod keys;
mod kvm;
mod live;
mod live_guest;
mod live_kgmon;
mod matrix_run;
mod mcrae;
mod output;
mod package;
mod papers;
mod path;
mod paths;
mod quality;
mod record_options;
mod reports;
mod schemas;
mod selftest;
mod servers;
mod smp;
mod support;
mod trim;
mod tune;
mod uml;

/// A file that no line above names would be tested by nobody.
#[test]
fn every_file_is_a_module() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named: Vec<&str> =
        include_str!("main.rs").lines().filter_map(|line| line.strip_prefix("mod ")).collect();
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let module = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            module == "main" || named.contains(&format!("{module};").as_str()),
            "no `mod {module};` in main.rs"
        );
    }
}
