//! Finds the recorder, and describes the kernel to it.

use crate::code::CodeSections;
use crate::request::{CaptureRequest, MachineDemands};
use crate::{data_types, function_kinds, io_types, loads, probes, Error, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::{Kernel, Symbols};
use kerntune_trace::{CaptureSpec, FunctionKind, FunctionSpec, RecorderSpec, TaskOffsets, VERSION};
use kerntune_work::IoContext;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const FILE: &str = "libkerntune_recorder.so";

/// Returns the recorder's path: `KERNTUNE_RECORDER`, or beside the running program, or where it is
/// installed (`../lib/kerntune`).
pub fn find_recorder() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KERNTUNE_RECORDER").map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(Error::NoRecorder { looked: path.display().to_string() })
        };
    }
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("."));
    // Test programs and examples are one directory below the programs.
    let places = [beside.join(FILE), beside.join("../lib/kerntune").join(FILE), beside.join("..").join(FILE)];
    let found = places.iter().find(|path| path.is_file());
    found.cloned().ok_or_else(|| Error::NoRecorder { looked: beside.display().to_string() })
}

/// Section of the recorder that contains the hash of its code (`crates/recorder/src/lib.rs`).
const CODE_SECTION: &str = ".kerntune.code";

/// Returns the hash of the recorder's code, which does not depend on how it was compiled.
///
/// # Errors
/// [`Error::NotARecorder`] for a file without that section.
pub(crate) fn recorder_code(path: &Path) -> Result<String> {
    let bytes = MappedFile::open(path).at("read", path)?;
    let section = Elf::parse(&bytes).and_then(|elf| elf.section(CODE_SECTION)).ok().flatten();
    let code = section.and_then(|data| String::from_utf8(data.into_owned()).ok());
    code.filter(|code| !code.is_empty()).ok_or_else(|| Error::NotARecorder { path: path.to_owned() })
}

/// Returns the recorder's description of a kernel on a machine.
///
/// # Errors
/// [`Error::MitigatedSelection`] for a capture that mitigations rule out; kernel files that cannot
/// be read.
pub fn recorder_spec(
    kernel: &Kernel,
    capture: &CaptureRequest,
    demands: &MachineDemands,
    output: &Path,
) -> Result<RecorderSpec> {
    let cpus = demands.cpus;
    let symbols = Symbols::load(&kernel.vmlinux())?;
    let loads = loads::load_spec(kernel, &symbols, &capture.selection)?;
    let selects = capture.skip.contains(&true) || loads.as_ref().is_some_and(|of| of.selection.is_some());
    let all_and_no_others = !selects && capture.binaries.is_empty();
    if demands.mitigations.is_some() && capture.functions && !all_and_no_others {
        return Err(Error::MitigatedSelection);
    }
    let kinds = function_kinds::kinds(symbols.functions());
    let stack_pointer = capture.functions && all_and_no_others && kinds.contains(&FunctionKind::Thunk);
    let task = &kernel.manifest.task;
    // Offsets in a structure are a few kilobytes.
    let offset = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let left_out = |at: usize| capture.skip.get(at).copied().unwrap_or(false);
    let conditional = match selects {
        true => CodeSections::load(&kernel.vmlinux())
            .map_err(|reason| Error::Code { path: kernel.vmlinux(), reason })?
            .conditional_targets(symbols.functions()),
        false => HashSet::new(),
    };
    let io = io_types::io_spec(symbols.functions(), &capture.structures).filter(|_| capture.functions);
    let between_cpus = |name: &str| probes::probe(name).filter(|_| cpus > 1 && capture.functions);
    let functions = symbols.functions().iter().zip(kinds).enumerate();
    Ok(RecorderSpec {
        version: VERSION,
        output: output.display().to_string(),
        capture: CaptureSpec { functions: capture.functions, edges: capture.edges, weights: capture.weights },
        functions: functions
            .map(|(at, (f, kind))| FunctionSpec {
                address: f.address,
                size: f.size,
                kind,
                skip: left_out(at),
                probe: between_cpus(&f.name).or_else(|| io_types::probe(&f.name, io.as_ref())),
                conditional: conditional.contains(&f.address),
            })
            .collect(),
        binaries: capture.binaries.iter().map(|binary| binary.spec.clone()).collect(),
        points: capture.points.iter().map(|point| point.address).collect(),
        tags: capture.tags,
        task: TaskOffsets {
            pid: offset(task.pid_offset),
            tgid: offset(task.tgid_offset),
            comm: offset(task.comm_offset),
        },
        stack_pointer,
        per_cpu: match (cpus > 1 && capture.functions) || capture.data {
            true => probes::per_cpu_offsets(&kernel.vmlinux())?,
            false => None,
        },
        model: capture.model.clone(),
        data: capture.data.then(|| data_types::data_spec(kernel)).transpose()?,
        io,
        stream: capture.stream.clone(),
        loads,
    })
}
