//! What options of a configuration stand for: the source files that are compiled for them, and the options that they hang on.
//!
//! Both are read from the source's own files. Whatever is not understood counts as always there, so that nothing is taken for
//! unneeded for want of an answer.

mod gates;
mod kconfig;

pub use gates::Gates;
pub use kconfig::Kconfig;

use crate::build::Inputs;
use crate::{BuildRequest, Result};
use kerntune_work::{Progress, WorkDir};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The configuration that a request comes to, with nothing compiled.
#[derive(Debug, Clone)]
pub struct Configured {
    /// The final `.config`.
    pub text: String,
    /// The source, patches included.
    pub source: PathBuf,
}

impl Configured {
    /// Options that are built in, without `CONFIG_`.
    pub fn built_in(&self) -> BTreeSet<String> {
        self.of_value("=y")
    }

    /// Options that are modules.
    pub fn modules(&self) -> BTreeSet<String> {
        self.of_value("=m")
    }

    fn of_value(&self, value: &str) -> BTreeSet<String> {
        let name = |line: &str| Some(line.strip_prefix("CONFIG_")?.strip_suffix(value)?.to_string());
        self.text.lines().filter_map(name).collect()
    }
}

/// Configures what `request` asks for. What was configured before is found again.
///
/// # Errors
/// Those of a build, up to the compiler.
pub fn configured(work: &WorkDir, request: &BuildRequest, progress: &dyn Progress) -> Result<Configured> {
    let inputs = Inputs::of(work, request, None, progress)?;
    Ok(Configured { text: inputs.config.text, source: inputs.source.dir().to_owned() })
}
