//! What a compiler calls its copies and pieces of a function.

/// The function of the source that a symbol belongs to, and whether it is only its cold part:
/// compilers add `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.1234`, each perhaps with a
/// number, to what they made of a function.
pub fn source_name(symbol: &str) -> (&str, bool) {
    const ADDED: [&str; 8] =
        ["isra", "constprop", "part", "cold", "llvm", "lto_priv", "__uniq", "localalias"];
    let mut name = symbol;
    let mut cold = false;
    while let Some((head, tail)) = name.rsplit_once('.') {
        let number = !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
        if head.is_empty() || !(number || ADDED.contains(&tail)) {
            break;
        }
        cold |= tail == "cold";
        name = head;
    }
    (name, cold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_add_is_taken_off() {
        for (symbol, name, cold) in [
            ("tcp_sendmsg", "tcp_sendmsg", false),
            ("tcp_ack.constprop.0", "tcp_ack", false),
            ("__alloc_skb.part.0.isra.0.cold", "__alloc_skb", true),
            ("vfs_read.llvm.8123", "vfs_read", false),
            (".L123", ".L123", false),
            ("a.b", "a.b", false),
            ("", "", false),
        ] {
            assert_eq!(source_name(symbol), (name, cold), "{symbol}");
        }
    }
}
