//! Collector that outlives the terminal: one daemon per work directory, controlled over a socket.
//!
//! [`serve`] is the daemon, [`ask`] the client. The files are in the directory `.live` of the work
//! directory: `lock` is locked while the daemon runs and holds its process id, `socket`, and `log`
//! with the messages after the start. Only the owner may access the directory: if another user owns
//! it, others may write to it, or it contains links, it is refused.

mod client;
mod connections;
mod daemon_dir;
mod protocol;
mod server;

pub use client::{ask, state, state_after, DaemonState};
pub use daemon_dir::DaemonDir;
pub use protocol::{DaemonRequest, DaemonResponse, DaemonStatus};
pub use server::{serve, SaveProfile};
