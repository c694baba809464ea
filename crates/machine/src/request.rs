//! What a machine is asked to run, and what to capture of it.

use crate::points::Point;
use crate::user_binary::UserBinary;
use crate::watch::Limits;
use kerntune_guest::{Collect, Workload};
use kerntune_kernel::Kernel;
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
    /// For each of the kernel's functions whether it is left out ([`crate::Selection`]); all are
    /// traced if this is empty.
    pub skip: Vec<bool>,
    /// Inline points.
    pub points: Vec<Point>,
    /// Binaries whose user functions are traced.
    pub binaries: Vec<UserBinary>,
    /// Where event tags of McRae's profiler are said.
    pub tags: Option<TagWindow>,
}

/// One run of a guest.
#[derive(Debug, Clone)]
pub struct RunRequest<'a> {
    /// What boots.
    pub kernel: &'a Kernel,
    /// What it boots into.
    pub initramfs: &'a Path,
    /// The run's name in the workload: `training` or `measured`.
    pub run: &'a str,
    /// What init collects besides.
    pub collect: Collect,
    /// What the recorder captures; `None` runs without the recorder.
    pub capture: Option<CaptureRequest>,
    /// The guest's memory in MiB.
    pub memory_mb: u32,
    /// Network cards of the guest, all on one wire.
    pub network_cards: u32,
    /// Wall seconds within which init must say its first word.
    pub boot_limit_seconds: u64,
    /// Wall seconds for the whole run.
    pub time_limit_seconds: u64,
    /// More for the kernel's command line.
    pub append: &'a str,
}

impl<'a> RunRequest<'a> {
    /// A run with 1 GiB, ten minutes, and no recorder.
    pub fn new(kernel: &'a Kernel, initramfs: &'a Path, run: &'a str) -> Self {
        Self {
            kernel,
            initramfs,
            run,
            collect: Collect::default(),
            capture: None,
            memory_mb: 1024,
            network_cards: 0,
            boot_limit_seconds: BOOT_SECONDS,
            time_limit_seconds: 600,
            append: "",
        }
    }

    /// A run of a workload, with all that it asks of a machine, and no recorder.
    pub fn of_workload(
        kernel: &'a Kernel,
        initramfs: &'a Path,
        workload: &'a Workload,
        run: &'a str,
    ) -> Self {
        Self {
            memory_mb: workload.memory_mb,
            network_cards: workload.network_cards,
            time_limit_seconds: workload.time_limit_seconds,
            append: &workload.append,
            ..Self::new(kernel, initramfs, run)
        }
    }

    /// Adds to a result's key what decides how the run comes out, beside the guest image (whose id is known to who packed it),
    /// what is captured, and the machine.
    ///
    /// # Errors
    /// The kernel's directory is not what it was when the kernel was made.
    pub fn named(&self, key: Key) -> Result<Key, kerntune_kernel::Error> {
        // Every field is named here, so that a new one is not forgotten. Limits decide only whether there is a result.
        let Self {
            kernel,
            initramfs: _,
            run,
            collect,
            capture: _,
            memory_mb,
            network_cards,
            boot_limit_seconds: _,
            time_limit_seconds: _,
            append,
        } = self;
        let Collect { gcov, ftrace } = collect;
        Ok(key
            .field("kernel", &kernel.manifest.id)
            .field("images", kernel.content()?)
            .field("run", run)
            .field("collect", format!("{gcov} {ftrace}"))
            .field("memory", memory_mb.to_string())
            .field("network cards", network_cards.to_string())
            .field("append", append))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            what: format!("{} on {}", self.run, self.kernel.manifest.label),
            boot_seconds: self.boot_limit_seconds,
            seconds: self.time_limit_seconds,
        }
    }
}
