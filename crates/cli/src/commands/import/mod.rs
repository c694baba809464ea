//! `kerntune import`: one file per format.

mod gmon;
mod mcrae;
mod perf;

use crate::args::{Global, ImportFormat};
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(global: &Global, format: &ImportFormat, output: &Output) -> Result<Exit, Failure> {
    match format {
        ImportFormat::Gmon(options) => gmon::run(global, options, output),
        ImportFormat::Mcrae(options) => mcrae::run(global, options, output),
        ImportFormat::Perf(options) => perf::run(global, options, output),
    }
}
