//! `gmon.out`, the format of `gcc -pg` programs, profiled BSD kernels and GNU gprof: a histogram of
//! sampled addresses, and how often each call site called each function.
//!
//! Start from [`Gmon::parse`] and [`Gmon::to_bytes`]; [`export`] makes one of a profile's tables,
//! [`import`] makes tables of one.
//!
//! GNU's format, version 1, is defined by glibc's `gmon/sys/gmon_out.h` and binutils'
//! `gprof/gmon_out.h` and read by `gprof/gmon_io.c`, `hist.c`, `cg_arcs.c`, `basic_blocks.c`: a
//! header of 20 bytes, then unaligned records, each with a byte for its kind. Numbers are in the
//! byte order of the machine, and addresses have its width. The file has neither, so the reader
//! must know the [`GmonTarget`].
//!
//! The older formats are one header with one histogram, then arcs to the end of the file. 4.2BSD's
//! (`kgmon`, `struct phdr`) is lowest address, highest address and length; 4.4BSD added a magic
//! number and the rate (`sys/gmon.h`, `struct gmonhdr`), FreeBSD the size of a counter
//! (`histcounter_type`: 16 bits in a usual kernel, 64 with sign in one for `GUPROF`). They are
//! read, not written.

mod bsd;
mod exporter;
mod importer;
mod read;

pub use exporter::{export, GmonExport};
pub use importer::{import, GmonImport};

use crate::gcda::ByteOrder;

const MAGIC: &[u8; 4] = b"gmon";
const VERSION: u32 = 1;
/// Length of GNU's header: magic, version, 12 unused bytes.
const HEADER: usize = 20;
const TAG_HISTOGRAM: u8 = 0;
const TAG_ARC: u8 = 1;
const TAG_BLOCKS: u8 = 2;
/// Length of a histogram's dimension.
const DIMENSION: usize = 15;
/// Ticks per second if the file has no rate: 4.2BSD's clock.
const BSD_RATE: u32 = 100;

/// Defect of a `gmon.out`. The caller knows the file and adds its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("not a gmon.out: it begins with {found:02x?}, neither with \"gmon\" nor with a histogram's header of BSD")]
    NotGmon { found: Vec<u8> },
    #[error("gmon.out of version {0}; only version {VERSION} is known")]
    Version(u32),
    #[error("truncated at byte {at}: {what} needs {needed} more bytes; let the program write it again")]
    Truncated { at: usize, what: &'static str, needed: u64 },
    #[error("damaged at byte {at}: {what}; let the program write it again")]
    Damaged { at: usize, what: String },
    #[error("a histogram that counts {dimension:?}, not time; seconds, milliseconds, microseconds and nanoseconds are read")]
    NotTime { dimension: String },
    #[error("none of {addresses} addresses is in a function of the image; is the gmon.out of this build?")]
    NoFunctions { addresses: usize },
    #[error("the functions reach up to {0:#x}: no addresses are left for those that have none")]
    NoRoom(u64),
}

/// Result with this module's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Machine that the program ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GmonTarget {
    /// Byte order of numbers.
    pub byte_order: ByteOrder,
    /// Addresses have 64 bits instead of 32.
    pub wide: bool,
}

impl GmonTarget {
    /// x86-64 and most other machines.
    pub const LITTLE_64: Self = Self { byte_order: ByteOrder::Little, wide: true };
}

/// Contents of a `gmon.out`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gmon {
    /// Records, in file order.
    pub records: Vec<GmonRecord>,
}

/// Record of a `gmon.out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GmonRecord {
    /// Sampled addresses. gprof adds up histograms of the same range.
    Histogram(Histogram),
    /// Calls over an arc.
    Arc(RawArc),
    /// Addresses of basic blocks with their numbers of executions.
    Blocks(Vec<(u64, u64)>),
}

/// Samples of the program counter in bins of equal size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// First address.
    pub low: u64,
    /// Address after the last.
    pub high: u64,
    /// Ticks in one unit of the dimension.
    pub rate: u32,
    /// Unit of time, padded with zeros: `seconds`.
    pub dimension: [u8; DIMENSION],
    /// Abbreviation of the unit: `s`.
    pub abbreviation: u8,
    /// Ticks of each bin. GNU's format has 16 bits for them, FreeBSD's up to 64.
    pub bins: Vec<u32>,
}

