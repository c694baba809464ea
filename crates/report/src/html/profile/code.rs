//! Source lines and machine code of functions, with how often each ran: what the page shows beside callers and callees.

use serde::Serialize;

/// A function's source and machine code. Counts are of the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCode {
    /// Instructions executed in it.
    pub executed: u64,
    /// Source files that [`FunctionCode::lines`] name by number.
    pub files: Vec<String>,
    /// File, line, instructions executed for it, and its text, where the source is there.
    pub lines: Vec<(i64, u32, u64, Option<String>)>,
    /// Address, how often it ran, the instruction, and the source line that it is of.
    pub code: Vec<(String, u64, String, String)>,
    /// What a reader should know: where the source is not there, and why.
    pub note: String,
}
