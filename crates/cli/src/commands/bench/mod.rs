//! `kerntune bench`: one file per command.

mod compare;

use crate::args::Bench;
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub fn run(command: &Bench, output: &Output) -> Result<Exit, Failure> {
    match command {
        Bench::Compare(options) => compare::run(options, output),
    }
}
