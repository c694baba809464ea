//! Plugin for several virtual CPUs.
//!
//! QEMU executes them in turn on one thread. With only one thread, it assumes that the CPU that
//! translates a block is the only one to run it (`gen_cpu_index` of accel/tcg/plugin-gen.c, 9.2 and
//! later). Scoreboards and the CPU number passed to callbacks are then those of the CPU that
//! translated the block first. Scoreboards are therefore not used here. A callback at the beginning
//! of each block and before each watched instruction does what generated code does with one CPU
//! ([`HookRunner`]). The CPU is identified by the address of its state, which generated code keeps
//! in a host register.

use super::api::{GByteArray, PluginApi, NO_REGS, READ_WRITE, R_REGS};
use super::level::{CallbackRegistration, LifeCycle};
use super::{data, fail, halt, instructions, pack, registers, QemuCpu, REGISTERS};
use crate::drive::{HookRunner, HookedBlock};
use crate::plan::MAX_BLOCKS;
use crate::Failure;
use kerntune_isa::Insn;
use kerntune_trace::RecorderSpec;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// State kept between callbacks.
struct MultiCpuPlugin {
    api: PluginApi,
    driver: HookRunner,
    /// Translated blocks by callback number.
    blocks: Vec<HookedBlock>,
    /// Addresses of the CPUs' states in the order in which the CPUs began: the boot CPU first, then
    /// the others as the kernel starts them, which is by number.
    states: Vec<usize>,
    cpus: usize,
    /// Address of the executing CPU's state.
    state: usize,
    registers: [*mut c_void; REGISTERS.len()],
    bytes: *mut GByteArray,
    insns: Vec<Insn>,
}

static PLUGIN: AtomicPtr<MultiCpuPlugin> = AtomicPtr::new(null_mut());

/// Runs `work` on the plugin, like [`super::with`].
#[inline]
fn with(work: impl FnOnce(&mut MultiCpuPlugin) -> Result<(), Failure>) {
    let plugin = PLUGIN.load(Ordering::Relaxed);
    // SAFETY: null before installation (then nothing is done), later a leaked Box that only the
    // one emulation thread uses; no callback is entered while another one runs.
    if let Some(plugin) = unsafe { plugin.as_mut() } {
        if let Err(failure) = work(plugin) {
            fail(&failure);
        }
    }
}

// Generated code keeps the address of the CPU's state in this register (`TCG_AREG0` of
// tcg/*/tcg-target.h). Pass it on as an additional argument.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden kerntune_on_block",
    ".globl kerntune_on_block",
    "kerntune_on_block:",
    "mov rdx, rbp",
    "jmp {block}",
    block = sym on_block,
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".hidden kerntune_on_block",
    ".globl kerntune_on_block",
    "kerntune_on_block:",
    "mov x2, x19",
    "b {block}",
    block = sym on_block,
);

// SAFETY: the code above, which passes its arguments on to `on_block`, a safe function.
unsafe extern "C" {
    safe fn kerntune_on_block(cpu: c_uint, argument: *mut c_void);
}

/// Handles the beginning of a block on the CPU with this state.
extern "C" fn on_block(_: c_uint, block: *mut c_void, state: usize) {
    with(|plugin| {
        if plugin.state != state {
            plugin.turn(state)?;
        }
        let MultiCpuPlugin { api, driver, blocks, registers, bytes, .. } = plugin;
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        match blocks.get(block as u64 as u32 as usize) {
            Some(block) => driver.begin(block, &mut cpu),
            None => Ok(()),
        }
    });
}

/// Handles a watched instruction before it runs.
extern "C" fn on_instruction(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let (block, at) = (argument as u64 as u32, (argument as u64 >> 32) as usize);
        let MultiCpuPlugin { api, driver, blocks, registers, bytes, .. } = plugin;
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        match blocks.get(block as usize) {
            Some(block) => driver.before(block, at, &mut cpu),
            None => Ok(()),
        }
    });
}

/// Handles a halt.
extern "C" fn on_halt(vcpu: c_uint, argument: *mut c_void) {
    halt::account();
    on_instruction(vcpu, argument);
}

/// Handles a memory access of a block's only instruction.
extern "C" fn on_access(_: c_uint, _info: u32, _address: u64, block: *mut c_void) {
    with(|plugin| {
        plugin.driver.access(block as u64 as u32);
        Ok(())
    });
}

