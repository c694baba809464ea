//! Probe of Clang's maps and lists of blocks.

use crate::clang_autofdo::probe::{compile, function, link, IMAGE, OBJECT};
use crate::probe::{Outcome, Scratch, FUNCTION, SOURCE_FILE};
use kerntune_convert::propeller::{list_text, read_map, ListedFunction, MappedFunction, SECTION};
use kerntune_debuginfo::Elf;
use kerntune_kernel::Compiler;

const LIST: &str = "probe.list";

/// Writes a map of blocks that kerntune reads, and puts blocks in the order of a list.
pub(crate) fn block_map(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    compile(scratch, compiler, &["-fbasic-block-address-map", "-c", SOURCE_FILE, "-o", OBJECT])?;
    link(scratch, compiler)?;
    let image = scratch.read(IMAGE)?;
    let elf = Elf::parse_any(&image).map_err(|error| error.to_string())?;
    let map = elf.section(SECTION).ok().flatten();
    let map = map.ok_or("it wrote no map of blocks (-fbasic-block-address-map)")?;
    let map = read_map(&map).map_err(|error| format!("its map of blocks cannot be read: {error}"))?;
    let (address, _) = function(&elf)?;
    let is_whole = |of: &MappedFunction| of.address == address && of.blocks.len() > 1;
    if !map.iter().any(is_whole) {
        return Err(format!("its map of blocks has no blocks of the function {FUNCTION}"));
    }
    let listed = ListedFunction::new(SOURCE_FILE, [FUNCTION], vec![0]);
    scratch.write(LIST, list_text(listed.as_slice()))?;
    let by_list = format!("-fbasic-block-sections=list={LIST}");
    compile(scratch, compiler, &["-gmlt", &by_list, "-c", SOURCE_FILE, "-o", OBJECT])?;
    let object = scratch.read(OBJECT)?;
    let elf = Elf::parse_any(&object).map_err(|error| error.to_string())?;
    let split = format!("{FUNCTION}.cold");
    let is_split = elf.symbols().flatten().any(|symbol| symbol.name == split);
    is_split
        .then_some(())
        .ok_or_else(|| "it did not take a list of blocks (-fbasic-block-sections=list=)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_without_a_flag_is_named_with_it() {
        let scratch = Scratch::new().unwrap();
        let error = block_map(&scratch, &Compiler::default()).unwrap_err();
        assert!(error.contains("gcc") && error.contains("-fbasic-block-address-map"), "{error}");
    }
}
