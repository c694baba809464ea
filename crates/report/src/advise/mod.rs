//! What could be done about a workload: rules that apply to its profile, each with its evidence, its risk and its source.
//!
//! A rule says nothing about gain: it says that something is there to be gained from, and [`Advice::changes`] is a file for `kerntune
//! try`, which measures. Start from [`advise`]; rules are [`built_in`] or read with [`Rule::parse`]. `docs/advise.md` describes them.
//!
//! ```
//! use kerntune_profile::{KernelId, Manifest, Profile, Tables};
//! use kerntune_report::advise::{advise, built_in, RecordedConfig};
//! use kerntune_report::characterise::Wanted;
//! let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
//! let profile = Profile { manifest, tables: Tables::default() };
//! let wanted = Wanted { profile: &profile, region: None, costs: None };
//! let advice = advise(&wanted, RecordedConfig::Missing, &built_in())?;
//! assert_eq!(advice.changes(), None);
//! # Ok::<(), kerntune_report::Error>(())
//! ```

mod facts;
mod rule;
mod when;

pub use facts::RecordedConfig;
pub use rule::{built_in, Rule};

use crate::characterise::event::Basis;
use crate::characterise::facts::Character;
use crate::characterise::marks;
use crate::characterise::Wanted;
use crate::style::{printable, Role};
use crate::{Result, Style};
use facts::{Answer, Facts, DAMAGED_KERNEL};
use kerntune_compare::number::fixed;
use kerntune_profile::KernelId;
use serde::Serialize;
use toml::{Table, Value};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-advice/1";

/// A rule that applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Applied {
    rule: String,
    about: String,
    why: String,
    risk: String,
    source: String,
    hardening: bool,
    /// The own time of the functions that it is about, in per cent of the busy time: how large what is gained may be.
    at_stake_percent: Option<f64>,
    evidence: Vec<String>,
    /// As `kerntune try` takes it; empty if it is not a setting.
    change: Table,
}

/// A rule that does not apply, or of which that is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Passed {
    rule: String,
    about: String,
    because: String,
}

/// What the rules say of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    schema: &'static str,
    profile: String,
    region: Option<String>,
    kernel: KernelId,
    workload: String,
    machine: String,
    basis: Basis,
    applies: Vec<Applied>,
    does_not_apply: Vec<Passed>,
    not_known: Vec<Passed>,
}

/// Holds a workload's profile against rules.
///
/// # Errors
/// A region that the profile does not have; a profile that was carried to another kernel.
pub fn advise(wanted: &Wanted, config: RecordedConfig<'_>, rules: &[Rule]) -> Result<Advice> {
    let character = Character::of(wanted.profile, wanted.region, wanted.costs)?;
    let scope = marks::measured(wanted.profile, wanted.region)?;
    let facts = Facts::new(wanted.profile, &scope, &character, config);
    let mut advice = Advice {
        schema: SCHEMA,
        profile: character.profile.clone(),
        region: character.region.clone(),
        kernel: character.kernel.clone(),
        workload: character.workload.clone(),
        machine: character.machine.clone(),
        basis: character.basis,
        applies: Vec::new(),
        does_not_apply: Vec::new(),
        not_known: Vec::new(),
    };
    for rule in rules {
        advice.judge(rule, &facts);
    }
    // What most is at stake with comes first; what is not of functions has its place at the end.
    advice.applies.sort_by(|a, b| {
        let stake = |applied: &Applied| applied.at_stake_percent.unwrap_or(-1.0);
        a.hardening.cmp(&b.hardening).then(stake(b).total_cmp(&stake(a))).then_with(|| a.rule.cmp(&b.rule))
    });
    Ok(advice)
}

impl Advice {
    fn judge(&mut self, rule: &Rule, facts: &Facts) {
        let passed = |because| Passed { rule: rule.name.clone(), about: rule.about.clone(), because };
        let (mut evidence, mut stake, mut unknown) = (Vec::new(), None::<f64>, None);
        for when in &rule.when {
            match facts.ask(when) {
                Answer::Holds { evidence: said, percent_busy } => {
                    evidence.push(said);
                    stake = percent_busy.map_or(stake, |percent| Some(stake.unwrap_or(0.0).max(percent)));
                }
                // One that fails decides, whatever is not known beside it.
                Answer::Fails(because) => return self.does_not_apply.push(passed(because)),
                Answer::Unknown(because) => unknown = unknown.or(Some(because)),
            }
        }
        if let Some(because) = unknown {
            return self.not_known.push(passed(because));
        }
        self.applies.push(Applied {
            rule: rule.name.clone(),
            about: rule.about.clone(),
            why: rule.why.clone(),
            risk: rule.risk.clone(),
            source: rule.source.clone(),
            hardening: rule.hardening,
            at_stake_percent: stake,
            evidence,
            change: rule.change.clone(),
        });
    }

