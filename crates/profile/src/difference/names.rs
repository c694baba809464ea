//! Suffixes that compilers add to the names of copies and pieces of a function.

/// Returns the source function of a symbol, and true if the symbol is only its cold part. Compilers
/// add `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.1234`, `.argprom`, `.__part.1`, each
/// perhaps with a number.
pub fn source_name(symbol: &str) -> (&str, bool) {
    const ADDED: [&str; 19] = [
        // GCC and both compilers.
        "isra",
        "constprop",
        "part",
        "cold",
        "llvm",
        "lto_priv",
        "__uniq",
        "localalias",
        // Clang: parameters passed by value, left out, a result left out; control-flow integrity;
        // copies for a constant or for how memory is used; pieces by heat, for exceptions, and of
        // BOLT and Propeller.
        "argprom",
        "argelim",
        "retelim",
        "cfi",
        "cfi_jt",
        "specialized",
        "memprof",
        "warm",
        "split",
        "eh",
        "__part",
    ];
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
            ("d.argprom", "d", false),
            ("g.retelim.argelim", "g", false),
            ("e.cfi", "e", false),
            ("e.cfi_jt", "e", false),
            ("f.specialized.1", "f", false),
            ("h.memprof.12.cold", "h", true),
            ("i.warm", "i", false),
            ("m.split", "m", false),
            ("m.eh", "m", false),
            ("n.__part.2", "n", false),
            (".L123", ".L123", false),
            ("a.b", "a.b", false),
            ("", "", false),
        ] {
            assert_eq!(source_name(symbol), (name, cold), "{symbol}");
        }
    }
}
