//! The border to QEMU: the only file with `unsafe`.
//!
//! QEMU runs all virtual CPUs of an `-icount` machine on one thread, and translation on the same,
//! so that the one [`Plugin`] is never used by two callers at a time. The plugin API's functions
//! are looked up when the plugin is installed: what this QEMU does not have is said by name.
//! Nothing here panics; if something did, `extern "C"` ends QEMU rather than unwind into it.

use crate::blocks::{BlockInfo, Flow};
use crate::recorder::{Board, Cpu, Recorder, Register};
use crate::translate::{self, Ending, Insn};
use crate::Failure;
use kerntune_trace::mark::Mark;
use kerntune_trace::{FunctionKind, RecorderSpec, RECORDER_FAILED};
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::mem::{offset_of, transmute_copy};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The plugin API that we need: registers, memory, scoreboards, conditional callbacks.
const API_VERSION: c_int = 4;
/// Blocks that have a counter of their own.
const MAX_BLOCKS: usize = 1 << 22;

/// Asked for by QEMU before it installs us.
#[no_mangle]
pub static qemu_plugin_version: c_int = API_VERSION;

type VcpuCallback = extern "C" fn(c_uint, *mut c_void);

/// `qemu_plugin_u64`: a field of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
struct Field {
    score: *mut c_void,
    offset: usize,
}

#[repr(C)]
struct GByteArray {
    data: *mut u8,
    len: c_uint,
}

#[repr(C)]
struct GArray {
    data: *mut RegisterDescriptor,
    len: c_uint,
}

#[repr(C)]
struct RegisterDescriptor {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

/// `qemu_info_t`.
#[repr(C)]
pub struct Info {
    target_name: *const c_char,
    version_min: c_int,
    version_cur: c_int,
    system_emulation: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

/// `enum qemu_plugin_cb_flags`, `qemu_plugin_op`, `qemu_plugin_cond`.
const NO_REGS: c_int = 0;
const R_REGS: c_int = 1;
const ADD: c_int = 0;
const STORE: c_int = 1;
const NOT_EQUAL: c_int = 3;

macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the plugin API (and of GLib) that we call.
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Finds every function in the running QEMU.
            fn load() -> Result<Self, Failure> {
                Ok(Self {
                    $($name: {
                        let symbol = find(stringify!($name))?;
                        // SAFETY: the symbol of this name has this signature in qemu-plugin.h
                        // (API 4) or glib/garray.h; both sides are plain function pointers.
                        unsafe { transmute_copy(&symbol) }
                    },)*
                })
            }
        }
    };
}

api! {
    qemu_plugin_register_vcpu_init_cb: fn(u64, extern "C" fn(u64, c_uint));
    qemu_plugin_register_vcpu_tb_trans_cb: fn(u64, extern "C" fn(u64, *mut c_void));
    qemu_plugin_register_atexit_cb: fn(u64, extern "C" fn(u64, *mut c_void), *mut c_void);
    qemu_plugin_register_vcpu_tb_exec_cb: fn(*mut c_void, VcpuCallback, c_int, *mut c_void);
    qemu_plugin_register_vcpu_tb_exec_cond_cb:
        fn(*mut c_void, VcpuCallback, c_int, c_int, Field, u64, *mut c_void);
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu: fn(*mut c_void, c_int, Field, u64);
    qemu_plugin_register_vcpu_insn_exec_cb: fn(*mut c_void, VcpuCallback, c_int, *mut c_void);
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu: fn(*mut c_void, c_int, Field, u64);
    qemu_plugin_tb_n_insns: fn(*const c_void) -> usize;
    qemu_plugin_tb_get_insn: fn(*const c_void, usize) -> *mut c_void;
    qemu_plugin_insn_data: fn(*const c_void, *mut c_void, usize) -> usize;
    qemu_plugin_insn_size: fn(*const c_void) -> usize;
    qemu_plugin_insn_vaddr: fn(*const c_void) -> u64;
    qemu_plugin_insn_haddr: fn(*const c_void) -> *mut c_void;
    qemu_plugin_scoreboard_new: fn(usize) -> *mut c_void;
    qemu_plugin_scoreboard_find: fn(*mut c_void, c_uint) -> *mut c_void;
    qemu_plugin_get_registers: fn() -> *mut GArray;
    qemu_plugin_read_register: fn(*mut c_void, *mut GByteArray) -> c_int;
    qemu_plugin_read_memory_vaddr: fn(u64, *mut GByteArray, usize) -> bool;
    g_byte_array_new: fn() -> *mut GByteArray;
    g_byte_array_set_size: fn(*mut GByteArray, c_uint) -> *mut GByteArray;
}

