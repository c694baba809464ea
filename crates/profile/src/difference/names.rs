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
