//! Computes the code hash for keys of imported profiles.

fn main() {
    kerntune_code::emit();
}
