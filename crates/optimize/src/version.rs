//! Parser of kernel versions: `6.12`, `6.12.117`, `7.0.0-rc3`.

/// Returns the numbers of a version; `None` if it cannot be parsed.
pub(crate) fn parse(text: &str) -> Option<[u32; 3]> {
    let numbers = text.split('-').next()?;
    let mut version = [0; 3];
    let mut parts = numbers.split('.');
    for (at, slot) in version.iter_mut().enumerate() {
        match parts.next() {
            Some(part) => *slot = part.parse().ok()?,
            None if at > 0 => break,
            None => return None,
        }
    }
    parts.next().is_none().then_some(version)
}
