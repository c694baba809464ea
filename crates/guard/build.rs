//! Emits the hash of the code of this crate and of those below it.

fn main() {
    kerntune_code::emit();
}
