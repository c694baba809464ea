//! Advice on a workload: rules that apply to its profile, each with evidence, risk and source.
//!
//! A rule does not predict a gain. It shows where one is possible, and [`Advice::changes`] writes a
//! file for `kerntune ablate`, which measures it. Start from [`advise`]; rules are [`built_in`] or
//! parsed with [`AdviceRule::parse`]. `docs/advise.md` describes them.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::advise::{advise, built_in, RecordedConfig};
//! use kerntune_report::characterize::CharacterSubject;
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let subject = CharacterSubject { profile: &profile, region: None, costs: None };
//! let advice = advise(&subject, RecordedConfig::Missing, &built_in())?;
//! assert_eq!(advice.changes(true), None);
//! # Ok::<(), kerntune_report::Error>(())
//! ```

mod facts;
mod rule;
mod when;

pub use facts::RecordedConfig;
pub use rule::{built_in, AdviceRule};

use crate::characterize::event::FigureBasis;
use crate::characterize::facts::WorkloadCharacter;
use crate::characterize::marks;
use crate::characterize::split::PartGroup;
use crate::characterize::CharacterSubject;
use crate::{Result, Style};
use facts::{ConditionOutcome, WorkloadFacts, DAMAGED_KERNEL};
use kerntune_profile::{recipes_fed_by, KernelId, Profile};
use kerntune_table::number::fixed;
use kerntune_table::{printable, TextRole};
use serde::Serialize;
use toml::{Table, Value};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-advice/1";

/// Rule that applies, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct AppliedRule {
    rule: String,
    about: String,
    why: String,
    risk: String,
    source: String,
    hardening: bool,
    /// Self time of the functions concerned, in per cent of the busy time: an upper bound of the
    /// gain.
    at_stake_percent: Option<f64>,
    evidence: Vec<String>,
    /// Change in the form that `kerntune ablate` takes; empty if the advice is not a setting.
    change: Table,
    /// Command that applies the change to a kernel with this profile, if the change is a recipe and
    /// the profile cannot be recorded again.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Rule that does not apply, or whose conditions cannot be decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct SkippedRule {
    rule: String,
    about: String,
    because: String,
}

/// Rules that apply to a workload, that do not, and that are undecided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    schema: &'static str,
    profile: String,
    region: Option<String>,
    kernel: KernelId,
    workload: String,
    machine: String,
    basis: FigureBasis,
    /// Share of the kernel in the busy time, in per cent, which bounds what all rules can bring.
    #[serde(skip)]
    kernel_percent: f64,
    applies: Vec<AppliedRule>,
    does_not_apply: Vec<SkippedRule>,
    not_known: Vec<SkippedRule>,
}

/// Stake below which a rule is only named, in per cent of the busy time.
const SMALL_STAKE: f64 = 0.1;
/// Share of the kernel in the busy time, in per cent, below which the advice begins with it.
const SMALL_KERNEL: f64 = 25.0;

/// Key of a change that names a recipe.
const RECIPE: &str = "recipe";
/// Machine whose workloads can be recorded again, so that every recipe can train itself.
const RECORDING_MACHINE: &str = "emulator";
/// Reason against a recipe for a profile that none can read.
const NO_RECIPE: &str = "no recipe can read this profile (docs/recipes.md)";

/// Recipe to propose for a profile.
#[derive(Debug)]
enum FittingRecipe<'a> {
    /// The rule's own: it records the workload on its own.
    OfRule,
    /// The best one that reads this profile, if any.
    Of { recipe: Option<&'static str>, profile: &'a str },
}

impl<'a> FittingRecipe<'a> {
    fn of(profile: &'a Profile) -> Self {
        let manifest = &profile.manifest;
        if manifest.machine == RECORDING_MACHINE {
            return Self::OfRule;
        }
        let fed = recipes_fed_by(&profile.count_kinds());
        let recipe = ["gcc-pgo", "clang-autofdo", "layout"].into_iter().find(|recipe| fed.contains(recipe));
        Self::Of { recipe, profile: &manifest.id }
    }
}

impl AppliedRule {
    fn is_small(&self) -> bool {
        self.at_stake_percent.is_some_and(|percent| percent < SMALL_STAKE)
    }
}

