//! Build requests: the base kernel before the recording, the tuned kernel after it.

use super::flags::{
    thin_lto_linker, use_profile, LINE_TABLES, PROFILE_FILE, REPORT_FLAGS, SOURCE_FLAGS, SPLIT_FLAG,
};
use super::{check_compiler, AutofdoProfile, NAME};
use crate::{version, Result};
use kerntune_kernel::{BaseConfig, BuildRequest, Kernel};
use kerntune_work::{read_file, IoContext};
use std::path::PathBuf;

/// First Linux whose Kbuild supports AutoFDO (`scripts/Makefile.autofdo`).
const FIRST_KBUILD_SUPPORT: [u32; 3] = [6, 13, 0];
/// Configuration line that makes Kbuild add its flags.
const OPTION: &str = "CONFIG_AUTOFDO_CLANG=y";
/// Make variable with the path of the profile.
const PROFILE_VARIABLE: &str = "CLANG_AUTOFDO_PROFILE";
/// Way to compile and link the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkMode {
    /// Each object is compiled by itself.
    Objects,
    /// Defaults of Linux 6.13 and later: a section for each function, code that never ran split off
    /// its function, sections in the order of lld's own sort (`--call-graph-profile-sort`).
    Upstream,
    /// Like [`LinkMode::Upstream`], with code generation at link time (`CONFIG_LTO_CLANG_THIN`):
    /// hot functions are inlined across objects.
    ThinLto,
}

/// Configuration of ThinLTO: each object is bitcode, and lld generates the code.
const THIN_LTO: &[&str] = &["CONFIG_LTO_NONE=n", "CONFIG_LTO_CLANG_THIN=y"];

/// Returns the request for the base kernel: `request` with the debug information that maps
/// addresses to the source, for a source of this version.
///
/// If there is nothing to add, the request is unchanged. Otherwise its label gets `-autofdo-ready`,
/// to tell the kernel from the plain one.
///
/// # Errors
/// Errors of [`check_compiler`]; configurations that cannot be read.
pub fn base_request(request: &BuildRequest, version: &str) -> Result<BuildRequest> {
    check_compiler(&request.compiler)?;
    let mut base = request.clone();
    if knows_autofdo(version) {
        if !config_lines(request)?.iter().any(|line| line == OPTION) {
            base.extra.push(OPTION.into());
        }
    } else {
        // A configuration with its own debug information has line tables, and may need the rest
        // (BTF).
        let own = |line: &String| line == "CONFIG_DEBUG_INFO=y" || is_dwarf(line);
        if !config_lines(request)?.iter().any(own) {
            add_flags(&mut base.kcflags, &[LINE_TABLES]);
        }
        add_flags(&mut base.kcflags, SOURCE_FLAGS);
    }
    if base != *request {
        base.label = format!("{}-autofdo-ready", request.label);
    }
    Ok(base)
}

/// Returns the request for the tuned kernel: `base`, as [`base_request`] made it, with the profile.
///
/// `kernel` is the kernel built from `base`. The label is that of `base` with `-clang-autofdo`; set
/// another one to list it under the workload's name.
///
/// # Errors
/// Errors of [`check_compiler`].
pub fn tuned_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &AutofdoProfile,
    link: LinkMode,
) -> Result<BuildRequest> {
    request_with(base, kernel, (profile.tree(), &profile.id), link)
}

/// Implements [`tuned_request`] for a tree that contains the profile, under the id of that tree.
pub(crate) fn request_with(
    base: &BuildRequest,
    kernel: &Kernel,
    (tree, id): (PathBuf, &str),
    link: LinkMode,
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    if knows_autofdo(&kernel.manifest.version) {
        // The option also adds -ffunction-sections and -fsplit-machine-functions. Only the linker
        // script of these versions has rules for them; a 6.12 built with them hangs at boot.
        request.make_vars.retain(|(name, _)| name != PROFILE_VARIABLE);
        request.make_vars.push((PROFILE_VARIABLE.into(), PROFILE_FILE.into()));
    } else {
        add_flags(&mut request.kcflags, &[&use_profile()]);
        match link {
            LinkMode::Objects => {}
            LinkMode::Upstream => {
                // The linker script gets the rules that 6.13 has.
                request.movable = true;
                add_flags(&mut request.kcflags, &[SPLIT_FLAG]);
            }
            LinkMode::ThinLto => {
                request.movable = true;
                request.make_vars.retain(|(name, _)| name != "LD");
                request.make_vars.push(("LD".into(), thin_lto_linker(&base.compiler)));
            }
        }
    }
    if link == LinkMode::ThinLto {
        request.extra.extend(THIN_LTO.iter().map(ToString::to_string));
    }
    add_flags(&mut request.kcflags, REPORT_FLAGS);
    request.profile_dir = Some(tree);
    request.profile_id = Some(id.to_string());
    request.label = format!("{}-{NAME}", base.label);
    request.recipe = Some(NAME.into());
    request.base_id = Some(kernel.manifest.id.clone());
    Ok(request)
}

/// Checks whether Kbuild supports AutoFDO. An unreadable version counts as old, since flags work
/// everywhere.
fn knows_autofdo(version: &str) -> bool {
    version::parse(version).is_some_and(|version| version >= FIRST_KBUILD_SUPPORT)
}

