//! Interface to QEMU: the only files with `unsafe`.
//!
//! QEMU runs all virtual CPUs of an `-icount` machine on one thread, and translates on the same
//! thread, so the single [`SingleCpuPlugin`] never has two users at a time. The plugin API's
//! functions are looked up when the plugin is installed ([`api`]); a missing one is reported by
//! name. Nothing here panics; if something did, `extern "C"` would abort QEMU rather than unwind
//! into it.

mod api;
mod callbacks;
mod halt;
mod level;
mod several;

use crate::counters::{BlockCounters, PIECE};
use crate::data::DataAccess;
use crate::inline_counters::InlineCounters;
use crate::plan::{Hook, HookAction, MAX_BLOCKS};
use crate::recorder::Recorder;
use crate::Failure;
use api::{
    GByteArray, PluginApi, QemuInfo, RegisterDescriptor, ScoreboardField, ADD, NOT_EQUAL, NO_REGS,
    READ_WRITE, R_REGS, STORE,
};
use kerntune_isa::{GuestIsa, Insn, Isa, Register, StoppedCpu};
use kerntune_trace::{RecorderSpec, RECORDER_FAILED};
use level::LifeCycle;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Registers that callbacks may read.
const REGISTERS: &[&str] = GuestIsa::REGISTERS;

/// Upper bound for virtual CPUs, above what kernels of ours are built for.
const MAX_CPUS: usize = 16;

/// State kept between callbacks.
struct SingleCpuPlugin {
    api: PluginApi,
    recorder: Recorder,
    board_score: *mut c_void,
    board: *mut InlineCounters,
    vcpu: c_uint,
    counts: ScoreboardCounters,
    registers: [*mut c_void; REGISTERS.len()],
    bytes: *mut GByteArray,
    /// Instructions and hooks of the block in translation.
    insns: Vec<Insn>,
    hooks: Vec<Hook>,
}

static PLUGIN: AtomicPtr<SingleCpuPlugin> = AtomicPtr::new(null_mut());

/// Runs `work` on the plugin. A failure ends QEMU with a message, since an incomplete recording is
/// worse than none.
#[inline]
fn with(work: impl FnOnce(&mut SingleCpuPlugin) -> Result<(), Failure>) {
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

impl SingleCpuPlugin {
    /// Splits the plugin into its counters, block counters, recorder and CPU.
    #[inline]
    fn parts(&mut self) -> (&mut InlineCounters, &mut ScoreboardCounters, &mut Recorder, QemuCpu<'_>) {
        // SAFETY: set by `on_vcpu_init` before any translated code can run; QEMU keeps a
        // scoreboard's memory in place as long as no virtual CPU is added, and we allow one.
        let board = unsafe { &mut *self.board };
        let cpu = QemuCpu { api: &self.api, registers: &self.registers, bytes: self.bytes };
        (board, &mut self.counts, &mut self.recorder, cpu)
    }
}

/// Block counters in scoreboards of [`PIECE`] each, created as blocks are translated, since QEMU
/// allocates and clears each scoreboard for 16 CPUs.
#[derive(Default)]
struct ScoreboardCounters(Vec<CounterScoreboard>);

struct CounterScoreboard {
    score: *mut c_void,
    counters: *mut u64,
}

impl BlockCounters for ScoreboardCounters {
    #[inline]
    fn piece(&mut self, piece: usize) -> Option<&mut [u64]> {
        let counters = self.0.get(piece)?.counters;
        // SAFETY: a scoreboard's memory of so many counters for the one virtual CPU, which stays in place as long as none is
        // added; generated code adds to it only while no callback runs.
        Some(unsafe { std::slice::from_raw_parts_mut(counters, PIECE) })
    }

    fn room(&self) -> usize {
        self.0.len() * PIECE
    }
}

impl ScoreboardCounters {
    /// Makes room for this many blocks and one piece more: blocks that are cut short get numbers
    /// between translations. The virtual CPU must exist.
    fn reserve(&mut self, api: &PluginApi, vcpu: c_uint, blocks: usize) {
        while self.room() < (blocks + PIECE).min(MAX_BLOCKS) {
            // SAFETY: plain calls of the API; the scoreboard is QEMU's and valid for its lifetime.
            self.0.push(unsafe {
                let score = (api.qemu_plugin_scoreboard_new)(PIECE * size_of::<u64>());
                CounterScoreboard { score, counters: (api.qemu_plugin_scoreboard_find)(score, vcpu).cast() }
            });
        }
    }

    /// Returns the scoreboard field that counts a block.
    fn field(&self, block: u32) -> Option<ScoreboardField> {
        let (piece, offset) = (block as usize / PIECE, block as usize % PIECE * size_of::<u64>());
        self.0.get(piece).map(|piece| ScoreboardField { score: piece.score, offset })
    }
}

/// Virtual CPU inside a callback that may read registers.
struct QemuCpu<'a> {
    api: &'a PluginApi,
    registers: &'a [*mut c_void; REGISTERS.len()],
    bytes: *mut GByteArray,
}

