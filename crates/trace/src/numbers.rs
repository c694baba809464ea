//! Serialization of ascending numbers as short text: `0-12,15,20-31`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use std::fmt::Write as _;

/// Writes consecutive numbers as one range.
pub(crate) fn serialize<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(numbers))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("`{:.40}` is no list of rising numbers", text)))
}

fn text(numbers: &[u32]) -> String {
    let mut text = String::new();
    for run in numbers.chunk_by(|before, after| before.checked_add(1) == Some(*after)) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match first == last {
            true => write!(text, "{comma}{first}"),
            false => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

/// Upper bound for a number, above the number of functions of any kernel. It limits the memory that
/// a damaged file can claim.
const MAX_NUMBER: u32 = 1 << 22;

fn parse(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for word in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let rises = numbers.last().is_none_or(|before| *before < first);
        if !rises || first > last || last >= MAX_NUMBER {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_list_is_refused() {
        assert_eq!(text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!((parse(""), parse("3")), (Some(Vec::new()), Some(vec![3])));
        for bad in ["1-", "-1", "2-1", "1,1", "5,3-4", "1,,2", "0-4294967295", "a", " 1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(numbers in proptest::collection::btree_set(0..100_000u32, 0..200)) {
            let numbers: Vec<u32> = numbers.into_iter().collect();
            prop_assert_eq!(parse(&text(&numbers)), Some(numbers));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,-]{0,30}") {
            let _ = parse(&text);
        }
    }
}