fn find(name: &str) -> Result<*mut c_void, Failure> {
    let symbol = CString::new(name)?;
    // SAFETY: a NUL-terminated name; the default search order includes the QEMU executable.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    if address.is_null() {
        return Err(Failure(format!("this QEMU does not have {name}; QEMU 9.2 or newer is needed")));
    }
    Ok(address)
}

/// Everything between two callbacks.
struct Plugin {
    api: Api,
    recorder: Recorder,
    board_score: *mut c_void,
    count_score: *mut c_void,
    board: *mut Board,
    counts: *mut u64,
    registers: [*mut c_void; 5],
    bytes: *mut GByteArray,
    /// Addresses after an `rdtsc`.
    after_clock: HashSet<u64>,
    /// Numbers of host pages, in order of appearance: host addresses differ from run to run.
    pages: HashMap<u64, u64>,
    insns: Vec<Insn>,
}

static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(null_mut());

/// Runs `work` on the plugin; a failure ends QEMU with a message, since a recording with a hole
/// is worse than none.
#[inline]
fn with(work: impl FnOnce(&mut Plugin) -> Result<(), Failure>) {
    let plugin = PLUGIN.load(Ordering::Relaxed);
    // SAFETY: null before installation (then nothing is done), later a leaked Box that only the
    // one emulation thread uses; no callback is entered while another one runs.
    if let Some(plugin) = unsafe { plugin.as_mut() } {
        if let Err(failure) = work(plugin) {
            fail(&failure);
        }
    }
}

fn fail(failure: &Failure) -> ! {
    eprintln!("kerntune-recorder: {}", failure.0);
    // SAFETY: ends the process without running QEMU's exit handlers, which would call us again.
    unsafe { libc::_exit(RECORDER_FAILED) }
}

impl Plugin {
    /// The board, the block counters, the recorder, and the CPU, which are independent parts.
    #[inline]
    fn parts(&mut self) -> (&mut Board, &mut [u64], &mut Recorder, Live<'_>) {
        // SAFETY: set by `on_vcpu_init` before any translated code can run; QEMU keeps a
        // scoreboard's memory in place as long as no virtual CPU is added, and we allow one.
        let (board, counts) =
            unsafe { (&mut *self.board, std::slice::from_raw_parts_mut(self.counts, MAX_BLOCKS)) };
        let cpu = Live { api: &self.api, registers: &self.registers, bytes: self.bytes };
        (board, counts, &mut self.recorder, cpu)
    }

    fn field(&self, offset: usize) -> Field {
        Field { score: self.board_score, offset }
    }
}

/// The virtual CPU inside a callback that may read registers.
struct Live<'a> {
    api: &'a Api,
    registers: &'a [*mut c_void; 5],
    bytes: *mut GByteArray,
}

