//! `kerntune export gmon`.

use crate::args::{ExportGmon, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(_global: &Global, _options: &ExportGmon, _output: &Output) -> Result<Exit, Failure> {
    Err(Failure::usage("gmon.out is not there yet"))
}
