//! Finds the formats and the reports.

fn main() {
    for folder in ["export", "import", "report"] {
        kerntune_code::registry(folder);
    }
}
