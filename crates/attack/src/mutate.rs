//! Mutations: typical damage by bit errors, truncation, editors and attackers.

use kerntune_stats::Rng;

/// Boundary values, which readers often handle wrongly.
const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Words that readers of text often handle wrongly.
const WORDS: [&str; 16] = [
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "4294967296",
    "1e400",
    "NaN",
    "0x",
    "\n",
    "\u{1b}[31m",
    "\"",
    "{[",
    "..",
    "\u{fffd}\u{0}",
    "%s",
];

/// Maximum size of a mutated input, in bytes.
const LENGTH_MAX: usize = 1 << 20;

/// Returns `seed` with one to eight mutations. `others` are seeds of the same kind, parts of which
/// may be spliced in.
pub fn mutate(seed: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.index(8) {
        once(&mut bytes, others, rng);
        bytes.truncate(LENGTH_MAX);
    }
    bytes
}

fn once(bytes: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) {
    // Half of the damage is at the beginning, where headers are; the rest may be long.
    let at = match rng.index(2) {
        0 => rng.index(bytes.len() + 1),
        _ => rng.index(bytes.len().min(96) + 1),
    };
    let max = if rng.index(4) == 0 { 4096 } else { 16 };
    let length = 1 + rng.index(max);
    let end = (at + length).min(bytes.len());
    match rng.index(10) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.index(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.bits() as u8;
            }
        }
        2 => number(bytes, at, rng),
        3 => bytes.truncate(at),
        4 => {
            let fill: Vec<u8> = match rng.index(3) {
                0 => vec![0; length],
                1 => vec![0xff; length],
                _ => (0..length).map(|_| rng.bits() as u8).collect(),
            };
            bytes.splice(at..at, fill);
        }
        5 => drop(bytes.drain(at..end)),
        6 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        7 => {
            if let Some(other) = others.get(rng.index(others.len().max(1))) {
                let from = rng.index(other.len() + 1);
                let to = (from + 4 * length).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
        8 => {
            let word = WORDS[rng.index(WORDS.len())];
            bytes.splice(at..at, word.bytes());
        }
        _ => digits(bytes, at, rng),
    }
}

/// Overwrites bytes with a number of any width and byte order, possibly near the length of the
/// input.
fn number(bytes: &mut [u8], at: usize, rng: &mut Rng) {
    let value = match rng.index(4) {
        0 => (bytes.len() as u64).wrapping_add(rng.index(9) as u64).wrapping_sub(4),
        _ => NUMBERS[rng.index(NUMBERS.len())],
    };
    let width = 1 << rng.index(4);
    let big = rng.index(2) == 1;
    for place in 0..width {
        let shift = 8 * if big { width - 1 - place } else { place };
        if let Some(byte) = bytes.get_mut(at + place) {
            *byte = (value >> shift) as u8;
        }
    }
}

/// Replaces the next decimal number by a word.
fn digits(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(from) = bytes[at..].iter().position(is_digit).map(|from| at + from) else { return };
    let to = bytes[from..].iter().position(|byte| !is_digit(byte)).map_or(bytes.len(), |to| from + to);
    let word = WORDS[rng.index(WORDS.len())];
    bytes.splice(from..to, word.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_repeats_with_its_number_and_differs_between_numbers() {
        let seed: Vec<u8> = (0..200).collect();
        let damage = |number| mutate(&seed, std::slice::from_ref(&seed), &mut Rng::new(number));
        assert_eq!(damage(7), damage(7));
        let distinct: std::collections::BTreeSet<_> = (0..100).map(damage).collect();
        assert!(distinct.len() > 90, "{}", distinct.len());
        for number in 0..1000 {
            mutate(&[], &[], &mut Rng::new(number));
        }
    }
}
