//! Generates the lists of export formats, import formats and reports from their folders.

fn main() {
    for folder in ["export", "import", "report"] {
        kerntune_code::registry(folder);
    }
}
