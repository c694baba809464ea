//! The formats of 4.2BSD (and its `kgmon`), of 4.4BSD and of FreeBSD.

use super::read::Bytes;
use super::*;

/// 4.4BSD's mark of a header that says its rate (`GMONVERSION`).
const BSD_44: u32 = 0x0005_1879;
/// Calls over one arc in days at one per nanosecond; in GNU's format a count has 32 bits, so that each
/// more than that would take an arc of its own.
const MOST_CALLS: u64 = 1 << 48;
/// Words of 4.4BSD's header after version, rate, and what is the size of a counter in FreeBSD's.
const SPARE: u64 = 2;
/// Bytes of a counter where the header does not say: an `unsigned short` in all of them.
const COUNTER: usize = 2;

/// A header has no magic number in 4.2BSD: it is one if its numbers fit each other and the file.
pub(super) fn parse(bytes: &[u8], target: Target) -> Result<Gmon> {
    let not = || Error::NotGmon { found: bytes.iter().take(4).copied().collect() };
    let mut input = Bytes { bytes, at: 0, target };
    let what = "the header of BSD";
    let header =
        |input: &mut Bytes| Ok::<_, Error>((input.address(what)?, input.address(what)?, input.u32(what)?));
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
    let mut records = vec![Record::Histogram(histogram)];
    while !input.is_done() {
        let at = input.at;
        let (from, to, count) =
            (input.address("an arc")?, input.address("an arc")?, input.address("an arc")?);
        if count > MOST_CALLS {
            return Err(Error::Damaged {
                at,
                what: format!("{count} calls from one place: nothing runs so long"),
            });
        }
        records.push(Record::Arc(RawArc { from, to, count }));
    }
    Ok(Gmon { records })
}
