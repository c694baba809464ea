//! Prints the function table of a `vmlinux`: address, size, name, file, and the function that it is
//! a part of.
//!
//! ```text
//! cargo run --example symbols -p kerntune-kernel -- vmlinux
//! ```

use kerntune_kernel::Symbols;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the path of a vmlinux is missing")?;
    let symbols = Symbols::load(Path::new(&path))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, function) in symbols.functions().iter().enumerate() {
        let whole = symbols.whole(index);
        let file = function.file.as_deref().unwrap_or("-");
        write!(out, "{:016x} {:6} {} {file}", function.address, function.size, function.name)?;
        if whole != index {
            write!(out, " part of {}", symbols.functions()[whole].name)?;
        }
        writeln!(out, "{}", if function.is_code_label { " (code)" } else { "" })?;
    }
    writeln!(out, "{} functions, {} bytes of .text", symbols.functions().len(), symbols.text_bytes())?;
    Ok(())
}
