//! Packs the image of a workload and says where it is:
//! `cargo run -p kerntune-guest --example pack -- WORKLOAD [WORK-DIRECTORY]`.

use kerntune_guest::{GuestImage, Workload};
use kerntune_work::{Progress, WorkDir};

struct Notes;

impl Progress for Notes {
    fn begin(&self, what: &str, _: Option<u64>) {
        eprintln!("{what}");
    }
    fn at(&self, _: u64) {}
    fn note(&self, line: &str) {
        eprintln!("{line}");
    }
    fn end(&self) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: pack WORKLOAD [WORK-DIRECTORY]")?;
    let work = WorkDir::open(arguments.next().unwrap_or_else(|| ".kerntune".into()))?;
    let image = GuestImage::build(&work, &Workload::find(&name, &[])?, &Notes)?;
    println!(
        "{} {} files {} bytes",
        image.initramfs.display(),
        image.manifest.files.len(),
        image.manifest.bytes
    );
    Ok(())
}
