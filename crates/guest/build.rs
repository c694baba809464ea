//! Names the code of this crate and of those below it, part of the keys of results; finds the workloads.

fn main() {
    kerntune_code::emit();
    kerntune_code::texts("workloads");
}
