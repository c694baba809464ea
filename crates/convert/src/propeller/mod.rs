//! LLVM's basic-block sections, the basis of Propeller: addresses of each function's blocks (in),
//! and their new order (out).
//!
//! After H. Shen et al.: "Propeller: A Profile Guided, Relinking Optimizer for Warehouse-Scale
//! Applications" (ASPLOS 2023). A compiler numbers the blocks of a function. With the same source,
//! flags and profile the numbers are the same, so a number of one build names a block of the next.
//!
//! ```
//! use kerntune_convert::propeller::{read_map, ListedFunction};
//! // Version 2, no features, at 0x1000: block 0 with 4 bytes falls into block 7, which follows at once and returns.
//! let mut bytes = vec![2, 0];
//! bytes.extend(0x1000u64.to_le_bytes());
//! bytes.extend([2, 0, 0, 4, 8, 7, 0, 1, 1]);
//! let map = read_map(&bytes)?;
//! assert_eq!((map[0].blocks[1].id, map[0].blocks[1].address), (7, 0x1004));
//! let listed = ListedFunction::new("/s/net/a.c", ["send"], vec![0, 7]).ok_or("white space")?;
//! assert_eq!(listed.text(), "m /s/net/a.c\nf send\nc 0 7\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod kbuild;
mod list;
mod map;

pub use kbuild::{parse_list, portable_list, ListEntry};
pub use list::{list_text, ListedFunction};
pub use map::{read_map, MapError, MappedBlock, MappedFunction, SECTION};
