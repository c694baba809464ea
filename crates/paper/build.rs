//! Generates the table of built-in papers from `papers/`.

fn main() {
    kerntune_code::texts("papers");
}
