//! Rules of advice: the conditions under which a change may pay, and the change. One TOML file each
//! (`data/advice/`, `docs/advise.md`).

use super::facts;
use super::when::RuleCondition;
use crate::{Error, Result};
use serde::Deserialize;
use toml::Table;

/// Built-in rules: names and texts.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/advice.rs"));

/// Rule of advice, as its TOML file defines it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceRule {
    /// File name without `.toml`.
    #[serde(skip)]
    pub(crate) name: String,
    /// Action in one sentence, for people.
    pub(crate) about: String,
    /// Reason why the action saves time.
    pub(crate) why: String,
    /// Cost or danger of the action.
    pub(crate) risk: String,
    /// Source of the claim.
    pub(crate) source: String,
    /// The setting is a hardening: its cost is reported, and a change is never proposed.
    #[serde(default)]
    pub(crate) hardening: bool,
    /// Conditions, which must all hold.
    pub(crate) when: Vec<RuleCondition>,
    /// Change in the form that `kerntune ablate` takes, without its name; empty if it is not a setting
    /// of a kernel or machine.
    #[serde(default)]
    pub(crate) change: Table,
}

/// Returns the built-in rules, by name.
///
/// ```
/// assert!(kerntune_report::advise::built_in().iter().all(|rule| !rule.name().is_empty()));
/// ```
///
/// # Panics
/// If a built-in file is invalid; a test checks them.
pub fn built_in() -> Vec<AdviceRule> {
    let read = |(name, text): &(&str, &str)| {
        AdviceRule::parse(name, text).unwrap_or_else(|error| panic!("a rule that is built in: {error}"))
    };
    BUILT_IN.iter().map(read).collect()
}

impl AdviceRule {
    /// Parses the rule of this name.
    ///
    /// ```
    /// use kerntune_report::advise::AdviceRule;
    /// let text = "about = \"Do less\"\nwhy = \"less is to be done\"\nrisk = \"none\"\nsource = \"here\"\n\
    ///             [[when]]\nfact = \"kernel-percent\"\nat_least = 5\n";
    /// assert_eq!(AdviceRule::parse("do-less", text)?.name(), "do-less");
    /// assert!(AdviceRule::parse("do-less", "about = 1").is_err());
    /// # Ok::<(), kerntune_report::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Rule`] with the rule, the position and the reason.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let refused = |why: String| Error::Rule { rule: name.into(), why };
        let rule: AdviceRule =
            toml::from_str(text).map_err(|error| refused(error.to_string().trim_end().into()))?;
        for (key, text) in
            [("about", &rule.about), ("why", &rule.why), ("risk", &rule.risk), ("source", &rule.source)]
        {
            if text.trim().is_empty() || text.contains(char::is_control) {
                return Err(refused(format!("{key} has to be one line of text")));
            }
        }
        if rule.when.is_empty() {
            return Err(refused("it has no [[when]]: give the conditions that must hold".into()));
        }
        for (when, number) in rule.when.iter().zip(1..) {
            check(when).map_err(|why| refused(format!("[[when]] number {number} {why}")))?;
        }
        if let Some(key) = ["name", "about"].into_iter().find(|key| rule.change.contains_key(*key)) {
            return Err(refused(format!("[change] has {key}, which kerntune takes from the rule itself")));
        }
        if rule.hardening && rule.change.is_empty() {
            return Err(refused("it is about hardening: [change] must say how its price is measured".into()));
        }
        Ok(AdviceRule { name: name.into(), ..rule })
    }

    /// Returns the rule's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the change in the form that `kerntune ablate` takes, without its name; empty if there
    /// is none.
    pub fn change(&self) -> &Table {
        &self.change
    }
}

