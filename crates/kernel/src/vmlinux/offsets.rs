//! Offsets of members in structures of block requests and network packets, computed by the
//! compiler.

use crate::vmlinux::task::{compile_offsets, parse_offsets};
use crate::{Arch, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Byte offsets by `structure.member`.
pub type StructureOffsets = BTreeMap<String, u64>;

/// Source whose assembly has the offsets.
pub(crate) const OFFSETS_SOURCE: &str = include_str!("../../../../embedded/kernel/structure_offsets.c");

/// Computes the offsets in a finished build directory.
///
/// # Errors
/// The compiler fails: the kernel has none of these structures.
pub(crate) fn in_build(arch: Arch, build: &Path, scratch: &Path) -> Result<StructureOffsets> {
    Ok(read(&compile_offsets(arch, build, scratch, "structure_offsets", OFFSETS_SOURCE)?))
}

/// Reads the offsets from the compiler's assembly.
pub(crate) fn read(assembly: &str) -> StructureOffsets {
    parse_offsets(assembly)
        .filter(|(name, _)| name.contains('.'))
        .map(|(name, at)| (name.to_owned(), at))
        .collect()
}

/// Returns structure and member of each offset, as the source asks for them.
pub(crate) fn members() -> impl Iterator<Item = (&'static str, &'static str)> {
    OFFSETS_SOURCE.lines().filter_map(|line| {
        let arguments = line.trim().strip_prefix("MEMBER(")?.strip_suffix(");")?;
        arguments.split_once(", ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_and_nothing_else() {
        let text = "\n.ascii \"->request.q $0 offsetof(struct request, q)\"\t#\n\
                    .ascii \"->request.__sector 48 offsetof(struct request, __sector)\"\n\
                    .ascii \"->KERNTUNE_pid $4 x\"\n.ascii \"->sk_buff.len 112 y\"\n.ascii \"->a.b c\"\n";
        let expected = [("request.__sector", 48), ("request.q", 0), ("sk_buff.len", 112)];
        assert_eq!(read(text), expected.map(|(name, at)| (name.to_owned(), at)).into());
    }
}
