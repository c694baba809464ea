//! Protocol with the guest's init: console messages and kernel command line options.

/// The virtio-serial port on which init sends the result stream.
pub const PORT_NAME: &str = "kerntune.out";

/// A line that init writes to the console, among the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleMessage {
    /// A phase begins, such as `measured step 1 redis_set`.
    Phase(String),
    /// The run succeeded; power off follows.
    Done,
    /// The run failed for this reason; power off follows.
    Failed(String),
}

impl ConsoleMessage {
    /// Parses a console line, with or without its line end.
    ///
    /// ```
    /// use kerntune_guest::ConsoleMessage;
    /// assert_eq!(ConsoleMessage::parse("kt: done\r\n"), Some(ConsoleMessage::Done));
    /// assert_eq!(ConsoleMessage::parse("reboot: Power down"), None);
    /// ```
    pub fn parse(line: &str) -> Option<Self> {
        let text = line.trim().strip_prefix("kt: ")?;
        if text == "done" {
            return Some(Self::Done);
        }
        if let Some(phase) = text.strip_prefix("phase ") {
            return Some(Self::Phase(phase.to_owned()));
        }
        text.strip_prefix("failed: ").map(|reason| Self::Failed(reason.to_owned()))
    }
}

/// Data that init collects besides running the workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectOptions {
    /// Clear the kernel's gcov counters before the first step, send them after the last.
    pub gcov: bool,
    /// Count function calls with the kernel's function profiler during the steps.
    pub ftrace: bool,
    /// Read the kernel's counters in /proc right before and after each step.
    pub proc: bool,
}

/// Returns the kernel command line options for init: the run, the data to collect, and the CPUs if
/// there are several.
pub fn boot_options(run: &str, collect: CollectOptions, cpus: u32) -> String {
    let mut options = format!("kt.run={run}");
    if cpus > 1 {
        options += &format!(" kt.cpus={cpus}");
    }
    if collect.gcov {
        options += " kt.gcov=1";
    }
    if collect.ftrace {
        options += " kt.ftrace=1";
    }
    if collect.proc {
        options += " kt.proc=1";
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_console_lines() {
        assert_eq!(ConsoleMessage::parse("kt: phase boot"), Some(ConsoleMessage::Phase("boot".into())));
        assert_eq!(
            ConsoleMessage::parse("kt: failed: service redis not ready after 10 s\r"),
            Some(ConsoleMessage::Failed("service redis not ready after 10 s".into()))
        );
        assert_eq!(ConsoleMessage::parse("kt: something newer"), None);
    }

    #[test]
    fn options() {
        assert_eq!(
            boot_options("training", CollectOptions { gcov: true, ..CollectOptions::default() }, 2),
            "kt.run=training kt.cpus=2 kt.gcov=1"
        );
        assert_eq!(
            boot_options("measured", CollectOptions { proc: true, ..CollectOptions::default() }, 1),
            "kt.run=measured kt.proc=1"
        );
        assert_eq!(boot_options("measured", CollectOptions::default(), 1), "kt.run=measured");
    }
}
