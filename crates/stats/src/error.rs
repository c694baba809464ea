//! What can be wrong with results and with what is asked of them.

use crate::results::RESULTS_SCHEMA;
use crate::Place;

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can be wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("{origin}: these are no results of `kerntune bench run`: {source}")]
    Json {
        /// The file.
        origin: String,
        /// With line and column.
        source: serde_json::Error,
    },
    /// Another document, or another version.
    #[error("{origin}: the schema is {found}, not \"{RESULTS_SCHEMA}\"; give a file that `kerntune bench run` wrote")]
    Schema {
        /// The file.
        origin: String,
        /// What it says, in quotes; `missing`.
        found: String,
    },
    /// A file without rows.
    #[error("{origin}: there are no rows in it; run the benchmarks again")]
    NoRows {
        /// The file.
        origin: String,
    },
    /// A row without suite or name.
    #[error("{origin}: row {index} has no {field}")]
    Unnamed {
        /// The file.
        origin: String,
        /// Which, from 0.
        index: usize,
        /// `suite`, `row` or `unit`.
        field: &'static str,
    },
    /// Two rows of one name.
    #[error("{origin}: row {row} is there twice")]
    RowTwice {
        /// The file.
        origin: String,
        /// `suite/row`.
        row: String,
    },
    /// A row that cannot be used.
    #[error("{origin}: row {row}: {source}")]
    Row {
        /// The file.
        origin: String,
        /// `suite/row`.
        row: String,
        /// Why.
        source: Box<Error>,
    },
    /// A row with nothing in it.
    #[error("there are no values")]
    NoValues,
    /// A value that is no measurement.
    #[error("{} {} is no measurement: values are 0 to 1e100", short(*.value), at(.place))]
    Value {
        /// Where it comes from.
        place: Place,
        /// What it is.
        value: f64,
    },
    /// Two values of one place.
    #[error("there are two values {}", at(.place))]
    Twice {
        /// The place.
        place: Place,
    },
    /// Not enough to say anything.
    #[error("{units} value(s) of one kernel: at least two independent ones are needed for an interval")]
    TooFew {
        /// How many there are.
        units: usize,
    },
    /// No ratio.
    #[error("the mean is 0 (or below 1e-100), so that there is no ratio to it")]
    ZeroMean,
    /// Nothing to join.
    #[error("no results to compare: name at least one file of each kernel")]
    NoFiles,
    /// Files of different machines.
    #[error("{one} was measured on machine \"{one_machine}\" and {other} on \"{other_machine}\": figures of different machines say nothing about each other")]
    Machines {
        /// A file.
        one: String,
        /// Its machine.
        one_machine: String,
        /// Another file.
        other: String,
        /// Its machine.
        other_machine: String,
    },
    /// An A/A pair of two kernels.
    #[error("{files}: measured on {kernel}, and the base kernel is {base}: an A/A pair is of one kernel, measured twice")]
    AnotherKernel {
        /// The files that should be of the base kernel.
        files: String,
        /// What they are of.
        kernel: String,
        /// What the base kernel is.
        base: String,
    },
    /// Files that mean different things by one name.
    #[error("row {row} is in {one} in {one_unit} and in {other} in {other_unit}; measure both with the same suite")]
    Units {
        /// `suite/row`.
        row: String,
        /// A file.
        one: String,
        /// Its unit and direction.
        one_unit: String,
        /// Another file.
        other: String,
        /// Its unit and direction.
        other_unit: String,
    },
    /// Nothing to compare.
    #[error(
        "the results have no row in common (base: {base}; tuned: {tuned}); measure both with the same suites"
    )]
    NothingInCommon {
        /// Rows of the base kernel.
        base: String,
        /// Rows of the tuned kernel.
        tuned: String,
    },
    /// Rows in common, and none with enough values.
    #[error(
        "no row can be compared; {row}: {why}. Measure several boots of each kernel, or at least several runs, and \
         give all files"
    )]
    NothingComparable {
        /// The first of them, `suite/row`.
        row: String,
        /// Why not.
        why: String,
    },
    /// Exact results of different front-end models.
    #[error(
        "{one} was recorded with front-end model \"{one_model}\" and {other} with \"{other_model}\": figures of different \
         models say nothing about each other; record both with the same --model"
    )]
    Models {
        /// A file.
        one: String,
        /// Its model.
        one_model: String,
        /// Another file.
        other: String,
        /// Its model.
        other_model: String,
    },
    /// A row that is asked to be left out and is not there.
    #[error("no row \"{row}\" to leave out; rows are named as in the table, by row or by suite/row")]
    NoRow {
        /// The name asked for.
        row: String,
    },
    /// Results that are not of the exact machine.
    #[error(
        "{origin}: row {row} has no exact figures; give what `kerntune bench run --machine emulator -o FILE` wrote"
    )]
    NoFigures {
        /// The file.
        origin: String,
        /// `suite/row`.
        row: String,
    },
    /// An option out of its range.
    #[error("{option} {value}: {rule}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What it is.
        value: f64,
        /// What it must be.
        rule: &'static str,
    },
}

/// Not with a hundred zeros.
fn short(value: f64) -> String {
    if value.abs() < 1e15 {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

fn at(place: &Place) -> String {
    let Place { build, boot, run, iteration } = place;
    format!("at build {build}, boot {boot}, run {run}, iteration {iteration}")
}
