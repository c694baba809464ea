//! `/proc/interrupts` and `/proc/softirqs`: one column per CPU, then the description.

/// Maximum number of rows to read.
const MAX_LINES: usize = 10_000;

/// Sums each interrupt over the given CPUs, or all if `cpus` is empty. An interrupt is named by its
/// number or letters and its device.
pub fn parse_interrupts(text: &str, cpus: &[u32]) -> Vec<(String, u64)> {
    rows(text, cpus, true)
}

/// Sums each softirq over the given CPUs, or all if `cpus` is empty.
pub fn parse_softirqs(text: &str, cpus: &[u32]) -> Vec<(String, u64)> {
    rows(text, cpus, false)
}

fn rows(text: &str, cpus: &[u32], described: bool) -> Vec<(String, u64)> {
    let mut lines = text.lines();
    let heads = lines.next().unwrap_or_default().split_whitespace();
    let columns: Vec<u32> = heads.filter_map(|head| head.strip_prefix("CPU")?.parse().ok()).collect();
    let row = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace().peekable();
        let (mut sum, mut any) = (0_u64, false);
        for column in &columns {
            // A counter that is not per CPU (`ERR`) has a single column.
            let Some(count) = words.peek().and_then(|word| word.parse::<u64>().ok()) else { break };
            words.next();
            if cpus.is_empty() || cpus.contains(column) {
                sum = sum.saturating_add(count);
            }
            any = true;
        }
        let what: Vec<&str> = words.filter(|_| described).collect();
        let name = [vec![name.trim()], what].concat().join(" ");
        any.then_some((name, sum))
    };
    lines.take(MAX_LINES).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_sum_and_their_device() {
        // Linux 6.18.
        let text = "           CPU0       CPU2       \n\
             36:          0    8085066 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
            LOC:    6158928    6366656   Local timer interrupts\n\
            ERR:          7\n\
            odd\n";
        let all = parse_interrupts(text, &[]);
        let device = "36 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0".to_string();
        let local = "LOC Local timer interrupts".to_string();
        assert_eq!(all, [(device, 8_085_066), (local.clone(), 12_525_584), ("ERR".into(), 7)]);
        assert_eq!(parse_interrupts(text, &[0])[1], (local, 6_158_928));
        let softirqs = "                    CPU0       CPU1       \n          HI:          0          3\n";
        assert_eq!(parse_softirqs(softirqs, &[]), [("HI".into(), 3)]);
        assert!(parse_interrupts("", &[]).is_empty());
    }
}
