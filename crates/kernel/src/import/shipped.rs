//! Import of a shipped kernel into the work directory.

use crate::import::files::ShippedFiles;
use crate::import::image_elf::ImageElf;
use crate::import::kallsyms::{self, ImageSymbol};
use crate::import::symbol_table::with_symbols;
use crate::import::{packages, payload};
use crate::inputs::fragment;
use crate::inputs::packed::read_text;
use crate::inputs::regular_files::regular_files;
use crate::inputs::source::SHIPPED;
use crate::kernels::build_id;
use crate::kernels::manifest::{rfc3339, SCHEMA};
use crate::kernels::modules::MODULES;
use crate::kernels::store::{add_label, KIND, MANIFEST, TRASH};
use crate::vmlinux::image::code;
use crate::vmlinux::known_sources;
use crate::vmlinux::offsets;
use crate::vmlinux::source_map::{self, SourceMap};
use crate::{
    build_id_of, running_build_id, Arch, CompilerIdentity, Error, Kernel, KernelManifest, Result,
    SourceRecord, StructureOffsets, Symbols, TaskLayout,
};
use kerntune_debuginfo::{BtfTypes, DwarfTypes, Elf, MappedFile, TypeSource};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::{interrupt, read_file, write_json, ContentHash, IoContext, Key, WorkDir};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Version of the rule that makes these kernels.
const RULE: &str = "import/4";
/// Directory of packages that apt downloaded.
const APT_CACHE: &str = "/var/cache/apt/archives";
/// Directory of packages that `scripts/setup` downloads.
const PREPARED: &str = "/var/lib/kerntune/kernel";
/// Begin of EFI programs, which kernel images are as well.
const EFI_PROGRAM: &[u8] = b"MZ";
const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Files of a kernel to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShippedKernel {
    /// Debian's packages of one kernel, or pacman's.
    Packages(Vec<PathBuf>),
    /// Single files.
    Files(ShippedFiles),
}

impl ShippedKernel {
    /// Finds the files of the kernel that runs on this machine.
    ///
    /// # Errors
    /// Files that are missing, or are of another kernel than the running one.
    pub fn running() -> Result<Self> {
        let path = Path::new(RELEASE_FILE);
        let release = fs::read_to_string(path).at("read", path)?.trim().to_owned();
        let mut files = match ShippedFiles::below(Path::new("/"), &release) {
            Ok(files) => files,
            Err(missing) => {
                let downloaded = packages::downloaded(Path::new(APT_CACHE), &release);
                return if downloaded.is_empty() { Err(missing) } else { Ok(Self::Packages(downloaded)) };
            }
        };
        let running = running_build_id();
        // Debug information of another version may have been left behind.
        files.vmlinux =
            files.vmlinux.filter(|path| running.is_some() && build_id_of(path).is_ok_and(|id| id == running));
        Ok(Self::Files(files))
    }

    /// Finds the packages of the distribution's kernel that `scripts/setup` downloaded; `None` if
    /// there are none.
    pub fn prepared() -> Option<Self> {
        Some(packages::prepared(Path::new(PREPARED))).filter(|found| !found.is_empty()).map(Self::Packages)
    }

    fn key(&self) -> Result<Key> {
        let key = Key::new(RULE, "");
        match self {
            Self::Packages(packages) => {
                packages.iter().try_fold(key, |key, path| Ok(key.file("package", path)?))
            }
            Self::Files(ShippedFiles { image, config, vmlinux, modules }) => {
                let mut key = key.file("image", image)?;
                if let Some(config) = config {
                    key = key.file("config", config)?;
                }
                if let Some(vmlinux) = vmlinux {
                    key = key.file("vmlinux", vmlinux)?;
                }
                match modules {
                    Some(modules) => Ok(key.field("modules", hash(modules)?)),
                    None => Ok(key),
                }
            }
        }
    }
}

/// Makes a kernel of the work directory from files that a distribution ships. The label is the
/// release if none is given. The id is a hash over the contents of the files; an existing kernel is
/// returned.
///
/// # Errors
/// [`Error::CannotImport`]: images that cannot be unpacked or have neither symbols nor type
/// information, a `vmlinux` of another kernel.
pub fn import(work: &WorkDir, given: &ShippedKernel, label: Option<&str>) -> Result<Kernel> {
    let key = given.key()?;
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        let kernel = Kernel::load(&dir)?;
        return match label {
            Some(label) => add_label(work, kernel, label),
            None => Ok(kernel),
        };
    }
    staged.clear()?;
    let partial = staged.path();
    let scratch = partial.join(TRASH);
    fs::create_dir_all(&scratch).at("create", &scratch)?;
    let made = match given {
        ShippedKernel::Packages(all) => packages::unpack(all, &scratch)
            .and_then(|files| collect(partial, &scratch, &files, (&key.id(), label))),
        ShippedKernel::Files(files) => collect(partial, &scratch, files, (&key.id(), label)),
    };
    if let Err(error) = made {
        staged.clear()?;
        return Err(error);
    }
    remove_dir(&scratch)?;
    Kernel::load(&staged.publish()?)
}

