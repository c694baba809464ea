//! The default recipe: the best by measured times (`ranking.tsv`) that this machine's tools can
//! build.

use kerntune_command::Failure;
use kerntune_kernel::{Compiler, ObjectFlags};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_tune::{Recipe, RecipeOptions};

/// Recipes with the results of timing them.
const RANKING: &str = include_str!("ranking.tsv");

/// Default if no timed recipe can be built here; its errors name the missing tools.
const FALLBACK_RECIPE: &str = "gcc-pgo";

/// A recipe with the results of timing it, a line of `ranking.tsv`.
#[derive(Debug, Clone, PartialEq)]
struct TimedRecipe {
    recipe: Recipe,
    /// Change of the time in percent, as geometric mean over the rows; negative is faster.
    percent: f64,
    rows: u32,
    faster: u32,
    slower: u32,
    boots: u32,
    place: String,
    page: String,
}

/// Requirements on the default recipe, from the command line.
pub struct RecipeQuery<'a> {
    /// Name of the compiler; `None` if not given.
    pub compiler: Option<&'a str>,
    /// Options that only some recipes accept.
    pub options: RecipeOptions,
    /// Compiler flags for single objects.
    pub object_flags: &'a [ObjectFlags],
    /// Code that the recipe must leave unchanged.
    pub exclusions: &'a Exclusions,
}

/// Returns the fastest recipe that meets the requirements, and a sentence that explains the choice.
///
/// # Errors
/// An unknown compiler.
pub fn best(query: &RecipeQuery) -> Result<(Recipe, String), Failure> {
    let named: Option<Compiler> =
        query.compiler.map(|name| name.parse().map_err(Failure::usage)).transpose()?;
    let can = |recipe: Recipe| {
        let compiler = named.clone().unwrap_or_else(|| recipe.default_compiler());
        recipe.check_options(query.options, query.object_flags, query.exclusions).is_ok()
            && recipe.check_compiler(&compiler).is_ok()
    };
    match ranking()?.into_iter().find(|timed| can(timed.recipe)) {
        Some(timed) => Ok((timed.recipe, timed.sentence())),
        None => {
            let recipe: Recipe = FALLBACK_RECIPE.parse().map_err(Failure::usage)?;
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

impl TimedRecipe {
    fn sentence(&self) -> String {
        let Self { recipe, percent, rows, faster, slower, boots, place, page } = self;
        format!(
            "recipe {recipe}: the best by measured times that this machine's tools can build ({percent:+.1} \
             % time, {faster} of {rows} rows faster, {slower} slower, {boots} boots; {place}: {page}); \
             choose another with --recipe"
        )
    }
}

/// Reads the timed recipes, fastest first.
fn ranking() -> Result<Vec<TimedRecipe>, Failure> {
    let lines = RANKING.lines().filter(|line| !line.starts_with('#'));
    let mut all: Vec<TimedRecipe> = lines
        .map(|line| parse(line).ok_or_else(|| Failure::usage(format!("ranking.tsv: `{line}`"))))
        .collect::<Result<_, _>>()?;
    all.sort_by(|a, b| a.percent.total_cmp(&b.percent));
    Ok(all)
}

fn parse(line: &str) -> Option<TimedRecipe> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [recipe, percent, rows, faster, slower, boots, place, page] = fields[..] else { return None };
    Some(TimedRecipe {
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

    fn query<'a>(compiler: Option<&'a str>, values: bool, exclusions: &'a Exclusions) -> RecipeQuery<'a> {
        RecipeQuery {
            compiler,
            options: RecipeOptions { values, ..RecipeOptions::default() },
            object_flags: &[],
            exclusions,
        }
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
        let (recipe, why) = best(&query(Some("gcc"), false, &none)).unwrap();
        assert_eq!(recipe.name(), "gcc-pgo");
        assert!(why.contains("rows faster") && why.contains("choose another with --recipe"), "{why}");
        // Only GCC profiles values.
        assert_eq!(best(&query(None, true, &none)).unwrap().0.name(), "gcc-pgo");
        // There is no such compiler; the recipe reports it.
        let (recipe, why) = best(&query(Some("gcc-1"), false, &none)).unwrap();
        assert_eq!(recipe.name(), FALLBACK_RECIPE);
        assert!(why.contains("no recipe with measured times"), "{why}");
    }
}
