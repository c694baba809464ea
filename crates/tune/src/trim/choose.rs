//! Which options are switched off: pure. Kconfig itself is asked through a closure.

use crate::Result;
use kerntune_kernel::{Gates, Kconfig};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Options that are built in.
pub(super) type Options = BTreeSet<String>;

/// Why an option that has files of its own stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Because {
    /// Code of one of its files ran.
    Ran {
        /// The file.
        file: String,
        /// A function of it that ran.
        function: String,
    },
    /// It is to be kept.
    Asked {
        /// Why, in the list's words.
        why: String,
    },
    /// Another one that stays would go with it.
    Needed {
        /// That one.
        by: String,
    },
    /// Kconfig keeps it: something that stays selects it.
    Selected,
    /// Without it the kernel is not built, does not boot, does not answer as before, or the workload fails on it.
    Fails,
    /// The time was up before it was known which of several it is without which the kernel fails, or before any was tried.
    Untried,
}

/// What is known before Kconfig is asked.
pub(super) struct Known<'a> {
    pub built_in: &'a Options,
    pub gates: &'a Gates,
    pub kconfig: &'a Kconfig,
    /// Files of which code ran, each with a function that did.
    pub ran: &'a BTreeMap<String, String>,
    /// Why an option is to be kept, if it is.
    pub asked: &'a dyn Fn(&str) -> Option<String>,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Options that are off: those with files of their own, and those without that selected one of them.
    pub off: Options,
    /// Why the others stay.
    pub stay: BTreeMap<String, Because>,
    /// What is built in then.
    pub built_in: Options,
}

