//! A file or directory for each source. The first that the kernel allows is used; `choose` knows their order.

pub mod perf;

use crate::{Options, Result, Source};

/// The best source that the kernel allows, started.
///
/// # Errors
/// Why none can be used.
pub fn choose(options: &Options) -> Result<Vec<Box<dyn Source>>> {
    Ok(vec![Box::new(perf::Perf::start(options)?)])
}
