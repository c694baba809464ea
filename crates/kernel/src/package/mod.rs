//! A Debian package of a kernel: the very image that was measured, and what it was made from.
//!
//! It is laid out as Kbuild's `bindeb-pkg` does (`scripts/package/builddeb`): `/boot/vmlinuz-NAME`,
//! `System.map-NAME`, `config-NAME`, `/lib/modules`, and maintainer scripts that call the hooks in `/etc/kernel`,
//! which make the initial RAM disk and the boot loader's entry. Kbuild itself is not asked for the image, because it
//! would make another one: the file that was proved, checked and measured is packed as it is.

mod control;
#[cfg(test)]
mod tests;
mod tree;

use crate::manifest::KernelManifest;
use crate::relink::ORDER;
use crate::{rebuild, tools, Arch, Error, Kernel, RebuildRequest, Result};
use control::Names;
use kerntune_isa::{Guest, Isa};
use kerntune_work::{
    checked, read_versioned, write_json, IoContext, Job, Key, PlainName, Progress, RelativePath, Seal,
    WorkDir,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::Tree;

/// The version of the manifest of a package.
pub const PACKAGE_SCHEMA: &str = "kerntune-package/1";

const KIND: &str = "packages";
const MANIFEST: &str = "package.json";
/// What packs, with the Debian packages.
const TOOLS: &[(&str, &str)] = &[("dpkg-deb", "dpkg"), ("tar", "tar"), ("zstd", "zstd")];
/// The time of every file in a package, in seconds since 1970: what the kernels themselves are stamped with.
const TIME: &str = "1735689600";

/// What to pack.
#[derive(Debug)]
pub struct PackageRequest<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The profile that was compiled in, if one was.
    pub profile: Option<ProfileFiles>,
    /// More files about it.
    pub extras: Vec<Extra>,
}

/// A recipe's profile: what the compiler was given.
#[derive(Debug, Clone)]
pub struct ProfileFiles {
    /// The directory of the result.
    pub dir: PathBuf,
    /// The tree in it that was copied into the build directory; see [`crate::BuildRequest::profile_dir`].
    pub tree: PathBuf,
}

/// A file that is put beside the kernel's provenance.
#[derive(Debug, Clone)]
pub struct Extra {
    /// Its name there.
    pub name: String,
    /// What is copied.
    pub path: PathBuf,
}

/// `package.json`: what a package is and has in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackageManifest {
    /// [`PACKAGE_SCHEMA`].
    pub schema: String,
    /// 16 hex digits over everything that went in.
    pub id: String,
    /// Name of the Debian package.
    pub package: String,
    /// Version of the Debian package.
    pub version: String,
    /// What `uname -r` says when it runs.
    pub release: String,
    /// What its files in `/boot` end in.
    pub name: String,
    /// The kernel's id.
    pub kernel: String,
    /// The kernel's label.
    pub label: String,
    /// The recipe that the kernel was made by, if it was.
    pub recipe: Option<String>,
    /// Modules in it.
    pub modules: u64,
    /// The package's file, beside this manifest.
    pub file: PlainName,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it installs, without directories and modules; sorted.
    pub installs: Vec<String>,
}

/// A package in the work directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The result directory, absolute.
    pub dir: PathBuf,
    /// What it is.
    pub manifest: PackageManifest,
}

