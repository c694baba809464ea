//! Kernel functions whose arguments show interactions between CPUs.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_trace::ProbeKind;
use kerntune_work::IoContext;
use std::path::Path;

/// Returns the meaning of a function's arguments, by its name in kernels since 6.1.
pub fn probe(name: &str) -> Option<ProbeKind> {
    // `foo.isra.0` has its arguments in other registers.
    Some(match name {
        "try_to_wake_up" | "wake_up_new_task" => ProbeKind::Wake,
        "set_task_cpu" => ProbeKind::Place,
        "native_smp_send_reschedule" | "native_send_call_func_single_ipi" => ProbeKind::Signal,
        "native_send_call_func_ipi" => ProbeKind::SignalAll,
        "native_queued_spin_lock_slowpath"
        | "queued_spin_lock_slowpath"
        | "queued_read_lock_slowpath"
        | "queued_write_lock_slowpath"
        | "__mutex_lock_slowpath"
        | "__mutex_lock_killable_slowpath"
        | "__mutex_lock_interruptible_slowpath"
        | "rwsem_down_read_slowpath"
        | "rwsem_down_write_slowpath"
        | "__percpu_down_read"
        | "__rt_mutex_slowlock_locked" => ProbeKind::Lock,
        _ => return None,
    })
}

/// Returns the address of the array of per-CPU offsets.
pub fn per_cpu_offsets(vmlinux: &Path) -> Result<Option<u64>> {
    let bytes = MappedFile::open(vmlinux).at("read", vmlinux)?;
    let elf = Elf::parse(&bytes)
        .map_err(|error| Error::Code { path: vmlinux.to_owned(), reason: error.to_string() })?;
    Ok(elf.address_of("__per_cpu_offset"))
}
