//! Folded stacks, one `a;b;c N` per line, for `flamegraph.pl`, `inferno` and many viewers.

mod import;

use crate::stacks::CallStacks;
pub use import::{import, parse_line, FoldedError, FoldedImport};
use std::io::{self, Write};

/// Writes every stack with self time, outermost frame first. Returns the number of lines.
pub fn write(stacks: &CallStacks, out: &mut impl Write) -> io::Result<usize> {
    let names: Vec<String> = stacks.frames.iter().map(|frame| field(&frame.name)).collect();
    let mut lines = 0;
    for (at, path) in stacks.taken() {
        let frames = stacks.stack(at);
        let stack: Vec<&str> = frames.iter().filter_map(|at| names.get(*at)).map(String::as_str).collect();
        writeln!(out, "{} {}", stack.join(";"), path.figures.own)?;
        lines += 1;
    }
    Ok(lines)
}

/// Replaces the separator in a name.
fn field(name: &str) -> String {
    name.replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;

    #[test]
    fn each_stack_is_a_line() {
        let mut out = Vec::new();
        assert_eq!(write(&stacks(), &mut out).unwrap(), 5);
        let expected =
            "rr;sys 150\nrr;sys;walk 30\nrr;sys;walk;walk 20\nrr;[user] 400\n[interrupt];irq:x 400\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
