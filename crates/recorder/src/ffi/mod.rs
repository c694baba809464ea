//! Interface to QEMU: the only files with `unsafe`.
//!
//! QEMU runs all virtual CPUs of an `-icount` machine on one thread, and translates on the same
//! thread, so the single [`RecorderPlugin`] never has two users at a time. The plugin API's
//! functions are looked up when the plugin is installed ([`api`]); a missing one is reported by
//! name. Nothing here panics; if something did, `extern "C"` would abort QEMU rather than unwind
//! into it.

mod api;
mod callbacks;
mod halt;
mod level;
mod several;

use crate::drive::{HookRunner, HookedBlock};
use crate::plan::{Hook, HookAction, MAX_BLOCKS};
use crate::Failure;
use api::{
    GByteArray, MemoryCallback, PluginApi, QemuInfo, RegisterDescriptor, ScoreboardField, ADD, NOT_EQUAL,
    NO_REGS, READ, READ_WRITE, R_REGS, STORE, WRITE,
};
use kerntune_isa::{GuestIsa, Insn, Isa, Register, StoppedCpu};
use kerntune_trace::{RecorderSpec, RECORDER_FAILED};
use level::LifeCycle;
use several::{CpuTurns, InlineSlot};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Registers that callbacks may read.
const REGISTERS: &[&str] = GuestIsa::REGISTERS;

/// Upper bound for virtual CPUs, above what kernels of ours are built for.
const MAX_CPUS: usize = 16;

/// State kept between callbacks.
struct RecorderPlugin {
    api: PluginApi,
    runner: HookRunner,
    /// Scoreboard of one byte for each CPU, see [`InlineSlot`].
    score: *mut c_void,
    /// Place of the only CPU; unknown until it exists.
    only: Option<InlineSlot>,
    /// Turns of several CPUs.
    turns: Option<CpuTurns>,
    registers: [*mut c_void; REGISTERS.len()],
    bytes: *mut GByteArray,
    /// Sizes of reads and of writes.
    sizes: [AccessSizes; 2],
    /// Instructions and hooks of the block in translation.
    insns: Vec<Insn>,
    hooks: Vec<Hook>,
    /// True once a virtual CPU exists.
    started: bool,
}

static PLUGIN: AtomicPtr<RecorderPlugin> = AtomicPtr::new(null_mut());

