//! What QEMU calls when translated code runs.

use super::{data, halt, is_store, with, Live, Pieces, Plugin};
use crate::board::Board;
use crate::plan::Callback;
use crate::recorder::Recorder;
use crate::Failure;
use kerntune_trace::mark::Mark;
use std::ffi::{c_uint, c_void};

/// What a callback is called with.
struct Now<'a> {
    board: &'a mut Board,
    counts: &'a mut Pieces,
    recorder: &'a mut Recorder,
    cpu: Live<'a>,
    /// The hook's.
    number: u32,
    /// Instructions from there to the end of the block.
    rest: u64,
}

/// Hands what QEMU says to the one that knows.
#[inline]
fn enter(argument: *mut c_void, work: impl FnOnce(Now) -> Result<(), Failure>) {
    with(|plugin| {
        let (board, counts, recorder, cpu) = plugin.parts();
        let (number, rest) = (argument as u64 as u32, argument as u64 >> 32);
        work(Now { board, counts, recorder, cpu, number, rest })
    });
}

macro_rules! callbacks {
    ($($variant:ident $name:ident => $work:expr,)*) => {
        /// The function for a callback.
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

/// The only instruction of a block reads or writes memory.
pub extern "C" fn on_access(_: c_uint, _info: u32, _address: u64, block: *mut c_void) {
    enter(block, |now| {
        now.recorder.on_access(now.board, now.counts, now.number);
        Ok(())
    });
}

/// The instruction that was written down last has read or written memory.
pub extern "C" fn on_touch(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    with(|plugin| {
        let store = is_store(&plugin.api, info);
        plugin.recorder.on_touch(store, address)
    });
}

/// The instruction at `code` has read or written memory.
pub extern "C" fn on_data(_: c_uint, info: u32, address: u64, code: *mut c_void) {
    with(|plugin| {
        let Plugin { api, recorder, registers, bytes, .. } = plugin;
        let mut cpu = Live { api, registers, bytes: *bytes };
        let (access, physical) = data(api, info, address, code);
        recorder.on_data(access, physical, &mut cpu)
    });
}
