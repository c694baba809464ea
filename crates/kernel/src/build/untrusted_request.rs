//! Trust check for build requests of other origin, by the lists of
//! [`untrusted`](crate::kernels::untrusted).

use crate::kernels::untrusted::{
    is_compiler, is_flag, line_acted_on, not_a_compiler, not_a_flag, not_debian_source,
};
use crate::{BaseConfig, BuildRequest, KernelSource, PatchSet, Result};
use kerntune_work::{read_file, IoContext};
use std::path::Path;

/// Returns the first unknown program that a build would run; `None` if it only compiles a Debian
/// package's source.
///
/// # Errors
/// A patch or a configuration that cannot be read.
pub fn untrusted_code(request: &BuildRequest) -> Result<Option<String>> {
    let read = |path: &Path| read_file(path).at("read", path);
    let compiler = request.compiler.to_string();
    if !is_compiler(&compiler) {
        return Ok(Some(not_a_compiler(&compiler)));
    }
    if !matches!(request.source, KernelSource::Debian(_)) {
        return Ok(Some(not_debian_source(&request.source.to_string())));
    }
    if let Some((name, value)) = request.make_vars.first() {
        return Ok(Some(format!("it sets the make variable `{name}={value}`")));
    }
    if let Some(flag) = request.kcflags.iter().find(|flag| !is_flag(flag)) {
        return Ok(Some(not_a_flag(flag)));
    }
    for patch in &request.patches {
        if !PatchSet::has(&read(patch)?) {
            return Ok(Some(format!("it has a patch of its own, {}", patch.display())));
        }
    }
    let base = match &request.base {
        BaseConfig::File(path) => Some(path),
        _ => None,
    };
    for path in base.into_iter().chain(&request.fragments) {
        if let Some(line) = line_acted_on(&String::from_utf8_lossy(&read(path)?)) {
            return Ok(Some(line));
        }
    }
    Ok(line_acted_on(&request.extra.join("\n")))
}
