//! Callbacks that QEMU calls when translated code runs.

use super::{data, halt, is_store, with, QemuCpu, RecorderPlugin};
use crate::plan::Callback;
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

/// Handles a memory access of the instruction at `code`.
pub extern "C" fn on_data(_: c_uint, info: u32, address: u64, code: *mut c_void) {
    with(|plugin| {
        let RecorderPlugin { api, runner, registers, bytes, .. } = plugin;
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        let (access, physical) = data(api, info, address, code);
        runner.recorder.on_data(access, physical, &mut cpu)
    });
}
