//! Packs the image of a workload and prints its path: `cargo run -p kerntune-guest --example pack
//! -- WORKLOAD [WORK-DIRECTORY]`.

use kerntune_guest::{GuestImage, Result, Workload};
use kerntune_work::{Progress, WorkDir};
use std::process::ExitCode;

struct NoteLog;

impl Progress for NoteLog {
    fn begin(&self, what: &str, _: Option<u64>) {
        eprintln!("{what}");
    }
    fn at(&self, _: u64) {}
    fn note(&self, line: &str) {
        eprintln!("{line}");
    }
    fn end(&self) {}
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: pack WORKLOAD [WORK-DIRECTORY]");
        return ExitCode::from(2);
    };
    match pack(&name, &arguments.next().unwrap_or_else(|| ".kerntune".into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pack: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pack(name: &str, dir: &str) -> Result<()> {
    let work = WorkDir::open(dir)?;
    let image = GuestImage::build(&work, &Workload::find(name, &[])?, &NoteLog)?;
    println!(
        "{} {} files {} bytes",
        image.initramfs.display(),
        image.manifest.files.len(),
        image.manifest.bytes
    );
    Ok(())
}