fn is_dwarf(line: &str) -> bool {
    line.starts_with("CONFIG_DEBUG_INFO_DWARF") && line.ends_with("=y")
}

/// Returns every line that the request adds to the configuration.
fn config_lines(request: &BuildRequest) -> Result<Vec<String>> {
    let mut lines = request.extra.clone();
    let whole = match &request.base {
        BaseConfig::Ours => None,
        BaseConfig::File(path) => Some(path),
    };
    for path in whole.into_iter().chain(&request.fragments) {
        let bytes = read_file(path).at("read configuration", path)?;
        lines.extend(String::from_utf8_lossy(&bytes).lines().map(|line| line.trim().to_string()));
    }
    Ok(lines)
}

fn add_flags(to: &mut Vec<String>, flags: &[&str]) {
    for flag in flags {
        if !to.iter().any(|there| there == flag) {
            to.push((*flag).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clang_autofdo::{default_compiler, AutofdoSummary};
    use kerntune_kernel::KernelSource;
    use std::fs;

    fn request() -> BuildRequest {
        let mut request = BuildRequest::new(KernelSource::Debian("6.12".into()), "base");
        request.compiler = default_compiler();
        request
    }

    #[test]
    fn an_old_source_gets_flags_and_a_new_one_its_option() {
        let old = base_request(&request(), "6.12.117").unwrap();
        assert_eq!(old.kcflags[..2], ["-gmlt", "-fdebug-info-for-profiling"]);
        assert_eq!((old.kcflags.len(), old.extra.len()), (4, 0));
        assert_eq!(old.label, "base-autofdo-ready");
        assert_eq!(base_request(&old, "6.12.117").unwrap(), old, "nothing is added twice");

        let new = base_request(&request(), "6.13").unwrap();
        assert_eq!((new.kcflags.len(), &new.extra[..]), (0, &[OPTION.to_string()][..]));
        assert_eq!(base_request(&new, "6.13").unwrap(), new);
        assert!(knows_autofdo("7.0.0-rc3") && !knows_autofdo("6.12.117") && !knows_autofdo("mine"));
    }

    #[test]
    fn debug_information_of_the_users_own_stays() {
        let mut own = request();
        own.extra = vec!["CONFIG_DEBUG_INFO_DWARF5=y".into()];
        assert!(!base_request(&own, "6.12.1").unwrap().kcflags.contains(&"-gmlt".to_string()));
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("config");
        fs::write(&config, "CONFIG_X=y\nCONFIG_DEBUG_INFO=y\n").unwrap();
        let own = BuildRequest { base: BaseConfig::File(config), ..request() };
        assert!(!base_request(&own, "6.12.1").unwrap().kcflags.contains(&"-gmlt".to_string()));
    }

    #[test]
    fn the_tuned_kernel_is_the_base_with_the_profile() {
        let profile = AutofdoProfile {
            dir: "/w/clang-autofdo/p1".into(),
            id: "p1".into(),
            kernel: "k1".into(),
            recording: "r1".into(),
            summary: AutofdoSummary::default(),
        };
        let kernel = crate::test_kernel::kernel("/w/kernels/k1".as_ref(), "k1", "6.12.117");
        let base = base_request(&request(), "6.12.117").unwrap();
        let tuned = tuned_request(&base, &kernel, &profile, LinkMode::Objects).unwrap();
        assert_eq!(tuned.kcflags[..4], base.kcflags[..]);
        assert!(tuned.kcflags.contains(&"-fprofile-sample-use=kerntune.afdo".to_string()));
        assert_eq!(tuned.profile_dir.unwrap(), std::path::Path::new("/w/clang-autofdo/p1/tree"));
        assert_eq!((tuned.profile_id.as_deref(), tuned.base_id.as_deref()), (Some("p1"), Some("k1")));

        assert!(!tuned.movable && !tuned.kcflags.contains(&SPLIT_FLAG.to_string()));
        let upstream = tuned_request(&base, &kernel, &profile, LinkMode::Upstream).unwrap();
        assert!(upstream.movable && upstream.kcflags.contains(&SPLIT_FLAG.to_string()));
        let thin = tuned_request(&base, &kernel, &profile, LinkMode::ThinLto).unwrap();
        assert!(thin.movable && thin.extra.ends_with(&["CONFIG_LTO_CLANG_THIN=y".to_string()]));
        let (name, linker) = thin.make_vars.last().unwrap();
        assert!(name == "LD" && linker.starts_with("ld.lld-19 --lto-sample-profile=kerntune.afdo "));

        let kernel = crate::test_kernel::kernel("/w/kernels/k1".as_ref(), "k1", "6.13.2");
        let base = base_request(&request(), "6.13.2").unwrap();
        let tuned = tuned_request(&base, &kernel, &profile, LinkMode::Upstream).unwrap();
        assert!(!tuned.movable, "Kbuild does it all");
        assert_eq!(tuned.make_vars, [("CLANG_AUTOFDO_PROFILE".into(), "kerntune.afdo".into())]);
        assert!(!tuned.kcflags.iter().any(|flag| flag.starts_with("-fprofile-sample-use")));
    }
}
