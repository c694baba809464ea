//! Import of folded stacks.

use crate::sampled::{SampledStacks, StackFrame, StackRoot};
use std::io::{self, BufRead, Read};

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Module of functions in user mode, whose binary folded stacks do not name.
const USER: &str = "user";

/// Reason why a text cannot be imported.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum FoldedError {
    #[error("line {line} is no folded stack, `a;b;c N`: {text:?}")]
    Line { line: u64, text: String },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes: it is no folded stack")]
    LongLine { line: u64 },
    #[error("it has no stack with a count greater than 0")]
    Empty,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Imported stacks.
#[derive(Debug)]
pub struct FoldedImport {
    /// The stacks.
    pub stacks: SampledStacks,
    /// Number of lines with a stack.
    pub lines: u64,
    /// Some frames are marked as the kernel's (`_[k]`). If none is, all functions count as the
    /// kernel's.
    pub marks_kernel: bool,
}

/// Parses a line; `None` if it is no folded stack.
pub fn parse_line(line: &str) -> Option<(&str, u64)> {
    let (stack, count) = line.trim_end().rsplit_once(' ')?;
    let stack = stack.trim_end();
    // Some writers have fractions.
    let count = match count.split_once('.') {
        None => count.parse().ok()?,
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()) => {
            whole.parse::<u64>().ok()?.checked_add(u64::from(fraction.as_bytes()[0] >= b'5'))?
        }
        Some(_) => return None,
    };
    (!stack.is_empty()).then_some((stack, count))
}

/// Reads folded stacks line by line. The first frame is the name of a thread, unless
/// `functions_only`; then all threads are one.
///
/// A first pass finds out whether frames are marked as the kernel's, so `input` is read twice by
/// way of `open`.
///
/// # Errors
/// [`FoldedError`] with the first line that is no stack, or if there is none.
pub fn import<R: BufRead>(
    mut open: impl FnMut() -> io::Result<R>,
    functions_only: bool,
) -> Result<FoldedImport, FoldedError> {
    let mut marks_kernel = false;
    lines(open()?, |_, line| {
        marks_kernel |= line.contains("_[k]");
        Ok(())
    })?;
    let mut made = FoldedImport { stacks: SampledStacks::default(), lines: 0, marks_kernel };
    let mut frames = Vec::new();
    lines(open()?, |number, line| {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let Some((stack, count)) = parse_line(line) else {
            let text = line.chars().filter(|c| !c.is_control()).take(80).collect();
            return Err(FoldedError::Line { line: number, text });
        };
        made.lines += 1;
        if count == 0 {
            return Ok(());
        }
        let mut names = stack.split(';').peekable();
        let root = match names.peek() {
            Some(first) if !functions_only && !is_marked(first) => {
                let first = *first;
                names.next();
                match first {
                    "[interrupt]" => StackRoot::Interrupt,
                    "[idle task]" | "swapper" => StackRoot::Idle,
                    name => StackRoot::Thread(name),
                }
            }
            _ => StackRoot::Thread("[all threads]"),
        };
        frames.clear();
        frames.extend(names.map(|name| frame(&mut made.stacks, name, marks_kernel)));
        made.stacks.add(root, &frames, count);
        Ok(())
    })?;
    match made.stacks.samples() {
        0 => Err(FoldedError::Empty),
        _ => Ok(made),
    }
}

/// Checks whether the name ends in one of stackcollapse-perf's marks.
fn is_marked(name: &str) -> bool {
    ["_[k]", "_[j]", "_[i]", "_[w]"].iter().any(|mark| name.ends_with(mark))
}

fn frame(stacks: &mut SampledStacks, name: &str, marks_kernel: bool) -> StackFrame {
    match name {
        "[user]" => return StackFrame::User,
        "[unattributed]" => return StackFrame::Unattributed,
        _ => {}
    }
    let (name, module) = match name.strip_suffix("_[k]") {
        Some(name) => (name, None),
        None => {
            let name =
                ["_[j]", "_[i]", "_[w]"].iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name);
            (name, marks_kernel.then_some(USER))
        }
    };
    StackFrame::Function(stacks.function(name, module, None))
}

fn lines(
    mut input: impl BufRead,
    mut each: impl FnMut(u64, &str) -> Result<(), FoldedError>,
) -> Result<(), FoldedError> {
    let (mut line, mut number) = (Vec::new(), 0);
    while input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)? > 0 {
        number += 1;
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(FoldedError::LongLine { line: number });
        }
        each(number, &String::from_utf8_lossy(&line))?;
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;

    fn read(text: &str) -> Result<FoldedImport, FoldedError> {
        import(|| Ok(text.as_bytes()), false)
    }

    #[test]
    fn kernel_and_user_functions_are_told_apart_by_their_marks() {
        let made = read("rr;main;write_[k] 3\nrr;main 2\nswapper;do_idle_[k] 4\n\nvfs_[k] 1.6\n").unwrap();
        assert_eq!((made.lines, made.stacks.samples(), made.marks_kernel), (4, 11, true));
        let tables = made.stacks.finish("folded", 1).unwrap();
        let symbols: Vec<_> =
            tables.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.is_kernel())).collect();
        assert_eq!(symbols, [("main", false), ("write", true), ("do_idle", true), ("vfs", true)]);
        let threads: Vec<_> = tables.threads.iter().map(|row| row.comm.as_str()).collect();
        assert_eq!(threads, ["rr", "[idle task]", "[all threads]"]);
        let whole = import(|| Ok(&b"a;b 1\n"[..]), true).unwrap();
        assert_eq!(whole.stacks.functions(), 2);
    }

    #[test]
    fn what_is_exported_is_imported_again() {
        let mut text = Vec::new();
        super::super::write(&stacks(), &mut text).unwrap();
        let made = read(&String::from_utf8(text).unwrap()).unwrap();
        let total: u64 = stacks().paths.iter().map(|path| path.figures.own).sum();
        assert_eq!(made.stacks.samples(), total);
    }

    #[test]
    fn the_first_line_that_is_no_stack_is_named() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(error("a 1\nhello\n"), "line 2 is no folded stack, `a;b;c N`: \"hello\"");
        assert!(error("a -1\n").starts_with("line 1 is no folded stack"));
        assert!(error("a;b 0\n").starts_with("it has no stack"));
        assert!(error("").starts_with("it has no stack"));
        assert!(error(&"x".repeat(2 << 20)).starts_with("line 1 is longer than"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-c;_\\[\\]k ]{0,9} [0-9.]{0,21}\n|\\PC{0,9}){0,9}") {
            let _ = read(&text);
        }
    }
}
