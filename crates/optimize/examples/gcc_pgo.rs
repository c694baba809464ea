//! The steps of recipe gcc-pgo one by one, with the training run left to the caller.
//!
//! ```text
//! cargo run --release --example gcc_pgo -p kerntune-optimize -- WORKDIR SOURCE STEP …
//!   instrument             builds the base kernel and the gcov kernel
//!   prepare RUN…           RUN: what was below the guest's /sys/kernel/debug/gcov; prints the profile's directory
//!   tune PROFILE LABEL     builds the tuned kernel
//!   prove PROFILE LABEL    prints the proof and the verdict
//! ```

use kerntune_kernel::{build, find, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{
    instrumented_request, prepare_profile, prove, tuned_request, Exclusions, GccPgoProfile, UntrainedCode,
    ValuePatches, WeightedRun,
};
use kerntune_optimize::{PreparedResult, RecipeProof};
use kerntune_work::{interrupt, Progress, WorkDir};
use std::error::Error;
use std::path::Path;

/// Prints messages and no progress bars.
struct Notes;

impl Progress for Notes {
    fn begin(&self, what: &str, _: Option<u64>) {
        eprintln!("{what}");
    }
    fn at(&self, _: u64) {}
    fn note(&self, line: &str) {
        eprintln!("{line}");
    }
    fn end(&self) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    interrupt::install();
    run().map_err(|error| {
        eprintln!("{error}");
        error
    })
}

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [work, source, step, rest @ ..] = &args[..] else {
        return Err("see the head of this file for the arguments".into());
    };
    let work = WorkDir::open(work)?;
    let base_request = BuildRequest::new(source.parse()?, "base");
    let base = build(&work, &base_request, &Notes)?;
    let values = ValuePatches::of(&work, &base)?;
    let values = values.as_ref();
    let instrumented = instrumented_request(&base_request, &base, &Exclusions::maintained()?, values)?;
    match (step.as_str(), rest) {
        ("instrument", []) => show(&build(&work, &instrumented, &Notes)?),
        ("prepare", runs) => {
            let gcov = build(&work, &instrumented, &Notes)?;
            let runs: Vec<WeightedRun> = runs.iter().map(|run| WeightedRun::from(Path::new(run))).collect();
            let profile = prepare_profile(&work, &runs, &gcov)?;
            eprintln!("{:?}", profile.summary);
            println!("{}", profile.dir.display());
        }
        ("tune", [profile, label]) => {
            let profile = GccPgoProfile::load(Path::new(profile))?;
            let mut request =
                tuned_request(&base_request, &base, &profile, values, Some(UntrainedCode::default()))?;
            request.label.clone_from(label);
            show(&build(&work, &request, &Notes)?);
        }
        ("prove", [profile, label]) => {
            let tuned = find(&work, label)?;
            let profile = GccPgoProfile::load(Path::new(profile))?;
            let proof = prove(&base, &profile, &tuned)?;
            println!("{proof}");
            proof.verdict()?;
            println!("the profile took");
        }
        _ => return Err("see the head of this file for the steps".into()),
    }
    Ok(())
}

fn show(kernel: &Kernel) {
    println!("{} {} {}", kernel.manifest.id, kernel.manifest.label, kernel.dir.display());
}
