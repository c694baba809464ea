//! Extension of a names file. Existing names are never changed.

use super::names::{is_name, FileLine, NamesError, TagKind, TagName, TagNames};
use std::collections::HashMap;
use std::fmt::Write;

/// Name to be added to the file, if it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedTag {
    /// Name of the function or point.
    pub name: String,
    /// Kind of the name.
    pub kind: TagKind,
}

/// Names file with added names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedNames {
    /// New text: the old one, and a line for each added name.
    pub text: String,
    /// All names.
    pub names: TagNames,
    /// Number of names before the extension; the names after them are new.
    pub before: usize,
}

impl ExtendedNames {
    /// Extends a names file. `file` names it in errors. An existing name keeps its tag. A new name
    /// gets the next even tag above all others; in a file without names, `first` or the tag after
    /// it.
    ///
    /// # Errors
    /// A bad file; a name that exists with another kind; no tag left.
    pub fn new(file: &str, text: &str, wanted: &[RequestedTag], first: u16) -> Result<Self, NamesError> {
        let mut names = TagNames::parse([(file, text)])?;
        let before = names.all().len();
        let mut text = text.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let mut next = match names.all().iter().map(TagName::last_tag).max() {
            Some(last) => u32::from(last) + 1,
            None => u32::from(first),
        };
        let mut line = text.lines().count();
        for RequestedTag { name, kind } in wanted {
            if !is_name(name) {
                return Err(NamesError::BadName(name.clone()));
            }
            if let Some(there) = names.named(name) {
                // The compiler finds a function that somebody has marked as a context switch.
                if there.kind == *kind || (there.kind, *kind) == (TagKind::ContextSwitch, TagKind::Function) {
                    continue;
                }
                let (found, wanted) = (describe(there.kind), describe(*kind));
                let place = there.place.clone();
                return Err(NamesError::OtherKind { name: name.clone(), place, found, wanted });
            }
            next += next % 2;
            let full = || NamesError::Full { name: name.clone() };
            let tag = u16::try_from(next).map_err(|_| full())?;
            line += 1;
            let place = FileLine { file: file.to_owned(), line };
            let added = TagName { name: name.clone(), tag, kind: *kind, place };
            next = u32::from(added.last_tag()) + 1;
            names.add(added)?;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}/{tag}{}", kind.modifier());
        }
        Ok(Self { text, names, before })
    }

    /// Returns the added names.
    pub fn added(&self) -> &[TagName] {
        self.names.all().get(self.before..).unwrap_or_default()
    }
}

fn describe(kind: TagKind) -> &'static str {
    match kind {
        TagKind::Function => "a function",
        TagKind::ContextSwitch => "a context switch",
        TagKind::Inline => "an inline trigger",
        TagKind::Idle => "a function that waits for work",
    }
}

