//! Registers the reports, the rules of advice, and the reference workloads.

fn main() {
    kerntune_code::registry("reports");
    kerntune_code::texts("advice");
    kerntune_code::texts("references");
}
