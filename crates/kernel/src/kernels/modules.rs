//! Modules of a kernel: found by name, unpacked, and in an order in which they can be loaded.
//!
//! A module says itself what it depends on, in its section `.modinfo`, where depmod reads it too.
//! `modules.dep` is not read: packages of distributions leave it to their installation, and no name
//! of a file is taken from a text.

use crate::inputs::packed::{read_bytes, Limit};
use crate::inputs::regular_files::regular_files;
use crate::{Error, Kernel, Result};
use kerntune_work::IoContext;
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of modules in a kernel's result, with one directory named as the release.
pub(crate) const MODULES: &str = "lib/modules";
/// Limit of an unpacked module in bytes; one with all debug information has some 100 MiB.
const LIMIT: Limit = Limit { bytes: 256 << 20, of: "module", read: "read module" };
/// Names to suggest in place of an unknown one.
const SUGGESTED: usize = 3;

/// Modules that were built or imported with a kernel.
#[derive(Debug)]
pub struct KernelModules {
    kernel: String,
    /// `uname -r`; empty without modules.
    release: String,
    /// Directory of the release.
    dir: PathBuf,
    /// Paths below `dir` by name; names have `_` for every `-`.
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    config: String,
}

/// A module with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelModule {
    /// Name as in `/proc/modules`.
    pub name: String,
    /// Path below `/lib/modules/RELEASE`, without the suffix of a compression.
    pub path: PathBuf,
    /// ELF file, unpacked.
    pub bytes: Vec<u8>,
    /// Names of the modules that must be there before.
    pub depends: Vec<String>,
}

/// Returns the module's name as the kernel has it: with `_` for every `-`.
pub fn module_name(name: &str) -> String {
    name.replace('-', "_")
}

impl Kernel {
    /// Checks whether modules were built or imported with the kernel.
    pub fn has_modules(&self) -> bool {
        self.dir.join(MODULES).is_dir()
    }

    /// Finds the kernel's modules; a kernel may have none, and drivers that are built in.
    ///
    /// # Errors
    /// A configuration or directory that cannot be read.
    pub fn modules(&self) -> Result<KernelModules> {
        let config = fs::read_to_string(self.config()).at("read", self.config())?;
        let mut modules = KernelModules {
            kernel: self.manifest.label.clone(),
            release: String::new(),
            dir: self.dir.join(MODULES),
            files: BTreeMap::new(),
            built_in: BTreeSet::new(),
            config,
        };
        let releases = fs::read_dir(&modules.dir).into_iter().flatten().flatten();
        let Some(release) = releases.filter_map(|entry| entry.file_name().into_string().ok()).min() else {
            return Ok(modules);
        };
        modules.dir.push(&release);
        modules.release = release;
        for path in regular_files(&modules.dir)? {
            // `updates/` comes after `kernel/`, and is to be preferred.
            if let Some(name) = name_of(&path) {
                modules.files.insert(name, path);
            }
        }
        // Absent from a directory that nobody installed.
        let built_in = fs::read_to_string(modules.dir.join("modules.builtin")).unwrap_or_default();
        modules.built_in = built_in.lines().filter_map(|line| name_of(Path::new(line))).collect();
        Ok(modules)
    }
}

impl KernelModules {
    /// Returns the release (`uname -r`), which names the modules' directory in `/lib/modules`; empty
    /// for a kernel without modules.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Returns the source path of each module's object by the module's name: `fs/ext4/ext4.ko` of
    /// `ext4`. Modules that were not built with the kernel are left out.
    pub fn object_paths(&self) -> BTreeMap<String, String> {
        let source = |path: &Path| {
            let below = path.strip_prefix("kernel").ok()?;
            Some(below.with_file_name(format!("{}.ko", stem(path)?)).display().to_string())
        };
        self.files.iter().filter_map(|(name, path)| Some((name.clone(), source(path)?))).collect()
    }

