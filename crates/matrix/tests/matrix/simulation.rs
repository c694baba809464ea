//! The scheduler's choices for a thousand cells on many machines, with simulated clocks.

use kerntune_matrix::schedule::{next, MachineLoad};
use kerntune_matrix::CoreDemand;
use std::collections::{BTreeSet, BinaryHeap};

/// A cell's task, or the build that it needs.
struct SimulatedTask {
    cores: CoreDemand,
    needs: Option<usize>,
    seconds: u64,
}

/// 20 kernels by 50 workloads. A build has 480 CPU seconds of which a tenth runs on one CPU alone;
/// a measurement takes 20 to 60 s.
fn matrix(cores: u64) -> Vec<SimulatedTask> {
    let build = 48 + 432 / cores;
    let mut tasks: Vec<SimulatedTask> =
        (0..20).map(|_| SimulatedTask { cores: CoreDemand::All, needs: None, seconds: build }).collect();
    for kernel in 0..20 {
        for workload in 0..50u64 {
            let seconds = 20 + (workload * 7919 + kernel as u64 * 104_729) % 41;
            tasks.push(SimulatedTask { cores: CoreDemand::One, needs: Some(kernel), seconds });
        }
    }
    tasks
}

/// Returns the duration on `nodes` machines of `cores` each, in seconds, and the largest number of
/// times that a task was begun.
fn makespan(nodes: usize, cores: usize) -> (u64, usize) {
    let tasks = matrix(cores as u64);
    let mut begun: Vec<usize> = vec![0; tasks.len()];
    let mut done: BTreeSet<usize> = BTreeSet::new();
    let mut load = vec![MachineLoad { cores, ones: 0, all: false }; nodes];
    // Ends of running tasks, the earliest first, with node and task.
    let mut ends: BinaryHeap<std::cmp::Reverse<(u64, usize, usize)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        for (node, load) in load.iter_mut().enumerate() {
            // Tasks that other nodes claimed are taken.
            loop {
                let is_open =
                    |at: &usize| begun[*at] == 0 && tasks[*at].needs.is_none_or(|need| done.contains(&need));
                let open: Vec<usize> = (0..tasks.len()).filter(is_open).collect();
                let Some(at) = next(open.iter().map(|at| tasks[*at].cores), *load) else { break };
                let task = open[at];
                begun[task] += 1;
                match tasks[task].cores {
                    CoreDemand::All => load.all = true,
                    CoreDemand::One => load.ones += 1,
                }
                ends.push(std::cmp::Reverse((now + tasks[task].seconds, node, task)));
            }
        }
        let Some(std::cmp::Reverse((time, node, task))) = ends.pop() else { break };
        now = time;
        done.insert(task);
        match tasks[task].cores {
            CoreDemand::All => load[node].all = false,
            CoreDemand::One => load[node].ones -= 1,
        }
    }
    assert_eq!(done.len(), tasks.len());
    (now, begun.into_iter().max().unwrap())
}

#[test]
fn a_thousand_cells_scale_to_twenty_machines() {
    let cores = 8;
    let work: u64 = matrix(cores as u64)
        .iter()
        .map(|task| task.seconds * if task.cores == CoreDemand::All { cores as u64 } else { 1 })
        .sum();
    println!("nodes of {cores} cores | hours | efficiency");
    for (nodes, min) in [(1, 0.98), (2, 0.98), (4, 0.95), (10, 0.9), (20, 0.8)] {
        let (seconds, max) = makespan(nodes, cores);
        let efficiency = work as f64 / (seconds * (nodes * cores) as u64) as f64;
        println!("{nodes:5} | {:.2} | {:.1} %", seconds as f64 / 3600.0, efficiency * 100.0);
        assert_eq!(max, 1);
        assert!(efficiency >= min, "{nodes} nodes: {efficiency}");
    }
}
