//! `kerntune time`.

use super::{work, workload};
use crate::args::{Global, Time};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_kernel::{Arch, Kernel};
use kerntune_machine::Uml;
use kerntune_tune::timed::{timed, Timed, TimedRequest};
use kerntune_tune::Session;

pub fn run(global: &Global, options: &Time, output: &Output) -> Result<Exit, Failure> {
    if !(options.scale > 0.0 && options.scale <= 1e6) {
        return Err(Failure::usage(format!("--scale is above 0 and up to 1e6, not {}", options.scale)));
    }
    let work = work(global)?;
    let workload = workload(&options.workload)?;
    let names = std::iter::once(&options.base).chain(&options.others);
    let kernels: Vec<Kernel> =
        names.map(|name| kerntune_kernel::find(&work, name)).collect::<Result<_, _>>()?;
    let session = Session::on(Arch::Um, &work, output.progress())?;
    let request = TimedRequest {
        kernels: &kernels,
        workload: &workload,
        boots: options.boots,
        iterations: options.iterations,
        scale: options.scale,
        cpu: options.cpu.or_else(Uml::last_cpu).unwrap_or(0),
        directory: &options.out,
    };
    let times = timed(&session, &request, &|boot, of, label| {
        output.note(&format!("[{boot}/{of}] {label}"));
    })?;
    let times: Vec<Timed> = times.into_iter().map(|(_, timed)| timed).collect();
    match options.format.json {
        true => output.json(&times),
        false => print(&times, output),
    }
    output.note(&format!(
        "\nmedians of {} boots with {} iterations; every time is in {}",
        options.boots,
        options.iterations,
        options.out.display()
    ));
    Ok(Exit::Ok)
}

fn print(times: &[Timed], output: &Output) {
    let Some((base, others)) = times.split_first() else { return };
    let mut heads = vec!["ROW".to_string(), format!("#{} ns/op", base.kernel.label)];
    heads.extend(others.iter().map(|timed| format!("#{}", timed.kernel.label)));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let lines = base.rows.iter().filter_map(|row| {
        let median = base.median(&row.row)?;
        let change = |timed: &Timed| {
            timed
                .median(&row.row)
                .map_or("-".into(), |other| format!("{:+.2} %", (other / median - 1.0) * 100.0))
        };
        let mut line = vec![row.row.clone(), format!("{median:.1}")];
        line.extend(others.iter().map(change));
        Some(line)
    });
    output.table(&heads, lines);
}