    /// Returns the modules of these names and those that they depend on, in an order in which they
    /// can be loaded. Left out is what is built into the kernel.
    ///
    /// # Errors
    /// [`Error::NoModule`], with the nearest names; [`Error::BadModule`].
    pub fn load<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<KernelModule>> {
        let mut order = LoadOrder { of: self, seen: BTreeSet::new(), modules: Vec::new() };
        for name in names {
            order.add(name, None)?;
        }
        Ok(order.modules)
    }

    /// Checks whether the driver is built into the kernel, by the list of those that could be
    /// modules or else by the option of its name.
    fn is_built_in(&self, name: &str) -> bool {
        let options = options_of(name);
        let has = |line: &str| {
            line.strip_suffix("=y").is_some_and(|option| options.iter().any(|named| named == option))
        };
        self.built_in.contains(name) || self.config.lines().any(has)
    }

    /// Returns the modules that go by this name in `modules.alias`, if the kernel has that file.
    fn aliased(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("modules.alias")).unwrap_or_default();
        aliases(&text, name)
    }

    fn read(&self, name: &str, path: &Path) -> Result<(KernelModule, Vec<String>)> {
        let from = self.dir.join(path);
        let bytes = read_bytes(&from, LIMIT)?;
        let bad = |reason: String| Error::BadModule { path: from.clone(), reason };
        let info = ModuleInfo::parse(&bytes).ok_or_else(|| bad("it has no .modinfo".into()))?;
        if let Some(other) = info.release.filter(|release| *release != self.release) {
            return Err(bad(format!("it is for the kernel {other}, not {}", self.release)));
        }
        let path = path.with_file_name(format!("{}.ko", stem(path).unwrap_or(name)));
        Ok((KernelModule { name: name.into(), path, bytes, depends: info.depends }, info.before))
    }

    fn unknown(&self, name: &str, needed_by: Option<&str>) -> Error {
        let lacks = options_of(name).map(|option| format!("# {option} is not set"));
        let help = if self.files.is_empty() {
            "it has no modules at all; `kerntune kernel build --modules` builds them, and `kerntune kernel import` takes them \
             with a kernel (docs/kernel-import.md)"
                .into()
        } else if let Some(line) = self.config.lines().find(|line| lacks.iter().any(|lacks| lacks == line)) {
            format!("its configuration has `{line}`")
        } else {
            match &self.nearest(name)[..] {
                [] => format!("the {} that it has are in {}", self.files.len(), self.dir.display()),
                near => format!("did you mean {}?", near.join(" or ")),
            }
        };
        let needed_by = needed_by.map_or(String::new(), |module| format!(", which `{module}` depends on"));
        Error::NoModule { kernel: self.kernel.clone(), name: format!("`{name}`{needed_by}"), help }
    }

    /// Returns the names that are most like this one, the nearest first.
    fn nearest(&self, name: &str) -> Vec<&str> {
        let mut near: Vec<(usize, &str)> = self
            .files
            .keys()
            .map(|known| (strsim::levenshtein(name, known), known.as_str()))
            .filter(|(distance, known)| *distance <= name.len().max(3) / 3 || known.contains(name))
            .collect();
        near.sort_unstable();
        near.into_iter().take(SUGGESTED).map(|(_, known)| known).collect()
    }
}

/// Modules collected so far, each behind those that it depends on.
struct LoadOrder<'a> {
    of: &'a KernelModules,
    seen: BTreeSet<String>,
    modules: Vec<KernelModule>,
}

impl LoadOrder<'_> {
    fn add(&mut self, name: &str, needed_by: Option<&str>) -> Result<()> {
        let name = module_name(name);
        let Some(path) = self.of.files.get(&name) else {
            if self.of.is_built_in(&name) {
                return Ok(());
            }
            let aliased = self.of.aliased(&name);
            if aliased.is_empty() {
                return Err(self.of.unknown(&name, needed_by));
            }
            // Aliases may lead to each other.
            return match self.seen.insert(name) {
                true => aliased.iter().try_for_each(|module| self.add_known(module)),
                false => Ok(()),
            };
        };
        // Before what it depends on, so that a circle ends.
        if !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let (module, before) = self.of.read(&name, path)?;
        before.iter().try_for_each(|other| self.add_known(other))?;
        module.depends.iter().try_for_each(|other| self.add(other, Some(&name)))?;
        self.modules.push(module);
        Ok(())
    }

    /// Adds a module, unless the kernel lacks it or what it depends on.
    fn add_known(&mut self, name: &str) -> Result<()> {
        match self.add(name, None) {
            Err(Error::NoModule { .. }) => Ok(()),
            other => other,
        }
    }
}

