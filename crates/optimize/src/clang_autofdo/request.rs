//! What to build: the base kernel before the recording, the tuned kernel after it.

use super::{check_compiler, PreparedProfile, NAME};
use crate::{version, Result};
use kerntune_kernel::{BaseConfig, BuildRequest, Compiler, Kernel};
use kerntune_work::{read_file, IoContext};
use std::path::PathBuf;

/// The first Linux whose Kbuild knows AutoFDO (`scripts/Makefile.autofdo`).
const KBUILD_KNOWS: [u32; 3] = [6, 13, 0];
/// What makes it add its flags.
const OPTION: &str = "CONFIG_AUTOFDO_CLANG=y";
/// The variable by which it is told the profile.
const PROFILE_VARIABLE: &str = "CLANG_AUTOFDO_PROFILE";
/// The profile in the build directory, in which Kbuild runs the compiler.
pub(super) const PROFILE_FILE: &str = "kerntune.afdo";

/// Those of Makefile.autofdo, for sources that have none. `-mllvm=` in one word, as Clang 15 and later take it.
const SOURCE_FLAGS: &[&str] = &[
    "-fdebug-info-for-profiling",
    "-mllvm=-enable-fs-discriminator=true",
    "-mllvm=-improved-fs-discriminator=true",
];
/// Line tables and nothing else: all that `llvm-profgen` reads.
const LINE_TABLES: &str = "-gmlt";

/// Makes Clang say of each function with a profile how much of it was applied ([`super::prove`] reads that in the
/// log), and does not stop a kernel with CONFIG_WERROR.
const REPORT_FLAGS: &[&str] =
    &["-mllvm=-sample-profile-check-sample-coverage=101", "-Wno-error=backend-plugin"];

/// How the objects become a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Each object is compiled for itself.
    Objects,
    /// As Linux 6.13 and later have it by themselves: a section for each function, code that never ran split off
    /// its function, sections in the order of lld's own sort (`--call-graph-profile-sort`).
    Upstream,
    /// As [`Link::Upstream`], and code is made when all objects are at hand (`CONFIG_LTO_CLANG_THIN`): hot functions
    /// are inlined across them.
    ThinLto,
}

/// What Makefile.autofdo adds to `-ffunction-sections`.
const SPLIT: &str = "-fsplit-machine-functions";
/// The same of lld, where it makes the code.
pub(crate) const SPLIT_BY_LINKER: &str = "-plugin-opt=-split-machine-functions";

/// With it each object is bitcode, and lld makes the code.
const THIN_LTO: &[&str] = &["CONFIG_LTO_NONE=n", "CONFIG_LTO_CLANG_THIN=y"];

