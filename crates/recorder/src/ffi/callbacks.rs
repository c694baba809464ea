//! Callbacks that QEMU calls when translated code runs.

use super::{data, halt, is_store, with, QemuCpu, ScoreboardCounters, SingleCpuPlugin};
use crate::inline_counters::InlineCounters;
use crate::plan::Callback;
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_trace::mark::Mark;
use std::ffi::{c_uint, c_void};

/// Arguments of a callback.
struct CallbackContext<'a> {
    board: &'a mut InlineCounters,
    counts: &'a mut ScoreboardCounters,
    recorder: &'a mut Recorder,
    cpu: QemuCpu<'a>,
    /// Number of the hook.
    number: u32,
    /// Number of instructions from there to the end of the block.
    rest: u64,
}

/// Unpacks a callback's argument and calls `work`.
#[inline]
fn enter(argument: *mut c_void, work: impl FnOnce(CallbackContext) -> Result<(), Failure>) {
    with(|plugin| {
        let (board, counts, recorder, cpu) = plugin.parts();
        let (number, rest) = (argument as u64 as u32, argument as u64 >> 32);
        work(CallbackContext { board, counts, recorder, cpu, number, rest })
    });
}

macro_rules! callbacks {
    ($($variant:ident $name:ident => $work:expr,)*) => {
        /// Returns the C function for a callback.
        pub fn of(callback: Callback) -> super::api::VcpuCallback {
            match callback {
                $(Callback::$variant => $name,)*
            }
        }

        $(extern "C" fn $name(_: c_uint, argument: *mut c_void) {
            enter(argument, $work);
        })*
    };
}

callbacks! {
    Rewrite on_rewrite => |mut now| {
        now.recorder.on_rewrite(now.board, now.counts, now.number, &mut now.cpu);
        Ok(())
    },
    Clock on_clock => |mut now| {
        now.recorder.on_clock(now.board, now.number, &mut now.cpu);
        Ok(())
    },
    Interrupt on_interrupt => |mut now| {
        now.recorder.on_interrupt(now.board, now.counts, now.number, false, &mut now.cpu);
        Ok(())
    },
    Exception on_exception => |mut now| {
        now.recorder.on_interrupt(now.board, now.counts, now.number, true, &mut now.cpu);
        Ok(())
    },
    Announce on_announce => |now| {
        now.recorder.on_announce(now.board, now.number);
        Ok(())
    },
    Jump on_jump => |now| {
        now.recorder.on_jump(now.board, now.number);
        Ok(())
    },
    Entry on_entry => |now| now.recorder.on_entry(now.board, now.number, now.rest),
    Left on_left => |now| now.recorder.on_left(now.board, now.number != 0, now.rest),
    Indirect on_indirect => |mut now| {
        now.recorder.on_indirect(now.board, now.number, now.rest, &mut now.cpu)
    },
    EntryAt on_entry_at => |mut now| now.recorder.on_entry_at(now.board, now.number, now.rest, &mut now.cpu),
    Switch on_switch => |mut now| now.recorder.on_switch(now.board, now.number, now.rest, &mut now.cpu),
    Probe on_probe => |mut now| now.recorder.on_probe(now.board, now.number, now.rest, &mut now.cpu),
    System on_system => |mut now| {
        now.recorder.on_system(now.board, &mut now.cpu);
        Ok(())
    },
    Load on_load => |mut now| {
        now.recorder.on_load(now.number, &mut now.cpu);
        Ok(())
    },
    Exec on_exec => |now| {
        now.recorder.on_exec();
        Ok(())
    },
    Return on_return => |now| now.recorder.on_return(now.board, now.number, now.rest),
    ReturnAt on_return_at => |mut now| now.recorder.on_return_at(now.board, now.rest, &mut now.cpu),
    InterruptReturn on_interrupt_return => |mut now| {
        now.recorder.on_interrupt_return(now.board, now.rest, &mut now.cpu)
    },
    SystemReturn on_system_return => |mut now| {
        now.recorder.on_system_return(now.board, now.rest, &mut now.cpu)
    },
    Halt on_halt => |now| {
        halt::account();
        now.recorder.on_halt(now.board, now.rest);
        Ok(())
    },
    Mark on_mark => |mut now| {
        let mark = [Mark::Begin, Mark::End, Mark::Operation, Mark::Note][now.number as usize & 3];
        now.recorder.on_mark(&[*now.board], &mut [now.counts], mark, now.rest, &mut now.cpu)
    },
    Point on_point => |now| now.recorder.on_point(now.board, now.number, now.rest),
    Tag on_tag => |now| now.recorder.on_tag(now.board, now.number as u16, now.rest),
    PortTag on_port_tag => |mut now| {
        now.recorder.on_port_tag(now.board, now.number != 0, now.rest, &mut now.cpu)
    },
    Insn on_insn => |now| now.recorder.on_insn(now.number),
}

/// Handles a memory access of a block's only instruction.
pub extern "C" fn on_access(_: c_uint, _info: u32, _address: u64, block: *mut c_void) {
    enter(block, |now| {
        now.recorder.on_access(now.board, now.counts, now.number);
        Ok(())
    });
}

/// Handles a memory access of the last instruction in the stream.
pub extern "C" fn on_touch(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    with(|plugin| {
        let store = is_store(&plugin.api, info);
        plugin.recorder.on_touch(store, address)
    });
}

/// Handles a memory access of the instruction at `code`.
pub extern "C" fn on_data(_: c_uint, info: u32, address: u64, code: *mut c_void) {
    with(|plugin| {
        let SingleCpuPlugin { api, recorder, registers, bytes, .. } = plugin;
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        let (access, physical) = data(api, info, address, code);
        recorder.on_data(access, physical, &mut cpu)
    });
}
