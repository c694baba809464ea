//! Trust check for kernels from outside of the work directory: their files may name programs to
//! run.
//!
//! A rebuild runs the compiler that the manifest names, with the flags and make variables there, on
//! the source that it names, with patches beside it. Kernels in the work directory were built by
//! kerntune; others may come from anybody. They are accepted only if they run nothing but a
//! compiler on the PATH on the source of a Debian package. The checks list what is allowed, not
//! what is forbidden.

use crate::kernels::store::KIND;
use crate::{Error, Kernel, PatchSet, Result};
use kerntune_work::{read_file, IoContext, WorkDir};

/// Flag of objects whose counters nobody reads.
const NO_MERGE_FUNCTION: &str = "-Wa,--defsym,__gcov_merge_add=0";
/// Recipe flag that selects the assembler of the patches for value counters.
const OUR_ASSEMBLER: &str = "-B$(srctree)/scripts/gcov-values/";
/// Make variables that recipes set, except for the linker.
const VARIABLES: [&str; 3] = ["CFLAGS_GCOV", "CFLAGS_KERNEL", "CLANG_AUTOFDO_PROFILE"];
/// Make expansions that recipes use.
const EXPANSIONS: [&str; 7] =
    ["$@", "$(if ", "$(filter ", "$(obj)", "$(target-stem)", "$(GCOV_PROFILE_.o)", "$(GCOV_PROFILE)"];
/// Prefixes of flags for code generation. A flag with `plugin`, `load` or a path may still run
/// something.
const FLAGS: [&str; 10] = ["-O", "-f", "-g", "-m", "-W", "-D", "-U", "-std=", "--lto-", "--mllvm="];
/// Flags with an allowed prefix that choose programs or files.
const NOT_FLAGS: [&str; 9] =
    ["-Wl,", "-Wa,", "-Wp,", "-fuse-ld", "-fplugin", "-fpass-plugin", "-fdump", "-fprofile-dir", "-gsplit"];
/// Option of lld for link-time optimization. It begins like `-plugin` but loads nothing.
const LINKER_OPTIONS: &str = "-plugin-opt=";

/// Refuses to rebuild a kernel from outside of this work directory that names an unknown program.
///
/// # Errors
/// [`Error::UntrustedKernel`], with the reason.
pub(crate) fn check(work: &WorkDir, kernel: &Kernel) -> Result<()> {
    if is_ours(work, kernel) {
        return Ok(());
    }
    match unknown(kernel)? {
        Some(reason) => Err(refused(work, kernel, reason)),
        None => Ok(()),
    }
}

/// Refuses to link objects from outside of this work directory, because make would run the tools
/// beside them.
///
/// # Errors
/// [`Error::UntrustedKernel`].
pub(crate) fn check_objects(work: &WorkDir, kernel: &Kernel) -> Result<()> {
    match is_ours(work, kernel) {
        true => Ok(()),
        false => Err(refused(work, kernel, "its build directory has programs in it".into())),
    }
}

fn is_ours(work: &WorkDir, kernel: &Kernel) -> bool {
    kernel.dir.parent() == Some(&work.root().join(KIND))
}

fn refused(work: &WorkDir, kernel: &Kernel, reason: String) -> Error {
    let home = work.root().join(KIND).join(&kernel.manifest.id);
    Error::UntrustedKernel { dir: kernel.dir.clone(), reason, home }
}

/// Returns the first reason not to trust a kernel; `None` if there is none.
fn unknown(kernel: &Kernel) -> Result<Option<String>> {
    let of = &kernel.manifest;
    if !is_compiler(&of.cc) {
        return Ok(Some(not_a_compiler(&of.cc)));
    }
    if !of.source.origin.starts_with("debian:") {
        return Ok(Some(not_debian_source(&of.source.origin)));
    }
    for (name, value) in &of.make_vars {
        let known = match name.as_str() {
            "LD" => is_linker(value),
            name => VARIABLES.contains(&name) && is_plain(value),
        };
        if !known {
            return Ok(Some(format!(
                "the make variable `{name}={value}` is none that only says how to compile"
            )));
        }
    }
    let of_objects = of.object_flags.iter().flat_map(|object| object.add.iter().chain(&object.leave_out));
    let of_groups = of.object_groups.iter().flat_map(|group| &group.flags);
    let mut flags = of.kcflags.iter().chain(of_objects).chain(of_groups);
    if let Some(flag) = flags.find(|flag| !is_flag(flag)) {
        return Ok(Some(not_a_flag(flag)));
    }
    for name in &of.source.patches {
        let path = kernel.dir.join(name);
        if !PatchSet::has(&read_file(&path).at("read patch", &path)?) {
            return Ok(Some(format!("it has a patch of its own, {}", name)));
        }
    }
    let config = kernel.config();
    let text = read_file(&config).at("read", &config)?;
    Ok(line_acted_on(&String::from_utf8_lossy(&text)))
}

