//! The fleet for DuckDB: a view for each table.

use crate::summary;
use kerntune_profile::SCHEMA;
use std::fmt::Write as _;
use std::path::Path;

/// Returns DuckDB statements that create a view for each table for which `has` is true, with the
/// columns `build_id`, `date`, `host`, `workload` and `profile`, and the view `profiles` of the
/// manifests.
pub fn views(root: &Path, has: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    // SQL doubles quotation marks within a text, and DuckDB reads the path as a pattern.
    let root = literal_glob(&root.display().to_string()).replace('\'', "''");
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

/// Escapes a path for use as a pattern: each special character becomes a set of itself.
fn literal_glob(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            '*' | '?' | '[' | '{' => format!("[{c}]"),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        let text = views(Path::new("/fleet [1]*?"), |_| false);
        assert!(text.contains("'/fleet [[]1][*][?]/build_id=*"), "{text}");
    }

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
