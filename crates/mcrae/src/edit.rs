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

/// Tags that a names file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRange {
    /// First tag of a new file.
    pub first: u64,
    /// Width of a tag in bits, from 1 to 64.
    pub bits: u32,
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
    /// gets the next even tag above all others; in a file without names, the first of the range or
    /// the tag after it.
    ///
    /// # Errors
    /// A bad file; a name that exists with another kind; no tag left.
    pub fn new(file: &str, text: &str, wanted: &[RequestedTag], range: TagRange) -> Result<Self, NamesError> {
        let mut names = TagNames::parse([(file, text)])?;
        let before = names.all().len();
        let mut text = text.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let mut next = match names.all().iter().map(TagName::last_tag).max() {
            Some(last) => u128::from(last) + 1,
            None => u128::from(range.first),
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
            let max = u64::MAX >> (u64::BITS - range.bits.clamp(1, u64::BITS));
            let full = || NamesError::Full { name: name.clone(), bits: range.bits, max };
            let tag = u64::try_from(next).ok().filter(|tag| *tag <= max).ok_or_else(full)?;
            line += 1;
            let place = FileLine { file: file.to_owned(), line };
            let added = TagName { name: name.clone(), tag, kind: *kind, place };
            next = u128::from(added.last_tag()) + 1;
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
/// Two names that are the same identifier in C; a tag of more than 32 bits.
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
    let greatest = names.all().iter().max_by_key(|name| name.last_tag());
    if let Some(TagName { name, .. }) = greatest.filter(|name| name.last_tag() > u32::MAX.into()) {
        let tag = greatest.map_or(0, TagName::last_tag);
        return Err(NamesError::NoHeader { name: name.clone(), tag, max: u32::MAX.into() });
    }
    let width = match greatest.is_some_and(|name| name.last_tag() > u16::MAX.into()) {
        true => "#if KT_TAGS_BITS != 32\n#error \"some tags have more than 16 bits: #define KT_TAGS_BITS 32\"\n#endif\n\n",
        false => "",
    };
    let file = file.replace("*/", "* /");
    Ok(format!(
        "/* Event tags of {file}, written by `kerntune tags --header`: change that file, not this one. */\n\
         #ifndef KT_TAG_NAMES_H\n#define KT_TAG_NAMES_H\n\n{width}{tags}\n#ifdef KT_TAG_SCOPE\n{scopes}#endif\n\n#endif\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: TagRange = TagRange { first: 2, bits: 16 };

    fn wanted(names: &[&str], kind: TagKind) -> Vec<RequestedTag> {
        names.iter().map(|name| RequestedTag { name: (*name).into(), kind }).collect()
    }

    #[test]
    fn new_names_get_the_next_even_tags_and_old_ones_keep_theirs() {
        let text = "# net\nmain/502\nswtch/600!\nMGET/1002=\nearly/10";
        let edited =
            ExtendedNames::new("n", text, &wanted(&["swtch", "main", "a", "b"], TagKind::Function), TWO)
                .unwrap();
        assert_eq!(edited.text, "# net\nmain/502\nswtch/600!\nMGET/1002=\nearly/10\na/1004\nb/1006\n");
        assert_eq!(edited.added().len(), 2);
        assert_eq!(edited.added()[0].place.to_string(), "n:6");
        let again =
            ExtendedNames::new("n", &edited.text, &wanted(&["b", "a"], TagKind::Function), TWO).unwrap();
        assert_eq!((again.text.as_str(), again.added().len()), (edited.text.as_str(), 0));
        let more = ExtendedNames::new("n", &edited.text, &wanted(&["p", "q"], TagKind::Inline), TWO).unwrap();
        assert!(more.text.ends_with("b/1006\np/1008=\nq/1010=\n"), "{}", more.text);
    }

    #[test]
    fn a_new_file_begins_where_it_is_told() {
        let text = |first| {
            ExtendedNames::new("n", "", &wanted(&["f"], TagKind::ContextSwitch), TagRange { first, bits: 16 })
                .unwrap()
                .text
        };
        assert_eq!(text(2), "f/2!\n");
        assert_eq!(text(501), "f/502!\n");
    }

    #[test]
    fn limits_and_other_kinds_are_refused() {
        let error = |text: &str, names: &[&str], kind| {
            ExtendedNames::new("n", text, &wanted(names, kind), TWO).unwrap_err().to_string()
        };
        assert!(ExtendedNames::new("n", "f/65532\n", &wanted(&["g"], TagKind::Function), TWO).is_ok());
        assert!(error("f/65532\n", &["g", "h"], TagKind::Function).contains("no tag left for h"));
        assert!(error("f/65534\n", &["h"], TagKind::Inline).contains("no tag left"));
        let wide = TagRange { bits: 17, ..TWO };
        let edited = ExtendedNames::new("n", "f/65534\n", &wanted(&["h"], TagKind::Function), wide).unwrap();
        assert_eq!(edited.text, "f/65534\nh/65536\n");
        let whole = TagRange { bits: 64, ..TWO };
        let last = format!("f/{}\n", u64::MAX - 1);
        assert!(ExtendedNames::new("n", &last, &wanted(&["h"], TagKind::Function), whole).is_err());
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
        assert!(!text.contains("KT_TAGS_BITS"));
        let wide = TagNames::parse([("n", "f/65536\n")]).unwrap();
        assert!(header("n", &wide).unwrap().contains("#if KT_TAGS_BITS != 32"));
        let widest = TagNames::parse([("n", "f/4294967296\n")]).unwrap();
        assert!(header("n", &widest).unwrap_err().to_string().contains("at most 32 bits"));
        let names = TagNames::parse([("n", "f.x/2\nf_x/4\n")]).unwrap();
        assert!(header("n", &names).unwrap_err().to_string().contains("f.x and f_x"));
    }

    /// The header in the kernel patches is generated from the names beside it.
    #[test]
    fn the_kernel_patches_hold_our_headers() {
        let at = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let read = |name: &str| std::fs::read_to_string(format!("{at}{name}")).unwrap();
        for series in ["6.1", "6.12", "7.3"] {
            let patches = format!("embedded/kernel/patches/{series}/mcrae-tags/");
            let names = read(&format!("{patches}names"));
            let patch = read(&format!("{patches}0001-headers.patch"));
            let added = |file: &str| -> String {
                let mut parts = patch.split("\ndiff --git ");
                let part = parts.find(|part| part.contains(&format!("+++ b/{file}\n"))).unwrap();
                let hunk = part.split_once("\n@@ ").unwrap().1.lines();
                hunk.filter_map(|line| line.strip_prefix('+')).map(|line| format!("{line}\n")).collect()
            };
            let names = TagNames::parse([("names", names.as_str())]).unwrap();
            assert_eq!(added("include/linux/kt_tag_names.h"), header("names", &names).unwrap());
            assert_eq!(added("include/linux/kt_tags.h"), read("embedded/guest/kt_tags.h"));
        }
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
            let mut edited = ExtendedNames::new("n", &old, &[], TWO).unwrap();
            for (name, kind) in new {
                let one = [RequestedTag { name, kind: kinds[kind] }];
                let Ok(next) = ExtendedNames::new("n", &edited.text, &one, TWO) else { continue };
                prop_assert!(next.text.starts_with(&edited.text));
                edited = next;
            }
            // Parsing rejects names with two tags and tags with two names.
            prop_assert!(TagNames::parse([("n", edited.text.as_str())]).is_ok());
        }
    }
}
