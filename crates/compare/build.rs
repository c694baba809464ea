//! Registers the metrics: one file of `src/metric` each.

fn main() {
    kerntune_code::registry("metric");
}
