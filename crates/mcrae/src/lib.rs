//! McRae's hardware profiler ("Hardware Profiling of Kernels"): import of its dumps as kerntune
//! traces.
//!
//! - [`TagNames`]: the names files, `function/tag` lines with the modifiers `!` and `=`.
//! - [`TagDump`]: the profiler's memory, records of a tag and a time, in McRae's 16 bits and 24-bit
//!   microseconds or as a [`kerntune_trace::TagLayout`] says.
//! - [`replay`](replay()): converts records to a trace and its recording, which are analyzed like any
//!   other.
//! - [`follow`](follow()): writes a live stream of tags as a dump.
//! - [`LiveFigures`]: figures of a stream while it arrives.
//! - [`import`](import()): makes a profile of a dump in the work directory.
//!
//! ```
//! use kerntune_mcrae::{replay, DumpByteOrder, TagDump, TagNames};
//! use kerntune_trace::TagLayout;
//! let names = TagNames::parse([("names", "swtch/600!\nmain/502\nMGET/1002=\n")])?;
//! // main from 10 to 52 µs, the inline trigger in it at 12 µs.
//! let dump = TagDump::read(b"502 10\n1002 12\n503 52\n", DumpByteOrder::Little, TagLayout::MCRAE)?;
//! let imported = replay(&names, &dump, Vec::new())?;
//! assert_eq!(imported.recording.regions[0].elapsed_ns, 42_000);
//! assert_eq!(imported.points, ["MGET"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Hash of the code of this crate and the crates below it, part of the keys of imported profiles.
const CODE: &str = env!("KERNTUNE_CODE");

mod ahead;
mod dump;
mod edit;
mod error;
mod follow;
mod import;
mod import_format;
mod live_figures;
mod live_screen;
mod names;
mod processes;
mod replay;
mod stream;
mod tags;
mod write;

pub use dump::{DumpByteOrder, DumpError, DumpRecord, TagDump, FULL};
pub use edit::{header, ExtendedNames, RequestedTag, TagRange};
pub use error::{Error, Result};
pub use follow::{follow, FollowRequest, FollowResult, TagStreamSource};
pub use import::{import, McraeImport, McraeImportRequest};
pub use live_figures::{LiveFigures, LiveRow};
pub use names::{NamesError, TagKind, TagName, TagNames, TagRole};
pub use replay::{replay, replay_records, ImportedDump, ReplayAnomalies, ReplayError};
pub use stream::{guess_format, RecordDecoder, RecordReader, StreamFormat};

use kerntune_command::Room;

/// The command `tags` and the import format `mcrae`.
pub static ROOM: Room = Room {
    commands: &[&tags::COMMAND],
    imports: &[&import_format::ENTRY],
    examples: include_str!("examples.tsv"),
    ..Room::EMPTY
};
