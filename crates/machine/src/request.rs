//! What a machine is asked to run, and what to capture of it.

use crate::points::Point;
use crate::user_binary::UserBinary;
use crate::watch::Limits;
use crate::Error;
use kerntune_guest::{Collect, Disk, Workload};
use kerntune_kernel::{Kernel, Structures};
use kerntune_trace::stream::StreamSpec;
use kerntune_trace::TagWindow;
use kerntune_work::Key;
use std::path::Path;

/// Wall seconds within which init must say its first word.
pub const BOOT_SECONDS: u64 = 120;

/// What to capture between marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Entry and exit of every kernel function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// A front-end model's TOML text, if its misses are wanted.
    pub model: Option<String>,
    /// Branches and misses with every event; needs functions and a model.
    pub weights: bool,
    /// What accesses to data miss; needs functions, and a model with `[data]`.
    pub data: bool,
    /// Which instructions are written down one by one, if any are; of one CPU only.
    pub stream: Option<StreamSpec>,
    /// For each of the kernel's functions whether it is left out ([`crate::Selection`]); all are
    /// traced if this is empty.
    pub skip: Vec<bool>,
    /// Inline points.
    pub points: Vec<Point>,
    /// Binaries whose user functions are traced.
    pub binaries: Vec<UserBinary>,
    /// Where event tags of McRae's profiler are said.
    pub tags: Option<TagWindow>,
    /// Where the kernel keeps what is known of requests to block devices and of network packets; these are seen if this has it.
    pub structures: Structures,
}

/// What a run asks of a machine beside what boots and what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demands<'a> {
    /// The guest's memory in MiB.
    pub memory_mb: u32,
    /// The guest's CPUs, at least one.
    pub cpus: u32,
    /// The vulnerable CPU that they pass for ([`Workload::mitigations`]).
    pub mitigations: Option<&'a str>,
    /// Whether they copy memory fast with one instruction.
    pub fast_strings: bool,
    /// Network cards of the guest, all on one wire.
    pub network_cards: u32,
    /// More for the kernel's command line.
    pub append: &'a str,
    /// The guest's disk.
    pub disk: Option<&'a Disk>,
    /// Wall seconds within which init must say its first word.
    pub boot_limit_seconds: u64,
    /// Wall seconds for the whole run.
    pub time_limit_seconds: u64,
}

impl Default for Demands<'_> {
    fn default() -> Self {
        Self {
            memory_mb: 1024,
            cpus: 1,
            mitigations: None,
            fast_strings: false,
            network_cards: 0,
            append: "",
            disk: None,
            boot_limit_seconds: BOOT_SECONDS,
            time_limit_seconds: 600,
        }
    }
}

impl<'a> Demands<'a> {
    /// Those of a workload.
    pub fn of(workload: &'a Workload) -> Self {
        Self {
            memory_mb: workload.memory_mb,
            cpus: workload.cpus,
            mitigations: workload.mitigations.as_deref(),
            fast_strings: workload.fast_strings,
            network_cards: workload.network_cards,
            append: &workload.append,
            disk: workload.disk.as_ref(),
            time_limit_seconds: workload.time_limit_seconds,
            ..Self::default()
        }
    }

    /// Adds to a key what decides how a run comes out.
    fn named(&self, key: Key) -> Key {
        // Every field is named here, so that a new one is not forgotten. Limits decide only whether there is a result.
        let Self {
            memory_mb,
            cpus,
            mitigations,
            fast_strings,
            network_cards,
            append,
            disk,
            boot_limit_seconds: _,
            time_limit_seconds: _,
        } = self;
        let key = key
            .field("memory", memory_mb.to_string())
            .field("cpus", cpus.to_string())
            .field("network cards", network_cards.to_string())
            .field("append", append);
        // What only some runs have is named only there, so that the keys of the others stay.
        let key = match disk {
            Some(disk) => key.field("disk", format!("{disk:?}")),
            None => key,
        };
        let key = match mitigations {
            Some(cpu) => key.field("mitigations", cpu),
            None => key,
        };
        match fast_strings {
            true => key.field("fast strings", ""),
            false => key,
        }
    }

    /// Whether the CPU is another one than that which every machine has.
    pub(crate) fn other_cpu(&self) -> bool {
        self.mitigations.is_some() || self.fast_strings
    }
}

/// One run of a guest.
#[derive(Debug, Clone)]
pub struct RunRequest<'a> {
    /// What boots; `None` stands for the kernel that runs already ([`crate::Host`]).
    pub kernel: Option<&'a Kernel>,
    /// What it boots into.
    pub initramfs: &'a Path,
    /// The run's name in the workload: `training` or `measured`.
    pub run: &'a str,
    /// What init collects besides.
    pub collect: Collect,
    /// What the recorder captures; `None` runs without the recorder.
    pub capture: Option<CaptureRequest>,
    /// What the machine must have.
    pub demands: Demands<'a>,
}

impl<'a> RunRequest<'a> {
    /// A run with 1 GiB, ten minutes, and no recorder.
    pub fn new(kernel: &'a Kernel, initramfs: &'a Path, run: &'a str) -> Self {
        let (collect, demands) = (Collect::default(), Demands::default());
        Self { kernel: Some(kernel), initramfs, run, collect, capture: None, demands }
    }

    /// A run of a workload under the kernel that runs already.
    pub fn on_host(initramfs: &'a Path, workload: &'a Workload, run: &'a str) -> Self {
        let (collect, demands) = (Collect::default(), Demands::of(workload));
        Self { kernel: None, initramfs, run, collect, capture: None, demands }
    }

    /// What boots.
    ///
    /// # Errors
    /// [`Error::NothingBoots`] if nothing does.
    pub fn kernel(&self) -> Result<&'a Kernel, Error> {
        self.kernel.ok_or(Error::NothingBoots)
    }

    /// A run of a workload, with all that it asks of a machine, and no recorder.
    pub fn of_workload(
        kernel: &'a Kernel,
        initramfs: &'a Path,
        workload: &'a Workload,
        run: &'a str,
    ) -> Self {
        Self { demands: Demands::of(workload), ..Self::new(kernel, initramfs, run) }
    }

    /// Adds to a result's key what decides how the run comes out, beside the guest image (whose id is known to who packed it),
    /// what is captured, and the machine.
    ///
    /// # Errors
    /// [`Error::NothingBoots`]; images that cannot be read.
    pub fn named(&self, key: Key) -> Result<Key, Error> {
        // Every field is named here, so that a new one is not forgotten.
        let Self { kernel: _, initramfs: _, run, collect, capture: _, demands } = self;
        let kernel = self.kernel()?;
        let Collect { gcov, ftrace, proc } = collect;
        let key = key
            .field("kernel", &kernel.manifest.id)
            .field("images", kernel.content()?)
            .field("run", run)
            .field("collect", format!("{gcov} {ftrace}"));
        let key = match proc {
            true => key.field("proc", ""),
            false => key,
        };
        Ok(demands.named(key))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            what: match self.kernel {
                Some(kernel) => format!("{} on {}", self.run, kernel.manifest.label),
                None => format!("{} on the host", self.run),
            },
            boot_seconds: self.demands.boot_limit_seconds,
            seconds: self.demands.time_limit_seconds,
        }
    }
}
