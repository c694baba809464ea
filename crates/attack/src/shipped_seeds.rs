//! Seeds for the readers of kernels as distributions ship them.

#[path = "../../kernel/src/import/test_image.rs"]
mod test_image;

use test_image::{image, KallsymsForm};

/// Unpacked images with each form of the symbol table.
pub fn images() -> Vec<Vec<u8>> {
    [KallsymsForm::Linux61, KallsymsForm::Linux612, KallsymsForm::Linux73].map(image).to_vec()
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
