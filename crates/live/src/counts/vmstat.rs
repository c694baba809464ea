//! `/proc/vmstat`: counts of page faults, of the whole machine.

/// Counters that are kept (`mm/vmstat.c`), with their names in profiles.
const FAULTS: [(&str, &str); 4] = [
    ("pgfault", "page faults"),
    ("pgmajfault", "page faults that waited for a disk"),
    ("thp_fault_alloc", "page faults with a huge page"),
    ("thp_fault_fallback", "page faults without room for a huge page"),
];

/// Parses the counts of page faults.
pub fn parse_vmstat(text: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        let (_, name) = FAULTS.iter().find(|(known, _)| *known == name)?;
        Some(((*name).to_string(), count.trim().parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_taken_and_the_rest_is_left() {
        // Linux 6.18.
        let text = "nr_free_pages 5\npgfault 2794489627\npgmajfault 12\nthp_fault_alloc 180599\nthp_fault_fallback x\n";
        let expected = [
            ("page faults", 2_794_489_627),
            ("page faults that waited for a disk", 12),
            ("page faults with a huge page", 180_599),
        ];
        assert_eq!(parse_vmstat(text), expected.map(|(name, count)| (name.to_string(), count)));
        assert!(parse_vmstat("").is_empty());
    }
}
