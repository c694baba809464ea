//! Traces in the format of [uftrace](https://github.com/namhyung/uftrace): a directory with `info`,
//! `task.txt`, a memory map, a symbol file, and one file of 16-byte records per thread.
//!
//! The format is version 4 of `uftrace.h` (`struct uftrace_file_header`, `struct uftrace_record`),
//! as uftrace 0.13 writes it. Kernel functions appear as those of one program named `vmlinux` that
//! is mapped at [`BASE`], 16 bytes each: uftrace knows kernel addresses only in ftrace's form.
//!
//! An interrupt's frames are on the stack of the thread that it hit, as in uftrace's own kernel
//! traces. So uftrace, unlike kerntune, adds their time to the interrupted function.

mod frames;
mod importer;
#[cfg(test)]
mod tests;

pub use frames::{records, ExportError};
pub use importer::{ImportError, LeftOut, UftraceImporter};

use std::fmt::Write;

/// Address of the program whose functions stand for those of the trace.
pub const BASE: u64 = 0x40_0000;
/// Bytes of each function in the program.
const FUNCTION_BYTES: u64 = 16;
/// Maximum depth of a thread's stack: uftrace keeps 10 bits of a depth.
pub const DEPTH_LIMIT: usize = 1023;

const MAGIC: [u8; 8] = *b"Ftrace!\0";
const FILE_VERSION: u32 = 4;
const HEADER_BYTES: u16 = 40;
/// `TASK_SESSION`, `SYM_REL_ADDR`, `MAX_STACK`.
const FEATURES: u64 = 1 << 1 | 1 << 5 | 1 << 6;
/// `EXE_NAME`, `TASKINFO`.
const INFO: u64 = 1 | 1 << 7;
const RECORD_MAGIC: u64 = 5;
/// Session id: any 16 characters.
const SESSION: &str = "6b65726e74756e65";
const PROGRAM: &str = "vmlinux";

/// Thread as uftrace identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UftraceTask {
    /// Unique thread id.
    pub tid: u32,
    /// Name of the thread.
    pub comm: String,
}

/// Assigns thread ids to the threads of a recording: the kernel's, unless another thread has it.
pub fn tasks(threads: &[kerntune_trace::RecordedThread]) -> Vec<UftraceTask> {
    // Above the maximum of pid_max (PID_MAX_LIMIT).
    const INVENTED: u32 = 1 << 22;
    let mut seen = std::collections::HashSet::new();
    (0..)
        .zip(threads)
        .map(|(number, thread)| {
            let known = thread.pid < INVENTED && seen.insert(thread.pid);
            UftraceTask { tid: if known { thread.pid } else { INVENTED + number }, comm: thread.comm.clone() }
        })
        .collect()
}

/// Returns names and contents of all files except the threads', which are `<tid>.dat`
/// ([`records`]). `names` are the functions' names, by number.
pub fn files<'a>(
    tasks: &[UftraceTask],
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Vec<(String, Vec<u8>)> {
    let functions = names.len() as u64;
    let end = BASE + (FUNCTION_BYTES * (functions + 1)).next_multiple_of(4096);
    // The last mapping must be a stack: uftrace takes everything above it for the kernel.
    let map = format!(
        "{BASE:012x}-{end:012x} r-xp 00000000 00:00 0 {PROGRAM}\n\
         7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n"
    );
    let first = tasks.first().map_or(1, |task| task.tid);
    let mut list = format!("SESS timestamp=0.000000000 pid={first} sid={SESSION} exename=\"{PROGRAM}\"\n");
    for UftraceTask { tid, .. } in tasks {
        // Writing to a String cannot fail.
        let _ = writeln!(list, "TASK timestamp=0.000000000 tid={tid} pid={first}");
    }
    let mut symbols = format!("# symbols: {functions}\n# path name: {PROGRAM}\n# build-id:\n");
    for (number, name) in (0u64..).zip(names) {
        let _ = writeln!(
            symbols,
            "{:016x} T {}",
            number * FUNCTION_BYTES,
            name.replace(char::is_whitespace, "_")
        );
    }
    let _ = writeln!(symbols, "{:016x} ? __func_end", functions * FUNCTION_BYTES);
    vec![
        ("info".into(), info(tasks)),
        ("task.txt".into(), list.into_bytes()),
        (format!("sid-{SESSION}.map"), map.into_bytes()),
        (format!("{PROGRAM}.sym"), symbols.into_bytes()),
    ]
}

fn info(tasks: &[UftraceTask]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FILE_VERSION.to_le_bytes());
    out.extend_from_slice(&HEADER_BYTES.to_le_bytes());
    out.extend_from_slice(&[1, 2]); // little endian, 64 bits
    out.extend_from_slice(&FEATURES.to_le_bytes());
    out.extend_from_slice(&INFO.to_le_bytes());
    out.extend_from_slice(&(DEPTH_LIMIT as u16 + 1).to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    let tids: Vec<_> = tasks.iter().map(|task| task.tid.to_string()).collect();
    let lines = format!(
        "exename:{PROGRAM}\ntaskinfo:lines=2\ntaskinfo:nr_tid={}\ntaskinfo:tids={}\n",
        tids.len(),
        tids.join(",")
    );
    out.extend_from_slice(lines.as_bytes());
    out
}

/// Encodes an entry or exit of `function` at `time`, with `depth` frames below it.
#[inline]
fn record(time: u64, exit: bool, depth: usize, function: u32) -> [u8; 16] {
    let address = BASE + FUNCTION_BYTES * u64::from(function);
    let word = u64::from(exit) | RECORD_MAGIC << 3 | (depth as u64) << 6 | address << 16;
    let mut out = [0; 16];
    out[..8].copy_from_slice(&time.to_le_bytes());
    out[8..].copy_from_slice(&word.to_le_bytes());
    out
}
