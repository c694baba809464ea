//! Finds the reports.

fn main() {
    kerntune_code::registry("reports");
}
