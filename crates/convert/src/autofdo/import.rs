//! Import of a sample profile as text, as weights of functions.

use crate::sampled::{SampledStacks, StackFrame, StackRoot};

use super::SampleError;

/// Largest depth of inlining.
const MAX_DEPTH: usize = 256;

/// Imported weights.
#[derive(Debug)]
pub struct SampleImport {
    /// Samples of each function's own code; an inlined callee is below its caller.
    pub stacks: SampledStacks,
    /// Functions with a line of their own.
    pub functions: u64,
    /// Places without samples.
    pub empty: u64,
    /// Targets of calls, which are left out.
    pub targets: u64,
    /// Attributes, which are left out.
    pub attributes: u64,
}

/// Imports the text of a sample profile, also one with contexts (`[main:3 @ work]:100:1`).
///
/// A place's samples belong to the function whose code is there. The counts of entries are calls.
///
/// # Errors
/// [`SampleError`] with the first line in no known form.
pub fn import(text: &str) -> Result<SampleImport, SampleError> {
    let mut made =
        SampleImport { stacks: SampledStacks::default(), functions: 0, empty: 0, targets: 0, attributes: 0 };
    // Frames of the current function and of what is inlined there.
    let mut frames: Vec<StackFrame> = Vec::new();
    let mut outer = 0;
    for (line, number) in text.lines().zip(1..) {
        made.line(line, &mut frames, &mut outer)
            .ok_or_else(|| SampleError { line: number, text: line.chars().take(80).collect() })?;
    }
    Ok(made)
}

/// Checks whether a line can begin a sample profile: `name:total:head`.
pub fn is_function_line(line: &str) -> bool {
    !line.starts_with([' ', '!']) && function_line(line).is_some()
}

fn function_line(line: &str) -> Option<(&str, u64)> {
    // A name may contain colons, so the line is split from the right.
    let (rest, head) = line.trim_end().rsplit_once(':')?;
    let (name, total) = rest.rsplit_once(':')?;
    total.parse::<u64>().ok()?;
    let head = head.parse().ok()?;
    (!name.is_empty()).then_some((name, head))
}

impl SampleImport {
    fn line(&mut self, line: &str, frames: &mut Vec<StackFrame>, outer: &mut usize) -> Option<()> {
        let inner = line.trim_start_matches(' ');
        let indent = line.len() - inner.len();
        if inner.trim().is_empty() {
            return Some(());
        }
        if inner.starts_with('!') {
            self.attributes += 1;
            return Some(());
        }
        if indent == 0 {
            let (name, head) = function_line(line)?;
            frames.clear();
            let context = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            let mut function = None;
            for name in context.unwrap_or(name).split(" @ ") {
                // Frames of a context have the place of the call after their names.
                let name = match context.and_then(|_| name.rsplit_once(':')) {
                    Some((name, place)) if place.starts_with(|c: char| c.is_ascii_digit()) => name,
                    _ => name,
                };
                let number = self.stacks.function(name.trim(), None, None);
                function = Some(number);
                frames.push(StackFrame::Function(number));
            }
            self.stacks.add_calls(function?, head);
            self.functions += 1;
            *outer = frames.len();
            return (frames.len() <= MAX_DEPTH).then_some(());
        }
        // A place at this indentation is in the function above it.
        let depth = *outer + indent - 1;
        if *outer == 0 || depth > frames.len() || depth >= MAX_DEPTH {
            return None;
        }
        frames.truncate(depth);
        let (place, what) = inner.split_once(": ")?;
        let mut numbers = place.split('.').map(str::parse::<u32>);
        if !(numbers.next()?.is_ok() && numbers.all(|number| number.is_ok())) {
            return None;
        }
        let mut words = what.split(' ');
        match words.next()?.parse::<u64>() {
            Ok(0) => self.empty += 1,
            Ok(samples) => {
                self.targets += words.filter(|word| !word.is_empty()).count() as u64;
                self.stacks.add(StackRoot::Thread("[sample profile]"), frames, samples);
            }
            Err(_) => {
                let (name, total) = what.rsplit_once(':')?;
                total.trim().parse::<u64>().ok()?;
                let number = self.stacks.function(name, None, None);
                frames.push(StackFrame::Function(number));
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::Ticks;

    /// As llvm-profdata 19 prints it.
    const TEXT: &str = "\
work:224000:100
 0: 100
 0.3: 2500 leaf:2500
 65532: 100
 0.4: small:32500
  0: 2500
  0.1: 0
  3: deeper:7
   1: 7000
 9: 7
 !CFGChecksum: 4711
leaf:0:2500
[work:0.3 @ leaf]:12:3
 1: 12
";

    #[test]
    fn samples_belong_to_the_function_whose_code_is_there() {
        let made = import(TEXT).unwrap();
        assert_eq!((made.functions, made.empty, made.targets, made.attributes), (3, 1, 1, 1));
        let tables = made.stacks.finish("samples", 1).unwrap();
        let row = |name: &str| {
            let at = tables.symbols.iter().position(|symbol| symbol.name == name).unwrap();
            let row = &tables.functions[at];
            (row.calls, row.self_ticks.get(), row.total_ticks.get())
        };
        assert_eq!(row("work"), (100, 2_707, 2_707 + 2_500 + 7_000 + 12));
        assert_eq!(row("small"), (0, 2_500, 9_500));
        assert_eq!(row("deeper"), (0, 7_000, 7_000));
        assert_eq!(row("leaf"), (2_503, 12, 12));
        assert_eq!(tables.regions[0].busy_ticks, Ticks(12_219));
    }

    #[test]
    fn lines_in_no_form_are_named() {
        for (text, line) in [("f:1:2\n  1: 2\n", 2), (" 1: 2\n", 1), ("f:1\n", 1), ("f:1:2\n x: 2\n", 2)] {
            assert_eq!(import(text).unwrap_err().line, line, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\PC{0,12}|f:[0-9]{1,22}:[0-9]\n| {1,3}[0-9]{1,11}(\\.[0-9])?: [0-9g:]{0,30}\n){0,8}") {
            let _ = import(&text);
        }
    }
}
