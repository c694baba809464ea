//! Names of system calls.

/// Returns the system call that a function implements (`__SYSCALL_DEFINEx`,
/// arch/*/include/asm/syscall_wrapper.h), and whether the function may be the inner one of two
/// wrappers.
pub fn system_call(function: &str) -> Option<(String, bool)> {
    let of =
        |prefix: &str| function.strip_prefix(prefix).filter(|name| !name.is_empty() && !name.contains('.'));
    if let Some(name) = of("__x64_sys_").or_else(|| of("__arm64_sys_")) {
        return Some((name.to_owned(), false));
    }
    match (of("__ia32_sys_").or_else(|| of("__ia32_compat_sys_")), of("__do_sys_")) {
        (Some(name), _) => Some((format!("{name} (32 bits)"), false)),
        (None, Some(name)) => Some((name.to_owned(), true)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_system_calls_are_known_by_their_names() {
        let name = |function| system_call(function).map(|(name, inner)| format!("{name} {inner}"));
        for (function, expected) in [
            ("__x64_sys_sendto", Some("sendto false")),
            ("__ia32_sys_read", Some("read (32 bits) false")),
            ("__do_sys_getpid", Some("getpid true")),
            ("__x64_sys_", None),
            ("__x64_sys_clone.cold", None),
            ("x64_sys_call", None),
            ("ksys_read", None),
        ] {
            assert_eq!(name(function).as_deref(), expected, "{function}");
        }
    }
}
