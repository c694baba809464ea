//! `kerntune doctor`.

use crate::args::{Doctor, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(global: &Global, options: &Doctor, output: &Output) -> Result<Exit, Failure> {
    // The work directory is looked at, not made: doctor works outside of any project.
    let kernel = kerntune_work::WorkDir::open_existing(&global.dir)
        .and_then(|work| kerntune_kernel::list(&work).ok()?.into_iter().next_back());
    let report = kerntune_doctor::examine(&kerntune_doctor::Options {
        recorder: kerntune_machine::find_recorder().ok(),
        kernel: kernel.map(|kernel| kernel.bzimage()),
        work_dir: global.dir.clone(),
    });
    if options.format.json {
        output.json(&report);
    } else {
        output.print(&report.text(output.style().color));
    }
    Ok(if report.is_ready() { Exit::Ok } else { Exit::Missing })
}