/// Checks that a condition is complete and consistent; the error says what is wrong.
fn check(when: &RuleCondition) -> Result<(), String> {
    let RuleCondition {
        functions,
        threads,
        percent,
        calls_per_second,
        never,
        config,
        fact,
        at_least,
        at_most,
    } = when;
    let of_functions =
        usize::from(percent.is_some()) + usize::from(calls_per_second.is_some()) + usize::from(*never);
    let of_facts = usize::from(at_least.is_some()) + usize::from(at_most.is_some());
    let numbers = [percent, calls_per_second, at_least, at_most];
    if numbers.into_iter().flatten().any(|number| !number.is_finite() || *number < 0.0) {
        return Err("has a number that is negative or not finite".into());
    }
    if functions.iter().chain(threads).any(String::is_empty) {
        return Err("has an empty pattern".into());
    }
    match (functions.is_empty(), threads.is_empty(), config.is_empty(), fact) {
        (false, true, true, None) if of_functions == 1 && of_facts == 0 => Ok(()),
        (true, false, true, None) if percent.is_some() && of_functions == 1 && of_facts == 0 => Ok(()),
        (true, true, false, None) if of_functions + of_facts == 0 => {
            match config.iter().find(|line| !is_line(line)) {
                Some(line) => Err(format!("has \"{line}\" in config, which is not CONFIG_NAME=VALUE")),
                None => Ok(()),
            }
        }
        (true, true, true, Some(fact)) if of_functions == 0 && of_facts >= 1 => match facts::is_known(fact) {
            true => Ok(()),
            false => {
                Err(format!("has the fact \"{fact}\", which does not exist: there are {}", facts::names()))
            }
        },
        _ => Err("is not a condition: give `functions` with one of percent, calls_per_second and never; or \
                  `threads` with percent; or `config`; or `fact` with at_least or at_most"
            .into()),
    }
}

fn is_line(line: &str) -> bool {
    let parts = line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
    parts.is_some_and(|(name, value)| {
        !name.is_empty() && !value.is_empty() && !line.contains(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "about = \"a\"\nwhy = \"w\"\nrisk = \"r\"\nsource = \"s\"\n";

    #[test]
    fn those_that_are_built_in_are_rules() {
        let rules = built_in();
        assert!(rules.len() >= 30, "{}", rules.len());
        // A change that lowers a protection is never proposed.
        let guards = ["mitigations=", "INIT_STACK", "init_on", "usercopy", "STACKPROTECTOR", "randomize"];
        for rule in &rules {
            let lowers = guards.iter().any(|guard| rule.change.to_string().contains(guard));
            assert_eq!(lowers, rule.hardening, "{}", rule.name);
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_a_reason() {
        let refused = |text: &str| AdviceRule::parse("x", text).unwrap_err().to_string();
        for (rest, why) in [
            ("", "missing field `when`"),
            ("when = []\n", "no [[when]]"),
            ("[[when]]\nfunctions = [\"a\"]\n", "number 1 is not a condition"),
            ("[[when]]\nfunctions = [\"a\"]\npercent = 1\nnever = true\n", "is not a condition"),
            ("[[when]]\nfunctions = [\"\"]\npercent = 1\n", "empty pattern"),
            ("[[when]]\nthreads = [\"\"]\npercent = 1\n", "empty pattern"),
            ("[[when]]\nthreads = [\"a\"]\nnever = true\n", "is not a condition"),
            ("[[when]]\nthreads = [\"a\"]\nfunctions = [\"a\"]\npercent = 1\n", "is not a condition"),
            ("[[when]]\nfact = \"x\"\nat_least = 1\n", "there are kernel-percent"),
            ("[[when]]\nfact = \"cpus\"\nat_least = -1\n", "negative"),
            ("[[when]]\nconfig = [\"X=y\"]\n", "not CONFIG_NAME=VALUE"),
            ("[[when]]\nconfig = [\"CONFIG_X=y\"]\nnever = true\n", "is not a condition"),
            ("[[when]]\nconfig = [\"CONFIG_X=y\"]\n[change]\nname = \"y\"\n", "[change] has name"),
            ("hardening = true\n[[when]]\nconfig = [\"CONFIG_X=y\"]\n", "how its price"),
            ("color = 1\n[[when]]\nconfig = [\"CONFIG_X=y\"]\n", "unknown field `color`"),
        ] {
            let said = refused(&format!("{HEAD}{rest}"));
            assert!(said.contains(why) && said.contains("rule x"), "{rest}: {said}");
        }
        assert!(
            refused("about = \"\"\nwhy = \"w\"\nrisk = \"r\"\nsource = \"s\"\nwhen = []").contains("about")
        );
    }
}