impl Package {
    /// The package's file.
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

/// What `uname -r` says in the kernel of this image.
fn release(image: &Path) -> Result<String> {
    let bytes = fs::read(image).at("read", image)?;
    Guest::image_release(&bytes).map_err(|reason| Error::NotImage { path: image.to_owned(), reason })
}

/// Makes the package, or hands over the one that is there.
///
/// If the configuration has modules, the kernel is [built again](rebuild) first, from the objects that it was linked from if they
/// were kept, and they are made by the same flags and the same profile: only if the image comes out byte by byte as it was
/// measured do they belong to it.
///
/// # Errors
/// Missing tools; [`Error::NotOfArch`] for a kernel that no computer boots; [`Error::NotReproduced`], and the others
/// of [`rebuild`], for a kernel with modules.
pub fn package(work: &WorkDir, request: &PackageRequest, progress: &dyn Progress) -> Result<Package> {
    let kernel = request.kernel;
    let arch = kernel.manifest.arch;
    if arch != Arch::X86_64 {
        return Err(Error::NotOfArch { what: "a package", arch });
    }
    tools::require(TOOLS)?;
    // Image, configuration, symbols, order and patches: all that is packed.
    checked(&kernel.dir, &[])?;
    // Names that the kernel got later are none of the package's business.
    let of = KernelManifest { aliases: Vec::new(), ..kernel.manifest.clone() };
    let config = fs::read_to_string(kernel.config()).at("read", kernel.config())?;
    let release = release(&kernel.bzimage())?;
    crate::release::check(&release, "")?;
    let names = Names::of(&of, &release, &config);
    let key = package_key(request, &of, &names)?;
    let id = key.id();
    if let Some(dir) = work.sound(KIND, &id) {
        return Package::load(&dir);
    }
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return Package::load(&dir);
    }
    staged.clear()?;
    let tree = Tree::new(staged.path().join("tree"));
    if names.has_modules {
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
    let file = format!("{}_{}_amd64.deb", names.package, names.version);
    let deb = staged.path().join(&file);
    run_packer(&names, "dpkg-deb", |command| {
        // One thread: how many there are shows in what xz writes.
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
    Package::load(&staged.publish()?)
}

/// That a package has the fields and commands of every package, whatever its kernel says of itself. For tests with damaged input.
///
/// # Panics
/// It has others.
pub(crate) fn check_texts(manifest: &KernelManifest, release: &str, config: &str) {
    if manifest.field_with_controls().is_some() || crate::release::check(release, "").is_err() {
        return;
    }
    let names = Names::of(manifest, release, config);
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

fn package_key(request: &PackageRequest, of: &KernelManifest, names: &Names) -> Result<Key> {
    let about = serde_json::to_string(of).unwrap_or_default();
    let mut hash = Key::new("package/3", "")
        .field("kernel", about)
        .file("image", &request.kernel.bzimage())?
        .field("control", names.control(0))
        .field("scripts", control::SCRIPTS.map(|script| names.script_of(script)).concat())
        .field("words", names.readme())
        .field("copyright", control::COPYRIGHT)
        .field("profile", if request.profile.is_some() { "inside" } else { "none" });
    for Extra { name, path } in &request.extras {
        hash = hash.field("extra", name).file("content", path)?;
    }
    Ok(hash)
}

/// Fills the tree. The number of modules, and what else is installed.
fn pack(
    tree: &Tree,
    request: &PackageRequest,
    of: &KernelManifest,
    names: &Names,
) -> Result<(u64, Vec<String>)> {
    let (kernel, name) = (request.kernel, &names.name);
    let (modules, kbuilds_own) = tree.files()?.into_iter().partition::<Vec<_>, _>(|f| f.contains(".ko"));
    tree.copy(&kernel.bzimage(), &format!("boot/vmlinuz-{name}"))?;
    tree.copy(&kernel.config(), &format!("boot/config-{name}"))?;
    let map = kernel.dir.join("System.map");
    if map.is_file() {
        tree.copy(&map, &format!("boot/System.map-{name}"))?;
    }
    if !names.has_modules {
        // Else initramfs-tools and depmod complain of what they do not find.
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
    for Extra { name, path } in &request.extras {
        tree.copy(path, &format!("{about}/{name}"))?;
    }
    if let Some(profile) = &request.profile {
        archive(profile, &tree.path(&format!("{about}/profile.tar.zst"))?, names)?;
    }
    tree.write(&format!("usr/share/doc/{}/copyright", names.package), control::COPYRIGHT)?;
    // Kbuild leaves links to this machine's build directory.
    tree.forget(&format!("lib/modules/{}/build", names.release))?;
    tree.forget(&format!("lib/modules/{}/source", names.release))?;
    let mut installs = tree.files()?;
    installs.retain(|file| {
        !modules.contains(file) && !kbuilds_own.contains(file) && !file.starts_with("lib/modules")
    });
    let installs: Vec<String> = installs.into_iter().map(|file| format!("/{file}")).collect();
    tree.write("DEBIAN/control", &names.control(tree.bytes()?))?;
    tree.normalise()?;
    for script in control::SCRIPTS {
        tree.write_script(&format!("DEBIAN/{script}"), &names.script_of(script))?;
    }
    Ok((modules.len() as u64, installs))
}

/// The kernel's order and patches. Only a file that its seal lists is packed, and no link, which may lead anywhere.
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

/// The profile as one file: counters of every object of a kernel are a thousand of them.
fn archive(profile: &ProfileFiles, to: &Path, names: &Names) -> Result<()> {
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

fn run_packer(names: &Names, program: &'static str, arguments: impl FnOnce(&mut Command)) -> Result<()> {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("SOURCE_DATE_EPOCH", TIME).env_remove("TAR_OPTIONS");
    arguments(&mut command);
    let (end, said) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    Err(Error::Package { package: names.package.clone(), program, said: said.trim().to_string() })
}
