//! The command `kerntune matrix table`.

use super::opening::{OpenPlan, PlanOptions};
use crate::recipe_table::{markdown, recipe_table, RecipeRow, TABLE_SCHEMA};
use clap::Args;
use kerntune_command::{CliOutput, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand};
use serde::Serialize;

#[derive(Debug, Args)]
pub struct MatrixTableOptions {
    #[command(flatten)]
    plan: PlanOptions,
    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct TableJson<'a> {
    schema: &'static str,
    plan: &'a str,
    rows: Vec<RecipeRow>,
}

impl RunSubcommand<GlobalOptions> for MatrixTableOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let OpenPlan { work, store, plan, id, .. } = &self.plan.open(global, output)?;
        let rows = recipe_table(plan, &**store, work)?;
        if self.format.json {
            output.json(&TableJson { schema: TABLE_SCHEMA, plan: id, rows });
            return Ok(Exit::Ok);
        }
        let mut recipes: Vec<String> = Vec::new();
        let named =
            plan.cells.iter().map(|cell| &cell.recipe).chain(plan.refused.iter().map(|of| &of.recipe));
        for recipe in named.filter(|recipe| *recipe != "-") {
            if !recipes.contains(recipe) {
                recipes.push(recipe.clone());
            }
        }
        output.print(&markdown(&rows, &recipes));
        Ok(Exit::Ok)
    }
}
