//! A file or directory for each source. The first that the kernel allows is used; `choose` knows their order.

pub mod function_profiler;
mod kgmon;
pub mod perf;

use crate::options::CallCounts;
use crate::{Error, Options, Result, Source};

/// The best sources that the kernel allows, started: of samples, and of calls if these are wanted.
///
/// # Errors
/// Why none can be used.
pub fn choose(options: &Options) -> Result<Vec<Box<dyn Source>>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(calls) = &options.calls {
        sources.push(counter(calls)?);
    }
    sources.push(Box::new(perf::Perf::start(options)?));
    Ok(sources)
}

/// What counts calls: the module, or ftrace's profiler.
fn counter(calls: &CallCounts) -> Result<Box<dyn Source>> {
    let kgmon = match kgmon::Kgmon::start(calls) {
        Ok(source) => return Ok(Box::new(source)),
        Err(error) => error.to_string(),
    };
    match function_profiler::FunctionProfiler::start(calls, &kgmon) {
        Ok(source) => Ok(Box::new(source)),
        Err(profiler) => Err(Error::NoCalls { kgmon, profiler: profiler.to_string() }),
    }
}
