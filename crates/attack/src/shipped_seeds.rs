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
