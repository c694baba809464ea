//! Embeds the front-end models and their parts.

fn main() {
    kerntune_code::texts("machines");
    kerntune_code::texts("machines/parts");
}
