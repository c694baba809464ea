//! Selects the functions of a kernel to trace (pure).

use kerntune_kernel::KernelFunction;
use kerntune_trace::loaded::LoadedFunction;
use kerntune_trace::pattern::FunctionPattern;
use std::collections::{BTreeMap, BTreeSet};

/// Patterns for functions to trace and to leave out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionSelection {
    /// Functions to trace; empty means all.
    pub only: Vec<String>,
    /// Functions to leave out.
    pub skip: Vec<String>,
    /// Those of the patterns that come from a list, which serves different kernels. They may match
    /// nothing, unless all do.
    pub listed: BTreeSet<String>,
}

/// Reason why patterns make no valid selection.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum SelectionError {
    #[error("{option} `{pattern}` is no function and no source file of this kernel{hint}")]
    Nothing { option: &'static str, pattern: String, hint: String },
    #[error("--only and --skip together leave no function to trace")]
    Empty,
}

/// Largest number of suggestions for a name that does not exist.
const OFFERS: usize = 5;

impl FunctionSelection {
    /// Checks whether all functions are traced.
    pub fn is_everything(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// Returns for each function whether it is left out. A split-off part follows the function that
    /// it belongs to.
    ///
    /// A kernel that loads code has functions that no pattern can be checked against before it ran
    /// ([`Self::check_loaded`]).
    ///
    /// # Errors
    /// A pattern that matches nothing, with suggestions; an empty selection.
    pub fn resolve(
        &self,
        functions: &[KernelFunction],
        loads_code: bool,
    ) -> Result<Vec<bool>, SelectionError> {
        let only = self.chosen("--only", &self.only, functions, loads_code)?;
        let skip = self.chosen("--skip", &self.skip, functions, loads_code)?;
        let mut left_out: Vec<bool> =
            only.iter().zip(&skip).map(|(only, skip)| *skip || !(*only || self.only.is_empty())).collect();
        for (at, function) in functions.iter().enumerate() {
            if let Some(&owner) = function.part_of.and_then(|owner| left_out.get(owner)) {
                left_out[at] = owner;
            }
        }
        if left_out.iter().all(|&out| out) && !loads_code {
            return Err(SelectionError::Empty);
        }
        Ok(left_out)
    }

    /// Checks that each pattern matches a function of the kernel or of code that it loaded, which
    /// have source paths by module. Returns the listed patterns that match nothing.
    ///
    /// # Errors
    /// A pattern that matches nothing, with suggestions.
    pub fn check_loaded(
        &self,
        functions: &[KernelFunction],
        loaded: &[LoadedFunction],
        paths: &BTreeMap<String, String>,
    ) -> Result<Vec<&str>, SelectionError> {
        let loaded = loaded.iter().map(|function| KernelFunction {
            name: function.name.clone(),
            aliases: Vec::new(),
            address: function.address,
            size: function.size,
            file: paths.get(&function.module).cloned(),
            part_of: None,
            is_code_label: false,
        });
        let all: Vec<KernelFunction> = functions.iter().cloned().chain(loaded).collect();
        self.chosen("--only", &self.only, &all, false)?;
        self.chosen("--skip", &self.skip, &all, false)?;
        Ok(self.absent(&all))
    }

    /// Returns the listed patterns that match nothing, in order.
    pub fn absent(&self, functions: &[KernelFunction]) -> Vec<&str> {
        let absent =
            |text: &&str| !functions.iter().any(|function| matches(&FunctionPattern::parse(text), function));
        self.listed.iter().map(String::as_str).filter(absent).collect()
    }

    fn chosen(
        &self,
        option: &'static str,
        patterns: &[String],
        functions: &[KernelFunction],
        may_match_nothing: bool,
    ) -> Result<Vec<bool>, SelectionError> {
        let mut chosen = vec![false; functions.len()];
        let (mut first_absent, mut some) = (None, false);
        for text in patterns {
            let pattern = FunctionPattern::parse(text);
            let mut any = false;
            for (function, chosen) in functions.iter().zip(&mut chosen) {
                if matches(&pattern, function) {
                    (any, *chosen) = (true, true);
                }
            }
            some |= any;
            if !any && !may_match_nothing {
                let nothing = || SelectionError::Nothing {
                    option,
                    pattern: text.clone(),
                    hint: hint(&pattern, functions),
                };
                if !self.listed.contains(text) {
                    return Err(nothing());
                }
                first_absent.get_or_insert_with(nothing);
            }
        }
        match first_absent.filter(|_| !some) {
            Some(error) => Err(error),
            None => Ok(chosen),
        }
    }
}

fn matches(pattern: &FunctionPattern, function: &KernelFunction) -> bool {
    let names = [function.name.as_str()].into_iter().chain(function.aliases.iter().map(String::as_str));
    pattern.matches(names, function.file.as_deref())
}

/// Suggests names for a pattern that matches nothing.
fn hint(pattern: &FunctionPattern, functions: &[KernelFunction]) -> String {
    let files = || functions.iter().filter_map(|function| function.file.as_deref());
    let offers = match pattern {
        FunctionPattern::Name(wanted) => {
            let mut offers = suggestions(wanted, functions.iter().map(|function| function.name.as_str()));
            let directory = format!("{wanted}/");
            if files().any(|file| file.starts_with(&directory)) {
                offers.insert(0, directory);
            }
            offers
        }
        FunctionPattern::Path(_) if !files().any(|file| file.contains('/')) => {
            return "; of this kernel's source files only the names are known: give them without directories"
                .into();
        }
        FunctionPattern::Path(wanted) => {
            let directories = files().flat_map(|file| file.match_indices('/').map(|(end, _)| &file[..=end]));
            suggestions(wanted, directories.chain(files()))
        }
        FunctionPattern::File(wanted) => {
            suggestions(wanted, files().map(|file| file.rsplit('/').next().unwrap_or(file)))
        }
    };
    match offers.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Returns up to [`OFFERS`] names of `all` that resemble `wanted`, the best first.
pub fn suggestions<'a>(wanted: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.trim_matches(['*', '?']);
    let rank = |name: &'a str| {
        let alike = strsim::jaro_winkler(name, wanted);
        let part = wanted.len() >= 3 && (name.contains(wanted) || wanted.contains(name) && name.len() >= 3);
        (part || alike >= 0.85).then(|| ((-(alike + f64::from(u8::from(part))) * 1e6) as i64, name))
    };
    let ranked: BTreeSet<_> = all.filter_map(rank).collect();
    ranked.into_iter().take(OFFERS).map(|(_, name)| name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Vec<KernelFunction> {
        let function = |name: &str, file: Option<&str>, part_of| KernelFunction {
            name: name.into(),
            aliases: if name == "memcpy" { vec!["__memcpy".into()] } else { vec![] },
            address: 0,
            size: 1,
            file: file.map(Into::into),
            part_of,
            is_code_label: false,
        };
        vec![
            function("tcp_push", Some("net/ipv4/tcp.c"), None),
            function("tcp_ack", Some("net/ipv4/tcp_input.c"), None),
            function("kfree", Some("mm/slub.c"), None),
            function("memcpy", None, None),
            function("tcp_push.cold", Some("mm/slub.c"), Some(0)),
        ]
    }

    fn traced(only: &[&str], skip: &[&str]) -> Result<Vec<usize>, String> {
        let all = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
        let selection = FunctionSelection { only: all(only), skip: all(skip), ..Default::default() };
        let left_out = selection.resolve(&kernel(), false).map_err(|e| e.to_string())?;
        Ok((0..5).filter(|&at| !left_out[at]).collect())
    }

    #[test]
    fn only_and_skip() {
        assert_eq!(traced(&[], &[]), Ok(vec![0, 1, 2, 3, 4]));
        assert_eq!(traced(&["net/"], &[]), Ok(vec![0, 1, 4]));
        assert_eq!(traced(&["net/"], &["tcp_input.c"]), Ok(vec![0, 4]));
        assert_eq!(traced(&["kfree", "__memcpy"], &[]), Ok(vec![2, 3]));
        assert_eq!(traced(&[], &["mm/slub.c"]), Ok(vec![0, 1, 3, 4]), "the cold part is of tcp_push");
        assert_eq!(traced(&["net/"], &["tcp_*"]), Err(SelectionError::Empty.to_string()));
    }

    #[test]
    fn what_matches_nothing_is_an_error_with_what_is_near() {
        let message = |only: &str| traced(&[only], &[]).unwrap_err();
        assert!(message("tcp_psh").contains("--only `tcp_psh` is no function"), "{}", message("tcp_psh"));
        assert!(message("tcp_psh").contains("did you mean tcp_push"), "{}", message("tcp_psh"));
        assert!(message("net").ends_with("did you mean net/?"), "{}", message("net"));
        assert!(message("net/ipv6").contains("net/ipv4"), "{}", message("net/ipv6"));
        assert!(message("slab.c").contains("slub.c"), "{}", message("slab.c"));
        let mut bare = kernel();
        bare.iter_mut().for_each(|function| function.file = Some("tcp.c".into()));
        let selection = FunctionSelection { only: vec!["net/".into()], ..Default::default() };
        let error = selection.resolve(&bare, false).unwrap_err().to_string();
        assert!(error.contains("without directories"), "{error}");
    }

    #[test]
    fn names_of_a_list_may_be_absent_unless_all_are() {
        let resolve = |only: &[&str], listed: &[&str]| {
            let of = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
            let selection =
                FunctionSelection { only: of(only), skip: vec![], listed: of(listed).into_iter().collect() };
            let absent = selection.absent(&kernel()).join(" ");
            selection.resolve(&kernel(), false).map(|_| absent).map_err(|error| error.to_string())
        };
        assert_eq!(resolve(&["kfree", "ep_poll"], &["kfree", "ep_poll"]), Ok("ep_poll".into()));
        assert!(resolve(&["ep_poll", "kfree"], &["kfree"]).unwrap_err().contains("`ep_poll` is no function"));
        assert!(resolve(&["ep_poll", "do_poll"], &["ep_poll", "do_poll"]).unwrap_err().contains("`ep_poll`"));
    }

    #[test]
    fn patterns_may_be_of_code_that_is_loaded_later() {
        let selection = FunctionSelection {
            only: vec!["fs/overlayfs/".into()],
            skip: vec!["ovl_get*".into()],
            ..Default::default()
        };
        assert_eq!(selection.resolve(&kernel(), true), Ok(vec![true; 5]));
        let function = |name: &str| LoadedFunction {
            name: name.into(),
            module: "overlay".into(),
            address: 0xffff_ffff_c000_0000,
            size: 16,
        };
        let paths = BTreeMap::from([("overlay".to_owned(), "fs/overlayfs/overlay.ko".to_owned())]);
        let check = |loaded: &[LoadedFunction]| {
            selection.check_loaded(&kernel(), loaded, &paths).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[function("ovl_open"), function("ovl_getattr")]), Ok(()));
        let error = check(&[function("ovl_open")]).unwrap_err();
        assert!(error.contains("--skip `ovl_get*` is no function"), "{error}");
    }
}
