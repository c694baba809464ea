//! The front-end model to run along: one that is built in, or a file.

use crate::Result;
use kerntune_layout::FrontEndConfig;
use kerntune_work::IoContext;
use std::path::Path;

/// The model used where none is named.
pub const DEFAULT: &str = "generic";

/// A model's name and its TOML text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// What tables call it.
    pub name: String,
    /// What the recorder is told.
    pub text: String,
}

/// Finds a model by the name of a built-in one or the path of a `.toml` file, and checks it.
pub fn find(name: &str) -> Result<Model> {
    let text = if name.ends_with(".toml") {
        let path = Path::new(name);
        std::fs::read_to_string(path).at("read front-end model", path)?
    } else {
        FrontEndConfig::named_text(name)?.to_string()
    };
    let config = FrontEndConfig::parse(&text)?;
    Ok(Model { name: config.name, text })
}
