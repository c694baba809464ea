//! Sources of samples and calls, one file or directory each. [`open_sources`] chooses the first
//! that the kernel allows.

pub mod function_profiler;
mod kgmon;
pub mod perf;

use crate::options::CallCountOptions;
use crate::{CollectorOptions, Error, Result, Source};

/// Opens and starts the best sources that the kernel allows: one for samples, and one for calls if
/// requested.
///
/// # Errors
/// No source can be used.
pub fn open_sources(options: &CollectorOptions) -> Result<Vec<Box<dyn Source>>> {
    if options.branches {
        return Ok(vec![Box::new(perf::BranchSource::start(options)?)]);
    }
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(calls) = &options.calls {
        sources.push(counter(calls)?);
    }
    sources.push(Box::new(perf::PerfSource::start(options)?));
    Ok(sources)
}

/// Opens the source of call counts: the module, or else ftrace's profiler.
fn counter(calls: &CallCountOptions) -> Result<Box<dyn Source>> {
    let kgmon = match kgmon::KgmonSource::start(calls) {
        Ok(source) => return Ok(Box::new(source)),
        Err(error) => error.to_string(),
    };
    match function_profiler::FunctionProfiler::start(calls, &kgmon) {
        Ok(source) => Ok(Box::new(source)),
        Err(profiler) => Err(Error::NoCalls { kgmon, profiler: profiler.to_string() }),
    }
}
