//! Unpacked kernel images for tests, with the tables of `scripts/kallsyms.c`.

/// Address of the code.
pub const BASE: u64 = 0xffff_ffff_8100_0000;
/// Number of symbols in the code: `_stext`, functions of 16 bytes, `_etext`.
pub const SYMBOLS: usize = 1100;
/// Address of the table, and its place in the file.
const TABLE: (u64, usize) = (BASE + 0x20_0000, 0x6000);

/// Order and form of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KallsymsForm {
    /// Offsets before the names; per-CPU variables are absolute.
    Linux61,
    /// Offsets behind the tokens; per-CPU variables are absolute.
    Linux612,
    /// Offsets from their own place.
    Linux73,
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// Makes the tables.
fn tables(form: KallsymsForm) -> Vec<u8> {
    let unit = if form == KallsymsForm::Linux73 { 4 } else { 8 };
    let mut symbols: Vec<(String, u64)> = Vec::new();
    if form != KallsymsForm::Linux73 {
        symbols.push(("Afixed_percpu_data".into(), 0));
    }
    for number in 0..SYMBOLS {
        let name = match number {
            0 => "T_stext".into(),
            last if last == SYMBOLS - 1 => "T_etext".into(),
            _ => format!("{}f{number:04}", if number % 2 == 0 { "t" } else { "T" }),
        };
        symbols.push((name, BASE + 16 * number as u64));
    }
    let offsets = |place: u64| -> Vec<u8> {
        let offset = |(number, (name, address)): (u64, &(String, u64))| match form {
            KallsymsForm::Linux73 => (address.wrapping_sub(place + number * 4)) as u32,
            _ if name.starts_with('A') => *address as u32,
            _ => BASE.wrapping_sub(*address).wrapping_sub(1) as u32,
        };
        (0..).zip(&symbols).map(offset).flat_map(u32::to_le_bytes).collect()
    };
    let mut bytes = b"read-only data of another kind\0\0".to_vec();
    if form == KallsymsForm::Linux61 {
        bytes.extend(offsets(0));
        align(&mut bytes, unit);
        bytes.extend(BASE.to_le_bytes());
    }
    bytes.extend((symbols.len() as u32).to_le_bytes());
    align(&mut bytes, unit);
    let mut marks = Vec::new();
    let begin = bytes.len();
    for (number, (name, _)) in symbols.iter().enumerate() {
        if number % 256 == 0 {
            marks.extend(((bytes.len() - begin) as u32).to_le_bytes());
        }
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
    align(&mut bytes, unit);
    bytes.extend(marks);
    align(&mut bytes, unit);
    let mut positions = Vec::new();
    let begin = bytes.len();
    for token in 0..=255u8 {
        positions.extend(((bytes.len() - begin) as u16).to_le_bytes());
        match token.is_ascii_graphic() {
            true => bytes.push(token),
            false => bytes.extend(format!("_{token}_").bytes()),
        }
        bytes.push(0);
    }
    align(&mut bytes, unit);
    bytes.extend(positions);
    align(&mut bytes, unit);
    if form != KallsymsForm::Linux61 {
        bytes.extend(offsets(TABLE.0 + bytes.len() as u64));
        align(&mut bytes, unit);
    }
    if form == KallsymsForm::Linux612 {
        bytes.extend(BASE.to_le_bytes());
    }
    bytes
}

/// Makes an ELF file with code and tables, and without symbols.
pub fn image(form: KallsymsForm) -> Vec<u8> {
    let table = tables(form);
    let code = (16 * SYMBOLS) as u64;
    let names = b"\0.text\0.rodata\0.shstrtab\0";
    let names_at = TABLE.1 + table.len();
    let headers_at = (names_at + names.len()).next_multiple_of(8);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    for half in [2u16, 62, 1, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for long in [BASE, 0, headers_at as u64] {
        bytes.extend(long.to_le_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    for half in [64u16, 0, 0, 64, 4, 3] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.resize(0x1000, 0);
    bytes.resize(TABLE.1, 0x90);
    bytes.extend(&table);
    bytes.extend(names);
    bytes.resize(headers_at, 0);
    // Name, type, flags, address, offset, size.
    let sections: [(u32, u32, u64, u64, usize, u64); 4] = [
        (0, 0, 0, 0, 0, 0),
        (1, 1, 6, BASE, 0x1000, code),
        (7, 1, 2, TABLE.0, TABLE.1, table.len() as u64),
        (15, 3, 0, 0, names_at, names.len() as u64),
    ];
    for (name, kind, flags, address, offset, size) in sections {
        bytes.extend([name, kind].map(u32::to_le_bytes).concat());
        bytes.extend([flags, address, offset as u64, size, 0, 1, 0].map(u64::to_le_bytes).concat());
    }
    bytes
}
