//! Finds the front-end models.

fn main() {
    kerntune_code::texts("machines");
}
