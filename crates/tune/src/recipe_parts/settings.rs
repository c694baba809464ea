//! Settings of a tuning besides kernel, workload and recipe.

use crate::runs::model::Model;
use crate::{Error, Result};
use kerntune_guest::Workload;
use kerntune_kernel::ObjectFlags;
use kerntune_optimize::gcc_pgo::{Exclusions, UntrainedCode, WeightedRun};
use kerntune_work::Key;
use std::path::PathBuf;

static NO_EXCLUSIONS: Exclusions = Exclusions::NONE;

/// Settings of a tuning besides kernel, workload and recipe.
#[derive(Debug, Clone, Copy)]
pub struct TuningSettings<'a> {
    /// Options of the recipe.
    pub options: RecipeOptions,
    /// Front-end model of the measurements, whose cache recipes with an order optimize for.
    pub model: &'a Model,
    /// Objects that the recipe leaves out.
    pub exclusions: &'a Exclusions,
    /// Extra compiler flags of single objects of the tuned kernel; the base kernel is built without
    /// them.
    pub object_flags: &'a [ObjectFlags],
    /// Training data to use instead of a training run.
    pub supplied: Option<&'a SuppliedProfile>,
    /// Further training workloads, each with its weight.
    pub also_trained_on: &'a [(Workload, u32)],
}

impl<'a> TuningSettings<'a> {
    /// Creates settings with this model and nothing else.
    pub fn new(model: &'a Model) -> Self {
        Self {
            options: RecipeOptions::default(),
            model,
            exclusions: &NO_EXCLUSIONS,
            object_flags: &[],
            supplied: None,
            also_trained_on: &[],
        }
    }

    /// Adds every field to a key.
    pub(crate) fn add_to_key(&self, key: Key) -> Result<Key> {
        // Every field is named here, so that a new one is not forgotten.
        let Self { options, model, exclusions, object_flags, supplied, also_trained_on } = self;
        let RecipeOptions { values, untrained } = options;
        let mut key = key
            .field("model", &model.text)
            .value("object flags", object_flags)?
            .value("exclusions", exclusions.entries())?
            .field("values", values.to_string())
            .field("untrained", untrained.name());
        if let Some(supplied) = supplied {
            match supplied {
                SuppliedProfile::Counters(runs) => {
                    for run in runs {
                        key = key.field("supplied counters", run.dir.as_os_str().as_encoded_bytes());
                        if run.weight != 1 {
                            key = key.field("weight of the counters", run.weight.to_string());
                        }
                    }
                }
                SuppliedProfile::Recording(path) => {
                    key = key.field("supplied recording", path.as_os_str().as_encoded_bytes());
                }
            }
        }
        for (workload, weight) in *also_trained_on {
            key = key.field("also", workload.content_hash()?).field("weight", weight.to_string());
        }
        Ok(key)
    }
}

/// Existing training data that replaces a training run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuppliedProfile {
    /// Counters of an instrumented kernel: directories copied from debugfs, with their weights.
    Counters(Vec<WeightedRun>),
    /// A profile with what the recipe needs: its directory.
    Recording(PathBuf),
}

impl SuppliedProfile {
    /// Returns the error of a recipe that takes the other kind.
    pub(crate) fn not_of(&self, recipe: &'static str) -> Error {
        let (option, instead) = match self {
            Self::Counters(_) => ("--gcda", "--profile"),
            Self::Recording(_) => ("--profile", "--gcda"),
        };
        Error::NotOfRecipe { option, recipe, instead }
    }
}

/// Options that only some recipes know. A recipe refuses the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecipeOptions {
    /// `gcc-pgo`: profile values besides arcs, if there are patches for this kernel.
    pub values: bool,
    /// `gcc-pgo`: how code that the training did not run is compiled.
    pub untrained: UntrainedCode,
}
