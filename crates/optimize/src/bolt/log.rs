//! Parser of BOLT's log.

/// Function whose new code is longer than its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OversizedFunction {
    /// BOLT's name: symbol name, followed by a slash and a number if several symbols have it.
    pub name: String,
    /// Missing bytes.
    pub bytes: u64,
}

impl OversizedFunction {
    /// Returns the name in the symbol table.
    pub fn symbol(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

/// Contents of the log of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BoltLog {
    /// Functions with counts.
    pub with_counts: u64,
    /// Functions with counts that BOLT leaves alone (`could not be optimized`).
    pub not_optimized: u64,
    /// Functions written into the image.
    pub written: u64,
    pub too_long: Vec<OversizedFunction>,
    /// Size of an entry of `.altinstructions` in bytes, which BOLT finds by trial.
    pub alternative_bytes: Option<usize>,
}

impl BoltLog {
    /// Parses the log and ignores unknown lines.
    pub fn parse(text: &str) -> Self {
        let mut log = Self::default();
        let (mut feature, mut padding) = (None, 0);
        for line in text.lines() {
            let Some((_, printed)) = line.split_once(": ") else { continue };
            let words: Vec<&str> = printed.split(' ').collect();
            match words[..] {
                [name, "size", "exceeds", "allocated", "space", "by", bytes, "bytes"] => {
                    let name = name.split("(*").next().unwrap_or_default().to_string();
                    log.too_long.push(OversizedFunction { name, bytes: bytes.parse().unwrap_or_default() });
                }
                [count, "out", "of", _, "functions", "in", "the", "binary", ..] => {
                    log.with_counts = number(count)
                }
                [count, "function" | "functions", "with", "profile", "could", "not", ..] => {
                    log.not_optimized = number(count)
                }
                [count, "out", "of", _, "functions", "were", "overwritten."] => log.written = number(count),
                ["setting", option] => match option.split_once('=') {
                    Some(("--alt-inst-feature-size", bytes)) => feature = bytes.parse::<usize>().ok(),
                    Some(("--alt-inst-has-padlen", yes)) => padding = usize::from(yes == "1"),
                    _ => {}
                },
                _ => {}
            }
        }
        // Two offsets, the feature, two lengths, and a third one in old kernels.
        log.alternative_bytes = feature.map(|feature| 4 + 4 + feature + 1 + 1 + padding);
        log
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_bolt_19() {
        let log = BoltLog::parse(
            "llvm-bolt-19: WARNING: reading perf data directly is unsupported, please use -aggregate-only or perf2bolt.\n\
             BOLT-INFO: setting --alt-inst-has-padlen=0\n\
             BOLT-INFO: setting --alt-inst-feature-size=4\n\
             BOLT-INFO: 1120 out of 24337 functions in the binary (4.6%) have non-empty execution profile\n\
             BOLT-INFO: 124 functions with profile could not be optimized\n\
             BOLT-INFO: do_exit size exceeds allocated space by 55 bytes\n\
             BOLT-INFO: update_curr/1(*2) size exceeds allocated space by 24 bytes\n\
             BOLT: 932 out of 24337 functions were overwritten.\n",
        );
        assert_eq!((log.with_counts, log.not_optimized, log.written), (1120, 124, 932));
        assert_eq!(log.alternative_bytes, Some(14));
        let too_long = |name: &str, bytes| OversizedFunction { name: name.into(), bytes };
        assert_eq!(log.too_long, [too_long("do_exit", 55), too_long("update_curr/1", 24)]);
        assert_eq!(log.too_long[1].symbol(), "update_curr");
        assert_eq!(BoltLog::parse("Stack dump:\n"), BoltLog::default());
    }
}
