//! Parts of front-end models, from `data/cpu-models/parts/`. They are added by name:
//! `zen4+tage+next-line`.
//!
//! A table of the part replaces the model's table of that name. A table below `[otherwise]` is used
//! only if the model has none. Costs are merged one by one, and only into models that have costs:
//! those below `[cycles]` replace the model's, those below `[otherwise.cycles]` fill in missing
//! ones.

use crate::{Error, Result};
use toml::{Table, Value};

/// Names and texts of the built-in parts.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/cpu-models/parts.rs"));

/// Returns the names of the built-in parts.
pub(crate) fn built_in() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Applies parts to a model's text in the given order, and extends its name and description
/// accordingly.
///
/// # Errors
/// [`Error::Syntax`] if the text is not valid TOML; [`Error::UnknownPart`].
pub(crate) fn apply_parts<'a>(text: &str, parts: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut model: Table = toml::from_str(text)?;
    for name in parts {
        let Some((_, part)) = BUILT_IN.iter().find(|(known, _)| *known == name) else {
            return Err(Error::UnknownPart {
                name: name.to_owned(),
                known: built_in().collect::<Vec<_>>().join(", "),
            });
        };
        let mut part: Table = toml::from_str(part)?;
        let description = part.remove("description").and_then(|text| text.as_str().map(str::to_owned));
        append(&mut model, "name", &format!("+{name}"));
        append(&mut model, "description", &format!("; {}", description.unwrap_or_default()));
        let otherwise = part.remove("otherwise");
        if let (Some(Value::Table(replaced)), Some(Value::Table(costs))) =
            (part.remove("cycles"), model.get_mut("cycles"))
        {
            costs.extend(replaced);
        }
        model.extend(part);
        if let Some(Value::Table(otherwise)) = otherwise {
            fill_in(&mut model, otherwise);
        }
    }
    // A table that was parsed can always be written.
    Ok(toml::to_string(&model).unwrap_or_default())
}

fn append(model: &mut Table, key: &str, text: &str) {
    if let Some(Value::String(value)) = model.get_mut(key) {
        value.push_str(text);
    }
}

/// Adds tables and costs that the model lacks.
fn fill_in(model: &mut Table, otherwise: Table) {
    for (key, value) in otherwise {
        match (key.as_str(), model.get_mut(&key), value) {
            ("cycles", Some(Value::Table(costs)), Value::Table(added)) => {
                for (cost, cycles) in added {
                    costs.entry(cost).or_insert(cycles);
                }
            }
            ("cycles", ..) | (_, Some(_), _) => {}
            (_, None, value) => {
                model.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirectionConfig, FrontEndConfig};

    #[test]
    fn every_part_fits_every_model_and_each_other() {
        for model in FrontEndConfig::built_in() {
            for part in built_in() {
                let name = format!("{model}+{part}");
                let config = FrontEndConfig::named(&name).unwrap();
                assert_eq!(config.name, name);
                assert_eq!(FrontEndConfig::parse(&config.to_toml()).unwrap(), config);
                let twice = FrontEndConfig::named(&format!("{name}+static+large-pages")).unwrap();
                assert_eq!(twice.direction, Some(DirectionConfig::Static {}));
            }
        }
    }

    #[test]
    fn a_part_brings_what_the_model_lacks_and_leaves_the_rest_alone() {
        let named = |name| FrontEndConfig::named(name).unwrap();
        let cost = |name| named(name).cycles.and_then(|cycles| cycles.misprediction);
        assert_eq!((cost("zen2"), cost("zen2+tage")), (Some(17.0), Some(17.0)));
        assert_eq!((cost("generic"), cost("generic+tage")), (None, Some(14.0)));
        assert_eq!((named("pa-risc-720").cycles, named("pa-risc-720+static").cycles), (None, None));
        let instruction = |name| named(name).cycles.map(|cycles| cycles.instruction);
        assert_eq!((instruction("zen4+back-end"), instruction("pa-risc-720+back-end")), (Some(0.5), None));
        assert_eq!(
            named("zen4+back-end").cycles.map(|c| c.l1i_miss),
            named("zen4").cycles.map(|c| c.l1i_miss)
        );
        assert_eq!(named("skylake+large-pages").itlb_large, named("skylake").itlb_large);
        assert_eq!(named("generic+large-pages").itlb_large.map(|tlb| tlb.entries), Some(64));
        let generic = named("generic");
        let other = named("generic+next-line");
        assert_eq!((other.prefetch.is_some(), other.l1i, other.cycles), (true, generic.l1i, generic.cycles));
        assert!(other.description.ends_with("; the next line fetched ahead"), "{}", other.description);
    }

    #[test]
    fn unknown_parts_are_refused_with_those_there_are() {
        let error = FrontEndConfig::named("zen4+tge").unwrap_err().to_string();
        assert!(error.contains("\"tge\"") && error.contains("gshare, large-pages"), "{error}");
        assert!(FrontEndConfig::named("zen4+").is_err());
        assert!(FrontEndConfig::named("+tage").unwrap_err().to_string().contains("generic, icelake"));
    }

    #[test]
    fn the_documentation_has_every_part() {
        let text = include_str!("../../../docs/models.md");
        for name in built_in() {
            assert!(text.contains(&format!("| `{name}`")), "docs/models.md lacks {name}");
        }
    }
}
