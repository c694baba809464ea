//! Checks that docs/store.md lists every key.

use crate::support::checkout;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Collects the rules in the source, without those of tests and examples.
fn rules(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "tests" && name != "examples" {
            rules(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for after in code.split("Key::new(").skip(1).chain(code.split("name(\"").skip(1)) {
                let rule = after.trim_start_matches('"').split('"').next().unwrap();
                let is_rule = |(name, version): (&str, &str)| {
                    name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && version.parse::<u32>().is_ok()
                };
                if rule.split_once('/').is_some_and(is_rule) {
                    found.insert(rule.to_string());
                }
            }
        }
    }
}

#[test]
fn every_rule_is_in_the_documentation() {
    let mut found = BTreeSet::new();
    rules(&checkout().join("crates"), &mut found);
    // Names that are no results: a lock on kept objects, and directories that no code refers to.
    for inner in ["objects/1", "named-by-itself/1"] {
        assert!(found.remove(inner), "{inner} is gone: {found:?}");
    }
    found.insert("kernel/4".into());
    let text = fs::read_to_string(checkout().join("docs/store.md")).unwrap();
    let missing: Vec<&String> = found.iter().filter(|rule| !text.contains(&format!("`{rule}`"))).collect();
    assert!(found.len() > 20 && missing.is_empty(), "docs/store.md lacks {missing:?}");
}
