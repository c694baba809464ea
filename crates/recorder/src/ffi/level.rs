//! Level of the plugin API that the recorder declares to the running QEMU.
//!
//! QEMU reads `qemu_plugin_version` right after loading the file, before it passes its own levels,
//! and refuses a plugin of another level than those that it serves: up to QEMU 11.0 (levels 4 to 6)
//! [`FIRST`] is accepted, from QEMU 11.1 (level 7) only [`USERDATA`] is. A constructor therefore
//! chooses by what the program exports and, since 7 added no function to 6, by its version.

use std::ffi::{c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

/// First level with everything that the recorder uses: registers, memory, scoreboards, conditional
/// callbacks.
pub const FIRST: c_int = 4;
/// Level since which each callback is passed its own argument, and none the plugin's id.
pub const USERDATA: c_int = 7;

/// Function of every level since [`FIRST`].
const LEVEL_4: &CStr = c"qemu_plugin_scoreboard_new";
/// Function that was added with level 6.
const LEVEL_6: &CStr = c"qemu_plugin_set_pc";
/// First QEMU of level 7.
const QEMU_OF_7: (u32, u32) = (11, 1);
/// Text before the version in every build of QEMU, which it prints with `--version`.
const VERSION: &[u8] = b"QEMU emulator version ";

/// API version, which QEMU reads before it installs the plugin.
#[no_mangle]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(FIRST);

/// Run by the dynamic linker as it loads the plugin.
#[used]
#[link_section = ".init_array"]
static DECLARE: extern "C" fn() = declare;

extern "C" fn declare() {
    qemu_plugin_version.store(suitable(!symbol(LEVEL_6).is_null(), version), Ordering::Relaxed);
}

/// Returns the major and minor version of the running QEMU; `None` if it cannot be found.
pub(super) fn version() -> Option<(u32, u32)> {
    image_of(symbol(LEVEL_4)).find_map(version_in)
}

/// Returns the level to declare to a QEMU with or without level 6's functions. A version that
/// cannot be found is taken for a new one.
fn suitable(has_level_6: bool, version: impl FnOnce() -> Option<(u32, u32)>) -> c_int {
    match has_level_6 && version().is_none_or(|version| version >= QEMU_OF_7) {
        true => USERDATA,
        false => FIRST,
    }
}

/// Finds the major and minor version of QEMU in a part of its image.
fn version_in(part: &[u8]) -> Option<(u32, u32)> {
    // SAFETY: both are valid for their lengths; the result is null or inside of the first.
    let at =
        unsafe { libc::memmem(part.as_ptr().cast(), part.len(), VERSION.as_ptr().cast(), VERSION.len()) };
    let start = (at as usize).checked_sub(part.as_ptr() as usize)? + VERSION.len();
    let text = part.get(start..)?;
    let text = std::str::from_utf8(text.get(..text.len().min(16))?).ok()?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Address of an exported symbol of the running program or its libraries; null if there is none.
pub(super) fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a NUL-terminated name; the default search order includes the QEMU executable.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Readable parts of the loaded file that an address lies in, constants among them.
fn image_of(address: *mut c_void) -> impl Iterator<Item = &'static [u8]> {
    let mut search = ImageSearch { address: address as u64, parts: Vec::new() };
    // SAFETY: `visit` gets the search that it is made for, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::from_mut(&mut search).cast()) };
    search.parts.into_iter()
}

struct ImageSearch {
    address: u64,
    parts: Vec<&'static [u8]>,
}

/// Collects the parts of the loaded file of an [`ImageSearch`]; 1 ends the iteration.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's description of a loaded file with its program headers; the file
    // stays loaded, since it is the program or a library of it, and readable parts stay mapped.
    unsafe {
        let (info, search) = (&*info, &mut *search.cast::<ImageSearch>());
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = |header: &libc::Elf64_Phdr| info.dlpi_addr.wrapping_add(header.p_vaddr);
        if !loaded().any(|header| search.address.wrapping_sub(start(header)) < header.p_memsz) {
            return 0;
        }
        let constants = loaded().filter(|header| header.p_flags & (libc::PF_R | libc::PF_W) == libc::PF_R);
        search.parts.extend(
            constants.map(|header| {
                std::slice::from_raw_parts(start(header) as *const u8, header.p_filesz as usize)
            }),
        );
        1
    }
}

/// Callbacks outside of generated code, whose C signatures depend on the level.
pub trait LifeCycle {
    /// Called once a virtual CPU exists.
    fn vcpu_init(vcpu: u32);
    /// Called for each block in translation.
    fn translation(tb: *mut c_void);
    /// Called when QEMU ends.
    fn exit();
}

/// Signatures up to level 6: the plugin's id comes first, and only the last takes an argument.
pub mod with_id {
    use super::LifeCycle;
    use std::ffi::{c_uint, c_void};

    pub type VcpuInit = extern "C" fn(u64, c_uint);
    pub type Translation = extern "C" fn(u64, *mut c_void);
    pub type Exit = extern "C" fn(u64, *mut c_void);

    pub extern "C" fn vcpu_init<L: LifeCycle>(_: u64, vcpu: c_uint) {
        L::vcpu_init(vcpu);
    }

    pub extern "C" fn translation<L: LifeCycle>(_: u64, tb: *mut c_void) {
        L::translation(tb);
    }

    pub extern "C" fn exit<L: LifeCycle>(_: u64, _: *mut c_void) {
        L::exit();
    }
}

/// Signatures since [`USERDATA`]: an argument comes last.
pub mod with_userdata {
    use super::LifeCycle;
    use std::ffi::{c_uint, c_void};

    pub type VcpuInit = extern "C" fn(c_uint, *mut c_void);
    pub type Translation = extern "C" fn(*mut c_void, *mut c_void);
    pub type Exit = extern "C" fn(*mut c_void);