impl Known<'_> {
    /// Takes all options off of whose files nothing ran, and back what others need that stay. `configure` says what is built in
    /// with these options off.
    pub fn choose(&self, configure: &mut dyn FnMut(&Options) -> Result<Options>) -> Result<Chosen> {
        let (mut off, mut stay) = self.candidates();
        // Each option without files that was taken off, with what it selects.
        let mut selectors: BTreeMap<String, Options> = BTreeMap::new();
        let mut in_vain = Options::new();
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
                // One that was taken off for nothing comes back.
                let is_vain =
                    |(_, selects): &(&String, &Options)| selects.iter().all(|option| now.contains(option));
                let vain: Vec<String> =
                    selectors.iter().filter(is_vain).map(|(name, _)| name.clone()).collect();
                if vain.iter().any(|option| off.contains(option)) {
                    off.retain(|option| !vain.contains(option));
                    continue;
                }
                let selected: Vec<String> = off.intersection(&now).cloned().collect();
                for option in selected {
                    off.remove(&option);
                    stay.insert(option, Because::Selected);
                }
                return Ok(Chosen { off, stay, built_in: now });
            }
            if blamed.is_empty() {
                // Kconfig files are read for names alone, and this one has another way: it is found by trying.
                let nothing = configure(&Options::new())?;
                if !self.objections(&nothing).is_empty() {
                    // Not even with none of them off is it as it was: they have no part in it.
                    return Ok(Chosen { off: Options::new(), stay, built_in: nothing });
                }
                let mut fits = |set: &Options| Ok(self.objections(&configure(set)?).is_empty());
                let kept = widest(&mut fits, Options::new(), &off.iter().cloned().collect::<Vec<_>>())?;
                let by = lost.iter().next().cloned().unwrap_or_default();
                blamed = off.difference(&kept).map(|option| (option.clone(), by.clone())).collect();
            }
            for (option, by) in blamed {
                off.remove(&option);
                if selectors.remove(&option).is_none() {
                    stay.insert(option, Because::Needed { by });
                }
            }
        }
    }

    /// Options without files of their own that somebody set, each with what it selects of `off` that is in `now` all the same.
    /// Those `but` are left out.
    fn selectors(&self, off: &Options, now: &Options, but: &Options) -> BTreeMap<String, Options> {
        let with_files = self.gates.by_option();
        let mut found: BTreeMap<String, Options> = BTreeMap::new();
        for selected in off.intersection(now) {
            let (mut seen, mut next) = (BTreeSet::from([selected.as_str()]), vec![selected.as_str()]);
            while let Some(option) = next.pop() {
                for above in self.kconfig.selectors(option).filter(|above| now.contains(*above)) {
                    if with_files.contains_key(above) || !seen.insert(above) {
                        continue;
                    }
                    if !self.kconfig.is_asked_for(above) {
                        next.push(above);
                    } else if !but.contains(above) && (self.asked)(above).is_none() {
                        found.entry(above.to_string()).or_default().insert(selected.clone());
                    }
                }
            }
        }
        found
    }

    /// Options that may go, and why the others with files stay.
    fn candidates(&self) -> (Options, BTreeMap<String, Because>) {
        let (mut off, mut stay) = (Options::new(), BTreeMap::new());
        for (option, files) in self.gates.by_option() {
            if !self.built_in.contains(option) {
                continue;
            }
            let ran = files.iter().find_map(|file| Some((file, self.ran.get(*file)?)));
            let because = match ran {
                Some((file, function)) => {
                    Some(Because::Ran { file: (*file).to_string(), function: function.clone() })
                }
                None => (self.asked)(option).map(|why| Because::Asked { why }),
            };
            match because {
                Some(because) => drop(stay.insert(option.to_string(), because)),
                None => drop(off.insert(option.to_string())),
            }
        }
        (off, stay)
    }

    /// Options that are gone and must not be: those without which a file is not compiled that ran, and those that are to be kept.
    fn objections(&self, now: &Options) -> Options {
        let is_lost = |option: &str| self.built_in.contains(option) && !now.contains(option);
        let out = self.ran.keys().filter(|file| !self.gates.compiles(file, |option| now.contains(option)));
        // What nobody can set is there for those that select it: without them its code has nothing to do.
        let is_missed = |option: &&str| is_lost(option) && !self.kconfig.is_helper(option);
        let of_files = out.flat_map(|file| self.gates.options_of(file)).filter(is_missed);
        let asked = self
            .built_in
            .iter()
            .map(String::as_str)
            .filter(|option| is_lost(option) && (self.asked)(option).is_some());
        of_files.chain(asked).map(String::from).collect()
    }

    /// Which of those that are off took `lost` with them: they are reached from it along what went, too.
    fn blame(&self, lost: &str, off: &Options, now: &Options) -> Options {
        let (mut seen, mut found) = (BTreeSet::from([lost.to_string()]), Options::new());
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

/// Adds to `kept` as many of `more` as `fits` allows, by halving: each that does not fit costs some 2 log2 n questions.
pub(super) fn widest(
    fits: &mut dyn FnMut(&Options) -> Result<bool>,
    kept: Options,
    more: &[String],
) -> Result<Options> {
    if more.is_empty() {
        return Ok(kept);
    }
    let with: Options = kept.iter().chain(more).cloned().collect();
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

    fn set(names: &[&str]) -> Options {
        names.iter().map(ToString::to_string).collect()
    }

    /// A tree in which NET has a file that ran and WIFI, RFKILL and CRYPTO none; NET takes CRYPTO with it, and LIB is selected.
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

    /// What Kconfig makes of it: what depends on something goes with it, what is selected stays.
    fn kconfig(off: &Options) -> Options {
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
        let built_in = kconfig(&Options::new());
        let files = ["net.c", "wifi.c", "rfkill.c", "crypto.c", "lib.c", "lock.c", "main.c"];
        let gates = Gates::read(dir.path(), "x86", files);
        let names = Kconfig::read(dir.path(), "x86");
        let ran = BTreeMap::from([
            ("net.c".to_string(), "net_rx".to_string()),
            ("main.c".into(), "start_kernel".into()),
        ]);
        let asked = |option: &str| (option == "LOCK").then(|| "protects".to_string());
        let known = Known { built_in: &built_in, gates: &gates, kconfig: &names, ran: &ran, asked: &asked };
        let mut questions = 0;
        let chosen = known
            .choose(&mut |off| {
                questions += 1;
                Ok(kconfig(off))
            })
            .unwrap();
        assert_eq!(chosen.off, set(&["RFKILL", "WIFI"]));
        assert_eq!(chosen.built_in, set(&["CRYPTO", "LIB", "LOCK", "NET"]));
        assert_eq!(chosen.stay["CRYPTO"], Because::Needed { by: "NET".into() });
        assert_eq!(chosen.stay["NET"], Because::Ran { file: "net.c".into(), function: "net_rx".into() });
        assert_eq!(chosen.stay["LIB"], Because::Selected);
        assert_eq!(chosen.stay["LOCK"], Because::Asked { why: "protects".into() });
        assert_eq!(questions, 2);
        // Where the files say nothing of it, it is found by trying.
        let nothing = Kconfig::default();
        let blind = Known { kconfig: &nothing, ..known };
        let chosen = blind.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, set(&["RFKILL", "WIFI"]));
    }

    #[test]
    fn the_widest_set_leaves_out_what_does_not_fit_and_nothing_else() {
        let all: Vec<String> = (0..100).map(|number| format!("O{number:02}")).collect();
        let bad = set(&["O07", "O42", "O43"]);
        let mut questions = 0;
        let mut fits = |set: &Options| {
            questions += 1;
            Ok(set.is_disjoint(&bad))
        };
        let kept = widest(&mut fits, Options::new(), &all).unwrap();
        assert_eq!((kept.len(), kept.is_disjoint(&bad)), (97, true));
        assert!(questions <= 40, "{questions}");
    }

    /// TRACE and IDLE have no files; TRACE selects RING, of which nothing ran, IDLE selects CORE, which MAIN selects, too.
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
        let kconfig = |off: &Options| {
            let mut now = set(&["CORE", "IDLE", "MAIN"]);
            now.extend(set(&["HELP", "RING", "TRACE"]).into_iter().filter(|_| !off.contains("TRACE")));
            // What is selected is there, whoever wants it off.
            now.retain(|name| ["CORE", "RING"].contains(&name.as_str()) || !off.contains(name));
            now
        };
        let built_in = kconfig(&Options::new());
        let gates = Gates::read(dir.path(), "x86", ["ring.c", "core.c", "main.c"]);
        let names = Kconfig::read(dir.path(), "x86");
        let ran = BTreeMap::from([("main.c".to_string(), "main".to_string())]);
        let asked = |_: &str| None;
        let known = Known { built_in: &built_in, gates: &gates, kconfig: &names, ran: &ran, asked: &asked };
        let chosen = known.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, set(&["RING", "TRACE"]));
        assert_eq!(chosen.built_in, set(&["CORE", "IDLE", "MAIN"]));
        assert_eq!(chosen.stay["CORE"], Because::Selected);
        // What is to be kept is not taken off for what it selects.
        let asked = |option: &str| (option == "TRACE").then(|| "asked".to_string());
        let chosen = Known { asked: &asked, ..known }.choose(&mut |off| Ok(kconfig(off))).unwrap();
        assert_eq!(chosen.off, Options::new());
    }
}
