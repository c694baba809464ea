//! Reasons that the module cannot be used, or that it failed.

use crate::DumpFormatError;
use std::path::PathBuf;

/// Each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Build(#[from] kerntune_kernel::Error),
    #[error("the dump of kgmon cannot be used: {0}")]
    Dump(#[from] DumpFormatError),
    #[error("kgmon counts in the kernel, and only root may load it: run the command as root")]
    NotRoot,
    #[error(
        "the kernel is locked down ({mode}): it takes no unsigned module, and shows no addresses; sign the module with \
         a key that this kernel trusts, or boot without Secure Boot (`lockdown=`)"
    )]
    LockedDown { mode: String },
    #[error(
        "this kernel takes no module without a signature of a key that it trusts (module.sig_enforce): sign kgmon.ko \
         with one (`mokutil --import`), or boot without module.sig_enforce"
    )]
    SignatureEnforced,
    #[error("this kernel loads no modules: {reason}")]
    NoModules { reason: &'static str },
    #[error(
        "this kernel has no function tracer (CONFIG_FUNCTION_TRACER with CONFIG_DYNAMIC_FTRACE), so it \
         cannot count calls: boot a kernel that has one, such as Debian's"
    )]
    NoFunctionTracer,
    #[error("the kernel does not load {module}: {source}{hint}")]
    Load {
        module: PathBuf,
        source: std::io::Error,
        /// Meaning of the kernel's error for modules, after "; "; empty if nothing more is known.
        hint: &'static str,
    },
    #[error("the module kgmon cannot be unloaded: {source}{hint}")]
    Unload {
        source: std::io::Error,
        /// Meaning of the kernel's error for modules, after "; "; empty if nothing more is known.
        hint: &'static str,
    },
    #[error(
        "{path} does not exist: the module kgmon is not loaded, or nothing creates device files here \
         (devtmpfs, udev)"
    )]
    NoDevice { path: PathBuf },
    #[error("kgmon refused `{command}`: {said}")]
    Refused {
        /// First word of the command.
        command: String,
        said: String,
    },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// Result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
