//! Inline points: instructions inside the kernel's functions, as a user names them.

use crate::code::CodeSections;
use crate::dwarf_lines::{self, LineError};
use crate::selection::suggestions;
use kerntune_kernel::{Kernel, Symbols};
use std::path::Path;

/// An instruction whose executions are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinePoint {
    /// Name as the user gave it; with the function if a source line is in several.
    pub name: String,
    /// Address of the instruction.
    pub address: u64,
    /// Index of its function in the kernel's table.
    pub function: u32,
}

/// Reason why a text names no point.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum PointError {
    #[error(
        "--point `{0}` is neither SYMBOL, SYMBOL+OFFSET (0x1f or 31) nor FILE:LINE (net/ipv4/tcp.c:1234)"
    )]
    Form(String),
    #[error("--point `{point}`: this kernel has no function `{symbol}`{hint}")]
    Symbol { point: String, symbol: String, hint: String },
    #[error("--point `{point}`: {symbol} has only {size:#x} bytes")]
    Outside { point: String, symbol: String, size: u64 },
    #[error("--point `{point}` is in the middle of an instruction; near it begin {}", .nearest.join(" and "))]
    Inside { point: String, nearest: Vec<String> },
    #[error("--point `{one}` and `{other}` are the same instruction; name it once")]
    Twice { one: String, other: String },
    #[error("--point `{point}`: {source}")]
    Line { point: String, source: LineError },
    #[error("cannot read the code in {path}: {reason}")]
    Code { path: String, reason: String },
}

/// A parsed point, before its lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PointForm {
    Symbol { name: String, offset: u64 },
    Line { file: String, line: u64 },
}

fn parse(text: &str) -> Option<PointForm> {
    if let Some((file, line)) = text.rsplit_once(':') {
        return Some(PointForm::Line {
            file: file.trim_start_matches("./").to_string(),
            line: line.parse().ok()?,
        })
        .filter(|_| !file.is_empty());
    }
    let (name, offset) = match text.split_once('+') {
        None => (text, 0),
        Some((name, offset)) => {
            let offset = match offset.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => offset.parse().ok()?,
            };
            (name, offset)
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    (!name.is_empty() && name.chars().all(plain)).then(|| PointForm::Symbol { name: name.into(), offset })
}

/// Finds the instructions that the texts name, in their order. A source line that the compiler put
/// into several functions gives a point in each.
///
/// # Errors
/// A text that names no instruction of this kernel, with the nearest ones.
pub fn resolve(kernel: &Kernel, symbols: &Symbols, texts: &[String]) -> Result<Vec<InlinePoint>, PointError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    resolve_in(&kernel.vmlinux(), symbols, texts)
}

fn resolve_in(vmlinux: &Path, symbols: &Symbols, texts: &[String]) -> Result<Vec<InlinePoint>, PointError> {
    let unreadable = |reason: String| PointError::Code { path: vmlinux.display().to_string(), reason };
    let code = CodeSections::load(vmlinux).map_err(unreadable)?;
    let mut points: Vec<InlinePoint> = Vec::new();
    for text in texts {
        let form = parse(text).ok_or_else(|| PointError::Form(text.clone()))?;
        let addresses = match form {
            PointForm::Symbol { name, offset } => vec![symbol(text, &name, offset, symbols)?],
            PointForm::Line { file, line } => dwarf_lines::addresses(vmlinux, &file, line, symbols)
                .map_err(|source| PointError::Line { point: text.clone(), source })?,
        };
        let several = addresses.len() > 1;
        for address in addresses {
            let function = on_boundary(text, address, symbols, &code)?;
            let name = match symbols.functions().get(function as usize).filter(|_| several) {
                Some(function) => format!("{text} in {}", function.name),
                None => text.clone(),
            };
            if let Some(other) = points.iter().find(|point| point.address == address) {
                return Err(PointError::Twice { one: other.name.clone(), other: text.clone() });
            }
            points.push(InlinePoint { name, address, function });
        }
    }
    Ok(points)
}

