//! Surrogate kernels: a kernel for a PC is recorded in place of one that no machine records. Its
//! counts name source lines that both have.

use crate::{Error, Result};
use kerntune_kernel::{Arch, BaseConfig, BuildRequest, Kernel};

/// Returns the request of the surrogate for a kernel built from `request`: same source, patches,
/// compiler and flags, with our configuration for a PC.
pub fn request(request: &BuildRequest) -> BuildRequest {
    BuildRequest {
        arch: Arch::default(),
        base: BaseConfig::Ours,
        fragments: Vec::new(),
        // Lines of the other configuration. Lines that a recipe adds are added to this request as
        // well.
        extra: Vec::new(),
        movable: false,
        label: format!("{}-{}", request.label, Arch::default()),
        recipe: None,
        base_id: None,
        keep_objects: false,
        ..request.clone()
    }
}

/// Refuses a recorded kernel whose source, release or compiler is not that of `base`.
///
/// # Errors
/// [`Error::AnotherSource`] with the difference.
pub fn check(base: &Kernel, recorded: &Kernel) -> Result<()> {
    let (ours, theirs) = (&base.manifest, &recorded.manifest);
    let differing = [
        ("source", ours.source.origin.as_str(), theirs.source.origin.as_str()),
        ("release", &ours.version, &theirs.version),
        ("compiler", &ours.compiler.version, &theirs.compiler.version),
    ];
    match differing.into_iter().find(|(_, ours, theirs)| ours != theirs) {
        None => Ok(()),
        Some((what, ours, theirs)) => Err(Error::AnotherSource {
            kernel: base.manifest.label.clone(),
            recorded: recorded.manifest.label.clone(),
            differs: format!("{what} {ours} and {theirs}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_kernel::KernelManifest;

    #[test]
    fn it_is_the_same_source_and_compiler_for_a_pc() {
        let um = BuildRequest {
            arch: Arch::Um,
            base: BaseConfig::File("/k/config".into()),
            extra: vec!["CONFIG_AUTOFDO_CLANG=y".into()],
            patches: vec!["/k/a.patch".into()],
            kcflags: vec!["-gmlt".into()],
            movable: true,
            ..BuildRequest::new("debian:7.3".parse().unwrap(), "uml")
        };
        let pc = request(&um);
        assert_eq!(
            (pc.arch, &pc.base, pc.movable, pc.extra.len()),
            (Arch::X86_64, &BaseConfig::Ours, false, 0)
        );
        assert_eq!((&pc.patches, &pc.kcflags, &pc.source), (&um.patches, &um.kcflags, &um.source));
        assert_eq!(pc.label, "uml-x86-64");
    }

    #[test]
    fn counts_of_another_source_are_refused() {
        let manifest = include_str!("../../../cli/tests/schemas/kernel-2.json");
        let manifest: KernelManifest = serde_json::from_str(manifest).unwrap();
        let base = Kernel { dir: "/nowhere".into(), manifest };
        check(&base, &base).unwrap();
        let mut other = base.clone();
        other.manifest.version = "6.1.1".into();
        let error = check(&base, &other).unwrap_err().to_string();
        assert!(error.contains("6.1.1") && error.contains("release"), "{error}");
    }
}