impl StoppedCpu for QemuCpu<'_> {
    fn register(&mut self, register: Register) -> u64 {
        let Some(&handle) = self.registers.get(register.index()) else { return 0 };
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

/// Describes a data access in a memory callback. The returned function yields its physical address,
/// or `None` for a device.
#[inline]
fn data(
    api: &PluginApi,
    info: u32,
    address: u64,
    code: *mut c_void,
) -> (DataAccess, impl FnOnce() -> Option<u64> + '_) {
    // SAFETY: plain calls of the API, with what a callback of memory was given; what they return is valid until the next.
    unsafe {
        let bytes = 1 << (api.qemu_plugin_mem_size_shift)(info);
        let store = (api.qemu_plugin_mem_is_store)(info);
        let physical = move || {
            let place = (api.qemu_plugin_get_hwaddr)(info, address);
            let is_memory = !place.is_null() && !(api.qemu_plugin_hwaddr_is_io)(place);
            is_memory.then(|| (api.qemu_plugin_hwaddr_phys_addr)(place))
        };
        (DataAccess { code: code as u64, address, bytes, store }, physical)
    }
}

/// Returns true if the access of a memory callback is a write.
#[inline]
fn is_store(api: &PluginApi, info: u32) -> bool {
    // SAFETY: a plain call of the API, with what a callback of memory was given.
    unsafe { (api.qemu_plugin_mem_is_store)(info) }
}

/// Packs a callback's argument: a number, and the count of instructions to the end of the block.
fn pack(number: u32, rest: usize) -> *mut c_void {
    (u64::from(number) | (rest as u64) << 32) as *mut c_void
}

impl SingleCpuPlugin {
    /// Registers one hook with QEMU.
    fn register(&self, tb: *mut c_void, Hook { at, action }: Hook) {
        let (api, board) = (&self.api, |offset| ScoreboardField { score: self.board_score, offset });
        // SAFETY: called during the translation of `tb`, with places that are below its number of
        // instructions; arguments are numbers, not pointers; fields lie within our scoreboards.
        unsafe {
            let insn = at.map(|at| (api.qemu_plugin_tb_get_insn)(tb, at));
            let inline = |operation, field, value| match insn {
                Some(insn) => {
                    (api.qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu)(insn, operation, field, value);
                }
                None => {
                    (api.qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu)(tb, operation, field, value);
                }
            };
            match action {
                HookAction::Call { callback, number, rest } => {
                    let flags = if callback.reads_cpu() { R_REGS } else { NO_REGS };
                    let (function, argument) = (callbacks::of(callback), pack(number, rest));
                    match insn {
                        Some(insn) => {
                            (api.qemu_plugin_register_vcpu_insn_exec_cb)(insn, function, flags, argument);
                        }
                        None => (api.qemu_plugin_register_vcpu_tb_exec_cb)(tb, function, flags, argument),
                    }
                }
                HookAction::CallUnless { field, value, callback, number, rest } => {
                    let flags = if callback.reads_cpu() { R_REGS } else { NO_REGS };
                    let (function, argument) = (callbacks::of(callback), pack(number, rest));
                    (api.qemu_plugin_register_vcpu_tb_exec_cond_cb)(
                        tb,
                        function,
                        flags,
                        NOT_EQUAL,
                        board(field),
                        value,
                        argument,
                    );
                }
                HookAction::Store { field, value } => inline(STORE, board(field), value),
                HookAction::Add { field, value } => inline(ADD, board(field), value),
                HookAction::Count { block } => {
                    if let Some(field) = self.counts.field(block) {
                        inline(ADD, field, 1);
                    }
                }
                HookAction::Data { code } => {
                    if let Some(insn) = insn {
                        let function = callbacks::on_data;
                        (api.qemu_plugin_register_vcpu_mem_cb)(
                            insn,
                            function,
                            R_REGS,
                            READ_WRITE,
                            code as *mut c_void,
                        );
                    }
                }
                HookAction::Touch => {
                    if let Some(insn) = insn {
                        let (function, argument) = (callbacks::on_touch, null_mut());
                        (api.qemu_plugin_register_vcpu_mem_cb)(insn, function, NO_REGS, READ_WRITE, argument);
                    }
                }
                HookAction::Access { block } => {
                    if let Some(insn) = insn {
                        (api.qemu_plugin_register_vcpu_mem_cb)(
                            insn,
                            callbacks::on_access,
                            NO_REGS,
                            READ_WRITE,
                            pack(block, 0),
                        );
                    }
                }
            }
        }
    }
}

impl LifeCycle for SingleCpuPlugin {
    fn vcpu_init(vcpu: c_uint) {
        with(|plugin| {
            let api = &plugin.api;
            // SAFETY: scoreboards are QEMU's, valid for its lifetime.
            unsafe {
                plugin.board = (api.qemu_plugin_scoreboard_find)(plugin.board_score, vcpu).cast();
                (*plugin.board).call = plugin.recorder.first_call();
            }
            plugin.vcpu = vcpu;
            plugin.registers = registers(api)?;
            Ok(())
        });
    }

    fn exit() {
        with(|plugin| {
            if plugin.board.is_null() {
                return Ok(());
            }
            let (_, counts, recorder, _) = plugin.parts();
            recorder.finish(&mut [counts])
        });
    }

    fn translation(tb: *mut c_void) {
        with(|plugin| {
            let Some(host_page) = instructions(&plugin.api, tb, &mut plugin.insns) else { return Ok(()) };
            let insns = std::mem::take(&mut plugin.insns);
            let mut hooks = std::mem::take(&mut plugin.hooks);
            let mut cpu = QemuCpu { api: &plugin.api, registers: &plugin.registers, bytes: plugin.bytes };
            plugin.recorder.translate(&insns, host_page, &mut cpu, &mut hooks);
            if plugin.recorder.planner.capture.edges {
                plugin.counts.reserve(&plugin.api, plugin.vcpu, plugin.recorder.blocks.len());
            }
            for hook in hooks.drain(..) {
                plugin.register(tb, hook);
            }
            (plugin.insns, plugin.hooks) = (insns, hooks);
            if plugin.recorder.awaits_programs() && !plugin.board.is_null() {
                let (_, counts, recorder, _) = plugin.parts();
                recorder.programs_begin(&mut [counts]);
            }
            Ok(())
        });
    }
}

/// Looks up the readable registers. Requires a virtual CPU.
fn registers(api: &PluginApi) -> Result<[*mut c_void; REGISTERS.len()], Failure> {
    // QEMU 11.0 has a null handle for the first register.
    let mut registers = [None; REGISTERS.len()];
    // SAFETY: the list is QEMU's, valid for its lifetime; names are NUL-terminated strings.
    unsafe {
        let list = (api.qemu_plugin_get_registers)();
        let size = (api.g_array_get_element_size)(list) as usize;
        for at in 0..(*list).len as usize {
            let descriptor = &*(*list).data.add(at * size).cast::<RegisterDescriptor>();
            let name = CStr::from_ptr(descriptor.name).to_bytes();
            if let Some(slot) = REGISTERS.iter().position(|n| n.as_bytes() == name) {
                registers[slot] = Some(descriptor.handle);
            }
        }
    }
    let missing = REGISTERS.iter().zip(registers).filter(|(_, handle)| handle.is_none());
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    match missing.is_empty() {
        true => Ok(registers.map(|handle| handle.unwrap_or(null_mut()))),
        false => Err(Failure(format!("this QEMU does not show the registers {}", missing.join(", ")))),
    }
}

/// Copies the instructions of the block in translation, and returns the host page number of the
/// first; `None` if the block is empty.
fn instructions(api: &PluginApi, tb: *mut c_void, insns: &mut Vec<Insn>) -> Option<u64> {
    // SAFETY: `tb` and its instructions are valid during the callback that we are in; each instruction's
    // bytes are copied with their length bounded by our buffer.
    unsafe {
        let count = (api.qemu_plugin_tb_n_insns)(tb);
        insns.clear();
        for at in 0..count {
            let handle = (api.qemu_plugin_tb_get_insn)(tb, at);
            let mut insn = Insn {
                address: (api.qemu_plugin_insn_vaddr)(handle),
                length: (api.qemu_plugin_insn_size)(handle),
                ..Insn::default()
            };
            (api.qemu_plugin_insn_data)(handle, insn.bytes.as_mut_ptr().cast(), insn.length.min(16));
            insns.push(insn);
        }
        (count > 0).then(|| (api.qemu_plugin_insn_haddr)((api.qemu_plugin_tb_get_insn)(tb, 0)) as u64 >> 12)
    }
}

/// Installs the plugin; called by QEMU when it loads the file.
///
/// # Safety
/// QEMU passes a valid `info` and `argc` valid strings in `argv`.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const QemuInfo,
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

fn install(id: u64, info: &QemuInfo, arguments: &[String]) -> Result<(), Failure> {
    // SAFETY: QEMU's target name is a NUL-terminated string.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    if info.version_cur < level::FIRST {
        return Err(Failure(format!(
            "this QEMU has plugin API {}, {} is needed (QEMU 9.2 or newer)",
            info.version_cur,
            level::FIRST
        )));
    }
    if !info.system_emulation || target != GuestIsa::NAMES.qemu_target {
        return Err(Failure(format!("only {} is supported, this is {target}", GuestIsa::NAMES.qemu)));
    }
    let cpus = info.smp_vcpus.max(1) as usize;
    if info.max_vcpus != info.smp_vcpus || cpus > MAX_CPUS {
        return Err(Failure(format!(
            "up to {MAX_CPUS} virtual CPUs are supported, all of them there from the start; this machine has {cpus} of {}",
            info.max_vcpus
        )));
    }
    let path = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("spec="))
        .ok_or("the argument spec=FILE is missing")?;
    // `kerntune doctor` asks for the levels by naming no file.
    let text = std::fs::read_to_string(path).map_err(|e| {
        let (first, last) = (info.version_min, info.version_cur);
        Failure(format!("cannot read {path}: {e}; this QEMU has plugin API {first} to {last}"))
    })?;
    let spec: RecorderSpec = serde_json::from_str(&text).map_err(|e| Failure(format!("{path}: {e}")))?;
    let (api, registration) = (PluginApi::load()?, api::registration(info.version_cur)?);
    if cpus > 1 {
        return several::install(id, api, registration, &spec, cpus);
    }
    let recorder = Recorder::new(&spec, 1)?;
    // SAFETY: plain calls of the API; all callbacks are `extern "C"` functions of this file.
    unsafe {
        let plugin = Box::new(SingleCpuPlugin {
            board_score: (api.qemu_plugin_scoreboard_new)(size_of::<InlineCounters>()),
            bytes: (api.g_byte_array_new)(),
            board: null_mut(),
            vcpu: 0,
            counts: ScoreboardCounters::default(),
            registers: [null_mut(); REGISTERS.len()],
            insns: Vec::new(),
            hooks: Vec::new(),
            recorder,
            api,
        });
        registration.register::<SingleCpuPlugin>(id);
        PLUGIN.store(Box::into_raw(plugin), Ordering::Relaxed);
    }
    Ok(())
}