/// Runs `work` on the plugin. A failure ends QEMU with a message, since an incomplete recording is
/// worse than none.
// Else the compiler shares one body among the callbacks, which then select their work at run time.
#[inline(always)]
fn with(work: impl FnOnce(&mut RecorderPlugin) -> Result<(), Failure>) {
    let plugin = PLUGIN.load(Ordering::Relaxed);
    // SAFETY: null before installation (then nothing is done), later a leaked Box that only the
    // one emulation thread uses; no callback is entered while another one runs, and generated code
    // updates the counters in it only while none runs.
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

impl RecorderPlugin {
    /// Splits the plugin into the recorder with its counters, and the CPU.
    #[inline]
    fn parts(&mut self) -> (&mut HookRunner, QemuCpu<'_>) {
        let cpu = QemuCpu { api: &self.api, registers: &self.registers, bytes: self.bytes };
        (&mut self.runner, cpu)
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

/// Returns the physical address of the access of a memory callback, or `None` for a device.
fn physical(api: &PluginApi, info: u32, address: u64) -> Option<u64> {
    // SAFETY: plain calls of the API, with what a callback of memory was given; what they return is valid until the next.
    unsafe {
        let place = (api.qemu_plugin_get_hwaddr)(info, address);
        let is_memory = !place.is_null() && !(api.qemu_plugin_hwaddr_is_io)(place);
        is_memory.then(|| (api.qemu_plugin_hwaddr_phys_addr)(place))
    }
}

/// Sizes of accesses in bytes by `qemu_plugin_meminfo_t`, of which few values occur. The last byte of
/// a value is its index.
struct AccessSizes([(u32, u32); 256]);

impl AccessSizes {
    /// More than any line.
    const UNKNOWN: u32 = u32::MAX;

    fn new() -> Self {
        Self([(u32::MAX, Self::UNKNOWN); 256])
    }

    /// Returns the size, or a size greater than any line if it is not known.
    #[inline]
    fn of(&self, info: u32) -> u64 {
        let (of, bytes) = self.0[info as usize % 256];
        u64::from(if of == info { bytes } else { Self::UNKNOWN })
    }

    /// Returns the size, and remembers it.
    fn learn(&mut self, api: &PluginApi, info: u32) -> u64 {
        // SAFETY: a plain call of the API, with what a callback of memory was given.
        let bytes = 1 << unsafe { (api.qemu_plugin_mem_size_shift)(info) };
        self.0[info as usize % 256] = (info, bytes);
        bytes.into()
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

impl RecorderPlugin {
    /// Registers one hook with QEMU, for a block that this CPU translates.
    fn register(&mut self, tb: *mut c_void, slot: InlineSlot, Hook { at, action }: Hook) {
        let Self { api, runner, score, .. } = self;
        let field = |place: &mut u64| ScoreboardField {
            score: *score,
            offset: (std::ptr::from_mut(place) as usize).wrapping_sub(slot.address),
        };
        // SAFETY: called during the translation of `tb`, with places that are below its number of
        // instructions; arguments are numbers, not pointers; the counters stay in place.
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
                    let (function, argument) = (callbacks::of(callback), pack(number, rest));
                    let flags = flags(callback.reads_cpu());
                    match insn {
                        Some(insn) => {
                            (api.qemu_plugin_register_vcpu_insn_exec_cb)(insn, function, flags, argument);
                        }
                        None => (api.qemu_plugin_register_vcpu_tb_exec_cb)(tb, function, flags, argument),
                    }
                }
                HookAction::CallUnless { field: offset, value, callback, number, rest } => {
                    let (function, argument) = (callbacks::of(callback), pack(number, rest));
                    (api.qemu_plugin_register_vcpu_tb_exec_cond_cb)(
                        tb,
                        function,
                        flags(callback.reads_cpu()),
                        NOT_EQUAL,
                        field(runner.field(offset)),
                        value,
                        argument,
                    );
                }
                HookAction::Store { field: offset, value } => {
                    inline(STORE, field(runner.field(offset)), value)
                }
                HookAction::Add { field: offset, value } => inline(ADD, field(runner.field(offset)), value),
                HookAction::Count { block } => {
                    if let Some(count) = runner.counts.of(block) {
                        inline(ADD, field(count), 1);
                    }
                }
                HookAction::Access { .. } | HookAction::Data { .. } | HookAction::Touch => {
                    self.register_access(tb, Hook { at, action });
                }
            }
        }
    }

    /// Registers a callback for memory accesses with QEMU, if the hook is one.
    fn register_access(&self, tb: *mut c_void, Hook { at, action }: Hook) {
        let Some(at) = at else { return };
        let register = |function: MemoryCallback, kinds, argument| {
            // SAFETY: as above.
            unsafe {
                let insn = (self.api.qemu_plugin_tb_get_insn)(tb, at);
                (self.api.qemu_plugin_register_vcpu_mem_cb)(insn, function, NO_REGS, kinds, argument);
            }
        };
        match action {
            HookAction::Access { block } => register(callbacks::on_access, READ_WRITE, pack(block, 0)),
            HookAction::Data { code } => {
                register(callbacks::of_data(false, code), READ, code as *mut c_void);
                register(callbacks::of_data(true, code), WRITE, code as *mut c_void);
            }
            HookAction::Touch => register(callbacks::on_touch, READ_WRITE, null_mut()),
            _ => {}
        }
    }

    /// Registers callbacks that execute the hooks of a block, for a CPU whose place is unknown.
    fn register_callbacks(&mut self, tb: *mut c_void, hooks: &mut Vec<Hook>) {
        hooks.iter().for_each(|hook| self.register_access(tb, *hook));
        let Self { api, turns: Some(turns), .. } = self else { return };
        let block = HookedBlock::new(std::mem::take(hooks));
        let (all, places) = (block.reads_cpu(None), block.places());
        let places: Vec<_> = places.map(|at| (at, block.reads_cpu(Some(at)), block.halts(at))).collect();
        let number = turns.add(block);
        // SAFETY: as above.
        unsafe {
            (api.qemu_plugin_register_vcpu_tb_exec_cb)(tb, several::on_block, flags(all), pack(number, 0));
            for (at, reads, halts) in places {
                let insn = (api.qemu_plugin_tb_get_insn)(tb, at);
                let function = if halts { several::on_halt } else { several::on_instruction };
                (api.qemu_plugin_register_vcpu_insn_exec_cb)(insn, function, flags(reads), pack(number, at));
            }
        }
    }
}

impl LifeCycle for RecorderPlugin {
    fn vcpu_init(vcpu: c_uint) {
        with(|plugin| {
            plugin.registers = registers(&plugin.api)?;
            if plugin.turns.is_none() {
                plugin.only = Some(InlineSlot::of(&plugin.api, plugin.score, vcpu));
            }
            plugin.started = true;
            Ok(())
        });
    }

    fn exit() {
        with(|plugin| if plugin.started { plugin.runner.finish() } else { Ok(()) });
    }

    fn translation(tb: *mut c_void) {
        with(|plugin| {
            let Some(host_page) = instructions(&plugin.api, tb, &mut plugin.insns) else { return Ok(()) };
            let insns = std::mem::take(&mut plugin.insns);
            let mut hooks = std::mem::take(&mut plugin.hooks);
            let (runner, mut cpu) = plugin.parts();
            runner.plan(&insns, host_page, &mut cpu, &mut hooks);
            let slot = match &plugin.turns {
                None => plugin.only,
                Some(turns) => {
                    let slot = turns.slot();
                    let (function, argument) = several::turn_callback(slot);
                    // SAFETY: called during the translation of `tb`, with a number as an argument.
                    unsafe {
                        (plugin.api.qemu_plugin_register_vcpu_tb_exec_cb)(tb, function, NO_REGS, argument);
                    }
                    slot
                }
            };
            match slot {
                Some(slot) => hooks.drain(..).for_each(|hook| plugin.register(tb, slot, hook)),
                None => plugin.register_callbacks(tb, &mut hooks),
            }
            (plugin.insns, plugin.hooks) = (insns, hooks);
            Ok(())
        });
    }
}

/// Returns the flags of a callback.
fn flags(reads_cpu: bool) -> c_int {
    if reads_cpu {
        R_REGS
    } else {
        NO_REGS
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
    let blocks = if spec.capture.edges { MAX_BLOCKS } else { 1 };
    let runner = HookRunner::with_cpus(&spec, cpus, blocks)?;
    // SAFETY: plain calls of the API; all callbacks are `extern "C"` functions of these files.
    unsafe {
        let plugin = Box::new(RecorderPlugin {
            score: (api.qemu_plugin_scoreboard_new)(1),
            bytes: (api.g_byte_array_new)(),
            only: None,
            turns: (cpus > 1).then(|| CpuTurns::new(cpus)),
            registers: [null_mut(); REGISTERS.len()],
            sizes: [AccessSizes::new(), AccessSizes::new()],
            insns: Vec::new(),
            hooks: Vec::new(),
            started: false,
            runner,
            api,
        });
        registration.register::<RecorderPlugin>(id);
        PLUGIN.store(Box::into_raw(plugin), Ordering::Relaxed);
    }
    Ok(())
}
