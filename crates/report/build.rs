//! Finds the reports, and the rules of advice.

fn main() {
    kerntune_code::registry("reports");
    kerntune_code::texts("advice");
}
