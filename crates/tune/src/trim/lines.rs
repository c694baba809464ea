//! Lines of a configuration without some options.

use super::choose::Options;
use kerntune_kernel::Configured;

/// What lists modules.
const MODULES: &str = "MODULES";

/// How options are written that are off.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Modules that are not made, with support for modules itself, and those that are built in instead.
    fixed: Vec<String>,
    /// Options that can be modules and no less, since a module selects them.
    modules: Options,
}

impl Lines {
    /// No modules at all. One that is to be kept is built in. Without support for modules Kconfig takes `=m` for `=y`
    /// (`sym_calc_value`, scripts/kconfig/symbol.c): each is named.
    pub fn without_modules(config: &Configured, is_kept: impl Fn(&str) -> bool) -> Self {
        let value = |option: &String| if is_kept(option) { 'y' } else { 'n' };
        let modules = config.modules();
        let modules = modules.iter().map(|option| format!("CONFIG_{option}={}", value(option)));
        let support = config.built_in().contains(MODULES).then(|| format!("CONFIG_{MODULES}=n"));
        Self { fixed: modules.chain(support).collect(), modules: Options::new() }
    }

    /// The same, where `config` is what became of options that were taken off.
    pub fn with_modules(mut self, config: &Configured) -> Self {
        self.modules = config.modules();
        self
    }

    /// Drops what did not take: what stays needs it.
    pub fn taken(mut self, config: &Configured) -> Self {
        let built_in = config.built_in();
        let name = |line: &str| {
            line.strip_prefix("CONFIG_").and_then(|line| line.strip_suffix("=n")).map(String::from)
        };
        self.fixed.retain(|line| name(line).is_none_or(|name| !built_in.contains(&name)));
        self
    }

    /// Whether an option that is off is a module instead.
    pub fn is_module(&self, option: &str) -> bool {
        self.modules.contains(option)
    }

    /// With these options off.
    pub fn of(&self, off: &Options) -> Vec<String> {
        let value = |option: &String| if self.is_module(option) { 'm' } else { 'n' };
        let off = off.iter().map(|option| format!("CONFIG_{option}={}", value(option)));
        self.fixed.iter().cloned().chain(off).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn config(text: &str) -> Configured {
        Configured { text: text.into(), source: PathBuf::new() }
    }

    #[test]
    fn without_modules_each_is_named_and_what_is_kept_is_built_in() {
        let whole = config("CONFIG_MODULES=y\nCONFIG_A=m\nCONFIG_B=m\nCONFIG_C=m\nCONFIG_D=y\n");
        let lines = Lines::without_modules(&whole, |option| option == "B");
        let off = Options::from(["D".to_string()]);
        assert_eq!(
            lines.of(&off),
            ["CONFIG_A=n", "CONFIG_B=y", "CONFIG_C=n", "CONFIG_MODULES=n", "CONFIG_D=n"]
        );
        // C is selected by what stays: asking for it to be off would be an error of the build.
        let lines = lines.taken(&config("CONFIG_B=y\nCONFIG_C=y\nCONFIG_D=y\n"));
        assert_eq!(lines.of(&Options::new()), ["CONFIG_A=n", "CONFIG_B=y", "CONFIG_MODULES=n"]);
        let lines = Lines::default().with_modules(&config("CONFIG_D=m\n"));
        assert_eq!((lines.of(&off), lines.is_module("D")), (vec!["CONFIG_D=m".to_string()], true));
        assert_eq!(Lines::without_modules(&config("CONFIG_D=y\n"), |_| false).of(&Options::new()), [""; 0]);
    }
}
