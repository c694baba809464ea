//! Prints what this machine has and lacks: `cargo run -p kerntune-doctor --example doctor [KERNEL
//! [RECORDER]]`.

use kerntune_doctor::{examine, ExamineOptions};

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(Into::into);
    let (kernel, recorder) = (arguments.next(), arguments.next());
    let report = examine(&ExamineOptions { kernel, recorder, ..ExamineOptions::default() });
    print!("{}", report.text(false));
    std::process::exit(if report.is_ready() { 0 } else { 3 });
}
