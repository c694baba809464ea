//! All integration tests in one program, a module per file.

mod against_gprof;
mod autofdo;
mod bsd;
mod gcc;
mod gmon_hostile;
#[path = "support/gprof.rs"]
mod gprof;
mod hostile;
#[path = "support/run.rs"]
mod run;
#[path = "../../analyze/tests/support/mod.rs"]
mod support;
mod uftrace;
mod visitors;
