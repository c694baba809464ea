//! Choice of the options to switch off. Pure: Kconfig is asked through a closure.

use crate::Result;
use kerntune_kernel::{BuildConditions, Kconfig};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Names of options that are built in, without `CONFIG_`.
pub(super) type ConfigOptions = BTreeSet<String>;

/// Reason why an option with files of its own stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum KeepReason {
    /// Code of one of its files ran.
    Ran {
        /// Source file with code that ran.
        file: String,
        /// Function of the file that ran.
        function: String,
    },
    /// It is listed or asked for.
    Asked {
        /// Reason in the list.
        why: String,
    },
    /// Another option that stays depends on it.
    Needed {
        /// Name of the dependent option.
        by: String,
    },
    /// Kconfig keeps it, since an option that stays selects it.
    Selected,
    /// Without it the kernel is not built, does not boot, fails a check, or fails the workload.
    Fails,
    /// Time was up before it was tried, or before the option that breaks the kernel was found among
    /// several.
    Untried,
}

/// Inputs of the choice.
pub(super) struct TrimInputs<'a> {
    pub built_in: &'a ConfigOptions,
    pub gates: &'a BuildConditions,
    pub kconfig: &'a Kconfig,
    /// Files with code that ran, each with a function of it.
    pub ran: &'a BTreeMap<String, String>,
    /// Returns the reason why an option must be kept, if there is one.
    pub asked: &'a dyn Fn(&str) -> Option<String>,
}

/// Options to switch off, and the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TrimChoice {
    /// Options that are off: those with files of their own, and options without files that selected
    /// one of them.
    pub off: ConfigOptions,
    /// Options that stay, with the reason.
    pub stay: BTreeMap<String, KeepReason>,
    /// Options that are built in afterwards.
    pub built_in: ConfigOptions,
}

impl TrimInputs<'_> {
    /// Switches off all options whose files did not run, and back on those that options which stay
    /// need. `configure` returns the options that are built in with these options off.
    pub fn choose(
        &self,
        configure: &mut dyn FnMut(&ConfigOptions) -> Result<ConfigOptions>,
    ) -> Result<TrimChoice> {
        let (mut off, mut stay) = self.candidates();
        // Options without files that were switched off, each with the options that it selects.
        let mut selectors: BTreeMap<String, ConfigOptions> = BTreeMap::new();
        let mut in_vain = ConfigOptions::new();
        loop {
            let now = configure(&off)?;
            let lost = self.objections(&now);
            let mut blamed: BTreeMap<String, String> = BTreeMap::new();
            for option in &lost {
                for culprit in self.blame(option, &off, &now) {
                    blamed.entry(culprit).or_insert_with(|| option.clone());
                }
            }
            if lost.is_empty() {
                let more = self.selectors(&off, &now, &in_vain);
                if !more.is_empty() {
                    off.extend(more.keys().cloned());
                    in_vain.extend(more.keys().cloned());
                    selectors.extend(more);
                    continue;
                }
                // Options that were switched off without effect come back.
                let is_vain = |(_, selects): &(&String, &ConfigOptions)| {
                    selects.iter().all(|option| now.contains(option))
                };
                let vain: Vec<String> =
                    selectors.iter().filter(is_vain).map(|(name, _)| name.clone()).collect();
                if vain.iter().any(|option| off.contains(option)) {
                    off.retain(|option| !vain.contains(option));
                    continue;
                }
                let selected: Vec<String> = off.intersection(&now).cloned().collect();
                for option in selected {
                    off.remove(&option);
                    stay.insert(option, KeepReason::Selected);
                }
                return Ok(TrimChoice { off, stay, built_in: now });
            }
            if blamed.is_empty() {
                // The Kconfig files are parsed for names alone, and this dependency is of another
                // kind: find it by trying.
                let nothing = configure(&ConfigOptions::new())?;
                if !self.objections(&nothing).is_empty() {
                    // Options are lost even with none switched off, so switching off has no part in
                    // it.
                    return Ok(TrimChoice { off: ConfigOptions::new(), stay, built_in: nothing });
                }
                let mut fits = |set: &ConfigOptions| Ok(self.objections(&configure(set)?).is_empty());
                let kept = widest(&mut fits, ConfigOptions::new(), &off.iter().cloned().collect::<Vec<_>>())?;
                let by = lost.iter().next().cloned().unwrap_or_default();
                blamed = off.difference(&kept).map(|option| (option.clone(), by.clone())).collect();
            }
            for (option, by) in blamed {
                off.remove(&option);
                if selectors.remove(&option).is_none() {
                    stay.insert(option, KeepReason::Needed { by });
                }
            }
        }
    }

    /// Returns options without files of their own that were set by hand, each with the options of
    /// `off` that it selects and that are still in `now`. Options in `but` are left out.
    fn selectors(
        &self,
        off: &ConfigOptions,
        now: &ConfigOptions,
        but: &ConfigOptions,
    ) -> BTreeMap<String, ConfigOptions> {
        let with_files = self.gates.by_option();
        let mut found: BTreeMap<String, ConfigOptions> = BTreeMap::new();
        for selected in off.intersection(now) {
            let (mut seen, mut next) = (BTreeSet::from([selected.as_str()]), vec![selected.as_str()]);
            while let Some(option) = next.pop() {
                for above in self.kconfig.selectors(option).filter(|above| now.contains(*above)) {
                    if with_files.contains_key(above) || !seen.insert(above) {
                        continue;
                    }
                    if !self.kconfig.has_prompt(above) {
                        next.push(above);
                    } else if !but.contains(above) && (self.asked)(above).is_none() {
                        found.entry(above.to_string()).or_default().insert(selected.clone());
                    }
                }
            }
        }
        found
    }

    /// Returns the options that may go, and the reasons why others with files stay.
    fn candidates(&self) -> (ConfigOptions, BTreeMap<String, KeepReason>) {
        let (mut off, mut stay) = (ConfigOptions::new(), BTreeMap::new());
        for (option, files) in self.gates.by_option() {
            if !self.built_in.contains(option) {
                continue;
            }
            let ran = files.iter().find_map(|file| Some((file, self.ran.get(*file)?)));
            let because = match ran {
                Some((file, function)) => {
                    Some(KeepReason::Ran { file: (*file).to_string(), function: function.clone() })
                }
                None => (self.asked)(option).map(|why| KeepReason::Asked { why }),
            };
            match because {
                Some(because) => drop(stay.insert(option.to_string(), because)),
                None => drop(off.insert(option.to_string())),
            }
        }
        (off, stay)
    }

    /// Returns options that are lost and must not be: those that a file which ran needs, and those
    /// to be kept.
    fn objections(&self, now: &ConfigOptions) -> ConfigOptions {
        let is_lost = |option: &str| self.built_in.contains(option) && !now.contains(option);
        let out = self.ran.keys().filter(|file| !self.gates.compiles(file, |option| now.contains(option)));
        // Helper options exist only for options that select them: without those their code has
        // nothing to do.
        let is_missed = |option: &&str| is_lost(option) && !self.kconfig.is_helper(option);
        let of_files = out.flat_map(|file| self.gates.options_of(file)).filter(is_missed);
        let asked = self
            .built_in
            .iter()
            .map(String::as_str)
            .filter(|option| is_lost(option) && (self.asked)(option).is_some());
        of_files.chain(asked).map(String::from).collect()
    }

    /// Returns the options of `off` that caused `lost` to go, directly or through other options
    /// that went.
    fn blame(&self, lost: &str, off: &ConfigOptions, now: &ConfigOptions) -> ConfigOptions {
        let (mut seen, mut found) = (BTreeSet::from([lost.to_string()]), ConfigOptions::new());
        let mut next = vec![lost.to_string()];
        while let Some(option) = next.pop() {
            if off.contains(&option) {
                found.insert(option);
                continue;
            }
            for above in self.kconfig.above(&option) {
                let went = self.built_in.contains(above) && !now.contains(above);
                if went && seen.insert(above.to_string()) {
                    next.push(above.to_string());
                }
            }
        }
        found
    }
}

