//! Debian package of a kernel, with the very image that was measured, and its provenance.
//!
//! The layout follows Kbuild's `bindeb-pkg` (`scripts/package/builddeb`): `/boot/vmlinuz-NAME`,
//! `System.map-NAME`, `config-NAME`, `/lib/modules`, and maintainer scripts that call the hooks in
//! `/etc/kernel`, which make the initial RAM disk and the boot loader's entry. Kbuild does not
//! build the image, because it would make another one: the file that was proved, checked and
//! measured is packed as it is.

mod control;
#[cfg(test)]
mod tests;
mod tree;

use crate::kernels::manifest::KernelManifest;
use crate::kernels::modules::MODULES;
use crate::link::relink::ORDER;
use crate::{rebuild, tools, Arch, Error, Kernel, RebuildRequest, Result};
use control::PackageNames;
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::{
    checked, read_versioned, write_json, Hash, IoContext, Job, Key, PlainName, Progress, RelativePath, Seal,
    WorkDir,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::PackageTree;

/// Schema of a package's manifest.
pub const PACKAGE_SCHEMA: &str = "kerntune-package/1";

const KIND: &str = "packages";
const MANIFEST: &str = "package.json";
/// Programs that pack, with their Debian packages.
const TOOLS: &[(&str, &str)] = &[("dpkg-deb", "dpkg"), ("tar", "tar"), ("zstd", "zstd")];
/// Time of every file in a package, in seconds since 1970; the same time stamp as in the kernels.
const TIME: &str = "1735689600";

/// Contents of a package.
#[derive(Debug)]
pub struct PackageRequest<'a> {
    /// Kernel to pack.
    pub kernel: &'a Kernel,
    /// Profile that was compiled in, if any.
    pub profile: Option<ProfileFiles>,
    /// Further files about the kernel.
    pub extras: Vec<PackageExtra>,
}

/// Profile of a recipe, as the compiler got it.
#[derive(Debug, Clone)]
pub struct ProfileFiles {
    /// Directory of the profile's result.
    pub dir: PathBuf,
    /// Tree in `dir` that was copied into the build directory; see
    /// [`crate::BuildRequest::profile_dir`].
    pub tree: PathBuf,
}

/// File that is placed beside the kernel's provenance.
#[derive(Debug, Clone)]
pub struct PackageExtra {
    /// File name in the package.
    pub name: String,
    /// File to copy.
    pub path: PathBuf,
}

/// `package.json`: name, version and contents of a package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackageManifest {
    /// [`PACKAGE_SCHEMA`].
    pub schema: String,
    /// Id of the package: 16 hex digits, a hash over all inputs.
    pub id: String,
    /// Name of the Debian package.
    pub package: String,
    /// Version of the Debian package.
    pub version: String,
    /// Kernel release, as in `uname -r`.
    pub release: String,
    /// Suffix of the package's files in `/boot`.
    pub name: String,
    /// Id of the kernel.
    pub kernel: String,
    /// Label of the kernel.
    pub label: String,
    /// Recipe that built the kernel, if one did.
    pub recipe: Option<String>,
    /// Number of modules in the package.
    pub modules: u64,
    /// Name of the package file, beside this manifest.
    pub file: PlainName,
    /// Size of the package file in bytes.
    pub bytes: u64,
    /// Installed files, without directories and modules; sorted.
    pub installs: Vec<String>,
}

/// Debian package in the work directory.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelPackage {
    /// Result directory, absolute.
    pub dir: PathBuf,
    /// Name, version and contents.
    pub manifest: PackageManifest,
}

impl KernelPackage {
    /// Returns the path of the package file.
    pub fn file(&self) -> PathBuf {
        self.dir.join(&self.manifest.file)
    }

    fn load(dir: &Path) -> Result<Self> {
        let manifest: PackageManifest = read_versioned(&dir.join(MANIFEST), PACKAGE_SCHEMA)?;
        let package = Self { dir: dir.to_owned(), manifest };
        match package.file().is_file() {
            true => Ok(package),
            false => Err(Error::Damaged { dir: dir.to_owned(), reason: "its package is missing".into() }),
        }
    }
}

/// Reads the release (`uname -r`) from a kernel image.
fn release(image: &Path) -> Result<String> {
    let bytes = fs::read(image).at("read", image)?;
    GuestIsa::image_release(&bytes).map_err(|reason| Error::NotImage { path: image.to_owned(), reason })
}

