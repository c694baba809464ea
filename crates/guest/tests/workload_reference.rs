//! Checks that the reference of workload files, docs/workload-file.md, has exactly the keys that
//! the parser knows.

use kerntune_guest::{Error, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A key unlike any other, so that the parser lists those it knows.
const UNKNOWN: &str = "zzzzzzzzzzzzzzzz";

type KeyTable = BTreeMap<String, BTreeSet<String>>;

/// Keys of each table according to the parser, by the table's heading in the reference.
fn known() -> KeyTable {
    // A service has one of several readiness keys.
    let file = format!(
        "{UNKNOWN} = 1\n\
         [disk]\nkind = \"null_blk\"\nsize_mb = 64\nfilesystem = \"ext4\"\n{UNKNOWN} = 1\n\
         [[service]]\nname = \"a\"\ncommand = [\"true\"]\n{UNKNOWN} = 1\n\
         [service.ready]\ntcp = 1\nwithin_seconds = 1\n{UNKNOWN} = 1\n\
         [[service]]\nname = \"b\"\ncommand = [\"true\"]\n\
         [service.ready]\ncommand = [\"true\"]\nwithin_seconds = 1\n{UNKNOWN} = 1\n\
         [training]\n{UNKNOWN} = 1\n\
         [[training.step]]\ncommand = [\"true\"]\n{UNKNOWN} = 1\n\
         [measured]\n{UNKNOWN} = 1\n\
         [[measured.step]]\ncommand = [\"true\"]\n{UNKNOWN} = 1\n\
         [[measured.step.metrics]]\nname = \"a\"\nregex = \"(a)\"\nunit = \"a\"\nbetter = \"lower\"\n{UNKNOWN} = 1\n"
    );
    let Err(Error::Invalid { problems, .. }) = Workload::parse(&file, Path::new("reference.toml")) else {
        panic!("unknown keys were taken");
    };
    let tables = [
        ("", "Top level"),
        ("disk.", "`disk`"),
        ("service[0].", "`service`"),
        ("service[0].ready.", "`service.ready`"),
        ("service[1].ready.", "`service.ready`"),
        ("training.", "`training` and `measured`"),
        ("measured.", "`training` and `measured`"),
        ("training.step[0].", "`step`"),
        ("measured.step[0].", "`step`"),
        ("measured.step[0].metrics[0].", "`step.metrics`"),
    ];
    let mut all = KeyTable::new();
    for (path, heading) in tables {
        let key = format!("{path}{UNKNOWN}");
        let problem = problems.iter().find(|problem| problem.key == key);
        let problem = problem.unwrap_or_else(|| panic!("no problem with {key}: {problems:?}"));
        let help = problem.help.clone().unwrap_or_default();
        let names = help.strip_prefix("known here: ").unwrap_or_else(|| panic!("{key}: {help}"));
        all.entry(heading.to_owned()).or_default().extend(names.split(", ").map(str::to_owned));
    }
    all
}

/// Keys of each table according to the page, by the heading above it.
fn documented() -> KeyTable {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workload-file.md");
    let mut all = KeyTable::new();
    let mut heading = String::new();
    for line in std::fs::read_to_string(page).unwrap().lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let key = row.split('`').next().unwrap();
            assert!(all.entry(heading.clone()).or_default().insert(key.to_owned()), "{key} twice");
        }
    }
    all
}

#[test]
fn every_key_is_in_the_reference_and_is_one() {
    assert_eq!(documented(), known());
}
