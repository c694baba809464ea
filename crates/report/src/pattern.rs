//! Sets of functions: names, patterns of names, and places in the source.

use kerntune_profile::Symbol;
use wildmatch::WildMatch;

/// Checks whether a function has this name, matches the pattern, or is in this file or directory.
pub(crate) fn is_of_set(symbol: &Symbol, set: &str) -> bool {
    let by_name = !set.contains('/') && matches(set, &symbol.name);
    by_name || symbol.file.as_deref().is_some_and(|file| is_below(file, set))
}

/// Checks whether a file is in a directory, is the named file, or matches the pattern.
pub(crate) fn is_below(file: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    file.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || matches(directory, file)
}

/// Checks whether the whole name matches a pattern of `*` (any text) and `?` (one character).
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    WildMatch::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_directories() {
        for (pattern, name, yes) in [
            ("*", "", true),
            ("tcp_*", "tcp_ack", true),
            ("tcp_*", "udp_ack", false),
            ("*_rcv*", "tcp_v4_rcv_ok", true),
            ("*ab", "aab", true),
            ("*ab", "aba", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("f", "ff", false),
            ("", "", true),
            ("*tcp*rcv", "tcp_v4_do_rcv", true),
            ("*tcp*rcv", "tcp_rcv_established", false),
            ("a*a*a", "aXaa", true),
            ("a*a*a", "aa", false),
            ("?p_rcv", "ip_rcv", true),
            ("?p_rcv", "p_rcv", false),
        ] {
            assert_eq!(matches(pattern, name), yes, "{pattern} {name}");
        }
        assert!(is_below("net/ipv4/tcp.c", "net/ipv4/") && is_below("net/ipv4/tcp.c", "net/ipv4/tcp.c"));
        assert!(!is_below("net/ipv4/tcp.c", "net/ip") && is_below("net/ipv4/tcp.c", "net/*/tcp*"));
    }
}
