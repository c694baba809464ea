//! Lists of blocks for `CLANG_PROPELLER_PROFILE_PREFIX` of Linux 6.13 and later
//! (`scripts/Makefile.propeller`).
//!
//! A list of kerntune's own names each unit as kerntune's build does. Here a function that no other
//! shares its name with has no unit, so that its entry holds for any build. Other entries stand once
//! for each name that the unit may have: Clang takes the one that is its own.

use crate::own_build::SourceNames;

/// Entry of a list: a unit, the function's names, and lines of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry<'a> {
    unit: Option<&'a str>,
    names: Vec<&'a str>,
    clusters: Vec<&'a str>,
}

/// Parses a list as [`super::list_text`] writes it.
///
/// # Errors
/// The first line that does not belong there.
pub fn parse_list(text: &str) -> Result<Vec<ListEntry<'_>>, String> {
    let mut lines = text.lines().zip(1..);
    if lines.next().is_none_or(|(line, _)| line != "v1") {
        return Err("line 1: it is not a list of version 1 (v1)".into());
    }
    let mut entries: Vec<ListEntry> = Vec::new();
    let mut unit = None;
    for (line, number) in lines {
        let wrong = |what: &str| Err(format!("line {number}: {what}"));
        match (line.split_once(' '), entries.last_mut()) {
            (Some(("m", name)), _) => unit = Some(name),
            (Some(("f", names)), _) => {
                let names: Vec<&str> = names.split_whitespace().collect();
                if names.is_empty() {
                    return wrong("a function without a name");
                }
                entries.push(ListEntry { unit: unit.take(), names, clusters: Vec::new() });
            }
            (Some(("c", blocks)), Some(entry)) => entry.clusters.push(blocks),
            (Some(("c", _)), None) => return wrong("blocks before any function"),
            _ => return wrong("neither unit (m), function (f) nor blocks (c)"),
        }
    }
    Ok(entries)
}

/// Formats a list for builds that name their sources as in `sources`. `shared` returns whether
/// another function of the kernel has this name.
pub fn portable_list(entries: &[ListEntry], shared: impl Fn(&str) -> bool, sources: &SourceNames) -> String {
    let mut text = String::from("v1\n");
    let mut add = |unit: Option<&str>, entry: &ListEntry| {
        if let Some(unit) = unit {
            text.push_str(&format!("m {unit}\n"));
        }
        text.push_str(&format!("f {}\n", entry.names.join(" ")));
        entry.clusters.iter().for_each(|blocks| text.push_str(&format!("c {blocks}\n")));
    };
    let is_shared = |entry: &&ListEntry| entry.names.iter().any(|name| shared(name));
    entries.iter().filter(|entry| !is_shared(entry)).for_each(|entry| add(None, entry));
    for entry in entries.iter().filter(is_shared) {
        let Some(unit) = entry.unit else { continue };
        // Clang drops a leading `./`.
        let names = sources.of(unit);
        for name in names.iter().filter(|name| !name.starts_with("./")) {
            add(Some(name), entry);
        }
    }
    text
}

impl<'a> ListEntry<'a> {
    /// Returns the names of the function.
    pub fn names(&self) -> &[&'a str] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str =
        "v1\nm ../fs/file.c\nf fput __fput\nc 0 2 1\nm ../mm/a.c\nf init\nc 0\nm ../mm/b.c\nf init\nc 0 4\n";

    #[test]
    fn only_shared_names_have_units() {
        let entries = parse_list(LIST).unwrap();
        let list = portable_list(&entries, |name| name == "init", &SourceNames::in_tree());
        assert_eq!(
            list,
            "v1\nf fput __fput\nc 0 2 1\nm mm/a.c\nf init\nc 0\nm ../mm/a.c\nf init\nc 0\nm mm/b.c\nf init\nc 0 4\n\
             m ../mm/b.c\nf init\nc 0 4\n"
        );
    }

    #[test]
    fn another_text_is_refused_with_the_line() {
        for (text, words) in [
            ("", "line 1"),
            ("v2\n", "line 1"),
            ("v1\nc 0\n", "line 2: blocks before"),
            ("v1\nf a\nx\n", "line 3: neither"),
            ("v1\nf  \n", "line 2: a function without"),
        ] {
            let error = parse_list(text).unwrap_err();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(v1\n)?([mfc] ?[a-z0 ]{0,4}\n?){0,6}") {
            if let Ok(entries) = parse_list(&text) {
                let _ = portable_list(&entries, |_| true, &SourceNames::in_tree());
            }
        }
    }
}
