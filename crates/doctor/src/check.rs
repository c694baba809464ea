//! One thing that was looked at.

use serde::Serialize;

/// How a thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// There, and shown to work.
    Ok,
    /// There, but less than wanted, or not proved.
    Limited,
    /// Not there, or not working.
    Missing,
}

/// Under which heading a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Where kernels run.
    Machines,
    /// What builds them.
    Compilers,
    /// What else a kernel's build needs.
    KernelBuild,
    /// What the guest is packed from.
    Guest,
    /// What captures on the host itself.
    HostRecorders,
    /// Space.
    Room,
}

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Machines => "machines",
            Group::Compilers => "compilers",
            Group::KernelBuild => "kernel build",
            Group::Guest => "guest",
            Group::HostRecorders => "recorders on the host",
            Group::Room => "room",
        }
    }
}

/// What kerntune can do if the checks that carry its name are well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Exact recordings and comparisons.
    Emulator,
    /// Kernels built from source, and rebuilt by GCC with a profile.
    GccPgo,
    /// The workload `redis`.
    Redis,
    /// Timed runs on hardware virtualisation.
    Kvm,
    /// Timed runs of a kernel that is a process.
    Uml,
    /// Kernels built by LLVM.
    Llvm,
    /// Sampling the host by its clock.
    Perf,
    /// Sampling the host by its CPU's counters.
    HardwareCounters,
    /// The host kernel's function tracer.
    Ftrace,
}

impl Ability {
    /// All, in the order in which they are named.
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

    /// Whether the main job (`kerntune tune`) needs it.
    pub fn is_required(self) -> bool {
        matches!(self, Ability::Emulator | Ability::GccPgo)
    }

    /// Its name in the summary.
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

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Heading.
    pub group: Group,
    /// What was looked for.
    pub name: &'static str,
    /// How it was found.
    pub status: Status,
    /// Version, path, or what happened.
    pub found: String,
    /// What it serves, in words.
    pub needed_for: &'static str,
    /// The abilities that are gone without it; empty for a mere convenience.
    pub abilities: Vec<Ability>,
    /// The command, or the sentence, that fixes it.
    pub fix: Option<String>,
}

impl Check {
    /// A check whose answer is still to come.
    pub(crate) fn of(
        group: Group,
        name: &'static str,
        needed_for: &'static str,
        abilities: &[Ability],
    ) -> Self {
        let found = String::new();
        Self {
            group,
            name,
            status: Status::Missing,
            found,
            needed_for,
            abilities: abilities.to_vec(),
            fix: None,
        }
    }

    /// It is there and works.
    pub(crate) fn ok(mut self, found: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (Status::Ok, found.into(), None);
        self
    }

    /// It is there, but less than wanted.
    pub(crate) fn limited(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (Status::Limited, found.into(), Some(fix.into()));
        self
    }

    /// It is not there, or does not work.
    pub(crate) fn missing(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        (self.status, self.found, self.fix) = (Status::Missing, found.into(), Some(fix.into()));
        self
    }
}
