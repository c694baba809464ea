//! Imports of `perf.data` in each mode of perf, compared with what `perf report` says of the same
//! files. `tests/perf_data/make` recorded them.

use kerntune_live::{import_perf_data, Error, PerfDataRequest, ProfileLabels, RecordedProfile};
use kerntune_profile::Ticks;
use kerntune_work::WorkDir;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data")
}

/// Functions in which an idle CPU is halted: their samples are idle time.
const HALTS: [&str; 3] = ["pv_native_safe_halt", "default_idle", "acpi_safe_halt"];

fn labels() -> ProfileLabels {
    ProfileLabels {
        id: "p".into(),
        workload: "perf".into(),
        region: "perf".into(),
        ..ProfileLabels::default()
    }
}

fn unpacked(name: &str, dir: &Path) -> PathBuf {
    let packed = fs::read(fixtures().join(format!("{name}.data.zst"))).unwrap();
    let path = dir.join(name);
    fs::write(&path, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    path
}

fn imported(file: &Path, dir: &Path, user_chains: bool) -> Result<RecordedProfile, Error> {
    let work = WorkDir::open(dir.join("work")).unwrap();
    let symbols = fixtures().join("symbols");
    let request = PerfDataRequest { file, kernel: None, symbols: Some(&symbols), event: None, user_chains };
    import_perf_data(&work, &request, &labels())
}

/// Samples of the kernel by address of the function, halted ones, and those of programs.
#[derive(Debug, PartialEq, Eq)]
struct SampleTotals {
    kernel: BTreeMap<u64, u64>,
    halted: u64,
    user: u64,
}

/// Reads what perf reports.
fn of_perf(name: &str) -> SampleTotals {
    let text = fs::read_to_string(fixtures().join("symbols")).unwrap();
    let address = |name: &str| {
        let mut lines = text.lines().filter(|line| line.split([' ', '\t']).nth(2) == Some(name));
        let line = lines.next().unwrap_or_else(|| panic!("no {name} among the symbols"));
        u64::from_str_radix(&line[..16], 16).unwrap()
    };
    let mut all = SampleTotals { kernel: BTreeMap::new(), halted: 0, user: 0 };
    for line in fs::read_to_string(fixtures().join(format!("{name}.report"))).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let samples: u64 = words[0].parse().unwrap();
        match (words[1], words[2]) {
            ("[.]", _) => all.user += samples,
            (_, name) if HALTS.contains(&name) => all.halted += samples,
            (_, name) => *all.kernel.entry(address(name)).or_default() += samples,
        }
    }
    all
}

fn of_kerntune(profile: &kerntune_profile::Profile) -> SampleTotals {
    let sampled = profile.manifest.sampled.as_ref().unwrap();
    let samples = |ticks: Ticks| ticks.get() / sampled.sample_ns.get();
    let tables = &profile.tables;
    let mut kernel = BTreeMap::new();
    for row in tables.functions.iter().filter(|row| row.self_ticks > Ticks::ZERO) {
        let symbol = tables.symbols.iter().find(|symbol| symbol.function == row.function).unwrap();
        *kernel.entry(symbol.address.0).or_default() += samples(row.self_ticks);
    }
    SampleTotals {
        kernel,
        halted: samples(profile.manifest.idle_ticks),
        user: samples(tables.regions[0].user_ticks),
    }
}

#[test]
fn totals_of_every_mode_are_those_of_perf_report() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["plain", "all", "chains", "dwarf", "packed", "pipe", "several", "period"] {
        let file = unpacked(name, dir.path());
        let found = imported(&file, dir.path(), false).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (ours, theirs) = (of_kerntune(&found.profile), of_perf(name));
        assert_eq!(ours, theirs, "{name}");
        let sampled = found.profile.manifest.sampled.as_ref().unwrap();
        let sum = theirs.kernel.values().sum::<u64>() + theirs.halted + theirs.user;
        assert_eq!(sampled.samples, sum, "{name}");
        assert!(sampled.source.starts_with("perf.data: "));
        let said = found.notes.join("\n");
        for (mode, note) in [
            ("dwarf", "left out: copies of user stacks in"),
            ("several", "left out: "),
            ("plain", "it has no call chains"),
            ("period", "user code was not sampled"),
        ] {
            assert!(mode != name || said.contains(note), "{name}: {said}");
        }
        assert_eq!(sampled.filter.is_none(), matches!(name, "all"), "{name}: {:?}", sampled.filter);
    }
}

