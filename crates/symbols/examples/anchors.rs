//! Writes `data/anchors.tsv` from a kernel that kerntune built: `cargo run -p kerntune-symbols
//! --example anchors -- DIRECTORY`.
//!
//! For each source file it has the first and the last global function whose names occur once in the
//! kernel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("give the directory of a kernel")?;
    let work = kerntune_work::WorkDir::open(std::env::temp_dir())?;
    let kernel = kerntune_kernel::find(&work, &format!("{directory}/"))?;
    let map = std::fs::read(Path::new(&directory).join("System.map"))?;
    let list = kerntune_symbols::Kallsyms::parse(&map, "System.map")?;
    let symbols = kernel.symbols()?;
    let mut often: HashMap<&str, usize> = HashMap::new();
    list.symbols.iter().for_each(|symbol| *often.entry(&symbol.name).or_default() += 1);
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut sorted: Vec<_> = list.symbols.iter().collect();
    sorted.sort_by_key(|symbol| symbol.address);
    for symbol in sorted {
        let plain = !symbol.name.starts_with("__pfx_") && !symbol.name.contains('.') && symbol.is_global;
        let function = symbols.lookup(symbol.address).map(|at| &symbols.functions()[at]);
        let file = function.filter(|f| f.address == symbol.address).and_then(|f| f.file.as_deref());
        if let Some(file) =
            file.filter(|file| plain && file.contains('/') && often[symbol.name.as_str()] == 1)
        {
            files.entry(file).or_default().push(&symbol.name);
        }
    }
    println!(
        "# Source files of Linux {}, each with its first and its last global function.",
        kernel.manifest.version
    );
    for (file, names) in files {
        let mut names = vec![names[0], names[names.len() - 1]];
        names.dedup();
        println!("{file}\t{}", names.join("\t"));
    }
    Ok(())
}