fn remove_dir(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).at("delete", dir).map_err(Error::from)
}

/// Writes the kernel's files into `partial`.
fn collect(
    partial: &Path,
    scratch: &Path,
    files: &ShippedFiles,
    (id, label): (&str, Option<&str>),
) -> Result<()> {
    let refuse = |path: &Path, reason: String| Error::CannotImport { path: path.to_owned(), reason };
    let image = read_file(&files.image).at("read", &files.image)?;
    let release = GuestIsa::image_release(&image).map_err(|reason| {
        let hint = match image.starts_with(EFI_PROGRAM) {
            true => "; `objcopy -O binary --only-section=.linux IMAGE vmlinuz` takes the kernel out of a unified kernel image",
            false => "",
        };
        refuse(&files.image, format!("{reason}{hint}"))
    })?;
    interrupt::check()?;
    let unpacked = payload::unpack(&image, &files.image, scratch)?;
    interrupt::check()?;
    let elf = ImageElf::parse(&unpacked).map_err(|error| refuse(&files.image, error.to_string()))?;
    let config = match &files.config {
        Some(config) => read_text(config)?,
        None => payload::config(&unpacked).ok_or_else(|| {
            refuse(
                &files.image,
                "its configuration is neither beside it nor in it (CONFIG_IKCONFIG); give --config, or all packages of \
                 the kernel"
                    .into(),
            )
        })?,
    };
    if !config.lines().any(|line| line.starts_with("CONFIG_")) {
        let path = files.config.as_ref().unwrap_or(&files.image);
        return Err(refuse(path, "its configuration has no line `CONFIG_…`".into()));
    }
    let vmlinux = partial.join("vmlinux");
    let sources = match &files.vmlinux {
        Some(given) => {
            check_same(given, &unpacked, &files.image)?;
            fs::copy(given, &vmlinux).at("copy", given)?;
            let bytes = MappedFile::open(given).at("read", given)?;
            SourceMap::of_debug_info(&bytes).map_err(|error| refuse(given, error.to_string()))?
        }
        None => {
            let missing = || {
                refuse(
                    &files.image,
                    "the kernel has no symbol table (CONFIG_KALLSYMS); give --vmlinux".into(),
                )
            };
            let symbols = kallsyms::find(&elf).ok_or_else(missing)?;
            let damaged = || refuse(&files.image, "the kernel in it has a damaged section table".into());
            fs::write(&vmlinux, with_symbols(&elf, &symbols).ok_or_else(damaged)?).at("write", &vmlinux)?;
            let map = partial.join("System.map");
            fs::write(&map, system_map(&symbols)).at("write", &map)?;
            SourceMap::default()
        }
    };
    interrupt::check()?;
    let symbols = Symbols::load(&vmlinux)?;
    let sources = match sources.is_empty() {
        true => known_sources::of_image(symbols.functions()),
        false => sources,
    };
    let path = partial.join(source_map::FILE);
    fs::write(&path, sources.text()).at("write", &path)?;
    let (task, structures) = layouts([&unpacked, &MappedFile::open(&vmlinux).at("read", &vmlinux)?])?;
    let path = partial.join("config");
    fs::write(&path, &config).at("write", &path)?;
    let path = partial.join(Arch::X86_64.image());
    fs::write(&path, &image).at("write", &path)?;
    if let Some(modules) = &files.modules {
        copy_modules(modules, &partial.join(MODULES).join(&release))?;
    }
    let (compiler, cc) = compiler(&elf);
    let manifest = KernelManifest {
        schema: SCHEMA.into(),
        id: id.into(),
        // A label has no `~`.
        label: label.map_or_else(|| release.replace('~', "-"), str::to_owned),
        aliases: Vec::new(),
        version: release.clone(),
        arch: Arch::X86_64,
        source: SourceRecord { origin: format!("{SHIPPED}{release}"), hash: id.into(), patches: Vec::new() },
        config_hash: short(&config),
        compiler,
        cc,
        kcflags: Vec::new(),
        object_flags: Vec::new(),
        object_groups: Vec::new(),
        make_vars: Vec::new(),
        movable: false,
        order_id: None,
        rewrite_id: None,
        recipe: None,
        profile_id: None,
        base_id: None,
        built: rfc3339(SystemTime::now()),
        build_seconds: 0.0,
        objects: 0,
        text_bytes: symbols.text_bytes(),
        image_bytes: image.len() as u64,
        build_path: PathBuf::new(),
        task,
        structures,
        warnings: lacking(&config),
    };
    write_json(&partial.join(MANIFEST), &manifest)?;
    Ok(())
}

