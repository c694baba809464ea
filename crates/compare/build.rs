//! Finds the metrics.

fn main() {
    kerntune_code::registry("metric");
}
