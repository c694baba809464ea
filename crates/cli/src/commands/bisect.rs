//! The command `kerntune kernel bisect`, and the text for exclusions.

use kerntune_command::{show_steps, CliOutput, DryRunOptions, Exit, Failure};
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_tune::bisect::{bisect, judge, ObjectBisection};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::optimize::request_of;
use kerntune_tune::{exclusion_entries, Session};
use kerntune_work::WorkDir;

/// Mixes that find one culprit among a kernel's thousand objects, each half as many as the last.
const MIXES: u32 = 10;

pub fn run(
    work: &WorkDir,
    (kernel, good): (&str, Option<&str>),
    dry: DryRunOptions,
    json: bool,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let bad = kerntune_kernel::find(work, kernel)?;
    let session = Session::on(bad.manifest.arch, work, output.progress())?;
    let good = good.or(bad.manifest.base_id.as_deref());
    let good = good.ok_or_else(|| {
        Failure::usage(format!(
            "kernel {kernel} has no base kernel: name the kernel to compare it with by --good"
        ))
    })?;
    let good = kerntune_kernel::find(work, good)?;
    if dry.dry_run {
        let mut dry = DryRun::new(&session);
        dry_run(&mut dry, &bad, &good)?;
        return Ok(show_steps(dry, json, output));
    }
    let failure = judge(&session, &bad, &good)?;
    let found = match &failure {
        Some(failure) => {
            output.note(&format!("kernel {} {failure}", bad.manifest.label));
            let (bad, good) = (with_objects(&session, &bad)?, with_objects(&session, &good)?);
            Some(bisect(&session, &bad, &good)?)
        }
        None => None,
    };
    // An object that must not be instrumented must not use a profile either.
    let tuned_only = bad.manifest.recipe.as_deref() != Some(kerntune_optimize::gcc_pgo::INSTRUMENTED);
    let entries = found.iter().flat_map(|found| exclusion_entries(&found.culprits, tuned_only));
    let entries: Vec<Exclusion> = entries.collect();
    if json {
        output.json(&serde_json::json!({
            "schema": "kerntune-bisect/1",
            "kernel": bad.manifest.id,
            "good": good.manifest.id,
            "failure": failure,
            "objects": found.as_ref().map(|found| found.objects),
            "mixes": found.as_ref().map(|found| found.mixes),
            "culprits": found.as_ref().map(|found| &found.culprits[..]).unwrap_or_default(),
            "excluded": entries,
        }));
        return Ok(Exit::Ok);
    }
    match &found {
        Some(found) => output.print(&table(&bad, &good, found, &entries)),
        None => {
            let (bad, good) = (&bad.manifest.label, &good.manifest.label);
            output.print(&format!("kernel {bad} does all that {good} does: there is nothing to find"));
        }
    }
    Ok(Exit::Ok)
}

/// Returns the kernel with its object files; rebuilds it with them if its inputs are known.
fn with_objects(session: &Session, kernel: &Kernel) -> Result<Kernel, Failure> {
    if kernel.build_dir().is_some() {
        return Ok(kernel.clone());
    }
    match request_of(session.work, kernel) {
        Ok(request) => {
            let request = BuildRequest { keep_objects: true, ..request };
            Ok(build(session.work, &request, session.progress)?)
        }
        // The caller reports the missing objects.
        Err(_) => Ok(kernel.clone()),
    }
}

/// Adds the steps of a bisection; how many mixes it needs shows only when it runs.
fn dry_run(dry: &mut DryRun, bad: &Kernel, good: &Kernel) -> Result<(), Failure> {
    dry.selftests("run the functional checks on both kernels", &[Some(bad), Some(good)])?;
    for kernel in [bad, good].into_iter().filter(|kernel| kernel.build_dir().is_none()) {
        if let Ok(request) = request_of(dry.session().work, kernel) {
            let request = BuildRequest { keep_objects: true, ..request };
            dry.kernel(format!("build {} again for its objects", kernel.manifest.label), &request)?;
        }
    }
    let what =
        "link mixes of their objects and run the checks on each, about as many as this for one culprit";
    dry.add("mixes", what, None, |dry| Some(dry.of_selftests(MIXES)));
    Ok(())
}

fn table(bad: &Kernel, good: &Kernel, found: &ObjectBisection, entries: &[Exclusion]) -> String {
    let mut text = format!(
        "{} and {} differ in {} objects; kerntune tried {} mixes of them\n",
        bad.manifest.label, good.manifest.label, found.objects, found.mixes
    );
    for culprit in &found.culprits {
        text.push_str(&format!(
            "culprit: {}: the kernel {}\n",
            culprit.objects.join(" with "),
            culprit.failure
        ));
    }
    text.push_str("without them the kernel does all that the good one does\n");
    text + &excluded(entries)
}

/// Formats exclusions for a TOML list; empty if there are none.
pub fn excluded(entries: &[Exclusion]) -> String {
    let mut list = Exclusions::default();
    for entry in entries {
        // Exclusions parsed from a list can be added to one.
        let _ = list.push(entry.clone());
    }
    match entries.is_empty() {
        true => String::new(),
        false => format!("\nexcluded (for a list that --exclude takes):\n\n{}", list.text()),
    }
}
