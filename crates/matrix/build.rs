//! Names the code of this crate and of those below it: part of the keys of results.

fn main() {
    kerntune_code::emit();
}
