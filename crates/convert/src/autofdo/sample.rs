//! LLVM's sample profile in text form, as `llvm-profdata merge --sample --text` writes it.
//!
//! The format follows `llvm/include/llvm/ProfileData/SampleProfReader.h`. Each function has a line
//! `name:total:head`. Lines below it are indented by one space for each level of inlining: `
//! offset[.discriminator]: samples [callee:samples …]` for a place in its code, and `
//! offset[.discriminator]: callee:total` for an inlined callee. Lines that begin with `!` are
//! attributes. `llvm-profgen` computes totals from the bytes of executed instructions, and samples
//! from the instructions.

/// Line of a text that is no sample profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the sample profile is in no form of LLVM's: {text}")]
pub struct SampleError {
    /// Number of the line, from 1.
    pub line: usize,
    /// First 80 characters of the line.
    pub text: String,
}

/// Sample counts of a program's functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleProfile {
    /// Functions, in the order of the file.
    pub functions: Vec<SampleFunction>,
    /// Samples of every place, inlined callees included, in descending order.
    counts: Vec<u64>,
}

/// Function with everything that was inlined into it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFunction {
    /// Symbol name without the suffixes of clones.
    pub name: String,
    /// Executed bytes of instructions, inlined callees included.
    pub total: u64,
    /// Number of entries by a branch.
    pub head: u64,
    /// Maximum of the samples of one place.
    pub max: u64,
    /// Number of places with samples.
    pub places: u64,
    /// Number of inlined callees, over all levels.
    pub inlined: u64,
}

impl SampleProfile {
    /// Parses the text.
    ///
    /// # Errors
    /// [`SampleError`] with the first line in no known form.
    pub fn parse(text: &str) -> Result<Self, SampleError> {
        let mut profile = Self::default();
        for (line, number) in text.lines().zip(1..) {
            profile
                .line(line)
                .ok_or_else(|| SampleError { line: number, text: line.chars().take(80).collect() })?;
        }
        profile.counts.sort_unstable_by(|a, b| b.cmp(a));
        Ok(profile)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let inner = line.trim_start_matches(' ');
        if inner.is_empty() || inner.starts_with('!') {
            return Some(());
        }
        if inner.len() == line.len() {
            // A name may contain colons, so the line is split from the right.
            let (rest, head) = line.rsplit_once(':')?;
            let (name, total) = rest.rsplit_once(':')?;
            let (name, total, head) = (name.to_string(), total.parse().ok()?, head.parse().ok()?);
            self.functions.push(SampleFunction { name, total, head, ..SampleFunction::default() });
            return Some(());
        }
        let function = self.functions.last_mut()?;
        let (place, what) = inner.split_once(": ")?;
        let mut numbers = place.split('.').map(str::parse::<u32>);
        if !(numbers.next()?.is_ok() && numbers.all(|number| number.is_ok())) {
            return None;
        }
        let first = what.split(' ').next()?;
        match first.parse::<u64>() {
            Ok(samples) => {
                function.max = function.max.max(samples);
                function.places += u64::from(samples > 0);
                self.counts.push(samples);
            }
            Err(_) => {
                let (_, total) = what.rsplit_once(':')?;
                total.trim().parse::<u64>().ok()?;
                function.inlined += 1;
            }
        }
        Some(())
    }

    /// Returns the sum of all functions' totals.
    pub fn total(&self) -> u128 {
        self.functions.iter().map(|function| u128::from(function.total)).sum()
    }

    /// Returns the smallest number of samples that makes a place hot: places with at least as many
    /// hold `share` (0 to 1) of all samples. LLVM itself uses 0.99 (`-profile-summary-cutoff-hot`).
    /// `None` without samples.
    pub fn hot_from(&self, share: f64) -> Option<u64> {
        let all: u128 = self.counts.iter().map(|&count| u128::from(count)).sum();
        let wanted = (all as f64 * share).ceil() as u128;
        let mut sum = 0;
        let found = self.counts.iter().find(|&&count| {
            sum += u128::from(count);
            sum >= wanted
        });
        found.copied().filter(|&count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// llvm-profdata 19 of a program with an inlined callee and FS discriminators (`0.512`).
    const TEXT: &str = "\
work:224000:100
 0: 100
 0.3: 2500 leaf:2500
 0.512: 2500
 65532: 100
 0.4: small:32500
  0: 2500
  0.1: 0
  3: deeper:7
   1: 7000
 !CFGChecksum: 4711
leaf:0:2500
ns::odd:12:3
 1: 12
";

    #[test]
    fn functions_places_and_inlined_callees_are_read() {
        let profile = SampleProfile::parse(TEXT).unwrap();
        let names: Vec<_> = profile.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["work", "leaf", "ns::odd"]);
        let work = &profile.functions[0];
        assert_eq!((work.total, work.head, work.max), (224_000, 100, 7_000));
        assert_eq!((work.places, work.inlined), (6, 2));
        assert_eq!(profile.functions[1].head, 2_500);
        assert_eq!(profile.total(), 224_012);
    }

    #[test]
    fn the_hot_line_is_where_the_share_of_samples_is_reached() {
        // 7000, 3 × 2500, 2 × 100, 12: 14712.
        let profile = SampleProfile::parse(TEXT).unwrap();
        assert_eq!(profile.hot_from(0.4), Some(7_000));
        assert_eq!(profile.hot_from(0.9), Some(2_500));
        assert_eq!(profile.hot_from(0.99), Some(100));
        assert_eq!(SampleProfile::default().hot_from(0.99), None);
        assert_eq!(SampleProfile::parse("f:0:1\n 1: 0\n").unwrap().hot_from(0.99), None);
    }

    #[test]
    fn what_is_in_no_form_is_named_with_its_line() {
        for (text, line) in [
            ("f:1", 1),
            ("f:1:x\n", 1),
            (" 1: 2\n", 1),
            ("f:1:2\n 1 2\n", 2),
            ("f:1:2\n x: 2\n", 2),
            ("f:1:2\n 1: g:\n", 2),
        ] {
            assert_eq!(SampleProfile::parse(text).unwrap_err().line, line, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\PC{0,12}|f:[0-9]{1,22}:[0-9]\n| {1,3}[0-9]{1,11}(\\.[0-9])?: [0-9g:]{0,30}\n){0,8}") {
            let _ = SampleProfile::parse(&text);
        }
    }
}
