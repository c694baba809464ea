//! Functions of the plugin API, looked up in the running QEMU when the plugin is installed.

use super::level::{self, CallbackRegistration};
use crate::Failure;
use std::ffi::{c_char, c_int, c_uint, c_void, CString};
use std::mem::transmute_copy;

pub type VcpuCallback = extern "C" fn(c_uint, *mut c_void);
/// `qemu_plugin_vcpu_mem_cb_t`: CPU, `qemu_plugin_meminfo_t`, virtual address, argument.
pub type MemoryCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// `qemu_plugin_u64`: a field of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ScoreboardField {
    pub score: *mut c_void,
    pub offset: usize,
}

#[repr(C)]
pub struct GByteArray {
    pub data: *mut u8,
    pub len: c_uint,
}

#[repr(C)]
pub struct GArray {
    pub data: *mut u8,
    pub len: c_uint,
}

/// Beginning of `qemu_plugin_reg_descriptor`, which has more fields since API 6; the array knows
/// its size.
#[repr(C)]
pub struct RegisterDescriptor {
    pub handle: *mut c_void,
    pub name: *const c_char,
}

/// `qemu_info_t`.
#[repr(C)]
pub struct QemuInfo {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_cur: c_int,
    pub system_emulation: bool,
    pub smp_vcpus: c_int,
    pub max_vcpus: c_int,
}

/// `enum qemu_plugin_cb_flags`, `qemu_plugin_op`, `qemu_plugin_cond`.
pub const NO_REGS: c_int = 0;
pub const R_REGS: c_int = 1;
pub const ADD: c_int = 0;
pub const STORE: c_int = 1;
pub const NOT_EQUAL: c_int = 3;
/// `enum qemu_plugin_mem_rw`.
pub const READ: c_int = 1;
pub const WRITE: c_int = 2;
pub const READ_WRITE: c_int = 3;

macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of the plugin API (and of GLib) that the recorder calls.
        pub struct PluginApi {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl PluginApi {
            /// Looks up every function in the running QEMU.
            pub fn load() -> Result<Self, Failure> {
                Ok(Self {
                    $($name: {
                        let symbol = find(stringify!($name))?;
                        // SAFETY: the symbol of this name has this signature in qemu-plugin.h (from
                        // API 4 on) or glib/garray.h; both sides are plain function pointers.
                        unsafe { transmute_copy(&symbol) }
                    },)*
                })
            }
        }
    };
}

api! {
    qemu_plugin_register_vcpu_tb_exec_cb: fn(*mut c_void, VcpuCallback, c_int, *mut c_void);
    qemu_plugin_register_vcpu_tb_exec_cond_cb:
        fn(*mut c_void, VcpuCallback, c_int, c_int, ScoreboardField, u64, *mut c_void);
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu: fn(*mut c_void, c_int, ScoreboardField, u64);
    qemu_plugin_register_vcpu_insn_exec_cb: fn(*mut c_void, VcpuCallback, c_int, *mut c_void);
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu: fn(*mut c_void, c_int, ScoreboardField, u64);
    qemu_plugin_register_vcpu_mem_cb: fn(*mut c_void, MemoryCallback, c_int, c_int, *mut c_void);
    qemu_plugin_tb_n_insns: fn(*const c_void) -> usize;
    qemu_plugin_tb_get_insn: fn(*const c_void, usize) -> *mut c_void;
    qemu_plugin_insn_data: fn(*const c_void, *mut c_void, usize) -> usize;
    qemu_plugin_insn_size: fn(*const c_void) -> usize;
    qemu_plugin_insn_vaddr: fn(*const c_void) -> u64;
    qemu_plugin_insn_haddr: fn(*const c_void) -> *mut c_void;
    qemu_plugin_scoreboard_new: fn(usize) -> *mut c_void;
    qemu_plugin_scoreboard_find: fn(*mut c_void, c_uint) -> *mut c_void;
    qemu_plugin_get_registers: fn() -> *mut GArray;
    // Returns a size up to API 5 and a truth value since; the recorder reads the array's length.
    qemu_plugin_read_register: fn(*mut c_void, *mut GByteArray);
    qemu_plugin_read_memory_vaddr: fn(u64, *mut GByteArray, usize) -> bool;
    qemu_plugin_mem_size_shift: fn(u32) -> c_uint;
    qemu_plugin_mem_is_store: fn(u32) -> bool;
    qemu_plugin_get_hwaddr: fn(u32, u64) -> *mut c_void;
    qemu_plugin_hwaddr_is_io: fn(*const c_void) -> bool;
    qemu_plugin_hwaddr_phys_addr: fn(*const c_void) -> u64;
    g_array_get_element_size: fn(*mut GArray) -> c_uint;
    g_byte_array_new: fn() -> *mut GByteArray;
    g_byte_array_set_size: fn(*mut GByteArray, c_uint) -> *mut GByteArray;
}

/// Looks up the registration of callbacks in a QEMU of this API level.
pub fn registration(level: c_int) -> Result<CallbackRegistration, Failure> {
    let vcpu_init = find("qemu_plugin_register_vcpu_init_cb")?;
    let translation = find("qemu_plugin_register_vcpu_tb_trans_cb")?;
    let exit = find("qemu_plugin_register_atexit_cb")?;
    // SAFETY: the symbols of these names have these signatures in qemu-plugin.h of the level.
    Ok(unsafe {
        if level < level::USERDATA {
            CallbackRegistration::WithId {
                vcpu_init: transmute_copy(&vcpu_init),
                translation: transmute_copy(&translation),
                exit: transmute_copy(&exit),
            }
        } else {
            CallbackRegistration::WithUserdata {
                vcpu_init: transmute_copy(&vcpu_init),
                translation: transmute_copy(&translation),
                exit: transmute_copy(&exit),
            }
        }
    })
}

fn find(name: &str) -> Result<*mut c_void, Failure> {
    let address = level::symbol(&CString::new(name)?);
    if address.is_null() {
        return Err(Failure(format!("this QEMU does not have {name}; QEMU 9.2 or newer is needed")));
    }
    Ok(address)
}