/// Evaluates rules against a workload's profile.
///
/// # Errors
/// An unknown region; a profile that was transferred to another kernel.
pub fn advise(wanted: &CharacterSubject, config: RecordedConfig<'_>, rules: &[AdviceRule]) -> Result<Advice> {
    let character = WorkloadCharacter::of(wanted.profile, wanted.region, wanted.costs)?;
    let scope = marks::measured(wanted.profile, wanted.region)?;
    let facts = WorkloadFacts::new(wanted.profile, &scope, &character, config);
    let mut advice = Advice {
        schema: SCHEMA,
        profile: character.profile.clone(),
        region: character.region.clone(),
        kernel: character.kernel.clone(),
        workload: character.workload.clone(),
        machine: character.machine.clone(),
        basis: character.basis,
        kernel_percent: 100.0 - character.percent_of_busy(PartGroup::User),
        applies: Vec::new(),
        does_not_apply: Vec::new(),
        not_known: Vec::new(),
    };
    let fitting = FittingRecipe::of(wanted.profile);
    for rule in rules {
        advice.judge(rule, &facts, &fitting);
    }
    // Greatest share of busy time first; rules without a share come last.
    advice.applies.sort_by(|a, b| {
        let stake = |applied: &AppliedRule| applied.at_stake_percent.unwrap_or(-1.0);
        a.hardening.cmp(&b.hardening).then(stake(b).total_cmp(&stake(a))).then_with(|| a.rule.cmp(&b.rule))
    });
    Ok(advice)
}

impl Advice {
    fn judge(&mut self, rule: &AdviceRule, facts: &WorkloadFacts, fitting: &FittingRecipe) {
        let passed = |because| SkippedRule { rule: rule.name.clone(), about: rule.about.clone(), because };
        let (mut evidence, mut stake, mut unknown) = (Vec::new(), None::<f64>, None);
        for when in &rule.when {
            match facts.ask(when) {
                ConditionOutcome::Holds { evidence: said, percent_busy } => {
                    evidence.push(said);
                    stake = percent_busy.map_or(stake, |percent| Some(stake.unwrap_or(0.0).max(percent)));
                }
                // A failed condition decides, even if others are unknown.
                ConditionOutcome::Fails(because) => return self.does_not_apply.push(passed(because)),
                ConditionOutcome::Unknown(because) => unknown = unknown.or(Some(because)),
            }
        }
        if let Some(because) = facts.in_force(&rule.change) {
            return self.does_not_apply.push(passed(because));
        }
        if let Some(because) = unknown {
            return self.not_known.push(passed(because));
        }
        let mut change = rule.change.clone();
        let mut command = None;
        if let (Some(Value::String(recipe)), FittingRecipe::Of { recipe: fits, profile }) =
            (change.get_mut(RECIPE), fitting)
        {
            match fits {
                Some(fits) => {
                    *recipe = (*fits).into();
                    command = Some(format!(
                        "kerntune optimize --recipe {fits} --kernel KERNEL --profile {profile}"
                    ));
                }
                None => return self.does_not_apply.push(passed(NO_RECIPE.into())),
            }
        }
        self.applies.push(AppliedRule {
            rule: rule.name.clone(),
            about: rule.about.clone(),
            why: rule.why.clone(),
            risk: rule.risk.clone(),
            source: rule.source.clone(),
            hardening: rule.hardening,
            at_stake_percent: stake,
            evidence,
            change,
            command,
        });
    }

    /// Returns the rules that were not evaluated because the recorded kernel is damaged.
    pub fn unevaluated(&self) -> Vec<&str> {
        let of_kernel = self.not_known.iter().filter(|passed| passed.because == DAMAGED_KERNEL);
        of_kernel.map(|passed| passed.rule.as_str()).collect()
    }

    /// Returns the rules that apply and are worth a paragraph: with `all` each, otherwise those
    /// with 0.1 % of the busy time at stake or more, and those whose stake is not known.
    fn shown(&self, all: bool) -> impl Iterator<Item = &AppliedRule> {
        self.applies.iter().filter(move |applied| all || !applied.is_small())
    }

    /// Returns the rules that propose a change.
    fn proposed(&self, all: bool) -> impl Iterator<Item = &AppliedRule> {
        self.shown(all).filter(|applied| !applied.hardening && !applied.change.is_empty())
    }

    /// Returns the number of proposed changes; `all` includes those with next to nothing at stake.
    pub fn proposals(&self, all: bool) -> usize {
        self.proposed(all).count()
    }

