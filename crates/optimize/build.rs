//! Hashes the code of this crate and of those below it, which is part of the keys of results.

fn main() {
    kerntune_code::emit();
}
