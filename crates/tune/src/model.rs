//! The front-end model to run along: one that is built in, or a file.

use crate::{Error, Result};
use kerntune_compare::{Costs, EventCosts};
use kerntune_guest::read_text;
use kerntune_layout::{CacheConfig, FrontEndConfig};
use std::path::Path;

/// The model used where none is named.
pub const DEFAULT: &str = "generic";

/// A model: what the recorder needs of it, and what is made of the figures afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What tables call it.
    pub name: String,
    /// What the recorder is told, TOML: the sizes alone, so that a recording does not depend on what its events are
    /// said to cost.
    pub text: String,
    /// The instruction cache, which orders are made for.
    pub l1i: CacheConfig,
    /// What the events cost, if the model says.
    pub costs: Option<Costs>,
}

/// Finds a model by the name of a built-in one or the path of a `.toml` file, puts parts in that are named after it
/// (`zen4+tage`, `mine.toml+next-line`), and checks it. Without its caches of data.
pub fn find(name: &str) -> Result<Model> {
    read(name, false)
}

/// The same with its caches of data.
///
/// # Errors
/// As [`find`]; [`Error::NoDataModel`] if it has none.
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
    let costs = config.cycles.take().map(|cycles| Costs {
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