    pub extern "C" fn vcpu_init<L: LifeCycle>(vcpu: c_uint, _: *mut c_void) {
        L::vcpu_init(vcpu);
    }

    pub extern "C" fn translation<L: LifeCycle>(tb: *mut c_void, _: *mut c_void) {
        L::translation(tb);
    }

    pub extern "C" fn exit<L: LifeCycle>(_: *mut c_void) {
        L::exit();
    }
}

/// Functions that register a [`LifeCycle`], in the form of the running QEMU.
#[derive(Clone, Copy)]
pub enum CallbackRegistration {
    WithId {
        vcpu_init: unsafe extern "C" fn(u64, with_id::VcpuInit),
        translation: unsafe extern "C" fn(u64, with_id::Translation),
        exit: unsafe extern "C" fn(u64, with_id::Exit, *mut c_void),
    },
    WithUserdata {
        vcpu_init: unsafe extern "C" fn(u64, with_userdata::VcpuInit, *mut c_void),
        translation: unsafe extern "C" fn(u64, with_userdata::Translation, *mut c_void),
        exit: unsafe extern "C" fn(u64, with_userdata::Exit, *mut c_void),
    },
}

impl CallbackRegistration {
    /// Registers the callbacks of a plugin.
    ///
    /// # Safety
    /// The functions must be QEMU's, called while it installs the plugin of this id.
    pub unsafe fn register<L: LifeCycle>(self, id: u64) {
        // SAFETY: by the contract above; the callbacks of each form have its signatures.
        unsafe {
            match self {
                Self::WithId { vcpu_init, translation, exit } => {
                    vcpu_init(id, with_id::vcpu_init::<L>);
                    translation(id, with_id::translation::<L>);
                    exit(id, with_id::exit::<L>, null_mut());
                }
                Self::WithUserdata { vcpu_init, translation, exit } => {
                    vcpu_init(id, with_userdata::vcpu_init::<L>, null_mut());
                    translation(id, with_userdata::translation::<L>, null_mut());
                    exit(id, with_userdata::exit::<L>, null_mut());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn called(call: String) {
        CALLS.with(|calls| calls.borrow_mut().push(call));
    }

    struct Noted;

    impl LifeCycle for Noted {
        fn vcpu_init(vcpu: u32) {
            called(format!("vcpu {vcpu}"));
        }

        fn translation(tb: *mut c_void) {
            called(format!("block {}", tb as usize));
        }

        fn exit() {
            called("exit".into());
        }
    }

    const ID: u64 = 99;
    const TB: *mut c_void = 77 as *mut c_void;

    unsafe extern "C" fn old_vcpu_init(id: u64, callback: with_id::VcpuInit) {
        callback(id, 3);
    }

    unsafe extern "C" fn old_translation(id: u64, callback: with_id::Translation) {
        callback(id, TB);
    }

    unsafe extern "C" fn old_exit(id: u64, callback: with_id::Exit, argument: *mut c_void) {
        callback(id, argument);
    }

    unsafe extern "C" fn new_vcpu_init(_: u64, callback: with_userdata::VcpuInit, argument: *mut c_void) {
        callback(3, argument);
    }

    unsafe extern "C" fn new_translation(
        _: u64,
        callback: with_userdata::Translation,
        argument: *mut c_void,
    ) {
        callback(TB, argument);
    }

    unsafe extern "C" fn new_exit(_: u64, callback: with_userdata::Exit, argument: *mut c_void) {
        callback(argument);
    }

    #[test]
    fn callbacks_get_the_same_in_both_forms() {
        let old = CallbackRegistration::WithId {
            vcpu_init: old_vcpu_init,
            translation: old_translation,
            exit: old_exit,
        };
        let new = CallbackRegistration::WithUserdata {
            vcpu_init: new_vcpu_init,
            translation: new_translation,
            exit: new_exit,
        };
        for form in [old, new] {
            // SAFETY: the functions above only call the callbacks, each in its form.
            unsafe { form.register::<Noted>(ID) };
            assert_eq!(CALLS.take(), ["vcpu 3", "block 77", "exit"]);
        }
    }

    #[test]
    fn the_level_follows_functions_and_version() {
        assert_eq!(suitable(false, || panic!("needs no version")), FIRST);
        for (version, level) in [
            (Some((10, 2)), FIRST),
            (Some((11, 0)), FIRST),
            (Some((11, 1)), USERDATA),
            (Some((12, 0)), USERDATA),
            (None, USERDATA),
        ] {
            assert_eq!(suitable(true, || version), level, "{version:?}");
        }
    }

    #[test]
    fn versions_are_found_in_an_image() {
        assert_eq!(version_in(b"\0%s\0QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)\0"), Some((11, 1)));
        assert_eq!(version_in(b"QEMU emulator version 9.2"), Some((9, 2)));
        assert_eq!(version_in(b"QEMU emulator version 9"), None);
        assert_eq!(version_in(b"QEMU emulator version "), None);
        assert_eq!(version_in(b"QEMU emulator version \xff\xff\xff"), None);
        assert_eq!(version_in(b""), None);
    }

    #[test]
    fn the_image_of_a_function_has_the_constants_beside_it() {
        #[used]
        static CONSTANT: [u8; 32] = *b"beside the function of this test";
        let function = versions_are_found_in_an_image as fn() as usize as *mut c_void;
        assert!(image_of(function).any(|part| part.windows(CONSTANT.len()).any(|window| window == CONSTANT)));
        assert_eq!(image_of(null_mut()).count(), 0);
        assert_eq!(qemu_plugin_version.load(Ordering::Relaxed), FIRST, "this program is no QEMU");
    }
}
