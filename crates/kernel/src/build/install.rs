//! Modules of a kernel, built and installed by Kbuild.

use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_flags::make_flags;
use crate::{BuildRequest, Result};
use kerntune_work::{IoContext, Progress};
use std::fs;
use std::path::Path;

/// Line of a configuration without a key to sign modules.
const NO_KEY: &str = "CONFIG_MODULE_SIG_KEY=\"\"";
/// Make argument that disables signing, which fails without a key.
const UNSIGNED: &str = "CONFIG_MODULE_SIG_ALL=";

/// Builds the modules with the kernel's flags and profile, and installs them below `to` with Kbuild.
pub(crate) fn install_modules(
    kbuild: &Kbuild,
    asked: &BuildRequest,
    to: &Path,
    progress: &dyn Progress,
) -> Result<()> {
    let flags = make_flags(&asked.flags(), &asked.object_flags, &asked.object_groups);
    let step = format!("build the modules of {}", asked.label.trim_end_matches(" again"));
    kbuild.make(&step, &make_args(asked.jobs, &flags, &["modules"]), None, progress)?;
    let path = format!("INSTALL_MOD_PATH={}", to.display());
    let mut args = vec![path.as_str(), "INSTALL_MOD_STRIP=1", "modules_install"];
    let config = kbuild.tree.build().join(".config");
    if fs::read_to_string(&config).at("read", &config)?.lines().any(|line| line == NO_KEY) {
        args.push(UNSIGNED);
    }
    kbuild.make("install the modules", &make_args(asked.jobs, &flags, &args), None, progress)?;
    Ok(())
}