/// Handles a memory access of the instruction at `code`.
extern "C" fn on_data(_: c_uint, info: u32, address: u64, code: *mut c_void) {
    with(|plugin| {
        let MultiCpuPlugin { api, driver, registers, bytes, .. } = plugin;
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        let (access, physical) = data(api, info, address, code);
        driver.recorder.on_data(access, physical, &mut cpu)
    });
}

impl MultiCpuPlugin {
    /// Switches to the CPU with another state.
    #[cold]
    fn turn(&mut self, state: usize) -> Result<(), Failure> {
        let cpu = match self.states.iter().position(|known| *known == state) {
            Some(cpu) => cpu,
            None if self.states.len() < self.cpus => {
                self.states.push(state);
                self.states.len() - 1
            }
            None => {
                return Err(Failure(format!(
                    "this QEMU does not tell its {} CPUs apart as its generated code did up to now; record with one CPU",
                    self.cpus
                )))
            }
        };
        self.state = state;
        self.driver.turn(cpu)
    }
}

impl LifeCycle for MultiCpuPlugin {
    fn vcpu_init(_: c_uint) {
        with(|plugin| {
            plugin.registers = registers(&plugin.api)?;
            Ok(())
        });
    }

    fn exit() {
        with(|plugin| if plugin.states.is_empty() { Ok(()) } else { plugin.driver.finish() });
    }

    fn translation(tb: *mut c_void) {
        with(|plugin| {
            let MultiCpuPlugin { api, driver, blocks, registers, bytes, insns, .. } = plugin;
            let Some(host_page) = instructions(api, tb, insns) else { return Ok(()) };
            let mut cpu = QemuCpu { api, registers, bytes: *bytes };
            let block = driver.translate(insns, host_page, &mut cpu);
            let number = blocks.len() as u32;
            // SAFETY: called during the translation of `tb`, with places that are below its number of instructions; arguments
            // are numbers, not pointers.
            unsafe {
                let flags = |reads_cpu: bool| -> c_int {
                    if reads_cpu {
                        R_REGS
                    } else {
                        NO_REGS
                    }
                };
                let all = flags(block.reads_cpu(None));
                (api.qemu_plugin_register_vcpu_tb_exec_cb)(tb, kerntune_on_block, all, pack(number, 0));
                for at in block.places() {
                    let insn = (api.qemu_plugin_tb_get_insn)(tb, at);
                    let reads = flags(block.reads_cpu(Some(at)));
                    let function = if block.halts(at) { on_halt } else { on_instruction };
                    (api.qemu_plugin_register_vcpu_insn_exec_cb)(insn, function, reads, pack(number, at));
                }
                for (at, block) in block.accesses() {
                    let insn = (api.qemu_plugin_tb_get_insn)(tb, at);
                    (api.qemu_plugin_register_vcpu_mem_cb)(
                        insn,
                        on_access,
                        NO_REGS,
                        READ_WRITE,
                        pack(block, 0),
                    );
                }
                for (at, code) in block.data() {
                    let insn = (api.qemu_plugin_tb_get_insn)(tb, at);
                    (api.qemu_plugin_register_vcpu_mem_cb)(
                        insn,
                        on_data,
                        R_REGS,
                        READ_WRITE,
                        code as *mut c_void,
                    );
                }
            }
            blocks.push(block);
            Ok(())
        });
    }
}

/// Installs the plugin for this number of CPUs.
pub(super) fn install(
    id: u64,
    api: PluginApi,
    registration: CallbackRegistration,
    spec: &RecorderSpec,
    cpus: usize,
) -> Result<(), Failure> {
    let blocks = if spec.capture.edges { MAX_BLOCKS } else { 1 };
    let driver = HookRunner::with_cpus(spec, cpus, blocks)?;
    // SAFETY: plain calls of the API; all callbacks are `extern "C"` functions of this file.
    unsafe {
        let plugin = Box::new(MultiCpuPlugin {
            bytes: (api.g_byte_array_new)(),
            driver,
            blocks: Vec::new(),
            states: Vec::new(),
            cpus,
            state: 0,
            registers: [null_mut(); REGISTERS.len()],
            insns: Vec::new(),
            api,
        });
        registration.register::<MultiCpuPlugin>(id);
        PLUGIN.store(Box::into_raw(plugin), Ordering::Relaxed);
    }
    Ok(())
}
