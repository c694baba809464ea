//! `/proc/stat`: CPU times and a few counters.

/// Length of a tick of this file in ns (`USER_HZ` is 100 on all supported machines).
const TICK_NS: u64 = 10_000_000;
/// Names of the first columns of a CPU's line (`man 5 proc`).
const TIMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcStat {
    /// Sums of CPU times in ns, in steps of 10 ms.
    pub times: Vec<(String, u64)>,
    /// Number of processes created.
    pub counts: Vec<(String, u64)>,
}

/// Parses the file for the given CPUs, or all if `cpus` is empty.
pub fn parse_stat(text: &str, cpus: &[u32]) -> ProcStat {
    let mut times = [0_u64; TIMES.len()];
    let mut counts = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(head) = words.next() else { continue };
        let of_cpu = head.strip_prefix("cpu").and_then(|number| number.parse::<u32>().ok());
        if of_cpu.is_some_and(|cpu| cpus.is_empty() || cpus.contains(&cpu)) {
            let ticks = words.map(|word| word.parse::<u64>().unwrap_or(0));
            times.iter_mut().zip(ticks).for_each(|(sum, ticks)| {
                *sum = sum.saturating_add(ticks.saturating_mul(TICK_NS));
            });
        } else if head == "processes" {
            let count = words.next().and_then(|word| word.parse().ok());
            counts.extend(count.map(|count| ("forks".to_string(), count)));
        }
    }
    ProcStat { times: TIMES.iter().map(|name| (*name).to_string()).zip(times).collect(), counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_chosen_cpus() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 10 0 0 40 0 0 0 0\nprocesses 77\nctxt 5\n";
        let all = parse_stat(text, &[]);
        assert_eq!(all.times[0], ("user".into(), 110_000_000));
        assert_eq!(all.times[3], ("idle".into(), 440_000_000));
        assert_eq!(parse_stat(text, &[1]).times[3].1, 400_000_000);
        assert_eq!(all.counts, [("forks".into(), 77)]);
    }
}
