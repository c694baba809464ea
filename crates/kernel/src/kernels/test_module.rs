//! Kernel modules for tests: ELF files with the section `.modinfo` and nothing else.

/// Makes a module from the lines of its section.
pub fn module(info: &[&str]) -> Vec<u8> {
    let info: Vec<u8> = info.iter().flat_map(|line| [line.as_bytes(), b"\0"].concat()).collect();
    let names = b"\0.modinfo\0.shstrtab\0";
    let names_at = 64 + info.len();
    let headers_at = (names_at + names.len()).next_multiple_of(8);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([1u16, 62, 1, 0].map(u16::to_le_bytes).concat());
    bytes.extend([0, 0, headers_at as u64].map(u64::to_le_bytes).concat());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([64u16, 0, 0, 64, 3, 2].map(u16::to_le_bytes).concat());
    bytes.extend(&info);
    bytes.extend(names);
    bytes.resize(headers_at, 0);
    // Name, type, offset, size.
    for (name, kind, offset, size) in
        [(0u32, 0u32, 0, 0), (1, 1, 64, info.len()), (10, 3, names_at, names.len())]
    {
        bytes.extend([name, kind].map(u32::to_le_bytes).concat());
        bytes.extend([0, 0, offset as u64, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat());
    }
    bytes
}