/// Returns a warning for each option that the guest needs and the configuration lacks. Without
/// virtio a serial line has its place.
fn lacking(config: &str) -> Vec<String> {
    let has: HashSet<&str> = config.lines().collect();
    let needed = fragment::lines(fragment::REQUIRED).into_iter().filter(|line| !line.contains("VIRTIO"));
    needed
        .filter(|line| !has.contains(line.as_str()))
        .map(|line| format!("{line} is missing, and the guest needs it"))
        .collect()
}

/// Refuses a `vmlinux` without symbols, or of another kernel than the one in the image.
fn check_same(vmlinux: &Path, unpacked: &[u8], image: &Path) -> Result<()> {
    let refuse = |reason: String| Error::CannotImport { path: vmlinux.to_owned(), reason };
    let of_image = build_id::notes(unpacked).and_then(|notes| build_id::build_id(&notes));
    let of_vmlinux = build_id_of(vmlinux)?;
    if of_image != of_vmlinux {
        let say = |id: Option<String>| id.unwrap_or_else(|| "none".into());
        return Err(refuse(format!(
            "it is of another kernel than {}: its build id is {}, not {}",
            image.display(),
            say(of_vmlinux),
            say(of_image)
        )));
    }
    // Not every kernel has a build id, and a file of debug information alone has no code.
    let bytes = MappedFile::open(vmlinux).at("read", vmlinux)?;
    if code(&bytes) != code(unpacked) {
        return Err(refuse(format!(
            "its code is not that of {}; if it has debug information alone, `eu-unstrip` adds the code",
            image.display()
        )));
    }
    match Symbols::parse(&bytes, vmlinux) {
        Err(Error::Elf { reason, .. }) => {
            Err(refuse(format!("{reason}; leave it out, and the symbols are read from the image")))
        }
        other => other.map(|_| ()),
    }
}

/// Returns the offsets that a recording needs from the first of these files that has types: those
/// that the kernel carries, or else those of debug information.
fn layouts(files: [&[u8]; 2]) -> Result<(TaskLayout, StructureOffsets)> {
    let refuse = |reason: String| Error::TaskLayout { reason };
    let read = |bytes| {
        let elf = Elf::parse(bytes)?;
        match elf.section(".BTF")?.filter(|types| !types.is_empty()) {
            Some(types) => read_layouts(&BtfTypes::parse(&types)?),
            None => read_layouts(&DwarfTypes::of(&elf.debug_info()?, &[])?),
        }
    };
    for bytes in files {
        let found = read(bytes).map_err(|error: kerntune_debuginfo::Error| refuse(error.to_string()))?;
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(refuse(
        "the kernel carries no type information (CONFIG_DEBUG_INFO_BTF); give a --vmlinux with debug information".into(),
    ))
}

/// Reads the offsets of what a recording needs; members that the kernel lacks are left out. `None`
/// for types without threads.
pub(crate) fn read_layouts(
    types: &impl TypeSource,
) -> kerntune_debuginfo::Result<Option<(TaskLayout, StructureOffsets)>> {
    let task = |member: &str| types.member("task_struct", member);
    let (Some(pid_offset), Some(tgid_offset), Some(comm_offset)) =
        (task("pid")?, task("tgid")?, task("comm")?)
    else {
        return Ok(None);
    };
    let mut structures = StructureOffsets::new();
    for (structure, member) in offsets::members() {
        if let Some(offset) = types.member(structure, member)? {
            structures.insert(format!("{structure}.{member}"), offset);
        }
    }
    Ok(Some((TaskLayout { pid_offset, tgid_offset, comm_offset }, structures)))
}

/// Formats the symbols as Kbuild's `System.map`.
fn system_map(symbols: &[ImageSymbol]) -> String {
    symbols.iter().fold(String::new(), |mut text, symbol| {
        let _ = writeln!(text, "{:016x} {} {}", symbol.address, char::from(symbol.kind), symbol.name);
        text
    })
}

fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    for name in regular_files(from)? {
        interrupt::check()?;
        // Packages of some distributions keep image and debug information there.
        if ["vmlinuz", "vmlinux"].iter().any(|left_out| name == Path::new(left_out)) {
            continue;
        }
        let to = to.join(&name);
        let parent = to.parent().unwrap_or(&to);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::copy(from.join(&name), &to).at("copy", from.join(&name))?;
    }
    Ok(())
}