    /// Returns the proposed changes as a file for `kerntune ablate`; `None` without changes. `all` as
    /// for [`proposals`](Self::proposals).
    pub fn changes(&self, all: bool) -> Option<String> {
        let mut text = format!(
            "# What may help {}, of profile {}. `kerntune ablate` measures each.\n",
            printable(&self.workload),
            printable(&self.profile)
        );
        for applied in self.proposed(all) {
            for evidence in &applied.evidence {
                text += &format!("\n# evidence: {}", printable(evidence));
            }
            let mut change = Table::new();
            change.insert("name".into(), applied.rule.clone().into());
            change.insert("about".into(), applied.about.clone().into());
            change.extend(applied.change.clone());
            let file = Table::from_iter([("change".to_owned(), Value::Array(vec![Value::Table(change)]))]);
            let file = file.to_string();
            text +=
                &format!("\n# risk: {}\n# source: {}\n{}\n", applied.risk, applied.source, file.trim_end());
        }
        (self.proposals(all) > 0).then_some(text)
    }

    /// Renders the JSON document (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// Figures that JSON cannot represent.
    pub fn json(&self) -> Result<String> {
        crate::to_json(self)
    }

    /// Renders the advice as text, with a newline at its end; `all` adds the rules with next to
    /// nothing at stake, and why the other rules do not apply.
    pub fn text(&self, style: Style, all: bool) -> String {
        let rules = self.applies.len() + self.does_not_apply.len() + self.not_known.len();
        let region =
            self.region.as_ref().map_or(String::new(), |region| format!(", region {}", printable(region)));
        let guards = self.applies.iter().filter(|applied| applied.hardening).count();
        let title =
            format!("{} of {rules} rules apply to {}{region}", self.applies.len(), printable(&self.workload));
        let mut out = style.paint(TextRole::Head, &title) + "\n";
        out += &format!(
            "kernel {}: Linux {} ({}); machine {}; profile {} ({})\n\n",
            printable(&self.kernel.label),
            printable(&self.kernel.version),
            printable(&self.kernel.id),
            printable(&self.machine),
            printable(&self.profile),
            self.basis.name()
        );
        if self.kernel_percent < SMALL_KERNEL {
            out += &format!(
                "The kernel is {} % of the busy time: no change to it can bring more than that.\n",
                fixed(self.kernel_percent, 1)
            );
        }
        out += &format!("{} can be tried as changes", self.proposals(all));
        out += match guards {
            0 => ".\n",
            _ => "; protections are not proposed, only named, with how to measure their price.\n",
        };
        out += "At stake: self time of the functions that a rule is about, as a scale, not a forecast. \
                `kerntune ablate` measures the gain.\n";
        for applied in self.shown(all) {
            let stake = match applied.at_stake_percent {
                Some(percent) => format!("{} % of the busy time", fixed(percent, 2)),
                None => "not known beforehand".into(),
            };
            let guard = if applied.hardening { " (protects)" } else { "" };
            let name = style.paint(TextRole::Head, &printable(&applied.rule));
            out += &format!("\n{name}{guard}  {}\n", printable(&applied.about));
            let mut line = |head: &str, text: &str| {
                out += &style.paint(TextRole::Faint, &format!("  {head:<9}"));
                out += &format!("{}\n", printable(text));
            };
            line("at stake", &stake);
            applied.evidence.iter().for_each(|evidence| line("evidence", evidence));
            line("why", &applied.why);
            line("risk", &applied.risk);
            if !applied.change.is_empty() {
                let head = if applied.hardening { "measure" } else { "change" };
                applied
                    .change
                    .iter()
                    .for_each(|(key, value)| line(head, &format!("{key}: {}", setting(value))));
            }
            if let Some(command) = &applied.command {
                line("command", command);
            }
            line("source", &applied.source);
        }
        let small: Vec<String> = self
            .applies
            .iter()
            .filter(|applied| applied.is_small())
            .map(|small| printable(&small.rule))
            .collect();
        if !all && !small.is_empty() {
            let title = style.paint(TextRole::Head, &format!("At stake below {SMALL_STAKE} % (--all)"));
            out += &format!("\n{title}: {}\n", small.join(", "));
        }
        for (title, passed) in [("Does not apply", &self.does_not_apply), ("Not known", &self.not_known)] {
            if passed.is_empty() {
                continue;
            }
            out += &format!("\n{}", style.paint(TextRole::Head, title));
            match all {
                false => {
                    let names: Vec<String> = passed.iter().map(|passed| printable(&passed.rule)).collect();
                    out += &format!(": {}\n", names.join(", "));
                }
                true => {
                    out.push('\n');
                    for SkippedRule { rule, because, .. } in passed {
                        out += &format!("  {:<24}{}\n", printable(rule), printable(because));
                    }
                }
            }
        }
        out
    }
}

/// Formats a change's value on one line.
fn setting(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(setting).collect::<Vec<_>>().join(", "),
        Value::Table(all) => {
            let each = all.iter().map(|(key, value)| format!("{key}={}", setting(value)));
            each.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
