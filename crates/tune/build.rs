//! Computes the code hash for keys of results, and lists the recipes.

fn main() {
    kerntune_code::emit();
    kerntune_code::registry("recipes");
}
