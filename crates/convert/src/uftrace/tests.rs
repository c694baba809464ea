//! Tests of the importer with what uftrace recorded, against `uftrace report`.

use super::*;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tracers")
}

/// Name and content of each file of the fixture.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(fixtures().join("sums.uftrace")).unwrap();
    let file = |path: PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    entries.map(|entry| file(entry.unwrap().path())).collect()
}

fn import(files: &[(String, Vec<u8>)]) -> Result<crate::timed::TimedTables, ImportError> {
    let content =
        |name: &str| files.iter().find(|file| file.0 == name).map(|file| &file.1[..]).unwrap_or_default();
    let mut importer = UftraceImporter::new(content("info"), &String::from_utf8_lossy(content("task.txt")))?;
    for session in importer.sessions() {
        importer.add_map(&session, &String::from_utf8_lossy(content(&format!("sid-{session}.map"))));
    }
    for (name, bytes) in files {
        if name.ends_with(".sym") {
            importer.add_symbols(&String::from_utf8_lossy(bytes));
        }
    }
    for (name, bytes) in files {
        if let Some(tid) = name.strip_suffix(".dat").and_then(|tid| tid.parse().ok()) {
            importer.add_thread(tid, name, &bytes[..])?;
        }
    }
    Ok(importer.finish()?.0)
}

/// Converts `1.234 ms` to a range in ns.
fn nanoseconds(number: &str, unit: &str) -> (u64, u64) {
    let unit = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => panic!("{other}"),
    };
    let value = number.parse::<f64>().unwrap() * unit;
    ((value - unit / 1e3 - 1.0) as u64, (value + unit / 1e3 + 1.0) as u64)
}

#[test]
fn figures_are_those_of_uftrace_report() {
    let made = import(&recorded()).unwrap();
    let tables = &made.tables;
    let report = std::fs::read_to_string(fixtures().join("sums.report.txt")).unwrap();
    let mut rows = 0;
    for line in report.lines().skip(2) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [total, total_unit, own, own_unit, calls, name] = words[..] else { panic!("{line}") };
        let symbol = tables.symbols.iter().find(|symbol| symbol.name == name).unwrap();
        let row = tables.functions.iter().find(|row| row.function == symbol.function).unwrap();
        assert_eq!((row.calls, row.ended), (calls.parse().unwrap(), row.calls), "{name}");
        let (low, high) = nanoseconds(own, own_unit);
        assert!((low..=high).contains(&row.self_ticks.get()), "{line}: {}", row.self_ticks);
        let (low, high) = nanoseconds(total, total_unit);
        // uftrace counts the outermost call of a recursion alone.
        let fits = (low..=high).contains(&row.total_ticks.get());
        assert!(fits || name == "walk" && row.total_ticks.get() > high, "{line}: {}", row.total_ticks);
        rows += 1;
    }
    assert_eq!(rows, tables.functions.len());
    let threads: Vec<_> = tables.threads.iter().map(|row| (row.pid, row.tgid, row.comm.as_str())).collect();
    assert_eq!(threads.len(), 2);
    assert!(threads.iter().all(|row| row.1 == 1181 && row.2 == "sums"), "{threads:?}");
    let busy: u64 = tables.paths.iter().map(|path| path.self_ticks.get()).sum();
    assert_eq!(busy, made.totals.busy);
}

#[test]
fn what_is_exported_is_imported_again() {
    let mut files = files(&[UftraceTask { tid: 7, comm: "rr".into() }], ["a", "b"].into_iter());
    let records =
        [record(10, false, 0, 0), record(20, false, 1, 1), record(50, true, 1, 1), record(60, true, 0, 0)];
    files.push(("7.dat".into(), records.concat()));
    let made = import(&files).unwrap();
    let times: Vec<_> =
        made.tables.functions.iter().map(|row| (row.self_ticks.get(), row.total_ticks.get())).collect();
    assert_eq!(times, [(20, 50), (30, 30)]);
    assert_eq!(made.tables.symbols[1].name, "b");
}

#[test]
fn damage_is_named_with_its_place() {
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = recorded();
        change(&mut files.iter_mut().find(|file| file.0 == name).unwrap().1);
        import(&files).unwrap_err().to_string()
    };
    assert_eq!(
        with("1183.dat", &|bytes| bytes.truncate(24)),
        "1183.dat, byte 16: the last record is cut off"
    );
    assert_eq!(with("1183.dat", &|bytes| bytes[24] = 0xc0), "1183.dat, byte 16: not a record of uftrace");
    assert!(with("info", &|bytes| bytes[0] = 0).starts_with("info is not of uftrace"));
    assert!(with("info", &|bytes| bytes[8] = 9).starts_with("version 9 of uftrace's format"));
    let arguments = with("1183.dat", &|bytes| bytes[8] |= 4);
    assert!(arguments.contains("a record has data"), "{arguments}");
    assert!(matches!(import(&recorded()[..0]), Err(ImportError::NotUftrace)));
}
