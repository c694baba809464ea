//! Emits the hash of the code of this crate and of those below it, and the table of workloads.

fn main() {
    kerntune_code::emit();
    kerntune_code::texts("data/workloads");
}
