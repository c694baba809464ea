//! Fault injection for the attack suite: at the n-th change of the disk by the store, the process
//! is killed or the disk is full.
//!
//! `KERNTUNE_FAULT=kill:7` kills at the seventh change, `KERNTUNE_FAULT=full:7` fails the seventh
//! and all later writes with "No space left on device", `KERNTUNE_FAULT=count` prints the number of
//! each change to standard error. Without the variable a fault point costs one load.

use rustix::io::Errno;
use rustix::process::{getpid, kill_process, Signal};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
enum InjectedFault {
    Kill(u64),
    Full(u64),
    Count,
}

static PASSED: AtomicU64 = AtomicU64::new(0);

fn requested_fault() -> Option<InjectedFault> {
    static ASKED: OnceLock<Option<InjectedFault>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let text = std::env::var("KERNTUNE_FAULT").ok()?;
        if text == "count" {
            return Some(InjectedFault::Count);
        }
        let (what, at) = text.split_once(':')?;
        let at = at.parse().ok()?;
        match what {
            "kill" => Some(InjectedFault::Kill(at)),
            "full" => Some(InjectedFault::Full(at)),
            _ => None,
        }
    })
}

/// Marks a place where the store is about to change the disk, or has just done so.
pub(crate) fn point(name: &str) -> io::Result<()> {
    let Some(fault) = requested_fault() else { return Ok(()) };
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    match fault {
        InjectedFault::Kill(at) if passed == at => Ok(kill_process(getpid(), Signal::KILL)?),
        InjectedFault::Full(at) if passed >= at => {
            Err(io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error()))
        }
        InjectedFault::Count => {
            eprintln!("fault point {passed}: {name}");
            Ok(())
        }
        _ => Ok(()),
    }
}