impl Cpu for Live<'_> {
    fn register(&mut self, register: Register) -> u64 {
        let handle = self.registers[register as usize];
        let mut value = [0; 8];
        // SAFETY: a handle that QEMU gave us, a GByteArray that we own; we read what it holds.
        unsafe {
            (self.api.g_byte_array_set_size)(self.bytes, 0);
            (self.api.qemu_plugin_read_register)(handle, self.bytes);
            let length = ((*self.bytes).len as usize).min(8);
            std::ptr::copy_nonoverlapping((*self.bytes).data, value.as_mut_ptr(), length);
        }
        u64::from_le_bytes(value)
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        // SAFETY: as above; the copy is bounded by both lengths.
        unsafe {
            (self.api.g_byte_array_set_size)(self.bytes, 0);
            if !(self.api.qemu_plugin_read_memory_vaddr)(address, self.bytes, into.len())
                || ((*self.bytes).len as usize) < into.len()
            {
                return false;
            }
            std::ptr::copy_nonoverlapping((*self.bytes).data, into.as_mut_ptr(), into.len());
        }
        true
    }
}

/// A callback's argument: a number and the count of instructions to the end of the block.
fn pack(number: u32, rest: usize) -> *mut c_void {
    (u64::from(number) | (rest as u64) << 32) as *mut c_void
}

fn unpack(argument: *mut c_void) -> (u32, u64) {
    (argument as u64 as u32, argument as u64 >> 32)
}

extern "C" fn on_jump(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, counts, recorder, _) = plugin.parts();
        recorder.on_jump(board, counts, unpack(argument).0);
        Ok(())
    });
}

extern "C" fn on_interrupt(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, counts, recorder, mut cpu) = plugin.parts();
        let (id, exception) = unpack(argument);
        recorder.on_interrupt(board, counts, id, exception != 0, &mut cpu);
        Ok(())
    });
}

extern "C" fn on_clock(_: c_uint, _: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, mut cpu) = plugin.parts();
        recorder.on_clock(board, &mut cpu);
        Ok(())
    });
}

extern "C" fn on_entry(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, _) = plugin.parts();
        let (function, rest) = unpack(argument);
        recorder.on_entry(board, function, rest)
    });
}

extern "C" fn on_switch(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, mut cpu) = plugin.parts();
        let (function, rest) = unpack(argument);
        recorder.on_entry(board, function, rest)?;
        recorder.on_switch(board, rest, &mut cpu)
    });
}

extern "C" fn on_return(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, _) = plugin.parts();
        let (function, rest) = unpack(argument);
        recorder.on_return(board, function, rest)
    });
}

extern "C" fn on_interrupt_return(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, _) = plugin.parts();
        recorder.on_interrupt_return(board, unpack(argument).1)
    });
}

extern "C" fn on_system_return(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, _) = plugin.parts();
        recorder.on_system_return(board, unpack(argument).1)
    });
}

extern "C" fn on_halt(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, _, recorder, _) = plugin.parts();
        recorder.on_halt(board, unpack(argument).1);
        Ok(())
    });
}

extern "C" fn on_mark(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (board, counts, recorder, mut cpu) = plugin.parts();
        let (code, rest) = unpack(argument);
        let mark = [Mark::Begin, Mark::End, Mark::Operation, Mark::Note][code as usize & 3];
        recorder.on_mark(board, counts, mark, rest, &mut cpu)
    });
}

extern "C" fn on_vcpu_init(_: u64, vcpu: c_uint) {
    with(|plugin| {
        const NAMES: [&str; 5] = ["rax", "rdx", "rdi", "rsi", "rsp"];
        let api = &plugin.api;
        // SAFETY: scoreboards and the register list are QEMU's, valid for its lifetime; names
        // are NUL-terminated strings.
        unsafe {
            plugin.board = (api.qemu_plugin_scoreboard_find)(plugin.board_score, vcpu).cast();
            plugin.counts = (api.qemu_plugin_scoreboard_find)(plugin.count_score, vcpu).cast();
            let list = (api.qemu_plugin_get_registers)();
            for at in 0..(*list).len as usize {
                let descriptor = &*(*list).data.add(at);
                let name = CStr::from_ptr(descriptor.name).to_bytes();
                if let Some(slot) = NAMES.iter().position(|n| n.as_bytes() == name) {
                    plugin.registers[slot] = descriptor.handle;
                }
            }
        }
        if plugin.registers.iter().any(|handle| handle.is_null()) {
            return Err(Failure("this QEMU does not show the registers rax, rdx, rdi, rsi, rsp".into()));
        }
        Ok(())
    });
}

