//! Options of `kerntune record` that select the events to record.

use clap::Args;
use kerntune_trace::TagWindow;

/// Largest value of `--instructions`: ten seconds of a CPU, and 64 GB of ChampSim records.
const MAX_INSTRUCTIONS: u64 = 1_000_000_000;

/// Options of `record` that select the events to trace.
#[derive(Debug, Clone, Args)]
pub struct RecordDetail {
    /// Trace only these functions; may be repeated. A name (tcp_*), a source directory or path
    /// (net/, net/ipv4/tcp.c), a file name (tcp.c), or a file with such lines (@FILE). The time of
    /// all other functions counts for their callers; interrupts, system calls and context switches
    /// are always recorded
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Do not trace these functions, written as for --only
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Record each execution of an instruction inside a function: SYMBOL, SYMBOL+0x1f, or FILE:LINE
    /// if the kernel has debug information; may be repeated
    #[arg(long, value_name = "PLACE")]
    pub point: Vec<String>,
    /// Trace also the user functions of this program or library: a name in the guest (rr,
    /// redis-server, libc.so.6) or a path; may be repeated
    #[arg(long, value_name = "BINARY")]
    pub user: Vec<String>,
    /// Record taken branches and the model's misses for each call path; makes the trace half as
    /// large again
    #[arg(long)]
    pub weights: bool,
    /// Simulate data accesses in the model's caches and TLBs: misses by function, path and type,
    /// and lines that several CPUs write (docs/data.md); takes longer
    #[arg(long)]
    pub data: bool,
    /// Record the first N instructions of all regions one by one, with the memory that they read
    /// and write, for `kerntune export champsim`; needs a guest with one CPU, and takes longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_INSTRUCTIONS))]
    pub instructions: Option<u64>,
    /// With --instructions: record only instructions in the regions of this name
    #[arg(long, value_name = "REGION", requires = "instructions")]
    pub instructions_of: Option<String>,
    /// Read the guest kernel's own counters in /proc right before and after each step; `kerntune
    /// characterize` compares them with the profile
    #[arg(long)]
    pub proc: bool,
    /// Record event tags of McRae's profiler for `kerntune import mcrae`: tags that the guest
    /// writes to this port or memory window, or that the compiler placed in the kernel
    #[arg(long, value_name = "port:0x80|memory:0xADDRESS|kernel", value_parser = tags)]
    pub tags: Option<TagSource>,
}

/// Source of event tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagSource {
    /// The guest writes tags to this port or memory window.
    Window(TagWindow),
    /// Triggers in the kernel, placed by the compiler.
    Kernel,
}

fn tags(text: &str) -> Result<TagSource, String> {
    match text {
        "kernel" => Ok(TagSource::Kernel),
        _ => tag_window(text).map(TagSource::Window),
    }
}

fn tag_window(text: &str) -> Result<TagWindow, String> {
    let number = |digits: &str| match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16).ok(),
        None => digits.parse().ok(),
    };
    let window = match text.split_once(':') {
        Some(("port", port)) => number(port).and_then(|p| u16::try_from(p).ok()).map(TagWindow::Port),
        Some(("memory", base)) => number(base).map(TagWindow::Memory),
        _ => None,
    };
    window.ok_or_else(|| {
        "give port:NUMBER (port:0x80), memory:ADDRESS (memory:0x4b540000), or kernel".to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        assert_eq!(tag_window("port:0x80"), Ok(TagWindow::Port(0x80)));
        assert_eq!(tag_window("port:128"), Ok(TagWindow::Port(0x80)));
        assert_eq!(tag_window("memory:0x4b540000"), Ok(TagWindow::Memory(0x4b54_0000)));
        assert_eq!(tags("kernel"), Ok(TagSource::Kernel));
        for bad in ["port:65536", "port:", "0x80", "memory:zz", "uart:1"] {
            assert!(tag_window(bad).is_err(), "{bad}");
        }
    }
}
