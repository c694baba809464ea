//! Finds the papers.

fn main() {
    kerntune_code::texts("papers");
}