/// Returns a header with the tags for C and assembler, to be included after `kt_tags.h`. `file` is
/// the name of the names file, for readers.
///
/// # Errors
/// Two names that are the same identifier in C.
pub fn header(file: &str, names: &TagNames) -> Result<String, NamesError> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let (mut tags, mut scopes) = (String::new(), String::new());
    for TagName { name, tag, kind, .. } in names.all() {
        // GCC's `f.part.0` is no C identifier.
        let word: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if let Some(other) = seen.insert(word.clone(), name) {
            return Err(NamesError::SameWord(other.to_owned(), name.clone()));
        }
        let _ = writeln!(tags, "#define KT_TAG_{word} {tag}");
        if *kind != TagKind::Inline {
            let _ = writeln!(scopes, "KT_TAG_SCOPE({word})");
        }
    }
    let file = file.replace("*/", "* /");
    Ok(format!(
        "/* Event tags of {file}, written by `kerntune tags --header`: change that file, not this one. */\n\
         #ifndef KT_TAG_NAMES_H\n#define KT_TAG_NAMES_H\n\n{tags}\n#ifdef KT_TAG_SCOPE\n{scopes}#endif\n\n#endif\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(names: &[&str], kind: TagKind) -> Vec<RequestedTag> {
        names.iter().map(|name| RequestedTag { name: (*name).into(), kind }).collect()
    }

    #[test]
    fn new_names_get_the_next_even_tags_and_old_ones_keep_theirs() {
        let text = "# net\nmain/502\nswtch/600!\nMGET/1002=\nearly/10";
        let edited =
            ExtendedNames::new("n", text, &wanted(&["swtch", "main", "a", "b"], TagKind::Function), 2)
                .unwrap();
        assert_eq!(edited.text, "# net\nmain/502\nswtch/600!\nMGET/1002=\nearly/10\na/1004\nb/1006\n");
        assert_eq!(edited.added().len(), 2);
        assert_eq!(edited.added()[0].place.to_string(), "n:6");
        let again =
            ExtendedNames::new("n", &edited.text, &wanted(&["b", "a"], TagKind::Function), 2).unwrap();
        assert_eq!((again.text.as_str(), again.added().len()), (edited.text.as_str(), 0));
        let more = ExtendedNames::new("n", &edited.text, &wanted(&["p", "q"], TagKind::Inline), 2).unwrap();
        assert!(more.text.ends_with("b/1006\np/1008=\nq/1010=\n"), "{}", more.text);
    }

    #[test]
    fn a_new_file_begins_where_it_is_told() {
        let text =
            |first| ExtendedNames::new("n", "", &wanted(&["f"], TagKind::ContextSwitch), first).unwrap().text;
        assert_eq!(text(2), "f/2!\n");
        assert_eq!(text(501), "f/502!\n");
    }

    #[test]
    fn limits_and_other_kinds_are_refused() {
        let error = |text: &str, names: &[&str], kind| {
            ExtendedNames::new("n", text, &wanted(names, kind), 2).unwrap_err().to_string()
        };
        assert!(ExtendedNames::new("n", "f/65532\n", &wanted(&["g"], TagKind::Function), 2).is_ok());
        assert!(error("f/65532\n", &["g", "h"], TagKind::Function).contains("no tag left for h"));
        assert!(error("f/65534\n", &["h"], TagKind::Inline).contains("no tag left"));
        assert!(error("f/2=\n", &["f"], TagKind::Function).contains("n:1: f is there as an inline trigger"));
        assert!(error("f/2\n", &["f"], TagKind::ContextSwitch).contains("not as a context switch"));
        assert!(error("", &["a b"], TagKind::Function).contains("a b"));
    }

    #[test]
    fn a_header_has_every_tag_and_a_scope_for_each_function() {
        let names = TagNames::parse([("n", "swtch/600!\nf.part.0/602\nMGET/1002=\n")]).unwrap();
        let text = header("n", &names).unwrap();
        for line in ["#define KT_TAG_swtch 600", "#define KT_TAG_f_part_0 602", "#define KT_TAG_MGET 1002"] {
            assert!(text.lines().any(|l| l == line), "{text}");
        }
        assert!(text.contains("KT_TAG_SCOPE(f_part_0)") && !text.contains("KT_TAG_SCOPE(MGET)"));
        let names = TagNames::parse([("n", "f.x/2\nf_x/4\n")]).unwrap();
        assert!(header("n", &names).unwrap_err().to_string().contains("f.x and f_x"));
    }

    /// The header in the kernel patches is generated from the names beside it.
    #[test]
    fn the_kernel_patches_hold_our_headers() {
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let read = |name: &str| std::fs::read_to_string(format!("{at}{name}")).unwrap();
        let patches = "embedded/kernel/patches/6.12/mcrae-tags/";
        let names = read(&format!("{patches}names"));
        let patch = read(&format!("{patches}0001-headers.patch"));
        let added = |file: &str| -> String {
            let part =
                patch.split("\ndiff --git ").find(|part| part.contains(&format!("+++ b/{file}\n"))).unwrap();
            let hunk = part.split_once("\n@@ ").unwrap().1;
            hunk.lines().filter_map(|line| line.strip_prefix('+')).map(|line| format!("{line}\n")).collect()
        };
        let names = TagNames::parse([("names", names.as_str())]).unwrap();
        assert_eq!(added("include/linux/kt_tag_names.h"), header("names", &names).unwrap());
        assert_eq!(added("include/linux/kt_tags.h"), read("embedded/guest/kt_tags.h"));
        let text = read("embedded/guest/tagged.names");
        let names = TagNames::parse([("tagged.names", text.as_str())]).unwrap();
        assert_eq!(read("embedded/guest/tagged_tags.h"), header("tagged.names", &names).unwrap());
    }

    proptest! {
        #[test]
        fn extending_keeps_every_line_and_never_reuses_a_tag(
            old in prop::collection::btree_set("[a-f]{1,3}", 0..8),
            new in prop::collection::vec(("[a-h]{1,3}", 0..3usize), 0..12),
        ) {
            let kinds = [TagKind::Function, TagKind::ContextSwitch, TagKind::Inline];
            let old: String = old.iter().enumerate().map(|(i, n)| format!("{n}/{}\n# x\n", 10 + 4 * i)).collect();
            let mut edited = ExtendedNames::new("n", &old, &[], 2).unwrap();
            for (name, kind) in new {
                let one = [RequestedTag { name, kind: kinds[kind] }];
                let Ok(next) = ExtendedNames::new("n", &edited.text, &one, 2) else { continue };
                prop_assert!(next.text.starts_with(&edited.text));
                edited = next;
            }
            // Parsing rejects names with two tags and tags with two names.
            prop_assert!(TagNames::parse([("n", edited.text.as_str())]).is_ok());
        }
    }
}
