//! Requests to machines: the run, and what to capture.

use crate::points::InlinePoint;
use crate::selection::FunctionSelection;
use crate::user_binary::UserBinary;
use crate::watch::RunLimits;
use crate::Error;
use kerntune_guest::{CollectOptions, Disk, Workload};
use kerntune_kernel::{Kernel, StructureOffsets};
use kerntune_trace::stream::StreamSpec;
use kerntune_trace::TagSource;
use kerntune_work::Key;
use std::path::Path;

/// Default time limit for init's first message, in wall-clock seconds.
pub const BOOT_SECONDS: u64 = 120;
/// The same for kernels of distributions, which execute a billion instructions until then.
const SHIPPED_BOOT_SECONDS: u64 = 360;

/// Events to capture between marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Entry and exit of every kernel function.
    pub functions: bool,
    /// Executed blocks and taken branches.
    pub edges: bool,
    /// TOML text of a front-end model, to capture its misses.
    pub model: Option<String>,
    /// Branches and misses with every event; needs functions and a model.
    pub weights: bool,
    /// Misses of data accesses; needs functions, and a model with `[data]`.
    pub data: bool,
    /// Instructions to write one by one; only on one CPU.
    pub stream: Option<StreamSpec>,
    /// For each of the kernel's functions, whether it is left out ([`crate::FunctionSelection`]);
    /// empty means that all are traced.
    pub skip: Vec<bool>,
    /// Patterns from which it was made, for functions of code that the kernel loads.
    pub selection: FunctionSelection,
    /// Inline points to count.
    pub points: Vec<InlinePoint>,
    /// Binaries whose user functions are traced.
    pub binaries: Vec<UserBinary>,
    /// Memory window or port to which programs write McRae's event tags.
    pub tags: Option<TagSource>,
    /// Offsets of structures for block requests and network packets; those are captured if they are
    /// known.
    pub structures: StructureOffsets,
}

impl CaptureRequest {
    /// Adds every field to a key.
    pub(crate) fn add_to_key(&self, key: Key) -> kerntune_work::Result<Key> {
        // Lists every field, so that a new one is not forgotten.
        let Self {
            functions,
            edges,
            model,
            weights,
            data,
            stream,
            skip,
            selection,
            points,
            binaries,
            tags,
            structures,
        } = self;
        let mut key = key
            .field("functions", functions.to_string())
            .field("edges", edges.to_string())
            .value("model", model)?
            .field("weights", weights.to_string())
            .field("data", data.to_string())
            .value("stream", stream)?
            .value("skip", skip)?
            .value("tags", tags)?
            .value("structures", structures)?;
        if !selection.is_everything() {
            key = key.value("selection", &(&selection.only, &selection.skip))?;
        }
        for InlinePoint { name, address, function } in points {
            key = key.value("point", &(name, address, function))?;
        }
        for UserBinary { spec, names, dynamic_only } in binaries {
            key = key.value("binary", &(spec, names, dynamic_only))?;
        }
        Ok(key)
    }
}

/// Demands of a run on the machine, besides kernel and workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineDemands<'a> {
    /// Memory of the guest in MiB.
    pub memory_mb: u32,
    /// CPUs of the guest, at least one.
    pub cpus: u32,
    /// NUMA nodes of the guest, at least one ([`Workload::nodes`]).
    pub nodes: u32,
    /// Vulnerable CPU that they pretend to be ([`Workload::mitigations`]).
    pub mitigations: Option<&'a str>,
    /// True if they copy memory fast with one instruction.
    pub fast_strings: bool,
    /// Network cards of the guest, all on one wire.
    pub network_cards: u32,
    /// Additions to the kernel's command line.
    pub append: &'a str,
    /// Disk of the guest.
    pub disk: Option<&'a Disk>,
    /// Kernel modules that the workload names; the image has them.
    pub modules: &'a [String],
    /// Options that the kernel must have ([`Workload::kernel_config`]).
    pub kernel_config: &'a [String],
    /// Time limit for init's first message, in wall-clock seconds.
    pub boot_limit_seconds: u64,
    /// Time limit of the whole run, in wall-clock seconds.
    pub time_limit_seconds: u64,
}

impl Default for MachineDemands<'_> {
    fn default() -> Self {
        Self {
            memory_mb: 1024,
            cpus: 1,
            nodes: 1,
            mitigations: None,
            fast_strings: false,
            network_cards: 0,
            append: "",
            disk: None,
            modules: &[],
            kernel_config: &[],
            boot_limit_seconds: BOOT_SECONDS,
            time_limit_seconds: 600,
        }
    }
}

impl<'a> MachineDemands<'a> {
    /// Returns the demands of a workload.
    pub fn of(workload: &'a Workload) -> Self {
        Self {
            memory_mb: workload.memory_mb,
            cpus: workload.cpus,
            nodes: workload.nodes,
            mitigations: workload.mitigations.as_deref(),
            fast_strings: workload.fast_strings,
            network_cards: workload.network_cards,
            append: &workload.append,
            disk: workload.disk.as_ref(),
            modules: &workload.modules,
            kernel_config: &workload.kernel_config,
            time_limit_seconds: workload.time_limit_seconds,
            ..Self::default()
        }
    }

