//! What a suite's program prints: one JSON line for each row that it did (`guest/kt_suite.h`).

use serde::Deserialize;

/// One row's work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Line {
    pub row: String,
    /// `rr`, which does each row once, leaves it out.
    #[serde(default)]
    pub iteration: u32,
    pub operations: u64,
    pub nanoseconds: u64,
}

/// Nothing but lines of work that was done, each row and iteration once; what is wrong otherwise.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines: Vec<Line> = Vec::new();
    for text in text.lines() {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("{text:?} ({error})"))?;
        if line.operations == 0 || line.nanoseconds == 0 {
            return Err(format!("{text:?} (no operations, or no time)"));
        }
        if lines.iter().any(|known| (&known.row, known.iteration) == (&line.row, line.iteration)) {
            return Err(format!("{text:?} (a second time)"));
        }
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_was_done_is_a_figure() {
        let text = "{\"row\":\"getpid\",\"operations\":4,\"nanoseconds\":100}\n\
                    {\"row\":\"nop\",\"iteration\":1,\"operations\":1,\"nanoseconds\":1}\n";
        let lines = parse(text).unwrap();
        assert_eq!((lines[0].iteration, lines[1].iteration, lines[1].row.as_str()), (0, 1, "nop"));
        for (bad, word) in [
            (text.repeat(2), "a second time"),
            (text.replace(":4", ":0"), "no operations"),
            (text.replace("100", "-5"), "-5"),
            (format!("done\n{text}"), "\"done\""),
        ] {
            let message = parse(&bad).unwrap_err();
            assert!(message.contains(word), "{message}");
        }
    }
}