/// Facts that a module has about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ModuleInfo {
    /// Modules that must be loaded before.
    depends: Vec<String>,
    /// Modules that should be loaded before, where they exist (`softdep=pre:`).
    before: Vec<String>,
    /// Release of the kernel that it was built for.
    release: Option<String>,
}

impl ModuleInfo {
    /// Reads the section `.modinfo` of an ELF file; `None` if there is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let section = file.section_by_name(".modinfo")?.data().ok()?;
        let mut info = Self::default();
        for text in section.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok()) {
            match text.split_once('=') {
                Some(("depends", names)) => {
                    info.depends.extend(names.split(',').filter(|name| !name.is_empty()).map(module_name));
                }
                Some(("softdep", words)) => {
                    let pre = words.split_whitespace().skip_while(|word| *word != "pre:").skip(1);
                    info.before.extend(pre.take_while(|word| *word != "post:").map(module_name));
                }
                Some(("vermagic", words)) => {
                    info.release = words.split_whitespace().next().map(str::to_owned);
                }
                _ => {}
            }
        }
        Some(info)
    }
}

/// Returns the modules behind an alias without wildcards.
pub(crate) fn aliases(text: &str, name: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let is_named = words.next() == Some("alias") && module_name(words.next()?) == name;
            words.next().filter(|_| is_named).map(str::to_owned)
        })
        .collect()
}

/// Returns the file's name before `.ko`; `None` for another file.
fn stem(path: &Path) -> Option<&str> {
    const SUFFIXES: [&str; 4] = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"];
    let name = path.file_name()?.to_str()?;
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).filter(|stem| !stem.is_empty())
}

fn name_of(path: &Path) -> Option<String> {
    stem(path).map(module_name)
}

