//! `gmon.out`: what `gcc -pg` programs, profiled BSD kernels and GNU gprof exchange. A histogram
//! of sampled addresses, and how often each call site called each function.
//!
//! Start from [`Gmon::parse`] and [`Gmon::to_bytes`]; [`export`] makes one of a profile's tables,
//! [`import`] makes tables of one.
//!
//! GNU's format, version 1, is defined by glibc's `gmon/sys/gmon_out.h` and binutils'
//! `gprof/gmon_out.h` and read by `gprof/gmon_io.c`, `hist.c`, `cg_arcs.c`, `basic_blocks.c`: a header of 20
//! bytes, then records, each a byte that says its kind and the record itself, unaligned. Numbers
//! are in the byte order of the machine, addresses have its width; neither is said in the file, so the
//! reader must know the [`Target`].
//!
//! The older formats are one header with one histogram, then arcs to the end of the file. 4.2BSD's
//! (`kgmon`, `struct phdr`) is lowest address, highest address and length; 4.4BSD added a magic
//! number and the rate (`sys/gmon.h`, `struct gmonhdr`), FreeBSD the size of a counter (`histcounter_type`: 16 bits in a
//! usual kernel, 64 with sign in one for `GUPROF`). They are read, not written.

mod bsd;
mod exporter;
mod importer;
mod read;

pub use exporter::{export, Exported};
pub use importer::{import, Imported};

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
/// Ticks per second of a file that does not say: 4.2BSD's clock.
const BSD_RATE: u32 = 100;

/// What can be wrong with a `gmon.out`. The caller knows the file and adds its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The first bytes belong to something else.
    #[error("not a gmon.out: it begins with {found:02x?}, neither with \"gmon\" nor with a histogram's header of BSD")]
    NotGmon {
        /// Up to four bytes found at the start.
        found: Vec<u8>,
    },
    /// A version that does not exist yet.
    #[error("gmon.out of version {0}; only version {VERSION} is known")]
    Version(u32),
    /// The file ends inside something.
    #[error("truncated at byte {at}: {what} needs {needed} more bytes; let the program write it again")]
    Truncated {
        /// Length of the file.
        at: usize,
        /// What was being read.
        what: &'static str,
        /// How many bytes are missing.
        needed: u64,
    },
    /// A record that no program writes.
    #[error("damaged at byte {at}: {what}; let the program write it again")]
    Damaged {
        /// Where the record begins.
        at: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A histogram of something else than time.
    #[error("a histogram that counts {dimension:?}, not time; seconds, milliseconds, microseconds and nanoseconds are read")]
    NotTime {
        /// Its dimension.
        dimension: String,
    },
    /// Nothing to look addresses up in, or no address is in it.
    #[error("none of {addresses} addresses is in a function of the image; is the gmon.out of this build?")]
    NoFunctions {
        /// Addresses with time or calls.
        addresses: usize,
    },
    /// Addresses for what has none could not be made up.
    #[error("the functions reach up to {0:#x}: no addresses are left for those that have none")]
    NoRoom(u64),
}

/// Shorthand of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The machine that the program ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Order of the bytes of a number.
    pub byte_order: ByteOrder,
    /// Whether addresses have 64 bits instead of 32.
    pub wide: bool,
}

impl Target {
    /// x86-64 and most others.
    pub const LITTLE_64: Self = Self { byte_order: ByteOrder::Little, wide: true };
}

/// The records of a file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gmon {
    /// What was counted.
    pub records: Vec<Record>,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Sampled addresses. gprof adds up histograms of the same range.
    Histogram(Histogram),
    /// Calls.
    Arc(RawArc),
    /// Addresses of basic blocks, and how often each was executed.
    Blocks(Vec<(u64, u64)>),
}

/// How often the program counter was found in each of several bins of equal size.
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
    /// Its abbreviation: `s`.
    pub abbreviation: u8,
    /// Ticks of each bin. GNU's format has 16 bits for them, FreeBSD's up to 64.
    pub bins: Vec<u32>,
}

impl Histogram {
    /// The dimension as text.
    pub fn dimension_text(&self) -> String {
        let end = self.dimension.iter().position(|byte| *byte == 0).unwrap_or(DIMENSION);
        String::from_utf8_lossy(self.dimension.get(..end).unwrap_or_default()).into_owned()
    }

    /// A dimension's bytes; what is longer than 15 is cut.
    pub fn dimension_of(text: &str) -> [u8; DIMENSION] {
        let mut bytes = [0; DIMENSION];
        bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Nanoseconds of one tick.
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
    /// An address in the caller.
    pub from: u64,
    /// An address in the callee.
    pub to: u64,
    /// How often.
    pub count: u64,
}

impl Gmon {
    /// Reads a whole file of a target, in GNU's or BSD's format.
    ///
    /// # Errors
    /// [`Error::NotGmon`], [`Error::Version`], [`Error::Truncated`] or [`Error::Damaged`].
    pub fn parse(bytes: &[u8], target: Target) -> Result<Self> {
        match bytes.first_chunk::<4>() {
            Some(magic) if magic == MAGIC => read::parse(bytes, target),
            _ => bsd::parse(bytes, target),
        }
    }

    /// The file in GNU's format. What exceeds its numbers is spread: a count of more than 32 bits
    /// becomes several arcs, and a histogram with bins of more than 16 bits several of the same range, as many as the
    /// largest bin needs.
    pub fn to_bytes(&self, target: Target) -> Vec<u8> {
        let mut out = Writer { out: Vec::new(), target };
        out.out.extend_from_slice(MAGIC);
        out.u32(VERSION);
        out.out.resize(HEADER, 0);
        for record in &self.records {
            match record {
                Record::Histogram(histogram) => {
                    let most = histogram.bins.iter().copied().max().unwrap_or(0);
                    for part in 0..most.div_ceil(u16::MAX.into()).max(1) {
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
                Record::Arc(arc) => {
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
                Record::Blocks(blocks) => {
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

/// Appends numbers as a target has them.
struct Writer {
    out: Vec<u8>,
    target: Target,
}

impl Writer {
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

    /// An address, or a number of its width.
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
