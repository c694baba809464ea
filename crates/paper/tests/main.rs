//! Papers repeated on a stand-in machine, and their reports, in one program.

mod rehearsal;
mod report;
#[path = "../../report/tests/sample/mod.rs"]
mod sample;
#[allow(dead_code)]
#[path = "../../tune/tests/rehearsal/support.rs"]
mod support;
