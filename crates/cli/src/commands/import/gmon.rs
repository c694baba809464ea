//! `kerntune import gmon`.

use crate::args::{ImportGmon, Global};
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(_global: &Global, _options: &ImportGmon, _output: &Output) -> Result<Exit, Failure> {
    Err(Failure::usage("gmon.out is not there yet"))
}
