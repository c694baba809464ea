//! A condition of a rule, as its file has it.

use serde::Deserialize;

/// One condition. It is of functions, of threads, of the kernel's configuration, or of a fact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// Patterns of functions with `*` and `?`: all that match, together.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Patterns of the names of threads (`comm`): all that match, together.
    #[serde(default)]
    pub threads: Vec<String>,
    /// Their own time, per cent of the busy time: at least so much.
    pub percent: Option<f64>,
    /// Calls of them in a second: at least so many.
    pub calls_per_second: Option<f64>,
    /// None of them was called.
    #[serde(default)]
    pub never: bool,
    /// Lines that the kernel's configuration has, all of them: `CONFIG_X=y`, `CONFIG_X=n`.
    #[serde(default)]
    pub config: Vec<String>,
    /// A figure of the whole, by its name.
    pub fact: Option<String>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}
