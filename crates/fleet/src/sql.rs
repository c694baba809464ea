//! The same for DuckDB: a view for each table.

use crate::summary;
use kerntune_profile::SCHEMA;
use std::fmt::Write as _;
use std::path::Path;

/// Statements for DuckDB that make each table that `has` says is there a view, with the columns `build_id`, `date`, `host`,
/// `workload` and `profile`, and the view `profiles` of what each says of itself.
pub fn views(root: &Path, has: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    // In SQL a quotation mark within a text is doubled.
    let root = root.display().to_string().replace('\'', "''");
    let below = format!("{root}/build_id=*/date=*/host=*/workload=*/profile=*");
    let mut view = |name: &str, file: &str| {
        let _ = writeln!(
            text,
            "CREATE VIEW {name} AS SELECT * FROM read_parquet('{below}/{file}', hive_partitioning = true, \
             hive_types_autocast = false);"
        );
    };
    view("profiles", summary::FILE);
    for table in SCHEMA.iter().filter(|table| has(table.name)) {
        view(table.name, &format!("{}.parquet", table.name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_of_the_tables_that_are_there() {
        let text = views(Path::new("/fleet/o'hara"), |table| table == "functions");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("CREATE VIEW profiles AS "), "{text}");
        assert!(lines[1]
            .contains("'/fleet/o''hara/build_id=*/date=*/host=*/workload=*/profile=*/functions.parquet'"));
    }
}
