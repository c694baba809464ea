//! Why the module cannot work, or did not do what it was told.

use crate::DumpError;
use std::path::PathBuf;

/// Each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module could not be built.
    #[error(transparent)]
    Build(#[from] kerntune_kernel::Error),
    /// A dump is none.
    #[error("the dump of kgmon cannot be used: {0}")]
    Dump(#[from] DumpError),
    /// Only root may.
    #[error("kgmon counts in the kernel, and only root may load it: run the command as root")]
    NotRoot,
    /// The kernel protects itself from root.
    #[error(
        "the kernel is locked down ({mode}): it takes no unsigned module, and shows no addresses; sign the module with \
         a key that this kernel trusts, or boot without Secure Boot (`lockdown=`)"
    )]
    LockedDown {
        /// `integrity` or `confidentiality`.
        mode: String,
    },
    /// Modules must be signed.
    #[error(
        "this kernel takes no module without a signature of a key that it trusts (module.sig_enforce): sign kgmon.ko \
         with one (`mokutil --import`), or boot without module.sig_enforce"
    )]
    SignatureEnforced,
    /// The kernel has no loadable modules, or takes no more of them.
    #[error("this kernel loads no modules: {reason}")]
    NoModules {
        /// Why not.
        reason: &'static str,
    },
    /// The kernel was built without what counts calls.
    #[error(
        "this kernel has no function tracer (CONFIG_FUNCTION_TRACER with CONFIG_DYNAMIC_FTRACE), so it \
         cannot count calls: boot a kernel that has one, such as Debian's"
    )]
    NoFunctionTracer,
    /// The kernel refused the module.
    #[error("the kernel does not load {module}: {source}{hint}")]
    Load {
        /// The file.
        module: PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
        /// What the reason means for modules, after "; "; empty where nothing more is known.
        hint: &'static str,
    },
    /// The kernel keeps the module.
    #[error("the module kgmon cannot be unloaded: {source}{hint}")]
    Unload {
        /// The kernel's reason.
        source: std::io::Error,
        /// What the reason means for modules, after "; "; empty where nothing more is known.
        hint: &'static str,
    },
    /// The module is not loaded.
    #[error(
        "{path} does not exist: the module kgmon is not loaded, or nothing creates device files here \
         (devtmpfs, udev)"
    )]
    NoDevice {
        /// The device.
        path: PathBuf,
    },
    /// The module did not do it.
    #[error("kgmon refused `{command}`: {said}")]
    Refused {
        /// The command's first word.
        command: String,
        /// The module's reason.
        said: String,
    },
    /// A file of the kernel's could not be used.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// A verb phrase.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
