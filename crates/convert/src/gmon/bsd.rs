//! Formats of 4.2BSD (and its `kgmon`), of 4.4BSD and of FreeBSD.

use super::read::ByteReader;
use super::*;

/// Magic number of a 4.4BSD header with a rate (`GMONVERSION`).
const BSD_44: u32 = 0x0005_1879;
/// Limit of an arc's count: days of one call per nanosecond. GNU's format has 32 bits for a count,
/// so a larger count would become many arcs.
const MAX_CALLS: u64 = 1 << 48;
/// Unused words of 4.4BSD's header after version, rate, and FreeBSD's counter size.
const SPARE: u64 = 2;
/// Bytes of a counter if the header has no size: an `unsigned short` in all formats.
const COUNTER: usize = 2;

/// Parses a file. 4.2BSD's header has no magic number; it is recognized if its numbers fit each
/// other and the file.
pub(super) fn parse(bytes: &[u8], target: GmonTarget) -> Result<Gmon> {
    let not = || Error::NotGmon { found: bytes.iter().take(4).copied().collect() };
    let mut input = ByteReader { bytes, at: 0, target };
    let what = "the header of BSD";
    let header = |input: &mut ByteReader| {
        Ok::<_, Error>((input.address(what)?, input.address(what)?, input.u32(what)?))
    };
    let (low, high, length) = header(&mut input).map_err(|_| not())?;
    let begin = input.at;
    let (mut rate, mut size, mut signed) = (BSD_RATE, COUNTER, false);
    if input.u32(what) == Ok(BSD_44) {
        rate = input.u32(what)?;
        let bits = input.u32(what)? as i32;
        (size, signed) = match bits {
            0 => (COUNTER, false),
            8 | 16 | 32 | 64 => (bits as usize / 8, false),
            -8 | -16 | -32 | -64 => (bits.unsigned_abs() as usize / 8, true),
            _ => {
                let what =
                    format!("counters of {bits} bits (8, 16, 32 and 64 are known, negative with a sign)");
                return Err(Error::Damaged { at: input.at - 4, what });
            }
        };
        input.take(SPARE, 4, what)?;
    } else if target.wide {
        // The header is a C structure of 8-byte alignment.
        input.at = begin;
        input.take(1, 4, what).map_err(|_| not())?;
    } else {
        input.at = begin;
    }
    let samples = u64::from(length).checked_sub(input.at as u64);
    let fits = |samples: &u64| *samples <= input.left() as u64 && samples % size as u64 == 0;
    let samples =
        samples.filter(fits).filter(|_| low < high && i32::try_from(rate).is_ok_and(|rate| rate > 0));
    let bins = input.bins(samples.ok_or_else(not)? / size as u64, size, signed)?;
    let histogram = Histogram {
        low,
        high,
        rate,
        dimension: Histogram::dimension_of("seconds"),
        abbreviation: b's',
        bins,
    };
    let mut records = vec![GmonRecord::Histogram(histogram)];
    while !input.is_done() {
        let at = input.at;
        let (from, to, count) =
            (input.address("an arc")?, input.address("an arc")?, input.address("an arc")?);
        if count > MAX_CALLS {
            return Err(Error::Damaged {
                at,
                what: format!("{count} calls from one place: nothing runs so long"),
            });
        }
        records.push(GmonRecord::Arc(RawArc { from, to, count }));
    }
    Ok(Gmon { records })
}
