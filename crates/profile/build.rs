//! Sets `KERNTUNE_CODE`, the hash of this crate's code and of the crates below it, for keys of
//! results.

fn main() {
    kerntune_code::emit();
}