pub(crate) fn not_a_compiler(name: &str) -> String {
    format!("its compiler is `{name}`, not gcc, gcc-N, clang or clang-N on the PATH")
}

pub(crate) fn not_debian_source(origin: &str) -> String {
    format!("its source is {origin}, not a Debian package's, and make runs what stands there")
}

pub(crate) fn not_a_flag(flag: &str) -> String {
    format!("the compiler flag `{flag}` is none that only says what code to make")
}

/// Returns the first line of a configuration that make would act on: Kbuild includes the file as a
/// Makefile.
pub(crate) fn line_acted_on(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.starts_with('#') && line.contains(['$', '`', '\\']));
    line.map(|line| format!("make would act on `{line}` in its configuration"))
}

/// Accepts `gcc`, `clang`, and these with a version.
pub fn is_compiler(name: &str) -> bool {
    ["gcc", "clang"].iter().any(|known| is_program(name, known))
}

fn is_program(name: &str, known: &str) -> bool {
    let version = |rest: &str| {
        rest.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || version(rest))
}

/// Accepts lld, with its own options.
fn is_linker(value: &str) -> bool {
    let mut words = value.split(' ');
    let program = words.next().is_some_and(|program| is_program(program, "ld.lld"));
    program
        && words.all(|word| {
            is_flag(word.strip_prefix(LINKER_OPTIONS).map_or(word, |_| "-O"))
                && !runs(word)
                && !word.contains('/')
        })
}

/// Accepts flags, names of objects, and the make expansions that recipes use.
fn is_plain(value: &str) -> bool {
    let mut rest = value.replace(OUR_ASSEMBLER, "").replace(NO_MERGE_FUNCTION, "");
    for expansion in EXPANSIONS {
        rest = rest.replace(expansion, if expansion.ends_with(' ') { " (" } else { "" });
    }
    let flag = |word: &str| !word.starts_with('-') || is_flag(word);
    let words = rest.split([' ', '(', ')', ',']).filter(|word| !word.is_empty());
    is_inert(&rest)
        && !rest.contains('$')
        && words.into_iter().all(|word| !word.starts_with('@') && flag(word))
}

/// Checks that a text has nothing that the shell acts on.
fn is_inert(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || "'\"#`;&|<>\\!".contains(c))
}

pub(crate) fn is_flag(flag: &str) -> bool {
    FLAGS.iter().any(|with| flag.starts_with(with))
        && !NOT_FLAGS.iter().any(|with| flag.starts_with(with))
        && !runs(flag)
        && !flag.contains(['/', '@', '$', ' ', '('])
        && is_inert(flag)
}

