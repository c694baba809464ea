//! Faults on purpose, for the attack suite: at the n-th place where the store changes the disk, the process is killed
//! or the disk is full.
//!
//! `KERNTUNE_FAULT=kill:7` kills at the seventh place, `KERNTUNE_FAULT=full:7` fails the seventh and all later writes
//! with "No space left on device", `KERNTUNE_FAULT=count` prints the number of places to standard error at the end of
//! the last one. Without the variable a place costs one load.

use rustix::io::Errno;
use rustix::process::{getpid, kill_process, Signal};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill(u64),
    Full(u64),
    Count,
}

static PASSED: AtomicU64 = AtomicU64::new(0);

fn asked() -> Option<Fault> {
    static ASKED: OnceLock<Option<Fault>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let text = std::env::var("KERNTUNE_FAULT").ok()?;
        if text == "count" {
            return Some(Fault::Count);
        }
        let (what, at) = text.split_once(':')?;
        let at = at.parse().ok()?;
        match what {
            "kill" => Some(Fault::Kill(at)),
            "full" => Some(Fault::Full(at)),
            _ => None,
        }
    })
}

/// A place where the store is about to change the disk, or has just done so.
pub(crate) fn point(name: &str) -> io::Result<()> {
    let Some(fault) = asked() else { return Ok(()) };
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    match fault {
        Fault::Kill(at) if passed == at => Ok(kill_process(getpid(), Signal::KILL)?),
        Fault::Full(at) if passed >= at => Err(io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error())),
        Fault::Count => {
            eprintln!("fault point {passed}: {name}");
            Ok(())
        }
        _ => Ok(()),
    }
}
