//! The format `gmon` of `kerntune import`.

use super::{keep, Entry};
use clap::Args;
use kerntune_command::{
    import_entry, print_summary, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput,
    Recognition, RunSubcommand,
};
use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{self, Gmon, GmonTarget};
use kerntune_guest::read_input;
use kerntune_kernel::Symbols;
use kerntune_profile::{
    rfc3339, Address, Anomaly, FunctionIndex, KernelId, Manifest, Profile, Symbol, Ticks,
};
use kerntune_work::{open_file, IoContext, Key};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub const ENTRY: Entry = import_entry::<ImportGmonOptions>("gmon", 0, recognize);

/// The image comes first; a gmon.out in its place is recognized to say so.
fn recognize(input: &ImportInput) -> Option<Recognition> {
    match &input.bytes {
        bytes if bytes.starts_with(b"gmon") => Recognition::certain("a gmon.out file"),
        bytes if bytes.starts_with(b"\x7fELF") => {
            Recognition::likely("a kernel or program with gmon.out files")
        }
        _ => None,
    }
}

/// gmon.out of a kernel or program built with -pg (GNU's format, or 4.2BSD's)
#[derive(Debug, Args)]
pub struct ImportGmonOptions {
    /// The kernel or program, with its symbols
    #[arg(value_name = "VMLINUX")]
    image: PathBuf,
    /// The gmon.out files that it wrote; they are added up
    #[arg(value_name = "GMON")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ImportGmonOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if self.files.is_empty() {
            let image = self.image.display();
            let starts =
                |mark: &[u8]| ImportInput::read(&self.image).is_ok_and(|input| input.bytes.starts_with(mark));
            return Err(Failure::usage(match starts(b"gmon") {
                true => format!(
                    "{image} is a gmon.out file, which has no names: give the kernel or program that wrote it before \
                     it, as in `kerntune import VMLINUX {image}`"
                ),
                false => format!("give the gmon.out files that {image} wrote: kerntune import {image} GMON…"),
            }));
        }
        let work = work(global)?;
        let target = target(&self.image)?;
        let symbols = symbols(&self.image)?;
        let mut key = Key::new("import-gmon/2", kerntune_tune::CODE).file("image", &self.image)?;
        let mut files = Vec::new();
        for path in &self.files {
            let bytes = read_input("read", path, GMON_MAX)?;
            key = key.field("gmon", &bytes);
            files.push(Gmon::parse(&bytes, target).map_err(|error| at(path, error))?);
        }
        let name = self.image.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let imported = gmon::import(&files, symbols, &name).map_err(|error| at(&self.image, error))?;
        let path = keep(&work, &key, |id| {
            let kernel = KernelId { id: String::new(), label: name, version: String::new() };
            let mut manifest = Manifest::new(id, kernel, "gmon", "host");
            let modified = std::fs::metadata(&self.files[0]).and_then(|file| file.modified());
            manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
            manifest.elapsed_ticks = Ticks(imported.busy_ticks);
            manifest.busy_ticks = Ticks(imported.busy_ticks);
            manifest.events = imported.ticks;
            manifest.capture.functions = true;
            manifest.exact = false;
            manifest.run = kerntune_profile::RunPurpose::Measured;
            manifest.set_anomaly(Anomaly::CallsOfUnknownCode, imported.lost_calls);
            manifest.sources = self.files.iter().map(|file| format!("gmon: {}", file.display())).collect();
            Ok(Profile { manifest, tables: imported.tables })
        })?;
        let profile = Profile::load(&path)?;
        let id = &profile.manifest.id;
        let next = format!("\nprofile {}\n`kerntune report {id} graph` shows the call graph", path.display());
        print_summary(&profile, self.format, &next, output)?;
        Ok(Exit::Ok)
    }
}

fn at(path: &Path, error: gmon::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Largest `gmon.out`, in bytes; a kernel's has a few MiB.
const GMON_MAX: u64 = 1 << 30;

/// Reads byte order and word size from the image's ELF header; a gmon.out does not contain them.
fn target(image: &Path) -> Result<GmonTarget, Failure> {
    let mut ident = Vec::new();
    open_file(image).and_then(|file| file.take(6).read_to_end(&mut ident)).at("read", image)?;
    match ident[..] {
        [0x7f, b'E', b'L', b'F', class @ (1 | 2), data @ (1 | 2)] => Ok(GmonTarget {
            byte_order: if data == 1 { ByteOrder::Little } else { ByteOrder::Big },
            wide: class == 2,
        }),
        _ => Err(Failure::usage(format!(
            "{} is not an ELF file; give the vmlinux or program that wrote the gmon.out",
            image.display()
        ))),
    }
}

/// Reads the functions of the image. Parts that the compiler split off count as functions, as in
/// gprof.
fn symbols(image: &Path) -> Result<Vec<Symbol>, Failure> {
    let table = Symbols::load(image)?;
    let symbol = |(at, function): (u32, &kerntune_kernel::KernelFunction)| Symbol {
        function: FunctionIndex(at),
        name: function.name.clone(),
        address: Address(function.address),
        size: function.size,
        file: function.file.clone(),
        module: None,
    };
    Ok((0..).zip(table.functions()).map(symbol).collect())
}
