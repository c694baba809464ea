//! Which recipe is taken where none is named: the best by the clock (`ranking.tsv`) of those that this machine can carry out.

use crate::exit::Failure;
use kerntune_kernel::{Compiler, ObjectFlags};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_tune::{Recipe, RecipeOptions};

/// The recipes that were timed, with what came of it.
const RANKING: &str = include_str!("ranking.tsv");

/// Taken where nothing that was timed can be carried out; its own errors say what is missing.
const OTHERWISE: &str = "gcc-pgo";

/// What the clock has shown of a recipe.
#[derive(Debug, Clone, PartialEq)]
struct Timed {
    recipe: Recipe,
    /// Change of the time, geometric mean over the rows, per cent.
    percent: f64,
    rows: u32,
    faster: u32,
    slower: u32,
    boots: u32,
    place: String,
    page: String,
}

/// What a recipe has to do.
pub struct Asked<'a> {
    /// The compiler, if one was named.
    pub compiler: Option<&'a str>,
    /// What only some recipes know.
    pub options: RecipeOptions,
    /// Wishes for single objects.
    pub object_flags: &'a [ObjectFlags],
    /// What is left out.
    pub exclusions: &'a Exclusions,
}

/// The best that can do what was asked, and a sentence on why it was taken.
///
/// # Errors
/// A compiler that is none.
pub fn best(asked: &Asked) -> Result<(Recipe, String), Failure> {
    let named: Option<Compiler> =
        asked.compiler.map(|name| name.parse().map_err(Failure::usage)).transpose()?;
    let can = |recipe: Recipe| {
        let compiler = named.clone().unwrap_or_else(|| recipe.default_compiler());
        recipe.check_options(asked.options, asked.object_flags, asked.exclusions).is_ok()
            && recipe.check_compiler(&compiler).is_ok()
    };
    match ranking()?.into_iter().find(|timed| can(timed.recipe)) {
        Some(timed) => Ok((timed.recipe, timed.sentence())),
        None => {
            let recipe: Recipe = OTHERWISE.parse().map_err(Failure::usage)?;
            Ok((
                recipe,
                format!(
                    "recipe {recipe}: no recipe with measured times can be built here; choose another with \
                     --recipe"
                ),
            ))
        }
    }
}

impl Timed {
    fn sentence(&self) -> String {
        let Self { recipe, percent, rows, faster, slower, boots, place, page } = self;
        format!(
            "recipe {recipe}: the best by measured times that this machine's tools can build ({percent:+.1} \
             % time, {faster} of {rows} rows faster, {slower} slower, {boots} boots; {place}: {page}); \
             choose another with --recipe"
        )
    }
}

/// All of them, the best first.
fn ranking() -> Result<Vec<Timed>, Failure> {
    let lines = RANKING.lines().filter(|line| !line.starts_with('#'));
    let mut all: Vec<Timed> = lines
        .map(|line| parse(line).ok_or_else(|| Failure::usage(format!("ranking.tsv: `{line}`"))))
        .collect::<Result<_, _>>()?;
    all.sort_by(|a, b| a.percent.total_cmp(&b.percent));
    Ok(all)
}

fn parse(line: &str) -> Option<Timed> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [recipe, percent, rows, faster, slower, boots, place, page] = fields[..] else { return None };
    Some(Timed {
        recipe: recipe.parse().ok()?,
        percent: percent.parse().ok().filter(|percent: &f64| percent.is_finite())?,
        rows: rows.parse().ok()?,
        faster: faster.parse().ok()?,
        slower: slower.parse().ok()?,
        boots: boots.parse().ok()?,
        place: place.to_owned(),
        page: page.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(compiler: Option<&'a str>, values: bool, exclusions: &'a Exclusions) -> Asked<'a> {
        Asked { compiler, options: RecipeOptions { values }, object_flags: &[], exclusions }
    }

    #[test]
    fn every_line_has_evidence_on_a_page_that_is_there() {
        let all = ranking().unwrap();
        assert!(!all.is_empty());
        for timed in &all {
            assert!(timed.percent < 0.0 && timed.slower == 0, "{timed:?} is no better than none");
            assert!(timed.faster <= timed.rows && timed.boots >= 2, "{timed:?}");
            let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&timed.page);
            let text = std::fs::read_to_string(page).unwrap();
            assert!(text.contains(timed.recipe.name()), "{} is not in {}", timed.recipe, timed.page);
        }
        assert!(all.windows(2).all(|pair| pair[0].percent <= pair[1].percent));
        assert_eq!(parse("gcc-pgo\t-1"), None);
        assert_eq!(parse("magic\t-12.1\t15\t10\t0\t12\there\tdocs/uml.md"), None);
    }

    #[test]
    fn what_was_asked_for_decides_first() {
        let none = Exclusions::default();
        let (recipe, why) = best(&asked(Some("gcc"), false, &none)).unwrap();
        assert_eq!(recipe.name(), "gcc-pgo+layout");
        assert!(why.contains("rows faster") && why.contains("choose another with --recipe"), "{why}");
        // Only GCC counts values.
        assert_eq!(best(&asked(None, true, &none)).unwrap().0.name(), "gcc-pgo+layout");
        // No such compiler: its recipe says so.
        let (recipe, why) = best(&asked(Some("gcc-1"), false, &none)).unwrap();
        assert_eq!(recipe.name(), OTHERWISE);
        assert!(why.contains("no recipe with measured times"), "{why}");
    }
}
