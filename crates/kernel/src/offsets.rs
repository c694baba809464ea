//! Where a kernel keeps what is known of requests to block devices and of network packets, asked of the compiler.

use crate::task::{answers, ask};
use crate::{Arch, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Byte offsets by `structure.member`.
pub type Structures = BTreeMap<String, u64>;

/// The question to the compiler.
pub(crate) const QUESTION: &str = include_str!("../../../kernel/structure_offsets.c");

/// Asks in a finished build directory.
///
/// # Errors
/// A compiler that refuses: the kernel has none of these structures.
pub(crate) fn in_build(arch: Arch, build: &Path, scratch: &Path) -> Result<Structures> {
    Ok(read(&ask(arch, build, scratch, "structure_offsets", QUESTION)?))
}

/// The members in the compiler's assembly.
pub(crate) fn read(assembly: &str) -> Structures {
    answers(assembly).filter(|(name, _)| name.contains('.')).map(|(name, at)| (name.to_owned(), at)).collect()
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
