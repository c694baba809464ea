//! Names the code of this crate and of those below it, part of what figures are kept by.

fn main() {
    kerntune_code::emit();
}
