//! Checks the lanes of CPUs against the table of CPUs.

use kerntune_analyze::timeline::{detail, overview, CpuActivity, CpuSlice, DetailWindow, WindowEnd};
use kerntune_analyze::TraceFile;
use kerntune_profile::Tables;
use kerntune_trace::Recording;
use std::ops::ControlFlow;

/// Times of a CPU: executed, halted, all.
type CpuTimes = [u64; 3];

fn add(times: &mut CpuTimes, doing: CpuActivity, ns: u64) {
    times[2] += ns;
    match doing {
        CpuActivity::Executes => times[0] += ns,
        CpuActivity::Halted => times[1] += ns,
        CpuActivity::Waits => {}
    }
}

fn of_slices(slices: &[CpuSlice]) -> CpuTimes {
    let mut times = CpuTimes::default();
    for slice in slices {
        add(&mut times, slice.state.doing, slice.end - slice.begin);
    }
    assert!(slices.windows(2).all(|pair| pair[0].end <= pair[1].begin));
    times
}

/// Checks that overview and windows have the times of the table of CPUs.
pub fn assert_lanes(bytes: &[u8], recording: &Recording, tables: &Tables) {
    let trace = TraceFile::open(&bytes, recording).unwrap();
    let whole = overview(&trace, 50, &mut |_| ControlFlow::Continue(())).unwrap();
    let count = if recording.cpus > 1 { recording.cpus as usize } else { 0 };
    let mut bins = vec![CpuTimes::default(); count];
    for bin in &whole.cpu_bins {
        add(&mut bins[bin.cpu as usize], bin.state.doing, bin.ns);
    }
    let mut windows = vec![CpuTimes::default(); count];
    for span in &whole.spans {
        let window = DetailWindow { begin: span.begin, until: WindowEnd::Time(span.end), calls: usize::MAX };
        let found = detail(&trace, &window).unwrap();
        assert_eq!(found.cpus.len(), count);
        for (sum, slices) in windows.iter_mut().zip(&found.cpus) {
            sum.iter_mut().zip(of_slices(slices)).for_each(|(sum, more)| *sum += more);
        }
    }
    let elapsed: u64 = whole.spans.iter().map(|span| span.end - span.begin).sum();
    let counted = (0..count as u32).map(|cpu| {
        let rows = || tables.cpus.iter().filter(move |row| row.cpu == cpu);
        [
            rows().map(|row| row.busy_ticks.get()).sum(),
            rows().map(|row| row.halted_ticks.get()).sum(),
            elapsed,
        ]
    });
    let counted: Vec<CpuTimes> = counted.collect();
    assert_eq!(bins, counted);
    assert_eq!(windows, counted);
    // The listed slices are not longer than all time.
    assert_eq!(whole.cpu_slices.len(), count);
    for (slices, all) in whole.cpu_slices.iter().zip(counted) {
        assert!(of_slices(slices).iter().zip(all).all(|(found, all)| *found <= all));
    }
}