/// Options of which a module is likely the driver: `EXT4_FS`, `VETH`.
fn options_of(name: &str) -> [String; 2] {
    ["", "_FS"].map(|suffix| format!("CONFIG_{}{suffix}", name.to_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::store::tests::manifest;
    use crate::kernels::test_module::module;
    use flate2::write::GzEncoder;
    use flate2::Compression;
    use std::io::Write;
    use std::process::Command;

    const RELEASE: &str = "6.12.1-x";

    /// A kernel with these modules: path and lines of `.modinfo`.
    fn kernel(dir: &Path, config: &str, modules: &[(&str, &[&str])]) -> Kernel {
        fs::write(dir.join("config"), config).unwrap();
        for (path, info) in modules {
            let path = dir.join(MODULES).join(RELEASE).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, module(info)).unwrap();
        }
        Kernel { dir: dir.to_owned(), manifest: manifest("aa11", "base", "2025-01-01T00:00:00Z") }
    }

    fn names(modules: &[KernelModule]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn a_module_comes_behind_what_it_depends_on() {
        let dir = tempfile::tempdir().unwrap();
        let magic = "vermagic=6.12.1-x SMP mod_unload ";
        let kernel = kernel(
            dir.path(),
            "CONFIG_VETH=y\n# CONFIG_XFS_FS is not set\nCONFIG_OVERLAY_FS=y\n",
            &[
                (
                    "kernel/fs/ext4/ext4.ko",
                    &[magic, "depends=jbd2,mbcache", "softdep=pre: hash absent post: zz"],
                ),
                ("kernel/fs/jbd2/jbd2.ko", &["depends="]),
                ("kernel/fs/mbcache.ko", &["depends=jbd2", "depends=mbcache"]),
                ("kernel/lib/crc32c_generic.ko", &[]),
                ("kernel/net/nf-nat.ko", &["depends=gone"]),
                ("kernel/zz.ko", &["vermagic=6.11 SMP"]),
                ("updates/crc32c.ko", &["name=newer"]),
                ("kernel/crc32c.ko", &[]),
            ],
        );
        let dir = kernel.dir.join(MODULES).join(RELEASE);
        fs::write(dir.join("modules.builtin"), "kernel/drivers/virtio/virtio-pci.ko\n").unwrap();
        fs::write(
            dir.join("modules.alias"),
            "# x\nalias fs-ext3 ext4\nalias hash crc32c\nalias loop loop\nalias pci:v* zz\nalias\n",
        )
        .unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("kernel/link.ko")).unwrap();
        let modules = kernel.modules().unwrap();
        assert_eq!(modules.release(), RELEASE);
        let loaded = modules.load(["ext4", "jbd2", "virtio_pci", "veth", "overlay"]).unwrap();
        assert_eq!(names(&loaded), ["crc32c", "jbd2", "mbcache", "ext4"]);
        assert!(loaded[0].path == Path::new("updates/crc32c.ko") && loaded[3].depends == ["jbd2", "mbcache"]);
        assert_eq!(names(&modules.load(["fs-ext3"]).unwrap()), names(&loaded));
        assert!(modules.load(["loop"]).unwrap().is_empty());
        let said = |name: &str| modules.load([name]).unwrap_err().to_string();
        assert!(said("ext5").contains("no module `ext5`: did you mean ext4?"), "{}", said("ext5"));
        assert!(said("xfs").contains("has `# CONFIG_XFS_FS is not set`"), "{}", said("xfs"));
        assert!(said("nf_nat").contains("`gone`, which `nf_nat` depends on"), "{}", said("nf_nat"));
        assert!(said("zz").contains("it is for the kernel 6.11, not 6.12.1-x"), "{}", said("zz"));
        assert!(said("link").contains("no module `link`") && said("../../etc").contains("no module"));
        fs::write(dir.join("kernel/zz.ko"), "no ELF").unwrap();
        assert!(said("zz").contains("no .modinfo"), "{}", said("zz"));
    }

    #[test]
    fn a_kernel_without_modules_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let modules = kernel(dir.path(), "CONFIG_EXT4_FS=y\n", &[]).modules().unwrap();
        assert!(modules.load(["ext4"]).unwrap().is_empty());
        let error = modules.load(["veth"]).unwrap_err().to_string();
        assert!(error.contains("kernel base has no module `veth`: it has no modules at all"), "{error}");
    }

    #[test]
    fn packed_modules_are_unpacked_and_those_without_end_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = kernel(dir.path(), "", &[("kernel/a.ko", &[]), ("kernel/b.ko", &["depends=a"])]);
        let dir = kernel.dir.join(MODULES).join(RELEASE).join("kernel");
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&fs::read(dir.join("a.ko")).unwrap()).unwrap();
        fs::write(dir.join("a.ko.gz"), gzip.finish().unwrap()).unwrap();
        fs::remove_file(dir.join("a.ko")).unwrap();
        let packed = Command::new("xz").arg(dir.join("b.ko")).status().unwrap();
        assert!(packed.success());
        let loaded = kernel.modules().unwrap().load(["b"]).unwrap();
        assert_eq!(names(&loaded), ["a", "b"]);
        assert_eq!(loaded[0].bytes, module(&[]));
        assert_eq!(loaded[1].path, Path::new("kernel/b.ko"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0; 1 << 20];
        (0..=LIMIT.bytes >> 20).for_each(|_| gzip.write_all(&zeros).unwrap());
        fs::write(dir.join("a.ko.gz"), gzip.finish().unwrap()).unwrap();
        let error = kernel.modules().unwrap().load(["b"]).unwrap_err().to_string();
        assert!(error.contains("cannot read module") && error.contains("more than 256 MiB"), "{error}");
    }
}
