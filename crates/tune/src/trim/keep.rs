//! Options that stay even if none of their code runs.

use super::TrimRequest;
use kerntune_kernel::{fragment, Kconfig};
use kerntune_work::{read_file, IoContext};
use wildmatch::WildMatch;

/// Patterns of options that stay, each with the reason.
const KEPT: &str = include_str!("kept.txt");

/// Patterns of options to keep.
pub(super) struct KeepList {
    patterns: Vec<(WildMatch, String)>,
    /// Patterns of `--keep`.
    named: Vec<WildMatch>,
}

impl KeepList {
    pub fn new<'a>(request: &TrimRequest<'a>) -> crate::Result<Self> {
        let mut patterns = Vec::new();
        let mut add = |pattern: &str, why: &str| patterns.push((WildMatch::new(pattern), why.to_string()));
        for line in KEPT.lines().filter(|line| !line.starts_with('#')) {
            if let Some((pattern, why)) = line.split_once(' ') {
                add(pattern, why);
            }
        }
        let given = |pattern: &'a String| pattern.strip_prefix("CONFIG_").unwrap_or(pattern);
        request.keep.iter().map(given).for_each(|pattern| add(pattern, "asked for with --keep"));
        let set = |line: &str| Some(line.strip_prefix("CONFIG_")?.strip_suffix("=y")?.to_string());
        for option in fragment::REQUIRED.lines().filter_map(set) {
            add(&option, "every guest needs it");
        }
        for option in request.build.extra.iter().filter_map(|line| set(line)) {
            add(&option, "asked for, or a workload needs it");
        }
        for path in &request.build.fragments {
            let text = String::from_utf8_lossy(&read_file(path).at("read", path)?).into_owned();
            text.lines().filter_map(set).for_each(|option| add(&option, "a fragment asks for it"));
        }
        let named = request.keep.iter().map(given).map(WildMatch::new).collect();
        Ok(Self { patterns, named })
    }

    /// Returns whether `--keep` names the option.
    pub fn is_named(&self, option: &str) -> bool {
        self.named.iter().any(|pattern| pattern.matches(option))
    }

    /// Returns the reason why `option` must be kept, if there is one. Options that nobody can set
    /// exist for others.
    pub fn why(&self, option: &str, kconfig: &Kconfig) -> Option<String> {
        if kconfig.is_fixed(option) {
            return None;
        }
        self.patterns.iter().find(|(pattern, _)| pattern.matches(option)).map(|(_, why)| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_what_stays_is_well_formed() {
        for line in KEPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (pattern, why) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_*".contains(c);
            assert!(pattern.chars().all(is_name) && !why.trim().is_empty(), "{line}");
        }
    }
}