extern "C" fn on_exit(_: u64, _: *mut c_void) {
    with(|plugin| {
        if plugin.board.is_null() {
            return Ok(());
        }
        let (_, counts, recorder, _) = plugin.parts();
        recorder.finish(counts)
    });
}

extern "C" fn on_translation(_: u64, tb: *mut c_void) {
    with(|plugin| {
        // SAFETY: `tb` and its instructions are valid during this callback; each instruction's
        // bytes are copied with their length bounded by our buffer.
        let space = unsafe {
            let api = &plugin.api;
            let count = (api.qemu_plugin_tb_n_insns)(tb);
            plugin.insns.clear();
            for at in 0..count {
                let handle = (api.qemu_plugin_tb_get_insn)(tb, at);
                let mut insn = Insn {
                    address: (api.qemu_plugin_insn_vaddr)(handle),
                    length: (api.qemu_plugin_insn_size)(handle),
                    ..Insn::default()
                };
                (api.qemu_plugin_insn_data)(handle, insn.bytes.as_mut_ptr().cast(), insn.length.min(16));
                plugin.insns.push(insn);
            }
            if count == 0 {
                return Ok(());
            }
            (api.qemu_plugin_insn_haddr)((api.qemu_plugin_tb_get_insn)(tb, 0)) as u64 >> 12
        };
        instrument(plugin, tb, space);
        Ok(())
    });
}

/// Registers what is to happen when the block in `plugin.insns` runs.
fn instrument(plugin: &mut Plugin, tb: *mut c_void, host_page: u64) {
    let insns = std::mem::take(&mut plugin.insns);
    if let (Some(first), Some(last)) = (insns.first(), insns.last()) {
        let user = !translate::is_kernel(first.address);
        let space = if user {
            let next = plugin.pages.len() as u64 + 1;
            *plugin.pages.entry(host_page).or_insert(next)
        } else {
            0
        };
        let (ending, flow) = translate::ending(last);
        let id = plugin.recorder.blocks.intern(BlockInfo {
            start: first.address,
            last: last.address,
            end: last.end(),
            offsets: insns.iter().map(|insn| (insn.address - first.address) as u16).collect(),
            flow,
            user,
            space,
        });
        let block = Watch { plugin, tb, id, user, insns: &insns };
        block.whole(first.address);
        block.instructions(ending, flow);
        if ending == Ending::ReadClock {
            plugin.after_clock.insert(last.end());
        }
    }
    plugin.insns = insns;
}

/// A block on its way to be instrumented.
struct Watch<'a> {
    plugin: &'a Plugin,
    tb: *mut c_void,
    id: u32,
    user: bool,
    insns: &'a [Insn],
}