/// Makes the package, or returns the existing one.
///
/// Modules that were built with the kernel are packed as they are. If the configuration has others,
/// the kernel is first [built again](rebuild), from its kept objects if possible, and the modules
/// are built with the same flags and profile. They belong to the kernel only if its image comes out
/// byte by byte as it was measured.
///
/// # Errors
/// Missing tools; [`Error::NotOfArch`] for a User-Mode Linux kernel; [`Error::NotReproduced`], and
/// the others of [`rebuild`], for a kernel with modules.
pub fn package(work: &WorkDir, request: &PackageRequest, progress: &dyn Progress) -> Result<KernelPackage> {
    let kernel = request.kernel;
    let arch = kernel.manifest.arch;
    if arch != Arch::X86_64 {
        return Err(Error::NotOfArch { what: "a package", arch });
    }
    tools::require(TOOLS)?;
    // Checks all files that are packed: image, configuration, symbols, order and patches.
    checked(&kernel.dir, &[])?;
    // Labels added later do not change the package.
    let of = KernelManifest { aliases: Vec::new(), ..kernel.manifest.clone() };
    let config = fs::read_to_string(kernel.config()).at("read", kernel.config())?;
    let release = release(&kernel.image())?;
    crate::inputs::release::check(&release, "")?;
    let names = PackageNames::of(&of, &release, &config);
    let key = package_key(request, &of, &names)?;
    let id = key.id();
    if let Some(dir) = work.find_verified(KIND, &id) {
        return KernelPackage::load(&dir);
    }
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return KernelPackage::load(&dir);
    }
    staged.clear()?;
    let tree = PackageTree::new(staged.path().join("tree"));
    for file in own_modules(kernel)?.keys() {
        tree.copy(&kernel.dir.join(file), file.as_ref())?;
    }
    if names.has_modules && !kernel.has_modules() {
        let modules_to = Some(tree.top().to_owned());
        let profile_dir = request.profile.as_ref().map(|profile| profile.tree.clone());
        let request = RebuildRequest { kernel, profile_dir, modules_to, from_kept: true, jobs: None };
        let again = rebuild(work, &request, progress)?;
        if let Some(kept) = again.kept {
            let differ = again.files.iter().filter(|file| file.first_difference.is_some());
            let what: Vec<&str> = differ.map(|file| file.name.as_str()).collect();
            let what = format!("{} differ, so that modules would not fit the image", what.join(", "));
            return Err(Error::NotReproduced { kernel: of.label, what, kept });
        }
    }
    progress.begin(&format!("package {}", of.label), None);
    let packed = pack(&tree, request, &of, &names);
    progress.end();
    let (modules, installs) = packed?;
    let file = format!("{}_{}_{}.deb", names.package, names.version, GuestIsa::DEBIAN);
    let deb = staged.path().join(&file);
    run_packer(&names, "dpkg-deb", |command| {
        // One thread, because xz's output depends on the number of threads.
        command.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]);
        command.arg(tree.top()).arg(&deb);
    })?;
    fs::remove_dir_all(tree.top()).at("remove", tree.top())?;
    let manifest = PackageManifest {
        schema: PACKAGE_SCHEMA.into(),
        id,
        package: names.package,
        version: names.version,
        release: names.release,
        name: names.name,
        kernel: of.id,
        label: of.label,
        recipe: of.recipe,
        modules,
        bytes: deb.metadata().at("look at", &deb)?.len(),
        file: file.parse()?,
        installs,
    };
    write_json(&staged.path().join(MANIFEST), &manifest)?;
    KernelPackage::load(&staged.publish()?)
}

/// Checks that a package has only the known fields and commands, whatever the kernel's manifest
/// contains. For fuzzing.
///
/// # Panics
/// The package has others.
pub(crate) fn check_texts(manifest: &KernelManifest, release: &str, config: &str) {
    if manifest.field_with_controls().is_some() || crate::inputs::release::check(release, "").is_err() {
        return;
    }
    let names = PackageNames::of(manifest, release, config);
    let control = names.control(0);
    let fields = control.lines().filter(|line| !line.starts_with(' '));
    let ours = [
        "Package",
        "Source",
        "Version",
        "Architecture",
        "Maintainer",
        "Installed-Size",
        "Depends",
        "Recommends",
    ];
    for field in fields {
        let (name, _) = field.split_once(": ").unwrap_or_else(|| panic!("no field: {field:?}"));
        let known =
            ours.contains(&name) || ["Section", "Priority", "Homepage", "Description"].contains(&name);
        assert!(known, "a field of the kernel's: {field:?}");
    }
    for script in control::SCRIPTS.map(|script| names.script_of(script)) {
        let quotes = script.lines().map(|line| line.matches('\'').count());
        assert!(
            quotes.clone().all(|count| count % 2 == 0 && count <= 4),
            "a name ends its quotation: {script}"
        );
    }
    assert!(!names.readme().chars().any(|c| c.is_control() && c != '\n'));
}

fn package_key(request: &PackageRequest, of: &KernelManifest, names: &PackageNames) -> Result<Key> {
    let about = serde_json::to_string(of).unwrap_or_default();
    let mut hash = Key::new("package/3", "")
        .field("kernel", about)
        .file("image", &request.kernel.image())?
        .field("control", names.control(0))
        .field("scripts", control::SCRIPTS.map(|script| names.script_of(script)).concat())
        .field("words", names.readme())
        .field("copyright", control::COPYRIGHT)
        .field("profile", if request.profile.is_some() { "inside" } else { "none" });
    for PackageExtra { name, path } in &request.extras {
        hash = hash.field("extra", name).file("content", path)?;
    }
    for (file, content) in own_modules(request.kernel)? {
        hash = hash.field("module", &file).field("content", &content);
    }
    Ok(hash)
}

