//! Parser of /proc texts. They are untrusted; lines that cannot be parsed are skipped.

use std::collections::BTreeMap;

/// Numbers by file and key; `counts.tsv` defines the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProcReading(BTreeMap<(String, String), u64>);

impl ProcReading {
    /// Parses all files.
    pub fn of(texts: &BTreeMap<String, String>) -> Self {
        let mut reading = Self::default();
        for (file, text) in texts {
            for (key, number) in numbers(file, text) {
                let sum = reading.0.entry((file.clone(), key)).or_default();
                *sum = sum.saturating_add(number);
            }
        }
        reading
    }

    /// Returns a number, or the sum of several keys joined by ` + `; `None` if one is missing.
    pub fn get(&self, file: &str, keys: &str) -> Option<u64> {
        keys.split(" + ").try_fold(0u64, |sum, key| {
            Some(sum.saturating_add(*self.0.get(&(file.to_owned(), key.to_owned()))?))
        })
    }
}

fn numbers(file: &str, text: &str) -> Vec<(String, u64)> {
    match file {
        "stat" | "vmstat" => text.lines().filter_map(first).collect(),
        "interrupts" => text.lines().filter_map(interrupt).collect(),
        "softirqs" => text.lines().filter_map(labeled).collect(),
        "diskstats" => text.lines().map(requests).map(|count| ("requests".into(), count)).collect(),
        "snmp" => snmp(text),
        _ => Vec::new(),
    }
}

/// Parses the first number of a line; for `intr` it is the sum of the others.
fn first(line: &str) -> Option<(String, u64)> {
    let mut words = line.split_whitespace();
    let key = words.next()?;
    Some((key.to_owned(), words.next()?.parse().ok()?))
}

/// Sums the numbers after a label with a colon, one per CPU.
fn labeled(line: &str) -> Option<(String, u64)> {
    let (label, rest) = line.split_once(':')?;
    let numbers = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    Some((label.trim().to_owned(), numbers.fold(0, u64::saturating_add)))
}

/// Sums a line of /proc/interrupts; numeric labels are devices.
fn interrupt(line: &str) -> Option<(String, u64)> {
    let (label, count) = labeled(line)?;
    let is_device = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    Some((if is_device { "devices".into() } else { label }, count))
}

/// Sums the completed requests: reads, writes, discards, flushes
/// (Documentation/admin-guide/iostats.rst).
fn requests(line: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    [3, 7, 14, 18].map(at).into_iter().fold(0, u64::saturating_add)
}

/// Parses pairs of lines: names, and their numbers.
fn snmp(text: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut names: Option<(&str, &str)> = None;
    for line in text.lines() {
        let Some((protocol, rest)) = line.split_once(':') else { continue };
        match names.take() {
            Some((named, names)) if named == protocol => {
                for (name, number) in names.split_whitespace().zip(rest.split_whitespace()) {
                    // Some numbers are -1.
                    if let Ok(number) = number.parse() {
                        found.push((format!("{protocol} {name}"), number));
                    }
                }
            }
            _ => names = Some((protocol, rest)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in ".*", words in "([a-zA-Z]{0,4}:?[ \n]|[0-9]{1,24}[ \n]){0,40}") {
            for file in ["stat", "interrupts", "softirqs", "vmstat", "diskstats", "snmp"] {
                let _ = reading(file, &text).get(file, "intr + devices");
                let _ = reading(file, &words).get(file, "requests");
            }
        }
    }

    fn reading(file: &str, text: &str) -> ProcReading {
        ProcReading::of(&BTreeMap::from([(file.to_owned(), text.to_owned())]))
    }

    #[test]
    fn real_files() {
        let stat =
            reading("stat", "cpu  0 0 4 19\nintr 36 7 0 0 0 10\nctxt 1248\nbtime 1704067200\nprocesses 28\n");
        assert_eq!(stat.get("stat", "intr"), Some(36));
        assert_eq!(stat.get("stat", "ctxt + processes"), Some(1276));
        assert_eq!(stat.get("stat", "nothing"), None);
        let interrupts = "           CPU0       CPU1       \n  0:          7  3   IO-APIC   2-edge      timer\n \
                          10:          2          1   IO-APIC  10-fasteoi   virtio0\nLOC:        275  5   Local timer interrupts\nERR:          0\n";
        let interrupts = reading("interrupts", interrupts);
        assert_eq!(interrupts.get("interrupts", "devices"), Some(13));
        assert_eq!(interrupts.get("interrupts", "LOC"), Some(280));
        let softirqs = reading("softirqs", "                    CPU0       CPU1\n       TIMER:          9    1\n         RCU:         79  0\n");
        assert_eq!(softirqs.get("softirqs", "TIMER"), Some(10));
        let disks =
            " 254       0 vda 101 0 8 0 3 0 16 0 0 0 0 2 0 0 0 1 0\n 254       1 vdb 1 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(reading("diskstats", disks).get("diskstats", "requests"), Some(108));
        let snmp = "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs\nTcp: 1 -1 12 13 1\nUdp: InDatagrams NoPorts\nUdp: 5 0\n";
        let snmp = reading("snmp", snmp);
        assert_eq!(snmp.get("snmp", "Tcp OutSegs + Tcp RetransSegs"), Some(14));
        assert_eq!(snmp.get("snmp", "Udp InDatagrams"), Some(5));
        assert_eq!(snmp.get("snmp", "Tcp MaxConn"), None);
    }

    #[test]
    fn what_is_no_number_is_not_there() {
        for file in ["stat", "interrupts", "softirqs", "vmstat", "diskstats", "snmp", "other"] {
            for text in ["", ":", "x", "x y", "Tcp:\nTcp:\n", "0: 99999999999999999999999\n", "\u{0}\n1:1"] {
                let _ = reading(file, text);
            }
        }
        assert_eq!(reading("stat", "intr 99999999999999999999999\n").get("stat", "intr"), None);
    }
}
