//! Modules of a kernel, built and installed by Kbuild.

use crate::kernels::modules::MODULES;
use crate::link::link_script;
use crate::make::kbuild::{make_args, Kbuild};
use crate::{Error, FunctionOrder, Result};
use kerntune_work::{write_atomic, IoContext, Progress};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// Line of a configuration without a key to sign modules.
const NO_KEY: &str = "CONFIG_MODULE_SIG_KEY=\"\"";
/// Make argument that disables signing, which fails without a key.
const UNSIGNED: &str = "CONFIG_MODULE_SIG_ALL=";

/// Script that links all modules, in the build directory. Kbuild generates it.
const SCRIPT: &str = "scripts/module.lds";

/// Make argument that installs modules without debug information.
const STRIPPED: &str = "INSTALL_MOD_STRIP=1";

/// Build of a kernel's modules.
pub(crate) struct ModuleBuild<'a> {
    /// Label of the kernel, for progress and errors.
    pub label: &'a str,
    /// Arguments of make with the kernel's flags.
    pub flags: &'a [String],
    /// Order of the functions, if each is in a section of its own.
    pub order: Option<&'a FunctionOrder>,
    /// Install the modules with their debug information.
    pub keep_debug_info: bool,
    /// Make's jobs; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// Builds the modules with the kernel's flags and profile, and installs them below `to` with Kbuild.
///
/// # Errors
/// A failed make, with the first error of the log; [`Error::LinkScript`].
pub(crate) fn install_modules(
    kbuild: &Kbuild,
    of: &ModuleBuild,
    to: &Path,
    progress: &dyn Progress,
) -> Result<()> {
    let script = kbuild.tree.build().join(SCRIPT);
    let read = || fs::read_to_string(&script).at("read", &script);
    if let Some(order) = of.order {
        let args = make_args(of.jobs, of.flags, &["modules_prepare"]);
        kbuild.make("make the linker script of modules", &args, None, progress)?;
        let text = read()?;
        let placed = link_script::place_in_modules(&text, order)
            .map_err(|reason| Error::LinkScript { path: script.clone(), reason })?;
        // An unchanged script is not rewritten, because make would link again.
        if placed != text {
            write_atomic(&script, placed.as_bytes())?;
        }
    }
    let step = format!("build the modules of {}", of.label.trim_end_matches(" again"));
    kbuild.make(&step, &make_args(of.jobs, of.flags, &["modules"]), None, progress)?;
    if of.order.is_some() && !link_script::is_placed_in_modules(&read()?) {
        return Err(Error::LinkScript { path: script, reason: "make wrote it anew".into() });
    }
    let path = format!("INSTALL_MOD_PATH={}", to.display());
    let mut args = vec![path.as_str(), "modules_install"];
    if !of.keep_debug_info {
        args.push(STRIPPED);
    }
    let config = kbuild.tree.build().join(".config");
    if fs::read_to_string(&config).at("read", &config)?.lines().any(|line| line == NO_KEY) {
        args.push(UNSIGNED);
    }
    kbuild.make("install the modules", &make_args(of.jobs, of.flags, &args), None, progress)?;
    remove_links(&to.join(MODULES))
}

/// Removes the links to source and build directory that Kbuild puts into the directories of releases.
fn remove_links(modules: &Path) -> Result<()> {
    for release in fs::read_dir(modules).at("list", modules)? {
        let release = release.at("list", modules)?.path();
        for link in ["build", "source"].map(|name| release.join(name)) {
            if link.is_symlink() {
                fs::remove_file(&link).at("remove", &link)?;
            }
        }
    }
    Ok(())
}
