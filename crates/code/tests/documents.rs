//! Checks the links of the documents: each leads to an existing file, and to a heading in it.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Anchors and links of a document.
#[derive(Default)]
struct Document {
    /// Anchors of headings, as GitHub makes them, and those that HTML sets.
    anchors: Vec<String>,
    /// Line and target of each link.
    links: Vec<(usize, String)>,
}

/// Returns the anchor that GitHub gives a heading, without the number for repeated ones: lower-case
/// letters, digits, `-` and `_`; spaces become `-`, other characters are left out.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let plain = heading.trim().to_lowercase();
    plain.chars().filter(|c| kept(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut heading: Option<String> = None;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let base = anchor(&heading.take().unwrap_or_default());
                let before = seen.entry(base.clone()).or_default();
                document.anchors.push(match *before {
                    0 => base,
                    n => format!("{base}-{n}"),
                });
                *before += 1;
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let names = html.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
                document.anchors.extend(names.map(str::to_owned));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = text[..range.start].matches('\n').count() + 1;
                document.links.push((line, dest_url.to_string()));
            }
            _ => {}
        }
    }
    document
}

/// Returns `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Collects all documents below `directory`, without build output and kept files.
fn documents(directory: &Path, found: &mut BTreeMap<PathBuf, Document>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "dist" {
            documents(&entry.path(), found);
        } else if kind.is_file() && name.ends_with(".md") {
            found.insert(entry.path(), read(&fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let root = plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let mut all = BTreeMap::new();
    documents(&root, &mut all);
    assert!(all.len() > 40 && all.contains_key(&root.join("README.md")), "{}", all.len());

    let mut broken = Vec::new();
    let mut followed = 0;
    for (path, document) in &all {
        for (line, link) in &document.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file.is_empty() {
                true => path.clone(),
                false => plain(&path.parent().unwrap().join(file)),
            };
            let reason = if !target.starts_with(&root) {
                "leads out of the project"
            } else if !target.exists() {
                "no such file"
            } else if !anchor.is_empty()
                && !all.get(&target).is_some_and(|document| document.anchors.iter().any(|a| a == anchor))
            {
                "no such heading"
            } else {
                continue;
            };
            broken.push(format!("{}:{line}: {link}: {reason}", path.strip_prefix(&root).unwrap().display()));
        }
    }
    assert!(broken.is_empty(), "{} of {followed} links:\n{}", broken.len(), broken.join("\n"));
    assert!(followed > 200, "{followed}");
}

#[test]
fn every_document_is_in_the_table_of_contents() {
    let docs = plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"));
    let mut all = BTreeMap::new();
    documents(&docs, &mut all);
    let contents = docs.join("README.md");
    let listed: Vec<PathBuf> = all[&contents].links.iter().map(|(_, link)| plain(&docs.join(link))).collect();
    let missing: Vec<_> = all.keys().filter(|path| **path != contents && !listed.contains(path)).collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:?}");
    for path in &listed {
        assert_eq!(listed.iter().filter(|other| *other == path).count(), 1, "{}", path.display());
    }
}

#[test]
fn anchors_are_those_of_the_page() {
    let text = "# A `b` — c, d\n\n## Again\n\n## Again\n\n[x](y.md#z)\n";
    let document = read(text);
    assert_eq!(document.anchors, ["a-b--c-d", "again", "again-1"]);
    assert_eq!(document.links, [(7, "y.md#z".to_owned())]);
}
