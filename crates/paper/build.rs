//! Generates the table of built-in papers from `data/papers/`.

fn main() {
    kerntune_code::texts("data/papers");
}