/// Returns the files of modules that were built with the kernel, with their hashes: those that its
/// seal lists, and no links.
fn own_modules(kernel: &Kernel) -> Result<BTreeMap<RelativePath, Hash>> {
    let mut sums = Seal::read(&kernel.dir)?.sums(&kernel.dir)?;
    sums.retain(|file, _| AsRef::<Path>::as_ref(file).starts_with(MODULES));
    Ok(sums)
}

/// Fills the tree. Returns the number of modules and the list of other installed files.
fn pack(
    tree: &PackageTree,
    request: &PackageRequest,
    of: &KernelManifest,
    names: &PackageNames,
) -> Result<(u64, Vec<String>)> {
    let (kernel, name) = (request.kernel, &names.name);
    let (modules, kbuilds_own) = tree.files()?.into_iter().partition::<Vec<_>, _>(|f| f.contains(".ko"));
    tree.copy(&kernel.image(), &format!("boot/vmlinuz-{name}"))?;
    tree.copy(&kernel.config(), &format!("boot/config-{name}"))?;
    let map = kernel.dir.join("System.map");
    if map.is_file() {
        tree.copy(&map, &format!("boot/System.map-{name}"))?;
    }
    if !names.has_modules {
        // Without them initramfs-tools and depmod report missing files.
        for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
            tree.write(&format!("lib/modules/{name}/{list}"), "")?;
        }
    }
    let about = format!("usr/lib/kerntune/{name}");
    let json = serde_json::to_string_pretty(of).unwrap_or_default();
    tree.write(&format!("{about}/kernel.json"), &format!("{json}\n"))?;
    tree.write(&format!("{about}/README"), &names.readme())?;
    for file in sealed_files(kernel)? {
        tree.copy(&kernel.dir.join(&file), &format!("{about}/{file}"))?;
    }
    for PackageExtra { name, path } in &request.extras {
        tree.copy(path, &format!("{about}/{name}"))?;
    }
    if let Some(profile) = &request.profile {
        archive(profile, &tree.path(&format!("{about}/profile.tar.zst"))?, names)?;
    }
    tree.write(&format!("usr/share/doc/{}/copyright", names.package), control::COPYRIGHT)?;
    let mut installs = tree.files()?;
    installs.retain(|file| {
        !modules.contains(file) && !kbuilds_own.contains(file) && !file.starts_with("lib/modules")
    });
    let installs: Vec<String> = installs.into_iter().map(|file| format!("/{file}")).collect();
    tree.write("DEBIAN/control", &names.control(tree.bytes()?))?;
    tree.normalize()?;
    for script in control::SCRIPTS {
        tree.write_script(&format!("DEBIAN/{script}"), &names.script_of(script))?;
    }
    Ok((modules.len() as u64, installs))
}

/// Returns the kernel's order and patches. Only files that its seal lists are packed, and no links,
/// which may lead anywhere.
fn sealed_files(kernel: &Kernel) -> Result<Vec<RelativePath>> {
    let sums = Seal::read(&kernel.dir)?.sums(&kernel.dir)?;
    let patches = &kernel.manifest.source.patches;
    if let Some(patch) = patches.iter().find(|patch| !sums.contains_key(*patch)) {
        let reason = format!("it has no patch {patch}");
        return Err(Error::Damaged { dir: kernel.dir.clone(), reason });
    }
    let order = sums.keys().filter(|file| **file == ORDER).cloned();
    Ok(order.chain(patches.iter().cloned()).collect())
}

/// Packs the profile into one file; counters alone are a thousand files.
fn archive(profile: &ProfileFiles, to: &Path, names: &PackageNames) -> Result<()> {
    let relative = profile.tree.strip_prefix(&profile.dir).unwrap_or(&profile.tree).to_owned();
    run_packer(names, "tar", |command| {
        command.args([
            "--create",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--format=gnu",
        ]);
        command
            .arg(format!("--mtime=@{TIME}"))
            .args(["--mode=u+rw,go=rX", "--use-compress-program=zstd -19 -q"]);
        command.arg("--file").arg(to).arg("--directory").arg(&profile.dir);
        command.arg("profile.json").arg(relative);
    })
}

fn run_packer(
    names: &PackageNames,
    program: &'static str,
    arguments: impl FnOnce(&mut Command),
) -> Result<()> {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("SOURCE_DATE_EPOCH", TIME).env_remove("TAR_OPTIONS");
    arguments(&mut command);
    let (end, said) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    Err(Error::Package { package: names.package.clone(), program, said: said.trim().to_string() })
}
