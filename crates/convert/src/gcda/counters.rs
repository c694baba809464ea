//! Counter records: kinds, values, top-N lists.

/// Kind of a counter, in the order of GCC's `gcov-counter.def`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterKind {
    /// Number of times that a control-flow arc was taken.
    Arcs,
    /// Histogram of values in an interval.
    Interval,
    /// Histogram of powers of two.
    Pow2,
    /// Most common values of an expression, see [`TopN`].
    TopN,
    /// Most common targets of an indirect call, by profile id, see [`TopN`].
    IndirectCall,
    /// Sum and number of values.
    Average,
    /// Bitwise or of all values.
    Ior,
    /// Time of the function's first run, in functions entered so far; 0 is never.
    TimeProfiler,
    /// Condition outcomes seen, a bit set (GCC 14).
    Conditions,
    /// Prime paths seen, a bit set (GCC 15).
    Paths,
}

impl CounterKind {
    const ALL: [Self; 10] = [
        Self::Arcs,
        Self::Interval,
        Self::Pow2,
        Self::TopN,
        Self::IndirectCall,
        Self::Average,
        Self::Ior,
        Self::TimeProfiler,
        Self::Conditions,
        Self::Paths,
    ];

    /// Returns the record tag: the kind's number from bit 17 up.
    pub(super) fn tag(self) -> u32 {
        super::TAG_COUNTER_BASE + ((self as u32) << 17)
    }

    /// Returns the kind of a record tag, among the first `kinds`.
    pub(super) fn from_tag(tag: u32, kinds: u32) -> Option<Self> {
        let offset = tag.checked_sub(super::TAG_COUNTER_BASE)?;
        let number = offset >> 17;
        (offset & 0x1_ffff == 0 && number < kinds).then(|| Self::ALL[number as usize])
    }

    /// Returns the name in `gcov-dump` and `gcov-counter.def`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arcs => "arcs",
            Self::Interval => "interval",
            Self::Pow2 => "pow2",
            Self::TopN => "topn",
            Self::IndirectCall => "indirect_call",
            Self::Average => "average",
            Self::Ior => "ior",
            Self::TimeProfiler => "time_profiler",
            Self::Conditions => "conditions",
            Self::Paths => "paths",
        }
    }

    /// Checks whether values are lists of value and count ([`TopN`]), which vary in number.
    pub fn is_top_n(self) -> bool {
        matches!(self, Self::TopN | Self::IndirectCall)
    }
}

/// Counters of one kind of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRecord {
    /// Kind of the counters.
    pub kind: CounterKind,
    /// Values as in the file.
    pub values: CounterValues,
}

/// Counter values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterValues {
    /// This many zeros, written as a negative length (GCC 11 and later, not the kernel).
    Zeros(u32),
    /// Values one by one.
    Listed(Vec<i64>),
}

impl CounterValues {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Zeros(count) => *count as usize,
            Self::Listed(values) => values.len(),
        }
    }

    /// Checks whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all values in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let (zeros, listed) = match self {
            Self::Zeros(count) => (*count as usize, &[][..]),
            Self::Listed(values) => (0, &values[..]),
        };
        std::iter::repeat_n(0, zeros).chain(listed.iter().copied())
    }

    /// Returns the values other than 0, at no cost if all are.
    pub(super) fn nonzero(&self) -> impl Iterator<Item = i64> + '_ {
        let listed = match self {
            Self::Zeros(_) => &[][..],
            Self::Listed(values) => values,
        };
        listed.iter().copied().filter(|&value| value != 0)
    }
}

/// Most common values at one instrumented place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopN {
    /// Number of executions of the place.
    pub total: u64,
    /// Rarer values were dropped in a merge (a negative total in the file).
    pub incomplete: bool,
    /// Values with their counts.
    pub pairs: Vec<(i64, i64)>,
}

impl CounterRecord {
    /// Returns the lists of a [`CounterKind::TopN`] or [`CounterKind::IndirectCall`] record; `None`
    /// for other kinds and for values that do not form complete lists.
    pub fn top_n(&self) -> Option<Vec<TopN>> {
        if !self.kind.is_top_n() {
            return None;
        }
        let mut rest = match &self.values {
            CounterValues::Zeros(0) => &[][..],
            CounterValues::Zeros(_) => return None,
            CounterValues::Listed(values) => values,
        };
        let mut lists = Vec::new();
        while let [total, pairs, after @ ..] = rest {
            let words = usize::try_from(*pairs).ok()?.checked_mul(2)?;
            let listed = after.get(..words)?;
            lists.push(TopN {
                total: total.unsigned_abs(),
                incomplete: *total < 0,
                pairs: listed.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
            });
            rest = &after[words..];
        }
        rest.is_empty().then_some(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_gcov_dump() {
        assert_eq!(CounterKind::Arcs.tag(), 0x01a1_0000);
        assert_eq!(CounterKind::TopN.tag(), 0x01a7_0000);
        assert_eq!(CounterKind::TimeProfiler.tag(), 0x01af_0000);
        for kind in CounterKind::ALL {
            assert_eq!(CounterKind::from_tag(kind.tag(), 10), Some(kind));
        }
        assert_eq!(CounterKind::from_tag(CounterKind::Conditions.tag(), 8), None);
        assert_eq!(CounterKind::from_tag(0x01a2_0000, 10), None);
        assert_eq!(CounterKind::from_tag(0xffff_0000, 10), None);
    }

    #[test]
    fn top_n_lists_are_whole_or_nothing() {
        let record = |values: &[i64]| CounterRecord {
            kind: CounterKind::IndirectCall,
            values: CounterValues::Listed(values.to_vec()),
        };
        let lists = record(&[1000, 2, 21, 334, 11, 666, -5, 0]).top_n().unwrap();
        assert_eq!(lists[0], TopN { total: 1000, incomplete: false, pairs: vec![(21, 334), (11, 666)] });
        assert_eq!(lists[1], TopN { total: 5, incomplete: true, pairs: vec![] });
        for broken in [&[1][..], &[1, 1, 2], &[1, -1], &[1, i64::MAX, 0, 0]] {
            assert_eq!(record(broken).top_n(), None, "{broken:?}");
        }
    }
}
