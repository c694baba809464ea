//! Timed results that the user names, two kernels at a time.

use crate::exit::Failure;
use kerntune_guest::read_text;
use kerntune_stats::Results;
use std::path::Path;

/// The files of a kernel, each with its name.
pub type Files = Vec<(String, Results)>;

/// Base and tuned kernel of each pair; a name may be several with commas between.
///
/// # Errors
/// A file that cannot be read, or that is no such file.
pub fn timed_pairs(asked: &[String]) -> Result<Vec<[Files; 2]>, Failure> {
    let files = |list: &String| -> Result<Files, Failure> {
        list.split(',').map(|path| read_results(Path::new(path))).collect()
    };
    asked.chunks_exact(2).map(|pair| Ok([files(&pair[0])?, files(&pair[1])?])).collect()
}

/// One file with its name.
///
/// # Errors
/// As [`timed_pairs`].
pub fn read_results(path: &Path) -> Result<(String, Results), Failure> {
    let text = read_text("read", path)?;
    let origin = path.display().to_string();
    let results = Results::parse(&origin, &text)?;
    Ok((origin, results))
}
