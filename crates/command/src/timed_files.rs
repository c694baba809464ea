//! Files with timed results of base and tuned kernels.

use crate::exit::Failure;
use kerntune_guest::read_text;
use kerntune_stats::BenchResults;
use std::path::Path;

/// Timed results of one kernel, each with the name of its file.
pub type TimedFiles = Vec<(String, BenchResults)>;

/// Reads pairs of files: base and tuned kernel in turn. Each argument may name several files,
/// separated by commas.
///
/// # Errors
/// A file that cannot be read, or that has no timed results.
pub fn timed_pairs(asked: &[String]) -> Result<Vec<[TimedFiles; 2]>, Failure> {
    let files = |list: &String| -> Result<TimedFiles, Failure> {
        list.split(',').map(|path| read_results(Path::new(path))).collect()
    };
    asked.chunks_exact(2).map(|pair| Ok([files(&pair[0])?, files(&pair[1])?])).collect()
}

/// Reads a file of timed results; returns it with its name.
///
/// # Errors
/// A file that cannot be read, or that has no timed results.
pub fn read_results(path: &Path) -> Result<(String, BenchResults), Failure> {
    let text = read_text("read", path)?;
    let origin = path.display().to_string();
    let results = BenchResults::parse(&origin, &text)?;
    Ok((origin, results))
}
