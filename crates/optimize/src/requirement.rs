//! What a recipe asks for.

/// Something that a recipe cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// What has to be there.
    pub what: &'static str,
    /// What for.
    pub why: &'static str,
    /// How to get it, a command where there is one.
    pub mend: &'static str,
}