impl Histogram {
    /// Returns the dimension as text.
    pub fn dimension_text(&self) -> String {
        let end = self.dimension.iter().position(|byte| *byte == 0).unwrap_or(DIMENSION);
        String::from_utf8_lossy(self.dimension.get(..end).unwrap_or_default()).into_owned()
    }

    /// Converts a dimension to bytes; text beyond 15 bytes is cut.
    pub fn dimension_of(text: &str) -> [u8; DIMENSION] {
        let mut bytes = [0; DIMENSION];
        bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Returns the nanoseconds of one tick.
    ///
    /// # Errors
    /// [`Error::NotTime`].
    pub fn tick_ns(&self) -> Result<f64> {
        let dimension = self.dimension_text();
        let unit = match dimension.as_str() {
            "seconds" => 1e9,
            "milliseconds" => 1e6,
            "microseconds" => 1e3,
            "nanoseconds" => 1.0,
            _ => return Err(Error::NotTime { dimension }),
        };
        Ok(unit / f64::from(self.rate.max(1)))
    }
}

/// Calls from one place to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawArc {
    /// Address in the caller.
    pub from: u64,
    /// Address in the callee.
    pub to: u64,
    /// Number of calls.
    pub count: u64,
}

impl Gmon {
    /// Parses a whole file of a target, in GNU's or BSD's format.
    ///
    /// # Errors
    /// [`Error::NotGmon`], [`Error::Version`], [`Error::Truncated`] or [`Error::Damaged`].
    pub fn parse(bytes: &[u8], target: GmonTarget) -> Result<Self> {
        match bytes.first_chunk::<4>() {
            Some(magic) if magic == MAGIC => read::parse(bytes, target),
            _ => bsd::parse(bytes, target),
        }
    }

    /// Writes the file in GNU's format. Numbers that are too large are split: a count of more than
    /// 32 bits becomes several arcs, and a histogram with bins of more than 16 bits becomes several
    /// of the same range, as many as the largest bin needs.
    pub fn to_bytes(&self, target: GmonTarget) -> Vec<u8> {
        let mut out = GmonWriter { out: Vec::new(), target };
        out.out.extend_from_slice(MAGIC);
        out.u32(VERSION);
        out.out.resize(HEADER, 0);
        for record in &self.records {
            match record {
                GmonRecord::Histogram(histogram) => {
                    let max = histogram.bins.iter().copied().max().unwrap_or(0);
                    for part in 0..max.div_ceil(u16::MAX.into()).max(1) {
                        let before = part * u32::from(u16::MAX);
                        out.out.push(TAG_HISTOGRAM);
                        out.address(histogram.low);
                        out.address(histogram.high);
                        out.u32(histogram.bins.len() as u32);
                        out.u32(histogram.rate);
                        out.out.extend_from_slice(&histogram.dimension);
                        out.out.push(histogram.abbreviation);
                        let rest = histogram.bins.iter().map(|bin| bin.saturating_sub(before));
                        rest.for_each(|bin| out.u16(u16::try_from(bin).unwrap_or(u16::MAX)));
                    }
                }
                GmonRecord::Arc(arc) => {
                    let mut left = arc.count;
                    loop {
                        let count = u32::try_from(left).unwrap_or(u32::MAX);
                        out.out.push(TAG_ARC);
                        out.address(arc.from);
                        out.address(arc.to);
                        out.u32(count);
                        left -= u64::from(count);
                        if left == 0 {
                            break;
                        }
                    }
                }
                GmonRecord::Blocks(blocks) => {
                    out.out.push(TAG_BLOCKS);
                    out.u32(blocks.len() as u32);
                    for (address, count) in blocks {
                        out.address(*address);
                        out.address(*count);
                    }
                }
            }
        }
        out.out
    }
}

/// Writer of numbers in a target's byte order and width.
struct GmonWriter {
    out: Vec<u8>,
    target: GmonTarget,
}

impl GmonWriter {
    fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&match self.target.byte_order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }

    fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&match self.target.byte_order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }

    /// Writes an address, or a number of its width.
    fn address(&mut self, value: u64) {
        if !self.target.wide {
            return self.u32(value as u32);
        }
        self.out.extend_from_slice(&match self.target.byte_order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
    }
}
