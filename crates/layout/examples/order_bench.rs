//! Measures the run time of each order algorithm and the improvement by each score.
//!
//!     cargo run --release -p kerntune-layout --example order_bench -- [FUNCTIONS [ARCS [HOT_PERCENT]]]
//!
//! The graph is synthetic. By default it has 30,000 functions, 200,000 arcs, and half of the
//! functions are hot.

use kerntune_layout::order::{CdsortConfig, OrderAlgorithm, Placement, PlacementOrder};
use std::time::Duration;

#[path = "../tests/support/synthetic.rs"]
mod synthetic;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (functions, arcs, hot_percent) = (number(30_000)?, number(200_000)?, number(50)?);
    let graph = synthetic::kernel_like(1, functions, arcs, hot_percent as f64 / 100.0);
    println!("{} functions, {} arcs", graph.functions().len(), graph.arcs().len());
    println!(
        "{:<14} {:>8} {:>15} {:>14} {:>12} {:>24}",
        "order", "CPU s", "call distance", "same 4K page", "locality", "4K pages of 90/99/100 %"
    );
    let show = |name: &str, order: &PlacementOrder, taken: Duration| -> Result<(), kerntune_layout::Error> {
        let placement = Placement::new(&graph, order)?;
        let pages = [90, 99, 100].map(|percent| placement.footprint(percent).small_pages.to_string());
        println!(
            "{name:<14} {:>8.3} {:>15.4e} {:>14.4e} {:>12.4e} {:>24}",
            taken.as_secs_f64(),
            placement.call_distance() as f64,
            placement.expected_same_page_weight(4096),
            placement.cache_locality(&CdsortConfig::default()).total,
            pages.join(" / ")
        );
        Ok(())
    };
    show("input", &PlacementOrder::of_input(&graph), Duration::ZERO)?;
    for algorithm in OrderAlgorithm::ALL {
        let begin = on_cpu()?;
        let order = algorithm.order(&graph);
        show(algorithm.name(), &order, on_cpu()? - begin)?;
    }
    Ok(())
}

/// Returns this thread's CPU time, which does not depend on other load of the machine.
fn on_cpu() -> Result<Duration, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().ok_or("no figures in schedstat")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}
