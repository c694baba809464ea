//! Meaning of configuration options: the source files compiled for them, and the options that they
//! depend on.
//!
//! Both are read from the source tree. What is not understood counts as always built, so that
//! nothing is taken for unneeded by mistake.

mod conditions;
mod kconfig;

pub use conditions::BuildConditions;
pub use kconfig::Kconfig;

use crate::build::attempt::BuildInputs;
use crate::{BuildRequest, Result};
use kerntune_work::{Progress, WorkDir};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Final configuration of a request, with nothing compiled.
#[derive(Debug, Clone)]
pub struct ResolvedConfig {
    /// Text of the final `.config`.
    pub text: String,
    /// Directory of the source, patches applied.
    pub source: PathBuf,
}

impl ResolvedConfig {
    /// Returns the built-in options, without `CONFIG_`.
    pub fn built_in(&self) -> BTreeSet<String> {
        self.of_value("=y")
    }

    /// Returns the options that are modules, without `CONFIG_`.
    pub fn modules(&self) -> BTreeSet<String> {
        self.of_value("=m")
    }

    fn of_value(&self, value: &str) -> BTreeSet<String> {
        let name = |line: &str| Some(line.strip_prefix("CONFIG_")?.strip_suffix(value)?.to_string());
        self.text.lines().filter_map(name).collect()
    }
}

/// Configures a request without compiling. Results are cached in the work directory.
///
/// # Errors
/// Those of a build, up to the compiler.
pub fn resolve_config(
    work: &WorkDir,
    request: &BuildRequest,
    progress: &dyn Progress,
) -> Result<ResolvedConfig> {
    let inputs = BuildInputs::of(work, request, None, progress)?;
    Ok(ResolvedConfig { text: inputs.config.text, source: inputs.source.dir().to_owned() })
}
