//! Registers the reports, the rules of advice, and the reference workloads; bundles the scripts of
//! pages.

fn main() {
    kerntune_code::registry("reports");
    kerntune_code::texts("data/advice");
    kerntune_code::texts("data/reference-profiles");
    for entry in ["file", "served"] {
        kerntune_code::script("html/scripts", entry);
    }
}
