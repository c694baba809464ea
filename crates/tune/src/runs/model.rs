//! Front-end models by name: a built-in one, or a file.

use crate::{Error, Result};
use kerntune_compare::{EventCosts, ModelCosts};
use kerntune_guest::read_text;
use kerntune_layout::{CacheConfig, FrontEndConfig};
use std::path::Path;

/// Default model.
pub const DEFAULT: &str = "generic";

/// A front-end model: sizes for the recorder, and costs for the figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Name of the model in tables.
    pub name: String,
    /// Sizes as TOML for the recorder. Costs are left out, so that a recording does not depend on
    /// them.
    pub text: String,
    /// Instruction cache that orders of functions are optimized for.
    pub l1i: CacheConfig,
    /// Costs of events in cycles; `None` if the model gives none.
    pub costs: Option<ModelCosts>,
}

/// Finds a built-in model or a `.toml` file, adds the parts after a `+` (`zen4+tage`,
/// `mine.toml+next-line`), and checks the result. Data caches are left out.
pub fn find(name: &str) -> Result<Model> {
    read(name, false)
}

/// Finds a model as [`find`] does, with its data caches.
///
/// # Errors
/// As [`find`]; [`Error::NoDataModel`] if the model has none.
pub fn find_with_data(name: &str) -> Result<Model> {
    read(name, true)
}

fn read(name: &str, data: bool) -> Result<Model> {
    let mut config = match name.rsplit_once(".toml") {
        Some((stem, parts)) if parts.is_empty() || parts.starts_with('+') => {
            let file = format!("{stem}.toml");
            let text = read_text("read front-end model", Path::new(&file))?;
            FrontEndConfig::with_parts(&text, parts.split('+').skip(1))?
        }
        _ => FrontEndConfig::named(name)?,
    };
    match (data, config.data) {
        (true, None) => return Err(Error::NoDataModel { model: config.name }),
        (true, Some(_)) => {}
        (false, _) => config.data = None,
    }
    let costs = config.cycles.take().map(|cycles| ModelCosts {
        path_length: cycles.instruction,
        taken_branches: cycles.taken_branch,
        l1i_misses: cycles.l1i_miss,
        itlb_misses: cycles.itlb_miss,
        events: EventCosts {
            l2_misses: cycles.l2_miss.unwrap_or_default(),
            btb_l2_hits: cycles.btb_l2_hit.unwrap_or_default(),
            btb_misses: cycles.btb_miss.unwrap_or_default(),
            mispredictions: cycles.misprediction.unwrap_or_default(),
        },
    });
    Ok(Model { text: config.to_toml(), l1i: config.l1i, name: config.name, costs })
}
