//! Builds one kernel and shows its manifest; the smallest program that uses this crate.
//!
//! ```text
//! cargo run --release --example build_kernel -p kerntune-kernel -- WORKDIR SOURCE LABEL [OPTION…]
//!   --compiler NAME     gcc, gcc-13, clang-19
//!   --config FILE       a full .config instead of ours
//!   --patch FILE        a patch for the source
//!   --fragment FILE     a config fragment
//!   --extra LINE        a config line that has to take
//!   --kcflag FLAG       a flag for every kernel object
//!   --keep-objects      keep the build directory
//! ```

use kerntune_kernel::{build, list, BaseConfig, BuildRequest};
use kerntune_work::{interrupt, Progress, WorkDir};
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// Prints a line for every hundred objects.
#[derive(Default)]
struct LineProgress {
    total: AtomicU64,
    shown: AtomicU64,
}

impl Progress for LineProgress {
    fn begin(&self, what: &str, total: Option<u64>) {
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        self.shown.store(0, Ordering::Relaxed);
        eprintln!("{what}");
    }

    fn at(&self, done: u64) {
        let hundreds = done / 100;
        if hundreds > self.shown.swap(hundreds, Ordering::Relaxed) {
            match self.total.load(Ordering::Relaxed) {
                0 => eprintln!("  {done}"),
                total => eprintln!("  {done} of {total}"),
            }
        }
    }

    fn note(&self, line: &str) {
        eprintln!("{line}");
    }

    fn end(&self) {}
}

fn main() -> ExitCode {
    interrupt::install();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().ok_or(format!("{what} is missing; see the head of this file"));
    let work = WorkDir::open(next("WORKDIR")?)?;
    let mut request = BuildRequest::new(next("SOURCE")?.parse()?, next("LABEL")?);
    while let Ok(option) = next("OPTION") {
        match option.as_str() {
            "--compiler" => request.compiler = next("NAME")?.parse()?,
            "--config" => request.base = BaseConfig::File(next("FILE")?.into()),
            "--patch" => request.patches.push(next("FILE")?.into()),
            "--fragment" => request.fragments.push(next("FILE")?.into()),
            "--extra" => request.extra.push(next("LINE")?),
            "--kcflag" => request.kcflags.push(next("FLAG")?),
            "--keep-objects" => request.keep_objects = true,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let kernel = build(&work, &request, &LineProgress::default())?;
    println!("{}", serde_json::to_string_pretty(&kernel.manifest)?);
    for kernel in list(&work)? {
        println!("{} {} {}", kernel.manifest.built, kernel.manifest.id, kernel.manifest.label);
    }
    Ok(())
}
