//! Requirements of recipes.

/// Program or feature that a recipe requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// Requirement, as shown to users.
    pub what: &'static str,
    /// Purpose of the requirement.
    pub why: &'static str,
    /// Way to get it, a command where there is one.
    pub fix: &'static str,
}
