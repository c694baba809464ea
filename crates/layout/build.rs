//! Embeds the front-end models and their parts.

fn main() {
    kerntune_code::texts("data/cpu-models");
    kerntune_code::texts("data/cpu-models/parts");
}