    /// Rules that were not asked, as the kernel that was recorded is damaged.
    pub fn unasked(&self) -> Vec<&str> {
        let of_kernel = self.not_known.iter().filter(|passed| passed.because == DAMAGED_KERNEL);
        of_kernel.map(|passed| passed.rule.as_str()).collect()
    }

    /// Rules that propose a change.
    fn proposed(&self) -> impl Iterator<Item = &Applied> {
        self.applies.iter().filter(|applied| !applied.hardening && !applied.change.is_empty())
    }

    /// How many changes are proposed.
    pub fn proposals(&self) -> usize {
        self.proposed().count()
    }

    /// The changes that are proposed as a file for `kerntune try`; none if there are none.
    pub fn changes(&self) -> Option<String> {
        let mut text = format!(
            "# What may help {}, of profile {}. `kerntune try` measures each.\n",
            printable(&self.workload),
            printable(&self.profile)
        );
        for applied in self.proposed() {
            for evidence in &applied.evidence {
                text += &format!("\n# evidence: {}", printable(evidence));
            }
            let mut change = Table::new();
            change.insert("name".into(), applied.rule.clone().into());
            change.insert("about".into(), applied.about.clone().into());
            change.extend(applied.change.clone());
            let all = Table::from_iter([("change".to_owned(), Value::Array(vec![Value::Table(change)]))]);
            let all = all.to_string();
            text +=
                &format!("\n# risk: {}\n# source: {}\n{}\n", applied.risk, applied.source, all.trim_end());
        }
        (self.proposals() > 0).then_some(text)
    }

    /// For scripts (`docs/json.md`), with a newline at its end.
    ///
    /// # Errors
    /// Figures that JSON cannot hold.
    pub fn json(&self) -> Result<String> {
        crate::to_json(self)
    }

    /// For people, with a newline at its end; with `all` also why the other rules do not apply.
    pub fn text(&self, style: Style, all: bool) -> String {
        let rules = self.applies.len() + self.does_not_apply.len() + self.not_known.len();
        let region =
            self.region.as_ref().map_or(String::new(), |region| format!(", region {}", printable(region)));
        let guards = self.applies.iter().filter(|applied| applied.hardening).count();
        let title =
            format!("{} of {rules} rules apply to {}{region}", self.applies.len(), printable(&self.workload));
        let mut out = style.paint(Role::Head, &title) + "\n";
        out += &format!(
            "kernel {}: Linux {} ({}); machine {}; profile {} ({})\n\n",
            printable(&self.kernel.label),
            printable(&self.kernel.version),
            printable(&self.kernel.id),
            printable(&self.machine),
            printable(&self.profile),
            self.basis.word()
        );
        out += &format!("{} can be tried as changes", self.proposals());
        out += match guards {
            0 => ".\n",
            _ => "; protections are not proposed, only named, with how to measure their price.\n",
        };
        out += "At stake: self time of the functions that a rule is about, as a scale, not a forecast. \
                `kerntune try` measures the gain.\n";
        for applied in &self.applies {
            let stake = match applied.at_stake_percent {
                Some(percent) => format!("{} % of the busy time", fixed(percent, 2)),
                None => "not known beforehand".into(),
            };
            let guard = if applied.hardening { " (protects)" } else { "" };
            let name = style.paint(Role::Head, &printable(&applied.rule));
            out += &format!("\n{name}{guard}  {}\n", printable(&applied.about));
            let mut line = |head: &str, text: &str| {
                out += &style.paint(Role::Faint, &format!("  {head:<9}"));
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
            line("source", &applied.source);
        }
        for (title, passed) in [("Does not apply", &self.does_not_apply), ("Not known", &self.not_known)] {
            if passed.is_empty() {
                continue;
            }
            out += &format!("\n{}", style.paint(Role::Head, title));
            match all {
                false => {
                    let names: Vec<String> = passed.iter().map(|passed| printable(&passed.rule)).collect();
                    out += &format!(": {}\n", names.join(", "));
                }
                true => {
                    out.push('\n');
                    for Passed { rule, because, .. } in passed {
                        out += &format!("  {:<24}{}\n", printable(rule), printable(because));
                    }
                }
            }
        }
        out
    }
}

/// A change's value on one line.
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
