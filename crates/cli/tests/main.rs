//! Tests of the real program on real kernels: one test program with a module per file.
//!
//! `cargo test --release -p kerntune-cli --test cli tune::` runs those of `tune.rs`. Two tests run
//! at a time if there are two CPUs.

mod ad_hoc;
mod anatomy;
mod attack;
mod bad_input;
mod bench;
mod bench_compare;
mod bench_correlate;
mod bisect;
mod champsim;
mod characterize;
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
mod image;
mod import_tools;
mod kernel_import;
mod keys;
mod kvm;
mod live;
mod live_guest;
mod live_kgmon;
mod live_waits;
mod matrix_run;
mod mcrae;
mod modules;
mod output;
mod package;
mod papers;
mod path;
mod paths;
mod pipes;
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
