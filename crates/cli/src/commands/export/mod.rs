//! `kerntune export`: one file per format.

mod autofdo;
mod branches;
mod gmon;
mod uftrace;

use crate::args::{ExportFormat, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(global: &Global, format: &ExportFormat, output: &Output) -> Result<Exit, Failure> {
    match format {
        ExportFormat::Autofdo(options) => autofdo::run(global, options, output),
        ExportFormat::Branches(options) => branches::run(global, options, output),
        ExportFormat::Gmon(options) => gmon::run(global, options, output),
        ExportFormat::Uftrace(options) => uftrace::run(global, options, output),
    }
}
