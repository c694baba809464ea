//! Seeds for the readers of kernels as distributions ship them.

#[path = "../../kernel/src/import/test_image.rs"]
mod test_image;
#[path = "../../kernel/src/kernels/test_module.rs"]
mod test_module;

use test_image::{image, KallsymsForm};

/// Unpacked images with each form of the symbol table, and a configuration in an image.
pub fn images() -> Vec<Vec<u8>> {
    // `printf 'CONFIG_SMP=y\n' | gzip -n`
    let packed = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x73, 0xf6, 0xf7, 0x73, 0xf3, 0x74, 0x8f, 0x0f, 0xf6, 0x0d, 0xb0,
        0xad, 0xe4, 2, 0, 0xff, 0x85, 0x45, 0x0d, 0x0d, 0, 0, 0,
    ];
    let config = [b"IKCFG_ST", &packed[..], b"IKCFG_ED"].concat();
    let forms = [KallsymsForm::Linux61, KallsymsForm::Linux612, KallsymsForm::Linux73];
    forms.map(image).into_iter().chain([config]).collect()
}

/// A kernel module with dependencies of both kinds.
pub fn modules() -> Vec<Vec<u8>> {
    let info = ["name=ext4", "softdep=pre: crc32c post: x", "depends=jbd2,mbcache", "vermagic=6.12.1 SMP"];
    vec![test_module::module(&info)]
}

/// Type information: `struct task_struct` with an unnamed union, bit fields, and other kinds.
pub fn btf() -> Vec<Vec<u8>> {
    let records: [&[u32]; 5] = [
        &[0, 1 << 24, 4, 32],
        &[1, 1 << 31 | 4 << 24 | 3, 64, 13, 1, 64, 0, 3, 96, 22, 1, 1 << 24 | 200],
        &[0, 5 << 24 | 2, 8, 17, 1, 0, 22, 1, 32],
        &[0, 13 << 24 | 1, 1, 13, 1],
        &[13, 6 << 24 | 1, 4, 17, 7],
    ];
    let strings = b"\0task_struct\0pid\0tgid\0comm\0";
    let words: Vec<u8> = records.concat().into_iter().flat_map(u32::to_le_bytes).collect();
    let sizes = [24, 0, words.len() as u32, words.len() as u32, strings.len() as u32];
    let head = [vec![0x9f, 0xeb, 1, 0], sizes.map(u32::to_le_bytes).concat()].concat();
    vec![[head, words, strings.to_vec()].concat()]
}

/// Memory with a module of two functions, a part of one, and a label.
pub fn guest_module() -> Vec<Vec<u8>> {
    use kerntune_recorder::fuzz_entry::BASE;
    const NAMES: &[u8] = b"\0brd_init\0brd_submit\0brd_submit.cold\0routine\0";
    let mut memory = vec![0; 0x200];
    memory[..4].copy_from_slice(b"brd\0");
    let mut put = |at: usize, value: u64| memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let symbols: [(u32, u8, u64); 4] = [(1, 2, 0x2000), (10, 2, 0x1000), (21, 2, 0x1100), (37, 0, 0x1200)];
    let fields = [(64, BASE + 0x1000), (72, 0x400), (80, BASE + 0x2000), (88, 0x100), (96, BASE + 0x80)];
    fields.iter().for_each(|(at, value)| put(*at, *value));
    put(0x80, BASE + 0x100);
    put(0x88, symbols.len() as u64);
    put(0x90, BASE + 0x200);
    for (at, (name, kind, address)) in (0x100..).step_by(24).zip(symbols) {
        put(at, u64::from(name) | u64::from(kind) << 32);
        put(at + 8, BASE + address);
        put(at + 16, 32);
    }
    memory.extend_from_slice(NAMES);
    vec![memory]
}
