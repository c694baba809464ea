//! Compares two sample profiles of one recording: one made from exact counts, the other from branch
//! records.
//!
//! `branch_records PROFILE VMLINUX DIR` exports both forms into DIR, runs llvm-profgen 19 on each
//! and llvm-profdata on the results, and prints how far the functions with 99 % of all samples
//! agree.

use kerntune_convert::autofdo::{BranchRecords, SampleFunction, SampleProfile, UnsymbolizedProfile};
use kerntune_profile::Profile;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [profile, vmlinux, dir] = &arguments[..] else { return Err("PROFILE VMLINUX DIR".into()) };
    let dir = Path::new(dir);
    fs::create_dir_all(dir)?;
    let tables = Profile::load(Path::new(profile))?.tables;
    let mut file = BufWriter::new(File::create(dir.join("counts.txt"))?);
    UnsymbolizedProfile::of(&tables)?.write(&mut file)?;
    file.flush()?;
    let mut file = BufWriter::new(File::create(dir.join("branches.txt"))?);
    println!("{:?}", BranchRecords::of(&tables)?.write(&mut file)?);
    file.flush()?;

    let binary = format!("--binary={vmlinux}");
    let counts = sample_profile(
        dir,
        "counts",
        &[&binary, "--unsymbolized-profile=counts.txt", "--use-offset=0", "--output=counts.afdo"],
    )?;
    let branches = sample_profile(
        dir,
        "branches",
        &["--kernel", &binary, "--perfscript=branches.txt", "--output=branches.afdo"],
    )?;
    compare(&counts, &branches);
    Ok(())
}

fn sample_profile(dir: &Path, name: &str, arguments: &[&str]) -> Result<SampleProfile, Box<dyn Error>> {
    run(dir, "llvm-profgen-19", arguments)?;
    let (afdo, text) = (format!("{name}.afdo"), format!("{name}.samples.txt"));
    let shown = run(dir, "llvm-profdata-19", &["show", "--sample", &afdo])?;
    println!("llvm-profdata-19 show --sample {afdo}: {} lines", shown.lines().count());
    run(dir, "llvm-profdata-19", &["merge", "--sample", "--text", &afdo, &format!("--output={text}")])?;
    Ok(SampleProfile::parse(&fs::read_to_string(dir.join(text))?)?)
}

fn run(dir: &Path, program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).args(arguments).current_dir(dir).output()?;
    print!("{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{program} {arguments:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn compare(counts: &SampleProfile, branches: &SampleProfile) {
    let (one, other) = (counts.functions.len(), branches.functions.len());
    println!("functions: {one} by counts, {other} by branch records");
    println!("samples: {} by counts, {} by branch records", counts.total(), branches.total());
    let theirs: BTreeMap<&str, &SampleFunction> =
        branches.functions.iter().map(|f| (f.name.as_str(), f)).collect();
    let none = SampleFunction::default();
    let mut by_total: Vec<&SampleFunction> = counts.functions.iter().collect();
    by_total.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    let mut sum = 0;
    let hot = by_total.iter().take_while(|f| {
        let before = sum;
        sum += u128::from(f.total);
        before * 100 < counts.total() * 99
    });
    let pairs: Vec<_> = hot.map(|f| (*f, *theirs.get(f.name.as_str()).unwrap_or(&&none))).collect();
    println!("functions with 99 % of the samples: {}", pairs.len());
    let column = |what: &str, of: &dyn Fn(&SampleFunction) -> u64| {
        let mut differences: Vec<f64> = pairs.iter().map(|(a, b)| relative(of(a), of(b))).collect();
        differences.sort_by(f64::total_cmp);
        let different = differences.iter().filter(|&&difference| difference > 0.0).count();
        let median = differences.get(differences.len() / 2).copied().unwrap_or_default();
        let max = differences.last().copied().unwrap_or_default();
        println!("{what}: {different} differ, largest {:.4} %, median {:.4} %", 100.0 * max, 100.0 * median);
    };
    column("totals", &|f| f.total);
    column("heads", &|f| f.head);
    column("hottest places", &|f| f.max);
    column("places with samples", &|f| f.places);
    for ours in &by_total {
        let theirs = *theirs.get(ours.name.as_str()).unwrap_or(&&none);
        if (ours.total, ours.head) != (theirs.total, theirs.head) {
            println!("{}: {}:{} {}:{}", ours.name, ours.total, ours.head, theirs.total, theirs.head);
        }
    }
}

fn relative(one: u64, other: u64) -> f64 {
    if one == other {
        return 0.0;
    }
    one.abs_diff(other) as f64 / one.max(1) as f64
}
