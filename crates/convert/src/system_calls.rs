//! Names of system calls by their numbers.

/// Returns the name of a system call of a machine, as `uname -m` prints it; `i686` has the numbers
/// of 32-bit programs on `x86_64`.
///
/// ```
/// use kerntune_convert::system_call_name;
/// assert_eq!(system_call_name(0, "x86_64"), Some("read"));
/// assert_eq!(system_call_name(3, "i686"), Some("read"));
/// assert_eq!(system_call_name(99_999, "x86_64"), None);
/// ```
pub fn system_call_name(number: u32, machine: &str) -> Option<&'static str> {
    let number = usize::try_from(number).ok()?;
    match machine {
        "x86_64" => syscalls::x86_64::Sysno::new(number).map(|call| call.name()),
        "i686" => syscalls::x86::Sysno::new(number).map(|call| call.name()),
        "aarch64" => syscalls::aarch64::Sysno::new(number).map(|call| call.name()),
        "riscv64" => syscalls::riscv64::Sysno::new(number).map(|call| call.name()),
        _ => None,
    }
}
