//! Text for the CPU time of rows that were timed.

use kerntune_command::CliOutput;
use kerntune_stats::{BenchResults, CpuTime};

/// Prints the CPU time of each row, if the machine measured it.
pub fn table(times: &[BenchResults], output: &CliOutput) {
    // The host's time for a guest is known where the guest is processes of the host.
    let entry = times.iter().find_map(|results| results.entry.as_deref());
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    let lines = times.iter().flat_map(|results| results.rows.iter().map(move |row| (results, row)));
    let lines: Vec<Vec<String>> = lines
        .filter_map(|(results, row)| {
            let all = CpuTime::sum(&row.cpu);
            let of = results.label.as_ref().unwrap_or(&row.suite).clone();
            let mut line = vec![row.row.clone(), of, format!("{:.*}", digits(all.seconds), all.seconds)];
            line.push(share(all.total() / all.seconds));
            let shares = all.shares()?;
            line.extend(shares.into_iter().take(if entry.is_some() { 4 } else { 2 }).map(share));
            Some(line)
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    let heads = ["ROW", "OF", "#SECONDS", "#ON THE CPU"];
    match entry {
        Some(entry) => {
            output.note(&format!(
                "\nCPU time while a row ran, all boots together (sampled by the host's tick); the guest's programs \
                 enter the kernel by {entry}:"
            ));
            let guest = ["#GUEST KERNEL", "#PROGRAMS", "#HOST FOR KERNEL", "#HOST FOR PROGRAMS"];
            output.table(&heads.into_iter().chain(guest).collect::<Vec<_>>(), lines);
        }
        None => {
            output.note("\nCPU time of the steps and the services, all boots and runs together:");
            output.table(&heads.into_iter().chain(["#KERNEL", "#PROGRAMS"]).collect::<Vec<_>>(), lines);
        }
    }
}

/// Digits after the decimal point that show so many seconds to three places.
fn digits(seconds: f64) -> usize {
    match seconds {
        seconds if seconds >= 100.0 => 1,
        seconds if seconds >= 1.0 => 2,
        _ => 4,
    }
}
