//! What init says on the console, and what it is told on the kernel command line.

/// The virtio-serial port on which init sends the result stream.
pub const PORT_NAME: &str = "kerntune.out";

/// A line of init's among the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsoleMessage {
    /// A phase begins, e.g. `measured step 1 redis_set`.
    Phase(String),
    /// All went well; power off follows.
    Done,
    /// Why not; power off follows.
    Failed(String),
}

impl ConsoleMessage {
    /// Understands a console line, with or without its line end.
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

/// What init does besides the run itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collect {
    /// Clear the kernel's gcov counters before the first step, send them after the last.
    pub gcov: bool,
    /// Count function calls with the kernel's own function profiler during the steps.
    pub ftrace: bool,
    /// Read what the kernel counts of itself in /proc, right before and after each step.
    pub proc: bool,
}

/// The kernel command line options that tell init which run to make, and on how many CPUs if that is not one.
pub fn boot_options(run: &str, collect: Collect, cpus: u32) -> String {
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
            boot_options("training", Collect { gcov: true, ..Collect::default() }, 2),
            "kt.run=training kt.cpus=2 kt.gcov=1"
        );
        assert_eq!(
            boot_options("measured", Collect { proc: true, ..Collect::default() }, 1),
            "kt.run=measured kt.proc=1"
        );
        assert_eq!(boot_options("measured", Collect::default(), 1), "kt.run=measured");
    }
}
