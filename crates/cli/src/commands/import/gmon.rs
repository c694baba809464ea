//! `kerntune import gmon`.

use crate::args::{Global, ImportGmon};
use crate::commands::work;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{self, Gmon, Target};
use kerntune_guest::read_input;
use kerntune_kernel::Symbols;
use kerntune_profile::{
    load_manifest, rfc3339, Address, FunctionIndex, KernelId, Manifest, Nanoseconds, Profile, Run, Symbol,
    ROOM,
};
use kerntune_report::summary;
use kerntune_work::{IoContext, Key};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

pub fn run(global: &Global, options: &ImportGmon, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let target = target(&options.image)?;
    let symbols = symbols(&options.image)?;
    let mut hash = Key::new("import-gmon/2", kerntune_tune::CODE).file("image", &options.image)?;
    let mut files = Vec::new();
    for path in &options.files {
        let bytes = read_input("read", path, GMON_MAX)?;
        hash = hash.field("gmon", &bytes);
        files.push(Gmon::parse(&bytes, target).map_err(|error| at(path, error))?);
    }
    let name = options.image.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let imported = gmon::import(&files, symbols, &name).map_err(|error| at(&options.image, error))?;
    let id = hash.id();
    let staged = work.stage(ROOM, &hash)?;
    let path = match staged.already() {
        Some(done) => done,
        None => {
            staged.clear()?;
            let kernel = KernelId { id: String::new(), label: name, version: String::new() };
            let mut manifest = Manifest::new(&id, kernel, "gmon", "host");
            let modified = std::fs::metadata(&options.files[0]).and_then(|file| file.modified());
            manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
            manifest.elapsed_ns = Nanoseconds(imported.busy_ns);
            manifest.busy_ns = Nanoseconds(imported.busy_ns);
            manifest.events = imported.ticks;
            manifest.capture.functions = true;
            manifest.exact = false;
            manifest.run = Run::Measured;
            manifest.health.insert("calls_of_unknown_code".into(), imported.lost_calls);
            manifest.sources = options.files.iter().map(|file| format!("gmon: {}", file.display())).collect();
            Profile { manifest, tables: imported.tables }.save(staged.path())?;
            staged.publish()?
        }
    };
    let profile = Profile::load(&path)?;
    if options.format.json {
        output.print(&summary::json(&profile)?);
    } else {
        output.print(&summary::text(&profile, output.style())?);
        let id = load_manifest(&path)?.id;
        output.note(&format!(
            "\nprofile {}\n`kerntune report {id} graph` shows the call graph",
            path.display()
        ));
    }
    Ok(Exit::Ok)
}

fn at(path: &Path, error: gmon::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Bytes of the largest `gmon.out` that is read: of a kernel it has a few MiB.
const GMON_MAX: u64 = 1 << 30;

/// Byte order and width from the first bytes of the image: a gmon.out does not say them.
fn target(image: &Path) -> Result<Target, Failure> {
    let mut ident = Vec::new();
    File::open(image).and_then(|file| file.take(6).read_to_end(&mut ident)).at("read", image)?;
    match ident[..] {
        [0x7f, b'E', b'L', b'F', class @ (1 | 2), data @ (1 | 2)] => Ok(Target {
            byte_order: if data == 1 { ByteOrder::Little } else { ByteOrder::Big },
            wide: class == 2,
        }),
        _ => Err(Failure::usage(format!(
            "{} is no ELF file; give the vmlinux or program that wrote the gmon.out",
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