    /// Adds everything that decides the run's results to a key.
    fn add_to_key(&self, key: Key) -> Key {
        // Lists every field, so that a new one is not forgotten. Limits and options of the kernel
        // decide only whether there is a result, and modules are in the image.
        let Self {
            memory_mb,
            cpus,
            nodes,
            mitigations,
            fast_strings,
            network_cards,
            append,
            disk,
            modules: _,
            kernel_config: _,
            boot_limit_seconds: _,
            time_limit_seconds: _,
        } = self;
        let key = key
            .field("memory", memory_mb.to_string())
            .field("cpus", cpus.to_string())
            .field("network cards", network_cards.to_string())
            .field("append", append);
        // Optional fields are named only where used, so that the keys of other runs stay the same.
        let key = match disk {
            Some(disk) => key.field("disk", disk.content_hash()),
            None => key,
        };
        let key = match nodes {
            1 => key,
            _ => key.field("nodes", nodes.to_string()),
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

    /// Checks whether the CPU differs from the default.
    pub(crate) fn other_cpu(&self) -> bool {
        self.mitigations.is_some() || self.fast_strings
    }
}

/// A run of a guest.
#[derive(Debug, Clone)]
pub struct RunRequest<'a> {
    /// Kernel to boot; `None` means the running kernel ([`crate::Host`]).
    pub kernel: Option<&'a Kernel>,
    /// Image to boot into.
    pub initramfs: &'a Path,
    /// Run of the workload: `training` or `measured`.
    pub run: &'a str,
    /// Data that init collects.
    pub collect: CollectOptions,
    /// Events that the recorder captures; `None` runs without the recorder.
    pub capture: Option<CaptureRequest>,
    /// Demands on the machine.
    pub demands: MachineDemands<'a>,
    /// Virtual time of an earlier run of the same, in ns, for an estimate of the time left.
    pub expected_ns: Option<u64>,
}

impl<'a> RunRequest<'a> {
    /// Creates a run with 1 GiB, ten minutes, and no recorder.
    pub fn new(kernel: &'a Kernel, initramfs: &'a Path, run: &'a str) -> Self {
        let (collect, demands) = (CollectOptions::default(), MachineDemands::default());
        Self { kernel: Some(kernel), initramfs, run, collect, capture: None, demands, expected_ns: None }
    }

    /// Creates a run of a workload under the running kernel.
    pub fn on_host(initramfs: &'a Path, workload: &'a Workload, run: &'a str) -> Self {
        let (collect, demands) = (CollectOptions::default(), MachineDemands::of(workload));
        Self { kernel: None, initramfs, run, collect, capture: None, demands, expected_ns: None }
    }

    /// Returns the kernel to boot.
    ///
    /// # Errors
    /// [`Error::NothingBoots`] if there is none.
    pub fn kernel(&self) -> Result<&'a Kernel, Error> {
        self.kernel.ok_or(Error::NothingBoots)
    }

    /// Creates a run of a workload with its demands, and no recorder.
    pub fn of_workload(
        kernel: &'a Kernel,
        initramfs: &'a Path,
        workload: &'a Workload,
        run: &'a str,
    ) -> Self {
        let mut demands = MachineDemands::of(workload);
        if kernel.manifest.source.is_shipped() {
            demands.boot_limit_seconds = SHIPPED_BOOT_SECONDS;
        }
        Self { demands, ..Self::new(kernel, initramfs, run) }
    }

    /// Adds everything that decides the run's results to a key, except the guest image (the caller
    /// knows its id), the capture and the machine.
    ///
    /// # Errors
    /// [`Error::NothingBoots`]; images that cannot be read.
    pub fn add_to_key(&self, key: Key) -> Result<Key, Error> {
        // Lists every field, so that a new one is not forgotten.
        let Self { kernel: _, initramfs: _, run, collect, capture: _, demands, expected_ns: _ } = self;
        let kernel = self.kernel()?;
        let CollectOptions { gcov, ftrace, proc } = collect;
        let key = key
            .field("kernel", &kernel.manifest.id)
            .field("images", kernel.content()?)
            .field("run", run)
            .field("collect", format!("{gcov} {ftrace}"));
        let key = match proc {
            true => key.field("proc", ""),
            false => key,
        };
        Ok(demands.add_to_key(key))
    }

    pub(crate) fn limits(&self) -> RunLimits {
        RunLimits {
            what: match self.kernel {
                Some(kernel) => format!("{} on {}", self.run, kernel.manifest.label),
                None => format!("{} on the host", self.run),
            },
            boot_seconds: self.demands.boot_limit_seconds,
            seconds: self.demands.time_limit_seconds,
            expected_ns: self.expected_ns,
        }
    }
}
