//! `kerntune import gmon`.

use super::{keep, show, Entry};
use crate::exit::{Exit, Failure};
use crate::global::{work, Global, Json};
use crate::output::Output;
use crate::registry::{entry, Run};
use clap::Args;
use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{self, Gmon, Target};
use kerntune_guest::read_input;
use kerntune_kernel::Symbols;
use kerntune_profile::{rfc3339, Address, FunctionIndex, KernelId, Manifest, Nanoseconds, Profile, Symbol};
use kerntune_work::{open_file, IoContext, Key};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub const ENTRY: Entry = entry::<_, Options>("gmon", 0);

/// gmon.out of a kernel or program that was built with -pg (GNU's format, or 4.2BSD's)
#[derive(Debug, Args)]
pub struct Options {
    /// The kernel or program, with its symbols
    #[arg(value_name = "VMLINUX")]
    image: PathBuf,
    /// The gmon.out that it wrote; several are added up
    #[arg(value_name = "GMON", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: Json,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
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
            manifest.elapsed_ns = Nanoseconds(imported.busy_ns);
            manifest.busy_ns = Nanoseconds(imported.busy_ns);
            manifest.events = imported.ticks;
            manifest.capture.functions = true;
            manifest.exact = false;
            manifest.run = kerntune_profile::Run::Measured;
            manifest.health.insert("calls_of_unknown_code".into(), imported.lost_calls);
            manifest.sources = self.files.iter().map(|file| format!("gmon: {}", file.display())).collect();
            Ok(Profile { manifest, tables: imported.tables })
        })?;
        let profile = Profile::load(&path)?;
        let id = &profile.manifest.id;
        let next = format!("\nprofile {}\n`kerntune report {id} graph` shows the call graph", path.display());
        show(&profile, self.format.json, &next, output)?;
        Ok(Exit::Ok)
    }
}

fn at(path: &Path, error: gmon::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Bytes of the largest `gmon.out` that is read: of a kernel it has a few MiB.
const GMON_MAX: u64 = 1 << 30;

/// Byte order and width from the first bytes of the image: a gmon.out does not say them.
fn target(image: &Path) -> Result<Target, Failure> {
    let mut ident = Vec::new();
    open_file(image).and_then(|file| file.take(6).read_to_end(&mut ident)).at("read", image)?;
    match ident[..] {
        [0x7f, b'E', b'L', b'F', class @ (1 | 2), data @ (1 | 2)] => Ok(Target {
            byte_order: if data == 1 { ByteOrder::Little } else { ByteOrder::Big },
            wide: class == 2,
        }),
        _ => Err(Failure::usage(format!(
            "{} is not an ELF file; give the vmlinux or program that wrote the gmon.out",
            image.display()
        ))),
    }
}

/// The functions of the image; parts that the compiler put elsewhere are functions, as in gprof.
fn symbols(image: &Path) -> Result<Vec<Symbol>, Failure> {
    let table = Symbols::load(image)?;
    let symbol = |(at, function): (u32, &kerntune_kernel::Function)| Symbol {
        function: FunctionIndex(at),
        name: function.name.clone(),
        address: Address(function.address),
        size: function.size,
        file: function.file.clone(),
        module: None,
    };
    Ok((0..).zip(table.functions()).map(symbol).collect())
}
