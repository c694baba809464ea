//! Lines of a configuration with some options off.

use super::choose::ConfigOptions;
use kerntune_kernel::ResolvedConfig;

/// Option for module support.
const MODULES: &str = "MODULES";

/// Converts options that are off to lines of a configuration.
#[derive(Debug, Default)]
pub(super) struct ConfigLines {
    /// Lines for modules: those that are off, those that are built in instead, and module support.
    fixed: Vec<String>,
    /// Options that can only be reduced to modules, since a module selects them.
    modules: ConfigOptions,
}

impl ConfigLines {
    /// Switches off all modules; those to be kept are built in. Without module support Kconfig
    /// reads `=m` as `=y` (`sym_calc_value`, scripts/kconfig/symbol.c), so each module is named.
    pub fn without_modules(config: &ResolvedConfig, is_kept: impl Fn(&str) -> bool) -> Self {
        let value = |option: &String| if is_kept(option) { 'y' } else { 'n' };
        let modules = config.modules();
        let modules = modules.iter().map(|option| format!("CONFIG_{option}={}", value(option)));
        let support = config.built_in().contains(MODULES).then(|| format!("CONFIG_{MODULES}=n"));
        Self { fixed: modules.chain(support).collect(), modules: ConfigOptions::new() }
    }

    /// Keeps as modules the options that are modules in `config`, a configuration with the options
    /// off.
    pub fn with_modules(mut self, config: &ResolvedConfig) -> Self {
        self.modules = config.modules();
        self
    }

    /// Drops lines that had no effect because an option that stays needs the module.
    pub fn taken(mut self, config: &ResolvedConfig) -> Self {
        let built_in = config.built_in();
        let name = |line: &str| {
            line.strip_prefix("CONFIG_").and_then(|line| line.strip_suffix("=n")).map(String::from)
        };
        self.fixed.retain(|line| name(line).is_none_or(|name| !built_in.contains(&name)));
        self
    }

    /// Returns whether an option that is off becomes a module.
    pub fn is_module(&self, option: &str) -> bool {
        self.modules.contains(option)
    }

    /// Returns the lines that switch these options off.
    pub fn of(&self, off: &ConfigOptions) -> Vec<String> {
        let value = |option: &String| if self.is_module(option) { 'm' } else { 'n' };
        let off = off.iter().map(|option| format!("CONFIG_{option}={}", value(option)));
        self.fixed.iter().cloned().chain(off).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn config(text: &str) -> ResolvedConfig {
        ResolvedConfig { text: text.into(), source: PathBuf::new() }
    }

    #[test]
    fn without_modules_each_is_named_and_what_is_kept_is_built_in() {
        let whole = config("CONFIG_MODULES=y\nCONFIG_A=m\nCONFIG_B=m\nCONFIG_C=m\nCONFIG_D=y\n");
        let lines = ConfigLines::without_modules(&whole, |option| option == "B");
        let off = ConfigOptions::from(["D".to_string()]);
        assert_eq!(
            lines.of(&off),
            ["CONFIG_A=n", "CONFIG_B=y", "CONFIG_C=n", "CONFIG_MODULES=n", "CONFIG_D=n"]
        );
        // C is selected by an option that stays: switching it off would be a build error.
        let lines = lines.taken(&config("CONFIG_B=y\nCONFIG_C=y\nCONFIG_D=y\n"));
        assert_eq!(lines.of(&ConfigOptions::new()), ["CONFIG_A=n", "CONFIG_B=y", "CONFIG_MODULES=n"]);
        let lines = ConfigLines::default().with_modules(&config("CONFIG_D=m\n"));
        assert_eq!((lines.of(&off), lines.is_module("D")), (vec!["CONFIG_D=m".to_string()], true));
        assert_eq!(
            ConfigLines::without_modules(&config("CONFIG_D=y\n"), |_| false).of(&ConfigOptions::new()),
            [""; 0]
        );
    }
}