impl Watch<'_> {
    /// What happens when the block begins, in this order: looks at the block before and at the
    /// clock, then the counts of this one.
    fn whole(&self, start: u64) {
        let (plugin, recorder) = (self.plugin, &self.plugin.recorder);
        let capture = recorder.capture;
        if plugin.after_clock.contains(&start) {
            self.on_block(on_clock, R_REGS, null_mut());
        }
        let entry = recorder.functions.starting(start).filter(|_| !self.user);
        match entry.map(|function| recorder.functions.kind(function)) {
            Some(FunctionKind::Interrupt) => self.on_block(on_interrupt, R_REGS, pack(self.id, 0)),
            Some(FunctionKind::Exception) => self.on_block(on_interrupt, R_REGS, pack(self.id, 1)),
            _ => {
                let followed = recorder.has_model() || (capture.edges && !self.user);
                if followed || recorder.blocks.may_resume_at(start) {
                    self.on_block_unless(on_jump, offset_of!(Board, next), start, pack(self.id, 0));
                }
            }
        }
        self.inline(STORE, plugin.field(offset_of!(Board, block)), self.id.into());
        let counter = if self.user { offset_of!(Board, user) } else { offset_of!(Board, kernel) };
        self.inline(ADD, plugin.field(counter), self.insns.len() as u64);
        if capture.edges && !self.user && (self.id as usize) < MAX_BLOCKS {
            let field = Field { score: plugin.count_score, offset: self.id as usize * 8 };
            self.inline(ADD, field, 1);
        }
        if capture.functions && !self.user && !recorder.functions.covers(start) {
            let argument = pack(recorder.functions.unknown(), self.insns.len());
            self.on_block_unless(on_entry, offset_of!(Board, call), 0, argument);
        }
    }

    /// What happens at single instructions.
    fn instructions(&self, ending: Ending, flow: Flow) {
        let functions = &self.plugin.recorder.functions;
        let watch_functions = self.plugin.recorder.capture.functions && !self.user;
        let count = self.insns.len();
        for (at, insn) in self.insns.iter().enumerate() {
            let rest = count - at;
            if self.user {
                if let Some(mark) = translate::mark(insn) {
                    self.on_insn(at, on_mark, R_REGS, pack(mark as u32, rest));
                }
            } else if watch_functions {
                if let Some(function) = functions.starting(insn.address) {
                    match functions.kind(function) {
                        FunctionKind::SwitchTo => self.on_insn(at, on_switch, R_REGS, pack(function, rest)),
                        _ => self.on_insn(at, on_entry, NO_REGS, pack(function, rest)),
                    }
                }
            }
        }
        let Some(last) = self.insns.last() else { return };
        let next = if flow == Flow::Opaque { 0 } else { last.end() };
        self.at_last(offset_of!(Board, next), next);
        if self.user {
            return;
        }
        if ending == Ending::Halt {
            self.on_insn(count - 1, on_halt, NO_REGS, pack(0, 1));
        }
        if !watch_functions {
            return;
        }
        let function = functions.containing(last.address);
        match ending {
            Ending::Call { target } => {
                // A call to a label inside a function (return stack stuffing, finding the own
                // address) is no call of a function.
                let to_label = |t| functions.covers(t) && functions.starting(t).is_none();
                if !target.is_some_and(to_label) {
                    self.at_last(offset_of!(Board, call), 1);
                }
            }
            Ending::Return => self.on_insn(count - 1, on_return, NO_REGS, pack(function, 1)),
            // In C code `iretq` is a way to serialise (sync_core), not the end of an interrupt.
            Ending::InterruptReturn => match functions.kind(function) {
                FunctionKind::Plain => {}
                _ => self.on_insn(count - 1, on_interrupt_return, NO_REGS, pack(0, 1)),
            },
            Ending::SystemReturn => self.on_insn(count - 1, on_system_return, NO_REGS, pack(0, 1)),
            Ending::Halt | Ending::ReadClock | Ending::Other => {}
        }
    }

    fn on_block(&self, callback: VcpuCallback, flags: c_int, argument: *mut c_void) {
        // SAFETY: `tb` is valid during translation; the argument is a number, not a pointer.
        unsafe { (self.plugin.api.qemu_plugin_register_vcpu_tb_exec_cb)(self.tb, callback, flags, argument) }
    }

    /// Calls back at the block's beginning unless the board's field has that value.
    fn on_block_unless(&self, callback: VcpuCallback, field: usize, value: u64, argument: *mut c_void) {
        let field = self.plugin.field(field);
        // SAFETY: as above; the field lies within our scoreboard.
        unsafe {
            (self.plugin.api.qemu_plugin_register_vcpu_tb_exec_cond_cb)(
                self.tb, callback, NO_REGS, NOT_EQUAL, field, value, argument,
            );
        }
    }

    fn inline(&self, operation: c_int, field: Field, value: u64) {
        // SAFETY: as above.
        unsafe {
            (self.plugin.api.qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu)(
                self.tb, operation, field, value,
            );
        }
    }

    fn on_insn(&self, at: usize, callback: VcpuCallback, flags: c_int, argument: *mut c_void) {
        let api = &self.plugin.api;
        // SAFETY: `at` is below the block's number of instructions.
        unsafe {
            let insn = (api.qemu_plugin_tb_get_insn)(self.tb, at);
            (api.qemu_plugin_register_vcpu_insn_exec_cb)(insn, callback, flags, argument);
        }
    }

    /// Stores a value into a board's field just before the block's last instruction.
    fn at_last(&self, field: usize, value: u64) {
        let api = &self.plugin.api;
        // SAFETY: as above; a block has at least one instruction.
        unsafe {
            let insn = (api.qemu_plugin_tb_get_insn)(self.tb, self.insns.len() - 1);
            let field = self.plugin.field(field);
            (api.qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu)(insn, STORE, field, value);
        }
    }
}

