//! A collector that outlives the terminal: one process for each work directory, which is asked over a socket.
//!
//! [`serve`] is the process, [`ask`] what others do. Its files are in `.live` of the work directory: `lock`, which is
//! locked for as long as it runs, and has its number; `socket`; `log`, what it had to say after it began. The directory is its
//! owner's alone: one of another user, one that others may write to, and links in it are refused.

mod client;
mod conversations;
mod place;
mod protocol;
mod server;

pub use client::{ask, state, state_after, State};
pub use place::Place;
pub use protocol::{Answer, Request, Status};
pub use server::{serve, Dump};
