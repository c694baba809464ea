//! Why there are no figures.

/// Each says which program or row, what happened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A row that no suite has.
    #[error("there is no row \"{name}\"; the rows are {known}")]
    NoRow {
        /// The name that was asked for.
        name: String,
        /// The rows of each suite.
        known: String,
    },
    /// All that was asked for cannot run here.
    #[error("nothing that was asked for runs on machine `{machine}`:\n  {}", reasons.join("\n  "))]
    NothingRuns {
        /// The machine's name in results.
        machine: &'static str,
        /// One line for each row that cannot run.
        reasons: Vec<String>,
    },
    /// A scale for programs that take none.
    #[error("suite {suite} always does the same work; leave --scale out")]
    NotScalable {
        /// The suite's name.
        suite: String,
    },
    /// Iterations for programs that have none.
    #[error("suite {suite} does each row once in a boot; leave --iterations out, and boot more often")]
    NotRepeated {
        /// The suite's name.
        suite: String,
    },
    /// A suite's program that failed.
    #[error("`{command}` {what}, so there are no figures of it; its last words were:\n{words}")]
    Program {
        /// The command line.
        command: String,
        /// How it failed, to be read after the command.
        what: String,
        /// The last lines that it printed, indented.
        words: String,
    },
    /// A suite's program that said something else than figures.
    #[error("`{command}` printed what is no figure of it: {message}")]
    NotFigures {
        /// The command line, or the suite's name.
        command: String,
        /// What was expected.
        message: String,
    },
    /// A row without a region in the recording.
    #[error("row {row} of suite {suite} is not in the recording {profile}; this is a bug: the suite's rows file promises it")]
    NotRecorded {
        /// The suite's name.
        suite: String,
        /// The row's name.
        row: String,
        /// The id of the recording's profile.
        profile: String,
    },
}
