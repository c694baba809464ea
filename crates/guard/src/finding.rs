//! Kinds of findings of all checks.

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingRule {
    /// The path of an operation in the kernel is longer.
    LongerPath,
    /// A part of the path is longer, and others make up for it.
    Compensated,
    /// Only one side has the row.
    MissingRow,
    /// More work is put off.
    Deferred,
    /// User code executes more instructions.
    UserCode,
    /// More system calls.
    SystemCalls,
    /// More page faults.
    PageFaults,
}

impl FindingRule {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::LongerPath,
        Self::Compensated,
        Self::MissingRow,
        Self::Deferred,
        Self::UserCode,
        Self::SystemCalls,
        Self::PageFaults,
    ];

    /// Returns the kind's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::LongerPath => "longer-path",
            Self::Compensated => "made-up",
            Self::MissingRow => "missing-row",
            Self::Deferred => "put-off",
            Self::UserCode => "user-code",
            Self::SystemCalls => "system-calls",
            Self::PageFaults => "page-faults",
        }
    }

    /// Describes the kind in a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::LongerPath => "The kernel executes more instructions for an operation.",
            Self::Compensated => {
                "A part of an operation's path in the kernel is longer; other parts are shorter."
            }
            Self::MissingRow => "A row is in only one of the two sets of figures.",
            Self::Deferred => "The kernel puts off more work.",
            Self::UserCode => "A program executes more instructions for an operation.",
            Self::SystemCalls => "A program makes more system calls for an operation.",
            Self::PageFaults => "A program causes more page faults for an operation.",
        }
    }
}
