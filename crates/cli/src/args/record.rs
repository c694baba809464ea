//! What of a run is recorded.

use clap::Args;
use kerntune_trace::TagWindow;

/// Ten seconds of a CPU, and 64 GB of ChampSim's.
const MOST_INSTRUCTIONS: u64 = 1_000_000_000;

/// Options of `record` that choose what is traced.
#[derive(Debug, Clone, Args)]
pub struct RecordDetail {
    /// Trace only these functions; may be repeated. A name (tcp_*), a source directory or path (net/, net/ipv4/tcp.c), a file's
    /// name (tcp.c), or a file with such lines (@FILE). The time of all other functions counts for their callers; interrupts,
    /// system calls and switches are always recorded
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Do not trace these functions, written as for --only
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Record each execution of an instruction inside a function: SYMBOL, SYMBOL+0x1f, or FILE:LINE of a kernel with debug
    /// information; may be repeated
    #[arg(long, value_name = "PLACE")]
    pub point: Vec<String>,
    /// Trace the user functions of this program or library, too: a name in the guest (rr, redis-server,
    /// libc.so.6) or a path; may be repeated
    #[arg(long, value_name = "BINARY")]
    pub user: Vec<String>,
    /// Record taken branches and the model's misses for each call path (a trace half as large again)
    #[arg(long)]
    pub weights: bool,
    /// Follow accesses to data through the model's caches and TLBs: misses by function, path and type, lines that several
    /// CPUs write (docs/data.md); takes longer
    #[arg(long)]
    pub data: bool,
    /// Record the first N instructions of all regions one by one, with the memory that they read and write, for
    /// `kerntune export champsim`; needs a guest with one CPU, and takes longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_INSTRUCTIONS))]
    pub instructions: Option<u64>,
    /// With --instructions: only those in regions of this name
    #[arg(long, value_name = "REGION", requires = "instructions")]
    pub instructions_of: Option<String>,
    /// Read the guest kernel's own counters in /proc right before and after each step; `kerntune characterise` compares the
    /// profile with them
    #[arg(long)]
    pub proc: bool,
    /// Record event tags of McRae's profiler that the guest writes to this port or memory window, or that the compiler placed in
    /// the kernel, for `kerntune import mcrae`
    #[arg(long, value_name = "port:0x80|memory:0xADDRESS|kernel", value_parser = tags)]
    pub tags: Option<TagPlace>,
}

/// Where tags are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagPlace {
    /// Here.
    Window(TagWindow),
    /// Where the kernel's own triggers say them.
    Kernel,
}

fn tags(text: &str) -> Result<TagPlace, String> {
    match text {
        "kernel" => Ok(TagPlace::Kernel),
        _ => tag_window(text).map(TagPlace::Window),
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
        assert_eq!(tags("kernel"), Ok(TagPlace::Kernel));
        for bad in ["port:65536", "port:", "0x80", "memory:zz", "uart:1"] {
            assert!(tag_window(bad).is_err(), "{bad}");
        }
    }
}