fn symbol(point: &str, name: &str, offset: u64, symbols: &Symbols) -> Result<u64, PointError> {
    let functions = symbols.functions();
    let address = symbols.address_of(name).ok_or_else(|| {
        let hint = match suggestions(name, functions.iter().map(|f| f.name.as_str())).as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(", ")),
        };
        PointError::Symbol { point: point.into(), symbol: name.into(), hint }
    })?;
    if let Some(function) = symbols.lookup(address).and_then(|at| functions.get(at)) {
        let size = function.end() - address;
        if offset >= size {
            return Err(PointError::Outside { point: point.into(), symbol: name.into(), size });
        }
    }
    Ok(address.saturating_add(offset))
}

/// Returns the function of an instruction, if there is an instruction at the address.
fn on_boundary(point: &str, address: u64, symbols: &Symbols, code: &CodeSections) -> Result<u32, PointError> {
    let outside = || PointError::Code {
        path: format!("{address:#x} (--point `{point}`)"),
        reason: "the address is in no function".into(),
    };
    let index = symbols.lookup(address).ok_or_else(outside)?;
    let function = &symbols.functions()[index];
    let boundaries = code.boundaries(function.address, function.size).ok_or_else(outside)?;
    if boundaries.binary_search(&address).is_err() {
        let after = boundaries.partition_point(|&b| b < address);
        let nearest = [after.checked_sub(1), Some(after)]
            .into_iter()
            .flatten()
            .filter_map(|at| boundaries.get(at))
            .map(|b| format!("{}+{:#x}", function.name, b - function.address))
            .collect();
        return Err(PointError::Inside { point: point.into(), nearest });
    }
    u32::try_from(symbols.whole(index)).map_err(|_| outside())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let symbol = |name: &str, offset| Some(PointForm::Symbol { name: name.into(), offset });
        assert_eq!(parse("tcp_push"), symbol("tcp_push", 0));
        assert_eq!(parse("tcp_push+0x1f"), symbol("tcp_push", 31));
        assert_eq!(parse("foo.isra.0+12"), symbol("foo.isra.0", 12));
        let line = Some(PointForm::Line { file: "net/ipv4/tcp.c".into(), line: 99 });
        assert_eq!(parse("net/ipv4/tcp.c:99"), line);
        for bad in ["", "+3", "tcp_push+", "tcp_push+0xg", "tcp.c:", ":7", "tcp.c:x", "a b", "-3"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// A program of this machine stands for a kernel, since points work in any ELF file.
    #[test]
    fn points_are_where_instructions_begin() {
        let dir = tempfile::tempdir().unwrap();
        let program = crate::test_program::build(&dir, &["-g", "-O1"]);
        let symbols = Symbols::load(&program).unwrap();
        let resolve = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|t| t.to_string()).collect();
            resolve_in(&program, &symbols, &texts)
        };
        let entry = symbols.address_of("work").unwrap();
        let points = resolve(&["work", "work+4"]).unwrap();
        // `work` begins with `endbr64`, four bytes.
        assert_eq!([points[0].address, points[1].address], [entry, entry + 4]);
        assert_eq!(symbols.functions()[points[0].function as usize].name, "work");
        let message = |texts: &[&str]| resolve(texts).unwrap_err().to_string();
        assert!(message(&["work+2"]).contains("begin work+0x0 and work+0x4"), "{}", message(&["work+2"]));
        assert!(message(&["work+0x99999"]).contains("has only"), "{}", message(&["work+0x99999"]));
        assert!(message(&["wrk"]).contains("did you mean work"), "{}", message(&["wrk"]));
        assert!(message(&["work", "work+0"]).contains("same instruction"));
        let lines = resolve(&["program.c:7"]).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(symbols.functions()[lines[0].function as usize].name, "work");
        assert!(lines[0].address > entry);
        assert!(message(&["program.c:2"]).contains("lines 5, 6"), "{}", message(&["program.c:2"]));
        assert!(message(&["prgram.c:7"]).contains("program.c"), "{}", message(&["prgram.c:7"]));
        let bare = crate::test_program::build(&dir, &["-O1"]);
        let bare_symbols = Symbols::load(&bare).unwrap();
        let error = resolve_in(&bare, &bare_symbols, &["program.c:7".into()]).unwrap_err().to_string();
        assert!(error.contains("CONFIG_DEBUG_INFO_DWARF5=y"), "{error}");
    }
}
