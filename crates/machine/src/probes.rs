//! The kernel's functions whose arguments say what several CPUs do to each other.

use crate::{Error, Result};
use kerntune_trace::Probe;
use kerntune_work::IoContext;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// What the arguments of a function say, by its name in kernels from 6.1 on.
pub fn probe(name: &str) -> Option<Probe> {
    // `foo.isra.0` has its arguments in other registers.
    Some(match name {
        "try_to_wake_up" | "wake_up_new_task" => Probe::Wake,
        "set_task_cpu" => Probe::Place,
        "native_smp_send_reschedule" | "native_send_call_func_single_ipi" => Probe::Signal,
        "native_send_call_func_ipi" => Probe::SignalAll,
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
        | "__rt_mutex_slowlock_locked" => Probe::Lock,
        _ => return None,
    })
}

/// Where a kernel keeps the offsets of what each CPU has one of.
pub fn per_cpu_offsets(vmlinux: &Path) -> Result<Option<u64>> {
    let bytes = std::fs::read(vmlinux).at("read", vmlinux)?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| Error::Code { path: vmlinux.to_owned(), reason: error.to_string() })?;
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok("__per_cpu_offset"));
    Ok(symbol.map(|symbol| symbol.address()))
}
