//! Callbacks that QEMU calls when translated code runs.

use super::api::MemoryCallback;
use super::{halt, is_store, physical, with, QemuCpu, RecorderPlugin};
use crate::data::DataAccess;
use crate::plan::Callback;
use kerntune_isa::{GuestIsa, Isa};
use std::ffi::{c_uint, c_void};

macro_rules! callbacks {
    ($($variant:ident $name:ident,)*) => {
        /// Returns the C function for a callback.
        pub fn of(callback: Callback) -> super::api::VcpuCallback {
            match callback {
                $(Callback::$variant => $name,)*
            }
        }

        $(extern "C" fn $name(_: c_uint, argument: *mut c_void) {
            if Callback::$variant == Callback::Halt {
                halt::account();
            }
            // A closure for each, so that nothing is left of the others in it.
            with(|plugin| {
                let (runner, mut cpu) = plugin.parts();
                let (number, rest) = (argument as u64 as u32, argument as u64 >> 32);
                runner.call_back(Callback::$variant, number, rest, &mut cpu)
            });
        })*
    };
}

callbacks! {
    Rewrite on_rewrite,
    Clock on_clock,
    Interrupt on_interrupt,
    Exception on_exception,
    Announce on_announce,
    Jump on_jump,
    Entry on_entry,
    PlainEntry on_plain_entry,
    EntryAt on_entry_at,
    Left on_left,
    Indirect on_indirect,
    Switch on_switch,
    Probe on_probe,
    System on_system,
    Exec on_exec,
    Return on_return,
    ReturnAt on_return_at,
    InterruptReturn on_interrupt_return,
    SystemReturn on_system_return,
    Halt on_halt,
    Mark on_mark,
    Point on_point,
    Tag on_tag,
    PortTag on_port_tag,
    Load on_load,
    Forget on_forget,
    Insn on_insn,
}

/// Handles a memory access of a block's only instruction.
pub extern "C" fn on_access(_: c_uint, _info: u32, _address: u64, block: *mut c_void) {
    with(|plugin| {
        plugin.runner.access(block as u64 as u32);
        Ok(())
    });
}

/// Handles a memory access of the last instruction in the stream.
pub extern "C" fn on_touch(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    with(|plugin| {
        let store = is_store(&plugin.api, info);
        plugin.runner.recorder.on_touch(store, address)
    });
}

/// Returns the callback for reads or writes by the instruction at an address.
pub fn of_data(store: bool, code: u64) -> MemoryCallback {
    match (store, GuestIsa::is_kernel(code)) {
        (false, true) => on_data::<false, false>,
        (false, false) => on_data::<false, true>,
        (true, true) => on_data::<true, false>,
        (true, false) => on_data::<true, true>,
    }
}

/// Handles a read or write by the instruction at `code`, of the kernel or of user code.
extern "C" fn on_data<const STORE: bool, const USER: bool>(
    cpu: c_uint,
    info: u32,
    address: u64,
    code: *mut c_void,
) {
    let mut is_counted = false;
    with(|plugin| {
        if let Some(data) = &mut plugin.runner.recorder.data {
            is_counted = data.repeat(address, plugin.sizes[usize::from(STORE)].of(info), STORE, USER);
        }
        Ok(())
    });
    if !is_counted {
        on_other_data::<STORE>(cpu, info, address, code);
    }
}

/// Handles an access that needs more than to be counted.
#[inline(never)]
extern "C" fn on_other_data<const STORE: bool>(_: c_uint, info: u32, address: u64, code: *mut c_void) {
    with(|plugin| {
        let RecorderPlugin { api, runner, registers, bytes, sizes, .. } = plugin;
        let access = DataAccess {
            code: code as u64,
            address,
            bytes: sizes[usize::from(STORE)].learn(api, info),
            store: STORE,
        };
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        runner.recorder.on_other_data(access, || physical(api, info, address), &mut cpu);
        Ok(())
    });
}