/// Called by QEMU when it loads the plugin.
///
/// # Safety
/// QEMU passes a valid `info` and `argc` valid strings in `argv`.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: by the contract above.
    let (info, arguments) = unsafe {
        let arguments: Vec<String> = (0..argc as usize)
            .map(|at| CStr::from_ptr(*argv.add(at)).to_string_lossy().into_owned())
            .collect();
        (&*info, arguments)
    };
    match install(id, info, &arguments) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("kerntune-recorder: {}", failure.0);
            1
        }
    }
}

fn install(id: u64, info: &Info, arguments: &[String]) -> Result<(), Failure> {
    // SAFETY: QEMU's target name is a NUL-terminated string.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    if info.version_cur < API_VERSION {
        return Err(Failure(format!(
            "this QEMU has plugin API {}, {API_VERSION} is needed (QEMU 9.2 or newer)",
            info.version_cur
        )));
    }
    if !info.system_emulation || target != "x86_64" {
        return Err(Failure(format!("only qemu-system-x86_64 is supported, this is {target}")));
    }
    if info.smp_vcpus != 1 || info.max_vcpus != 1 {
        return Err(Failure(format!("one virtual CPU is supported, this machine has {}", info.smp_vcpus)));
    }
    let path = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("spec="))
        .ok_or("the argument spec=FILE is missing")?;
    let text = std::fs::read_to_string(path).map_err(|e| Failure(format!("cannot read {path}: {e}")))?;
    let spec: RecorderSpec = serde_json::from_str(&text).map_err(|e| Failure(format!("{path}: {e}")))?;
    let api = Api::load()?;
    let recorder = Recorder::new(&spec)?;
    // SAFETY: plain calls of the API; all callbacks are `extern "C"` functions of this file.
    unsafe {
        let plugin = Box::new(Plugin {
            board_score: (api.qemu_plugin_scoreboard_new)(size_of::<Board>()),
            count_score: (api.qemu_plugin_scoreboard_new)(MAX_BLOCKS * 8),
            bytes: (api.g_byte_array_new)(),
            board: null_mut(),
            counts: null_mut(),
            registers: [null_mut(); 5],
            after_clock: HashSet::new(),
            pages: HashMap::new(),
            insns: Vec::new(),
            recorder,
            api,
        });
        (plugin.api.qemu_plugin_register_vcpu_init_cb)(id, on_vcpu_init);
        (plugin.api.qemu_plugin_register_vcpu_tb_trans_cb)(id, on_translation);
        (plugin.api.qemu_plugin_register_atexit_cb)(id, on_exit, null_mut());
        PLUGIN.store(Box::into_raw(plugin), Ordering::Relaxed);
    }
    Ok(())
}