/// The base kernel: `request` with what leads addresses back to the source, for a source of this version.
///
/// Where there is nothing to add the request stays as it is. Otherwise its label gets `-autofdo-ready`, to tell the
/// kernel from the one without.
///
/// # Errors
/// As [`check_compiler`]; of reading the configuration.
pub fn base_request(request: &BuildRequest, version: &str) -> Result<BuildRequest> {
    check_compiler(&request.compiler)?;
    let mut base = request.clone();
    if knows_autofdo(version) {
        if !config_lines(request)?.iter().any(|line| line == OPTION) {
            base.extra.push(OPTION.into());
        }
    } else {
        // A configuration with debug information of its own has line tables, and may need the rest (BTF).
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

/// The tuned kernel: `base`, as [`base_request`] made it, compiled with the profile.
///
/// `kernel` is what `base` was built to. The label is that of `base` with `-clang-autofdo`; set another to list
/// it under the workload's name.
///
/// # Errors
/// As [`check_compiler`].
pub fn tuned_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &PreparedProfile,
    link: Link,
) -> Result<BuildRequest> {
    request_with(base, kernel, (profile.tree(), &profile.id), link)
}

/// [`tuned_request`] with a tree that has the profile in it, under the id of that tree.
pub(crate) fn request_with(
    base: &BuildRequest,
    kernel: &Kernel,
    (tree, id): (PathBuf, &str),
    link: Link,
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    if knows_autofdo(&kernel.manifest.version) {
        // With it come -ffunction-sections and -fsplit-machine-functions, for which the linker script of these
        // versions has rules; a 6.12 built with them hangs at boot.
        request.make_vars.retain(|(name, _)| name != PROFILE_VARIABLE);
        request.make_vars.push((PROFILE_VARIABLE.into(), PROFILE_FILE.into()));
    } else {
        add_flags(&mut request.kcflags, &[&format!("-fprofile-sample-use={PROFILE_FILE}")]);
        match link {
            Link::Objects => {}
            Link::Upstream => {
                // Its linker script gets the places for them that 6.13 has.
                request.movable = true;
                add_flags(&mut request.kcflags, &[SPLIT]);
            }
            Link::ThinLto => {
                request.movable = true;
                request.make_vars.retain(|(name, _)| name != "LD");
                request.make_vars.push(("LD".into(), thin_lto_linker(&base.compiler)));
            }
        }
    }
    if link == Link::ThinLto {
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

/// lld with what Makefile.autofdo gives it for code that it makes itself. Kbuild's own variable for such flags
/// (`KBUILD_LDFLAGS`) would be set anew, and not added to.
fn thin_lto_linker(compiler: &Compiler) -> String {
    let suffix = match compiler {
        Compiler::Clang { llvm } => llvm.as_str(),
        Compiler::Gcc { .. } => "",
    };
    let flags = [
        &format!("--lto-sample-profile={PROFILE_FILE}"),
        "--mllvm=-enable-fs-discriminator=true",
        "--mllvm=-improved-fs-discriminator=true",
        "-plugin-opt=thinlto",
        SPLIT_BY_LINKER,
        // The kernel's Makefile lets functions of 5 instructions at most be inlined across objects, and of ten times as
        // many where the profile says hot. Exact counts can be trusted further.
        "-plugin-opt=-import-hot-multiplier=100",
    ];
    format!("ld.lld{suffix} {}", flags.join(" "))
}

/// A version that cannot be read is taken for an old one: flags work everywhere.
fn knows_autofdo(version: &str) -> bool {
    version::parse(version).is_some_and(|version| version >= KBUILD_KNOWS)
}

fn is_dwarf(line: &str) -> bool {
    line.starts_with("CONFIG_DEBUG_INFO_DWARF") && line.ends_with("=y")
}

/// Every line that the request puts into the configuration.
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
    use crate::clang_autofdo::{default_compiler, ProfileSummary};
    use kerntune_kernel::Source;
    use std::fs;

    fn request() -> BuildRequest {
        let mut request = BuildRequest::new(Source::Debian("6.12".into()), "base");
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
        let profile = PreparedProfile {
            dir: "/w/clang-autofdo/p1".into(),
            id: "p1".into(),
            kernel: "k1".into(),
            recording: "r1".into(),
            summary: ProfileSummary::default(),
        };
        let kernel = crate::test_kernel::kernel("/w/kernels/k1".as_ref(), "k1", "6.12.117");
        let base = base_request(&request(), "6.12.117").unwrap();
        let tuned = tuned_request(&base, &kernel, &profile, Link::Objects).unwrap();
        assert_eq!(tuned.kcflags[..4], base.kcflags[..]);
        assert!(tuned.kcflags.contains(&"-fprofile-sample-use=kerntune.afdo".to_string()));
        assert_eq!(tuned.profile_dir.unwrap(), std::path::Path::new("/w/clang-autofdo/p1/tree"));
        assert_eq!((tuned.profile_id.as_deref(), tuned.base_id.as_deref()), (Some("p1"), Some("k1")));

        assert!(!tuned.movable && !tuned.kcflags.contains(&SPLIT.to_string()));
        let upstream = tuned_request(&base, &kernel, &profile, Link::Upstream).unwrap();
        assert!(upstream.movable && upstream.kcflags.contains(&SPLIT.to_string()));
        let thin = tuned_request(&base, &kernel, &profile, Link::ThinLto).unwrap();
        assert!(thin.movable && thin.extra.ends_with(&["CONFIG_LTO_CLANG_THIN=y".to_string()]));
        let (name, linker) = thin.make_vars.last().unwrap();
        assert!(name == "LD" && linker.starts_with("ld.lld-19 --lto-sample-profile=kerntune.afdo "));

        let kernel = crate::test_kernel::kernel("/w/kernels/k1".as_ref(), "k1", "6.13.2");
        let base = base_request(&request(), "6.13.2").unwrap();
        let tuned = tuned_request(&base, &kernel, &profile, Link::Upstream).unwrap();
        assert!(!tuned.movable, "Kbuild does it all");
        assert_eq!(tuned.make_vars, [("CLANG_AUTOFDO_PROFILE".into(), "kerntune.afdo".into())]);
        assert!(!tuned.kcflags.iter().any(|flag| flag.starts_with("-fprofile-sample-use")));
    }
}
