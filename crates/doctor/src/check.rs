//! A check of one tool or ability, with its result.

use serde::Serialize;
use std::borrow::Cow;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Present, and proved to work.
    Ok,
    /// Present, but restricted or not proved to work.
    Limited,
    /// Missing, or not working.
    Missing,
}

/// Heading under which a report lists a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckGroup {
    /// Machines that run kernels: QEMU, KVM, User-Mode Linux.
    Machines,
    /// Compilers and their profile tools.
    Compilers,
    /// Other tools for building and packaging kernels.
    KernelBuild,
    /// Programs and libraries for the guest image.
    Guest,
    /// Recorders for the host's own kernel: perf, ftrace, kgmon.
    HostRecorders,
    /// Disk space and memory.
    Room,
}

impl CheckGroup {
    /// Returns the heading in text reports.
    pub fn title(self) -> &'static str {
        match self {
            CheckGroup::Machines => "machines",
            CheckGroup::Compilers => "compilers",
            CheckGroup::KernelBuild => "kernel build",
            CheckGroup::Guest => "guest",
            CheckGroup::HostRecorders => "recorders on the host",
            CheckGroup::Room => "room",
        }
    }
}

/// An ability of kerntune on this machine. It is available if all checks that list it succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Exact recordings and comparisons in the emulator.
    Emulator,
    /// Building kernels from source, and rebuilding them with GCC and a profile.
    GccPgo,
    /// Running the workload `redis`.
    Redis,
    /// Timed runs with hardware virtualization.
    Kvm,
    /// Timed runs of kernels that are processes (User-Mode Linux).
    Uml,
    /// Building kernels with LLVM.
    Llvm,
    /// Sampling the host kernel with the software clock.
    Perf,
    /// Sampling the host kernel with the CPU's counters.
    HardwareCounters,
    /// Tracing the host kernel's functions.
    Ftrace,
}

impl Ability {
    /// All abilities, in the order of reports.
    pub const ALL: [Ability; 9] = [
        Ability::Emulator,
        Ability::GccPgo,
        Ability::Redis,
        Ability::Kvm,
        Ability::Uml,
        Ability::Llvm,
        Ability::Perf,
        Ability::HardwareCounters,
        Ability::Ftrace,
    ];

    /// Returns true if the main command, `kerntune tune`, needs this ability.
    pub fn is_required(self) -> bool {
        matches!(self, Ability::Emulator | Ability::GccPgo)
    }

    /// Returns the name in text reports.
    pub fn name(self) -> &'static str {
        match self {
            Ability::Emulator => "emulator",
            Ability::GccPgo => "gcc-pgo",
            Ability::Redis => "redis",
            Ability::Kvm => "kvm",
            Ability::Uml => "uml",
            Ability::Llvm => "llvm tools",
            Ability::Perf => "perf",
            Ability::HardwareCounters => "hardware counters",
            Ability::Ftrace => "ftrace",
        }
    }
}

/// A check with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostCheck {
    /// Heading under which it is listed.
    pub group: CheckGroup,
    /// Tool or ability that is checked.
    pub name: Cow<'static, str>,
    /// Result of the check.
    pub status: CheckStatus,
    /// Version, path, or error that was found.
    pub found: String,
    /// Purpose of the tool, for the user.
    pub needed_for: &'static str,
    /// Abilities that fail with this check; empty if the tool is only convenient.
    pub abilities: Vec<Ability>,
    /// Command or advice that fixes the problem; `None` if there is none.
    pub fix: Option<String>,
}

impl HostCheck {
    /// Starts a check; its status is [`CheckStatus::Missing`] until `ok`, `limited` or `missing` is
    /// called.
    pub(crate) fn of(
        group: CheckGroup,
        name: impl Into<Cow<'static, str>>,
        needed_for: &'static str,
        abilities: &[Ability],
    ) -> Self {
        let found = String::new();
        Self {
            group,
            name: name.into(),
            status: CheckStatus::Missing,
            found,
            needed_for,
            abilities: abilities.to_vec(),
            fix: None,
        }
    }

    /// Records that it is present and works.
    pub(crate) fn ok(mut self, found: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (CheckStatus::Ok, found.into(), None);
        self
    }

    /// Records that it is present but restricted.
    pub(crate) fn limited(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (CheckStatus::Limited, found.into(), Some(fix.into()));
        self
    }

    /// Records that it is missing or does not work.
    pub(crate) fn missing(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (CheckStatus::Missing, found.into(), Some(fix.into()));
        self
    }
}
