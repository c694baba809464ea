//! Resolution of the command line's names to function and region numbers.

use crate::names::{self, NameError};
use crate::pattern::is_of_set;
use crate::view::scope;
use crate::{Error, Result};
use kerntune_analyze::anatomy::AnatomyRequest;
use kerntune_isa::{GuestIsa, Isa};
use kerntune_profile::{Anomaly, FunctionIndex, Profile, Tables};

/// Operation to examine, with its regions and boundary, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnatomyQuestion {
    /// Operation whose calls are examined.
    pub function: FunctionIndex,
    /// By region: whether it counts.
    regions: Vec<bool>,
    /// By function: whether it is the boundary; empty without one.
    until: Vec<bool>,
    functions: usize,
    partial: bool,
}

impl AnatomyQuestion {
    /// Resolves the operation's name, the regions of a name (or all), and the boundary: a function,
    /// a pattern, or a directory of the source.
    ///
    /// # Errors
    /// A name that the profile does not have.
    pub fn new(
        profile: &Profile,
        operation: &str,
        region: Option<&str>,
        until: Option<&str>,
    ) -> Result<Self> {
        let tables = &profile.tables;
        let scope = scope(profile, region)?;
        Ok(Self {
            function: self::operation(tables, operation)?,
            regions: tables.regions.iter().map(|row| scope.contains(row.region)).collect(),
            until: until.map_or(Ok(Vec::new()), |set| boundary(tables, set))?,
            functions: tables.symbols.len(),
            partial: profile.manifest.anomaly(Anomaly::MissingChunks) > 0,
        })
    }

    /// Returns the request for the analysis.
    pub fn request(&self) -> AnatomyRequest<'_> {
        let Self { function, functions, partial, .. } = *self;
        AnatomyRequest { function, functions, partial, regions: &self.regions, until: &self.until }
    }
}

/// Finds the function of that name that ran, else the function of the system call of that name.
fn operation(tables: &Tables, wanted: &str) -> Result<FunctionIndex, NameError> {
    let ran = |function: &FunctionIndex| tables.functions.iter().any(|row| row.function == *function);
    let named = names::function(tables, wanted);
    if named.as_ref().is_ok_and(ran) {
        return named;
    }
    let entry = |prefix: &&str| names::function(tables, &format!("{prefix}{wanted}")).ok();
    let entries: Vec<_> = GuestIsa::SYSTEM_CALLS.iter().filter_map(entry).collect();
    match entries.iter().find(|entry| ran(entry)) {
        Some(entry) => Ok(*entry),
        None => named.or_else(|error| entries.first().copied().ok_or(error)),
    }
}

fn boundary(tables: &Tables, set: &str) -> Result<Vec<bool>> {
    let found: Vec<bool> = match set.contains('@') {
        true => {
            let one = names::function(tables, set)?;
            tables.symbols.iter().map(|symbol| symbol.function == one).collect()
        }
        false => tables.symbols.iter().map(|symbol| is_of_set(symbol, set)).collect(),
    };
    match found.contains(&true) {
        true => Ok(found),
        // For a plain name, the error offers similar names.
        false if !set.contains(['*', '?', '/']) => Err(match names::function(tables, set) {
            Err(error) => error.into(),
            Ok(_) => Error::NoFunction { pattern: set.into() },
        }),
        false => Err(Error::NoFunction { pattern: set.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, FunctionStats, KernelId, Manifest, Symbol, Ticks};

    fn profile() -> Profile {
        let symbol = |(at, (name, file)): (usize, &(&str, &str))| Symbol {
            function: FunctionIndex(at as u32),
            name: name.to_string(),
            address: Address(0x1000 + at as u64),
            size: 1,
            file: Some(file.to_string()),
            module: None,
        };
        let all = [
            ("read", "drivers/char/mem.c"),
            ("__x64_sys_read", "fs/read_write.c"),
            ("__ia32_sys_read", "fs/read_write.c"),
            ("__x64_sys_getpid", "kernel/sys.c"),
            ("submit_bio", "block/blk-core.c"),
            ("asm_common_interrupt:0x22", "arch/x86/entry/entry_64.S"),
            ("stat", "fs/a.c"),
            ("stat", "fs/b.c"),
            ("__x64_sys_stat", "fs/stat.c"),
        ];
        let row = |function| FunctionStats {
            region: 0,
            function: FunctionIndex(function),
            calls: 1,
            ended: 1,
            self_ticks: Ticks(1),
            ended_self_ticks: Ticks(1),
            total_ticks: Ticks(1),
            max_ticks: Ticks(1),
            min_ticks: Ticks(1),
            slowest_ticks: Ticks(1),
            slowest_at_ticks: Ticks(1),
        };
        let tables = Tables {
            symbols: all.iter().enumerate().map(symbol).collect(),
            functions: [1, 4, 5, 8].map(row).to_vec(),
            ..Tables::default()
        };
        Profile { manifest: Manifest::new("p", KernelId::default(), "w", "emulator"), tables }
    }

    fn question(operation: &str, until: Option<&str>) -> Result<AnatomyQuestion, String> {
        AnatomyQuestion::new(&profile(), operation, None, until).map_err(|error| error.to_string())
    }

    #[test]
    fn operations_are_functions_system_calls_and_interrupts() {
        let function = |name| question(name, None).map(|question| question.function.0);
        assert_eq!(function("submit_bio"), Ok(4));
        assert_eq!(function("asm_common_interrupt:0x22"), Ok(5));
        assert_eq!(function("read"), Ok(1), "the function of that name never ran");
        assert_eq!(function("getpid"), Ok(3), "neither did this one, but there is no other");
        assert_eq!(function("stat"), Ok(8));
        assert_eq!(function("stat@fs/b.c"), Ok(7), "what is asked for is what is looked at");
        let error = function("submit_bia").unwrap_err();
        assert_eq!(error, "the profile has no function \"submit_bia\"; did you mean submit_bio?");
        assert!(function("").unwrap_err().contains("no function \"\""));
    }

    #[test]
    fn boundaries_are_names_patterns_and_directories() {
        let until = |set: &str| {
            let question = question("read", Some(set))?;
            let request = question.request();
            let found = request.until.iter().zip(0..).filter(|(until, _)| **until).map(|(_, at)| at);
            Ok::<Vec<u32>, String>(found.collect())
        };
        assert_eq!(until("submit_bio"), Ok(vec![4]));
        assert_eq!(until("*_sys_read"), Ok(vec![1, 2]));
        assert_eq!(until("fs/"), Ok(vec![1, 2, 6, 7, 8]));
        assert_eq!(until("stat@fs/b.c"), Ok(vec![7]));
        assert_eq!(
            until("submit_bi"),
            Err("the profile has no function \"submit_bi\"; did you mean submit_bio?".into())
        );
        for nothing in ["net/", "udp_*"] {
            let error = until(nothing).unwrap_err();
            assert!(error.contains(&format!("no function matches \"{nothing}\"")), "{error}");
        }
    }
}
