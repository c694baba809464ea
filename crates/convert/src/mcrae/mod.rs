//! McRae's hardware profiler ("Hardware Profiling of Kernels"): what his box recorded, as
//! a kerntune trace.
//!
//! - [`Names`]: the names files, `function/tag` lines with the modifiers `!` and `=`.
//! - [`Dump`]: the box's memory, records of a 16-bit tag and 24-bit microseconds.
//! - [`replay`]: records to a trace and its recording, which are analysed as any other.
//!
//! ```
//! use kerntune_convert::mcrae::{replay, Dump, Names, Order};
//! let names = Names::parse([("names", "swtch/600!\nmain/502\nMGET/1002=\n")])?;
//! // main from 10 to 52 µs, the inline trigger in it at 12 µs.
//! let dump = Dump::read(b"502 10\n1002 12\n503 52\n", Order::Little)?;
//! let imported = replay(&names, &dump, Vec::new())?;
//! assert_eq!(imported.recording.regions[0].elapsed_ns, 42_000);
//! assert_eq!(imported.points, ["MGET"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod dump;
mod edit;
mod names;
mod processes;
mod replay;
mod stream;
mod write;

pub use dump::{Dump, DumpError, Order, Record, FULL, RECORD_BYTES};
pub use edit::{header, Edited, Wanted};
pub use names::{Kind, Name, Names, NamesError, Role};
pub use replay::{replay, replay_records, Imported, ReplayError, Troubles};
pub use stream::{guess, Decoder, Form, Records};