/// Checks whether a flag with an allowed prefix loads code.
fn runs(flag: &str) -> bool {
    let value = flag.strip_prefix(LINKER_OPTIONS).unwrap_or(flag);
    // `-Wno-error=backend-plugin` is a warning's name.
    value.contains("load") || value.contains("plugin") && !value.starts_with("-W")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::store::tests::manifest;
    use std::fs;
    use std::path::Path;

    fn kernel(dir: &Path) -> Kernel {
        let mut manifest = manifest("aa11", "base", "2026-01-01T00:00:00Z");
        (manifest.cc, manifest.source.origin) = ("gcc".into(), "debian:6.12".into());
        (manifest.kcflags, manifest.make_vars) = (Vec::new(), Vec::new());
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("config"), "CONFIG_X=y\nCONFIG_LOCALVERSION=\"-kt\"\n# $(x)\n").unwrap();
        Kernel { dir: dir.canonicalize().unwrap(), manifest }
    }

    #[test]
    fn a_kernel_from_elsewhere_names_a_compiler_and_nothing_else_to_run() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let plain = kernel(&dir.path().join("foreign"));
        check(&work, &plain).unwrap();
        let refused = |word: &str, change: &dyn Fn(&mut crate::KernelManifest)| {
            let mut changed = plain.clone();
            change(&mut changed.manifest);
            let error = check(&work, &changed).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("work/kernels/aa11"), "{error}");
            // The same kernel in the work directory is trusted.
            let ours = Kernel { dir: work.root().join("kernels/aa11"), ..changed };
            check(&work, &ours).unwrap();
        };
        for cc in ["./gcc", "/tmp/gcc", "gcc-evil", "cc", "clang-", "clang++-19", "gcc -B."] {
            refused("its compiler", &|of| of.cc = cc.into());
        }
        for origin in ["/tmp/src", "x.tar.xz"] {
            refused("its source", &|of| of.source.origin = origin.into());
        }
        let vars = [
            ("HOSTCC", "gcc"),
            ("CC", "gcc"),
            ("PAHOLE", "x"),
            ("CONFIG_SHELL", "x"),
            ("LD", "./ld"),
            ("LD", "ld.lld-19 --load-pass-plugin=x.so"),
            ("LD", "ld.lld-19 -plugin-opt=/x"),
            ("LD", "ld.lld;id"),
            ("CFLAGS_GCOV", "$(shell id)"),
            ("CFLAGS_GCOV", "`id`"),
            ("CFLAGS_GCOV", "$$@(shell id)"),
            ("CFLAGS_GCOV", "-O2 -fplugin=x.so"),
            ("CFLAGS_GCOV", "-B/tmp"),
            ("CFLAGS_GCOV", "@file"),
            ("CFLAGS_KERNEL", "-O2; id"),
        ];
        for (name, value) in vars {
            refused("the make variable", &|of| of.make_vars = vec![(name.into(), value.into())]);
        }
        let flags = [
            "-fplugin=x.so",
            "-B.",
            "@file",
            "-wrapper",
            "--config=x",
            "-specs=x",
            "-Wl,-plugin,x",
            "-fuse-ld=./x",
            "-Xclang",
            "-load",
            "-mllvm=-load=x.so",
            "-fpass-plugin=x.so",
            "-fprofile-use=/x",
            "-o",
        ];
        for flag in flags {
            refused("the compiler flag", &|of| of.kcflags = vec![flag.into()]);
            let object = crate::ObjectFlags::add("kernel/fork.o", flag);
            refused("the compiler flag", &|of| of.object_flags = vec![object.clone()]);
        }
        fs::write(plain.dir.join("own.patch"), "--- a/Makefile").unwrap();
        refused("a patch of its own", &|of| of.source.patches = vec!["own.patch".parse().unwrap()]);
        fs::write(plain.dir.join("config"), "CONFIG_LOCALVERSION=\"$(shell id)\"\n").unwrap();
        refused("in its configuration", &|_| {});
        assert!(check_objects(&work, &plain).unwrap_err().to_string().contains("programs in it"));
    }

    #[test]
    fn what_recipes_ask_for_is_taken_from_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let mut kernel = kernel(&dir.path().join("foreign"));
        let patch = PatchSet::gcov_values("6.12.117").unwrap().write(&work).unwrap().remove(0);
        fs::copy(patch, kernel.dir.join("01.patch")).unwrap();
        let of = &mut kernel.manifest;
        of.source.patches = vec!["01.patch".parse().unwrap()];
        of.cc = "clang-19".into();
        of.kcflags = [
            "-fprofile-use",
            "-Wno-error=missing-profile",
            "-fopt-info-optimized-ipa",
            "-gmlt",
            "-ffunction-sections",
            "-mllvm=-enable-fs-discriminator=true",
            "-fprofile-sample-use=kerntune.afdo",
            "-march=x86-64-v3",
            "-O3",
            "-Wno-error=backend-plugin",
            "-fbasic-block-sections=list=kerntune-blocks.txt",
            "-fdebug-compilation-dir=.",
        ]
        .map(String::from)
        .to_vec();
        of.make_vars = [
            ("CFLAGS_GCOV", "$(if $(filter a/b.o arch/x86/kvm/%,$(obj)/$(target-stem).o),,-fprofile-values \
              -B$(srctree)/scripts/gcov-values/ -fprofile-arcs -frandom-seed=$@)"),
            ("CFLAGS_KERNEL", "$(if $(filter fs/namei.o,$(obj)/$(target-stem).o),$(if $(filter \
              n%,$(GCOV_PROFILE_$(target-stem).o)$(GCOV_PROFILE)y),,-fprofile-arcs -frandom-seed=$@ \
              -fprofile-info-section=.rodata -Wa,--defsym,__gcov_merge_add=0))"),
            ("CFLAGS_KERNEL", "$(if $(filter fs/namei.o,$(obj)/$(target-stem).o),-fno-profile-sample-use)"),
            ("CLANG_AUTOFDO_PROFILE", "kerntune.afdo"),
            ("LD", "ld.lld-19 --lto-sample-profile=kerntune.afdo --mllvm=-enable-fs-discriminator=true \
              -plugin-opt=thinlto -plugin-opt=-split-machine-functions -plugin-opt=-import-hot-multiplier=100"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec();
        check(&work, &kernel).unwrap();
    }
}