#[test]
fn chains_lead_from_system_calls_to_what_they_execute() {
    let dir = tempfile::tempdir().unwrap();
    let found = imported(&unpacked("chains", dir.path()), dir.path(), false).unwrap();
    let tables = &found.profile.tables;
    let named = |name: &str| tables.symbols.iter().find(|symbol| symbol.name == name).unwrap().function;
    let total = |name| tables.functions.iter().find(|row| row.function == named(name)).unwrap().total_ticks;
    assert!(total("do_syscall_64") >= total("vfs_read"), "callers have the time of callees");
    assert!(tables.threads.iter().any(|thread| thread.comm == "find" || thread.comm == "tar"));
}

#[test]
fn functions_of_programs_that_changed_are_one_row_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let found = imported(&unpacked("chains", dir.path()), dir.path(), true).unwrap();
    let symbols = &found.profile.tables.symbols;
    let of_libc = symbols.iter().filter(|s| s.module.as_deref().is_some_and(|path| path.contains("/libc")));
    assert!(of_libc.count() > 0, "names of this machine's libc, or [libc.so.6]");
}

#[test]
fn a_file_of_another_kernel_is_refused_with_both_ids() {
    let dir = tempfile::tempdir().unwrap();
    let file = unpacked("plain", dir.path());
    let mut bytes = fs::read(&file).unwrap();
    // The build id is that of the kernel that recorded the file.
    let id = {
        let data = kerntune_convert::perf_data::PerfData::open(std::io::Cursor::new(&bytes[..])).unwrap();
        data.file.kernel_build_id.unwrap()
    };
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect();
    let places: Vec<usize> =
        bytes.windows(20).enumerate().filter(|(_, w)| *w == id).map(|(at, _)| at).collect();
    for at in places {
        bytes[at] ^= 0xff;
    }
    fs::write(&file, &bytes).unwrap();
    let work = WorkDir::open(dir.path().join("work")).unwrap();
    let request =
        PerfDataRequest { file: &file, kernel: None, symbols: None, event: None, user_chains: false };
    let error = import_perf_data(&work, &request, &labels()).unwrap_err().to_string();
    assert!(error.contains("it was recorded on machine ") && error.contains("--symbols FILE"), "{error}");
}

#[test]
fn events_that_are_no_clock_and_lists_of_other_kernels_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = unpacked("several", dir.path());
    let (work, symbols) = (WorkDir::open(dir.path().join("work")).unwrap(), fixtures().join("symbols"));
    let request = PerfDataRequest {
        file: &file,
        kernel: None,
        symbols: Some(&symbols),
        event: Some("page-faults"),
        user_chains: false,
    };
    let error = import_perf_data(&work, &request, &labels()).unwrap_err().to_string();
    assert!(error.contains("need samples of a clock"), "{error}");
    let request = PerfDataRequest { event: Some("none"), ..request };
    let error = import_perf_data(&work, &request, &labels()).unwrap_err().to_string();
    assert!(error.contains("it has no event `none`; it has `cpu-clock"), "{error}");
    let few = dir.path().join("few");
    fs::write(&few, "ffffffff81000000 T _text\nffffffff81000010 T a\nffffffff81000020 T b\n").unwrap();
    let request = PerfDataRequest { event: None, symbols: Some(&few), ..request };
    let error = import_perf_data(&work, &request, &labels()).unwrap_err().to_string();
    assert!(error.contains("are in no function of the kernel"), "{error}");
}
