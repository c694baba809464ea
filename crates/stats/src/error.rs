//! Errors of results and of options.

use crate::results::RESULTS_SCHEMA;
use crate::ValuePosition;
use kerntune_work::{ClassifyError, ErrorClass};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of unusable results or options.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("{origin}: these are no results of `kerntune bench run`: {source}")]
    Json { origin: String, source: serde_json::Error },
    #[error("{origin}: the schema is {found}, not \"{RESULTS_SCHEMA}\"; give a file that `kerntune bench run` wrote")]
    Schema { origin: String, found: String },
    #[error("{origin}: there are no rows in it; run the benchmarks again")]
    NoRows { origin: String },
    #[error("{origin}: row {index} has no {field}")]
    Unnamed { origin: String, index: usize, field: &'static str },
    #[error("{origin}: row {row} is there twice")]
    RowTwice { origin: String, row: String },
    #[error("{origin}: row {row}: {source}")]
    Row { origin: String, row: String, source: Box<Error> },
    #[error("there are no values")]
    NoValues,
    #[error("{} {} is no measurement: values are 0 to 1e100", short(*.value), at(.place))]
    Value { place: ValuePosition, value: f64 },
    #[error("there are two values {}", at(.place))]
    Twice { place: ValuePosition },
    #[error("{units} value(s) of one kernel: at least two independent ones are needed for an interval")]
    TooFew { units: usize },
    #[error("the mean is 0 (or below 1e-100), so that there is no ratio to it")]
    ZeroMean,
    #[error("no results to compare: name at least one file of each kernel")]
    NoFiles,
    #[error("{one} was measured on machine \"{one_machine}\" and {other} on \"{other_machine}\": figures of different machines say nothing about each other")]
    Machines { one: String, one_machine: String, other: String, other_machine: String },
    #[error("{files}: measured on {kernel}, and the base kernel is {base}: an A/A pair is of one kernel, measured twice")]
    AnotherKernel { files: String, kernel: String, base: String },
    #[error("row {row} is in {one} in {one_unit} and in {other} in {other_unit}; measure both with the same suite")]
    Units { row: String, one: String, one_unit: String, other: String, other_unit: String },
    #[error(
        "the results have no row in common (base: {base}; tuned: {tuned}); measure both with the same suites"
    )]
    NothingInCommon { base: String, tuned: String },
    #[error(
        "no row can be compared; {row}: {why}. Measure several boots of each kernel, or at least several runs, and \
         give all files"
    )]
    NothingComparable { row: String, why: String },
    #[error(
        "{one} was recorded with front-end model \"{one_model}\" and {other} with \"{other_model}\": figures of different \
         models say nothing about each other; record both with the same --model"
    )]
    Models { one: String, one_model: String, other: String, other_model: String },
    #[error("no row \"{row}\" to leave out; rows are named as in the table, by row or by suite/row")]
    NoRow { row: String },
    #[error(
        "{origin}: row {row} has no exact figures; give what `kerntune bench run --machine emulator -o FILE` wrote"
    )]
    NoFigures { origin: String, row: String },
    #[error("{option} {value}: {rule}")]
    Option { option: &'static str, value: f64, rule: &'static str },
}

/// Formats a value without a hundred zeros.
fn short(value: f64) -> String {
    if value.abs() < 1e15 {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

fn at(place: &ValuePosition) -> String {
    let ValuePosition { build, boot, run, iteration } = place;
    format!("at build {build}, boot {boot}, run {run}, iteration {iteration}")
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}
