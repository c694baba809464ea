//! Condition of a rule, as its file defines it.

use serde::Deserialize;

/// Condition on functions, on threads, on the kernel's configuration, or on a fact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleCondition {
    /// Patterns of function names with `*` and `?`; all matches count together.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Patterns of thread names (`comm`); all matches count together.
    #[serde(default)]
    pub threads: Vec<String>,
    /// Smallest self time of the matches, in per cent of the busy time.
    pub percent: Option<f64>,
    /// Smallest rate of calls of the matches, per second.
    pub calls_per_second: Option<f64>,
    /// The condition holds if none of the functions was called.
    #[serde(default)]
    pub never: bool,
    /// Lines that the kernel's configuration must all have: `CONFIG_X=y`, `CONFIG_X=n`.
    #[serde(default)]
    pub config: Vec<String>,
    /// Name of a fact of the whole workload.
    pub fact: Option<String>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}
