//! Corrections of hints, as patches for `kerntune ablate`.

use super::CountedHint;
use crate::trial::MAX_CHANGES;
use crate::Result;
use kerntune_work::{write_atomic, IoContext};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Share of wrong outcomes from which on a hint is turned round; with fewer it is taken away.
const TURNED: f64 = 0.75;
/// Lines before that of a hint in which it may begin: its condition may have several.
const LINES_ABOVE: usize = 5;
/// Longest part of a change's name that names the file.
const MAX_FILE_NAME: usize = 24;
/// Lines of context in a patch.
const CONTEXT: usize = 3;

/// A line of the source with another hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HintCorrection {
    /// Line, from 1.
    pub line: u32,
    /// Text of the line.
    pub old: String,
    /// Text with the correction.
    pub new: String,
    /// Hunk of a unified diff.
    pub hunk: String,
}

/// Corrects the hint at `line` of a file. `None` if the file does not have it there: it stands in a
/// macro elsewhere.
pub(super) fn correction(
    text: &str,
    line: u32,
    expected: bool,
    [wrong, right]: [u64; 2],
) -> Option<HintCorrection> {
    let (hint, other) = if expected { ("likely(", "unlikely(") } else { ("unlikely(", "likely(") };
    let with = if wrong as f64 / (wrong as f64 + right as f64) >= TURNED { other } else { "(" };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = usize::try_from(line).ok()?.checked_sub(1)?;
    let at = (last.saturating_sub(LINES_ABOVE)..=last).rev().find(|at| {
        lines
            .get(*at)
            .is_some_and(|line| find(line, hint).is_some() && !line.trim_start().starts_with("#define"))
    })?;
    let old = lines[at];
    let place = find(old, hint)?;
    // Two hints of a line cannot be told apart.
    if find(&old[place + hint.len()..], hint).is_some() {
        return None;
    }
    let new = format!("{}{with}{}", &old[..place], &old[place + hint.len()..]);
    let from = at.saturating_sub(CONTEXT);
    let to = lines.len().min(at + 1 + CONTEXT);
    let mut hunk = format!("@@ -{},{} +{},{} @@\n", from + 1, to - from, from + 1, to - from);
    for (number, line) in lines[from..to].iter().enumerate() {
        let line = line.trim_end_matches('\n');
        let _ = match from + number == at {
            true => write!(hunk, "-{line}\n+{}\n", new.trim_end_matches('\n')),
            false => writeln!(hunk, " {line}"),
        };
    }
    let line = u32::try_from(at + 1).ok()?;
    Some(HintCorrection { line, old: old.trim().to_owned(), new: new.trim().to_owned(), hunk })
}

/// Returns the offset of `hint` as a whole word.
fn find(line: &str, hint: &str) -> Option<usize> {
    let is_word = |text: &str| text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(hint).map(|(at, _)| at).find(|at| !is_word(&line[..*at]))
}

/// Writes the corrections of hints into `dir`: a patch for each, and `changes.toml` for `kerntune
/// ablate`. Returns how many.
///
/// # Errors
/// A file that cannot be written.
pub fn write_changes<'h>(hints: impl Iterator<Item = &'h CountedHint>, dir: &Path) -> Result<usize> {
    fs::create_dir_all(dir).at("create", dir)?;
    let corrected = hints.filter_map(|hint| Some((hint, hint.correction.as_ref()?)));
    let mut changes = String::new();
    let mut count = 0;
    for (hint, HintCorrection { line, hunk, new, .. }) in corrected.take(MAX_CHANGES) {
        count += 1;
        let file = hint.file.rsplit('/').next().unwrap_or_default();
        let file = file.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let file = &file[..file.len().min(MAX_FILE_NAME)];
        let name = format!("{count:02}-{file}-{line}");
        let patch = format!("--- a/{}\n+++ b/{}\n{hunk}", hint.file, hint.file);
        let path = dir.join(format!("{name}.patch"));
        write_atomic(&path, patch.as_bytes())?;
        let about =
            format!("{} is wrong {} of {} times: {new}", hint.name(), hint.wrong, hint.wrong + hint.right);
        let _ = write!(
            changes,
            "[[change]]\nname = \"{name}\"\nabout = {}\npatches = [\"{name}.patch\"]\n\n",
            toml::Value::from(about)
        );
    }
    write_atomic(&dir.join("changes.toml"), changes.as_bytes())?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const TEXT: &str = "int f(int a)\n{\n\tif (unlikely(a > 3 &&\n\t\t     a < 9))\n\t\treturn 1;\n\
        \tif (likely(a) && likely(a > 1))\n\t\treturn 2;\n\treturn not_likely(a);\n}\n";

    #[test]
    fn a_hint_is_turned_round_or_taken_away() {
        let turned = correction(TEXT, 4, false, [90, 10]).unwrap();
        assert_eq!((turned.line, turned.new.as_str()), (3, "if (likely(a > 3 &&"));
        let taken = correction(TEXT, 3, false, [60, 40]).unwrap();
        assert_eq!(taken.new, "if ((a > 3 &&");
        assert_eq!(correction(TEXT, 6, true, [9, 1]), None, "two of a line");
        assert_eq!(correction(TEXT, 9, true, [9, 1]), None, "another word");
        assert_eq!(correction(TEXT, 0, true, [9, 1]), None);
        assert_eq!(correction("", u32::MAX, true, [9, 1]), None);
    }

    #[test]
    fn patches_apply_and_changes_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("fs");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("a.c"), TEXT).unwrap();
        let hint = CountedHint {
            file: "fs/a.c".into(),
            line: 3,
            expected: false,
            right: 1,
            wrong: 99,
            functions: Vec::new(),
            text: None,
            correction: correction(TEXT, 3, false, [99, 1]),
        };
        let without = CountedHint { correction: None, ..hint.clone() };
        let changes = dir.path().join("changes");
        assert_eq!(write_changes([&hint, &without].into_iter(), &changes).unwrap(), 1);
        let path = changes.join("changes.toml");
        let read = crate::trial::parse(&fs::read_to_string(&path).unwrap(), &path).unwrap();
        assert_eq!((read.len(), read[0].name.as_str()), (1, "01-a-c-3"));
        let patch = fs::File::open(changes.join("01-a-c-3.patch")).unwrap();
        let status = Command::new("patch").args(["-p1", "-s"]).current_dir(dir.path()).stdin(patch).status();
        assert!(status.unwrap().success());
        let now = fs::read_to_string(source.join("a.c")).unwrap();
        assert_eq!(now, TEXT.replacen("unlikely(a > 3", "likely(a > 3", 1));
    }
}