/// Hashes names and contents of the files below a directory of modules.
fn hash(modules: &Path) -> Result<String> {
    let mut hash = ContentHash::new("modules/1");
    for name in regular_files(modules)? {
        hash = hash.field("name", name.to_string_lossy().as_bytes()).file("content", &modules.join(&name))?;
    }
    Ok(hash.finish())
}

fn short(config: &str) -> String {
    let mut hash = ContentHash::new("shipped-config/1").field("config", config).finish();
    hash.truncate(16);
    hash
}

/// Returns the compiler as the kernel's banner has it, and the name by which it is called.
fn compiler(elf: &ImageElf) -> (CompilerIdentity, String) {
    let banner = elf.section(".rodata").and_then(|(_, data)| banner(data)).unwrap_or_default();
    let text = compiler_of(&banner);
    let program = text.split(' ').next().unwrap_or_default();
    let cc = ["gcc", "clang"].iter().find_map(|name| program.find(name).map(|at| program[at..].to_owned()));
    let cc = cc.unwrap_or_else(|| if text.contains("clang") { "clang".into() } else { "gcc".into() });
    (CompilerIdentity { program: program.into(), version: text.clone() }, cc)
}

/// Returns the line that `/proc/version` shows, without its line end.
fn banner(data: &[u8]) -> Option<String> {
    const BEGIN: &[u8] = b"Linux version ";
    let shows = |found: &[u8]| found.starts_with(BEGIN) && found[BEGIN.len()].is_ascii_digit();
    let at = data.windows(BEGIN.len() + 1).position(shows)?;
    let line: Vec<u8> = data[at..].iter().copied().take(1024).take_while(|byte| *byte >= b' ').collect();
    Some(String::from_utf8_lossy(&line).into_owned())
}

/// Returns the compiler in a banner: `gcc-12 (Debian 12.2.0-14) 12.2.0`, without the linker.
fn compiler_of(banner: &str) -> String {
    let behind_builder = banner.split_once(") (").map_or("", |(_, rest)| rest);
    let mut depth = 0;
    let end = behind_builder.char_indices().find(|(_, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth < 0 || depth == 0 && *letter == ','
    });
    let text = &behind_builder[..end.map_or(behind_builder.len(), |(at, _)| at)];
    if text.is_empty() {
        "unknown".into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_names_the_compiler() {
        let debian = "Linux version 6.12.117+deb12-cloud-amd64 (debian-kernel@lists.debian.org) (x86_64-linux-gnu-gcc-12 \
                      (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP";
        let gcc = "x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0";
        assert_eq!(compiler_of(debian), gcc);
        let clang = "Linux version 7.0 (a@b) (Debian clang version 19.1.7 (3+b1), Debian LLD 19.1.7) #1";
        assert_eq!(compiler_of(clang), "Debian clang version 19.1.7 (3+b1)");
        for odd in ["", "Linux version 7.0", "Linux version 7.0 (a) ("] {
            assert_eq!(compiler_of(odd), "unknown");
        }
        assert_eq!(banner(b"%s version\0Linux version 6.1 (x)\n\0").unwrap(), "Linux version 6.1 (x)");
        assert_eq!(banner(b"Linux version"), None);
    }

    #[test]
    fn every_member_that_the_compiler_is_asked_for_is_asked_for_here() {
        let asked: Vec<(&str, &str)> = offsets::members().collect();
        assert_eq!(asked.len(), 26);
        assert!(asked.contains(&("request", "__data_len")) && asked.contains(&("net_device", "name")));
    }

    #[test]
    fn options_that_the_guest_needs_are_missed() {
        let all = fragment::REQUIRED.replace("CONFIG_VIRTIO_PCI=y", "CONFIG_VIRTIO_PCI=m");
        assert!(lacking(&all).is_empty());
        let without = all.replace("CONFIG_TMPFS=y", "# CONFIG_TMPFS is not set");
        assert_eq!(lacking(&without), ["CONFIG_TMPFS=y is missing, and the guest needs it"]);
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let (image, config) = (dir.path().join("vmlinuz"), dir.path().join("config"));
        fs::write(&image, "no image").unwrap();
        fs::write(&config, "CONFIG_X=y\n").unwrap();
        let files = ShippedFiles { image, config: Some(config), vmlinux: None, modules: None };
        let error = import(&work, &ShippedKernel::Files(files), None).unwrap_err().to_string();
        assert!(error.contains("vmlinuz cannot be imported: it has no x86 boot header"), "{error}");
        assert!(!error.contains("objcopy"), "{error}");
        assert!(crate::list(&work).unwrap().is_empty());
    }
}