/// Adds as many of `more` to `kept` as `fits` allows, by halving. Each option that does not fit
/// costs about 2 log2 n calls.
pub(super) fn widest(
    fits: &mut dyn FnMut(&ConfigOptions) -> Result<bool>,
    kept: ConfigOptions,
    more: &[String],
) -> Result<ConfigOptions> {
    if more.is_empty() {
        return Ok(kept);
    }
    let with: ConfigOptions = kept.iter().chain(more).cloned().collect();
    if fits(&with)? {
        return Ok(with);
    }
    if more.len() == 1 {
        return Ok(kept);
    }
    let (first, second) = more.split_at(more.len() / 2);
    let kept = widest(fits, kept, first)?;
    widest(fits, kept, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn set(names: &[&str]) -> ConfigOptions {
        names.iter().map(ToString::to_string).collect()
    }

    /// A tree in which NET has a file that ran and WIFI, RFKILL and CRYPTO have none; NET depends
    /// on CRYPTO, and LIB is selected.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| fs::write(dir.path().join(path), text).unwrap();
        write(
            "Kbuild",
            "obj-$(CONFIG_NET) += net.o\nobj-$(CONFIG_WIFI) += wifi.o\nobj-$(CONFIG_RFKILL) += rfkill.o\n\
             obj-$(CONFIG_CRYPTO) += crypto.o\nobj-$(CONFIG_LIB) += lib.o\nobj-$(CONFIG_LOCK) += lock.o\nobj-y += main.o\n",
        );
        write(
            "Kconfig",
            "config NET\n\tbool \"n\"\n\tdepends on CRYPTO\nconfig WIFI\n\tbool \"w\"\n\tselect RFKILL\nconfig RFKILL\n\tbool\n\
             config CRYPTO\n\tbool \"c\"\n\tselect LIB\nconfig LIB\n\tbool\nconfig LOCK\n\tbool \"l\"\n",
        );
        dir
    }

    /// Simulates Kconfig: dependent options go, selected ones stay.
    fn kconfig(off: &ConfigOptions) -> ConfigOptions {
        let is_off = |name: &str| off.contains(name);
        let mut now = set(&["NET", "WIFI", "RFKILL", "CRYPTO", "LIB", "LOCK"]);
        now.retain(|name| !is_off(name));
        if is_off("CRYPTO") {
            now.remove("NET");
        } else {
            now.insert("LIB".into());
        }
        if !is_off("WIFI") {
            now.insert("RFKILL".into());
        }
        now
    }

    #[test]
    fn what_ran_keeps_what_it_hangs_on_and_the_rest_goes() {
        let dir = tree();
        let built_in = kconfig(&ConfigOptions::new());
        let files = ["net.c", "wifi.c", "rfkill.c", "crypto.c", "lib.c", "lock.c", "main.c"];
        let gates = BuildConditions::read(dir.path(), "x86", files);
        let names = Kconfig::read(dir.path(), "x86");
        let ran = BTreeMap::from([
            ("net.c".to_string(), "net_rx".to_string()),
            ("main.c".into(), "start_kernel".into()),
        ]);
        let asked = |option: &str| (option == "LOCK").then(|| "protects".to_string());
        let known =
            TrimInputs { built_in: &built_in, gates: &gates, kconfig: &names, ran: &ran, asked: &asked };
        let mut questions = 0;
        let chosen = known
            .choose(&mut |off| {
                questions += 1;
                Ok(kconfig(off))
            })
            .unwrap();
        assert_eq!(chosen.off, set(&["RFKILL", "WIFI"]));
        assert_eq!(chosen.built_in, set(&["CRYPTO", "LIB", "LOCK", "NET"]));
        assert_eq!(chosen.stay["CRYPTO"], KeepReason::Needed { by: "NET".into() });
        assert_eq!(chosen.stay["NET"], KeepReason::Ran { file: "net.c".into(), function: "net_rx".into() });
        assert_eq!(chosen.stay["LIB"], KeepReason::Selected);
        assert_eq!(chosen.stay["LOCK"], KeepReason::Asked { why: "protects".into() });
        assert_eq!(questions, 2);
        // Without information in the Kconfig files the options are found by trying.
        let nothing = Kconfig::default();
        let blind = TrimInputs { kconfig: &nothing, ..known };
        let chosen = blind.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, set(&["RFKILL", "WIFI"]));
    }

    #[test]
    fn the_widest_set_leaves_out_what_does_not_fit_and_nothing_else() {
        let all: Vec<String> = (0..100).map(|number| format!("O{number:02}")).collect();
        let bad = set(&["O07", "O42", "O43"]);
        let mut questions = 0;
        let mut fits = |set: &ConfigOptions| {
            questions += 1;
            Ok(set.is_disjoint(&bad))
        };
        let kept = widest(&mut fits, ConfigOptions::new(), &all).unwrap();
        assert_eq!((kept.len(), kept.is_disjoint(&bad)), (97, true));
        assert!(questions <= 40, "{questions}");
    }

    /// TRACE and IDLE have no files; TRACE selects RING, of which nothing ran, IDLE selects CORE,
    /// which MAIN selects, too.
    #[test]
    fn what_has_no_files_goes_with_what_it_alone_selects() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| fs::write(dir.path().join(path), text).unwrap();
        write(
            "Kbuild",
            "obj-$(CONFIG_RING) += ring.o\nobj-$(CONFIG_CORE) += core.o\nobj-$(CONFIG_MAIN) += main.o\n",
        );
        write(
            "Kconfig",
            "config RING\n\tbool\nconfig CORE\n\tbool\nconfig HELP\n\tbool\n\tselect RING\n\
             config TRACE\n\tbool \"t\"\n\tselect HELP\nconfig IDLE\n\tbool \"i\"\n\tselect CORE\n\
             config MAIN\n\tbool \"m\"\n\tselect CORE\n",
        );
        let kconfig = |off: &ConfigOptions| {
            let mut now = set(&["CORE", "IDLE", "MAIN"]);
            now.extend(set(&["HELP", "RING", "TRACE"]).into_iter().filter(|_| !off.contains("TRACE")));
            // Selected options stay on even if switched off.
            now.retain(|name| ["CORE", "RING"].contains(&name.as_str()) || !off.contains(name));
            now
        };
        let built_in = kconfig(&ConfigOptions::new());
        let gates = BuildConditions::read(dir.path(), "x86", ["ring.c", "core.c", "main.c"]);
        let names = Kconfig::read(dir.path(), "x86");
        let ran = BTreeMap::from([("main.c".to_string(), "main".to_string())]);
        let asked = |_: &str| None;
        let known =
            TrimInputs { built_in: &built_in, gates: &gates, kconfig: &names, ran: &ran, asked: &asked };
        let chosen = known.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, set(&["RING", "TRACE"]));
        assert_eq!(chosen.built_in, set(&["CORE", "IDLE", "MAIN"]));
        assert_eq!(chosen.stay["CORE"], KeepReason::Selected);
        // Options to keep are not switched off because of what they select.
        let asked = |option: &str| (option == "TRACE").then(|| "asked".to_string());
        let chosen = TrimInputs { asked: &asked, ..known }.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, ConfigOptions::new());
    }
}
