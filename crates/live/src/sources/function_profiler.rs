//! ftrace's function profiler: number of calls of each function, without callers. For kernels that
//! cannot load the module.

use crate::options::CallCountOptions;
use crate::tracefs::TracefsDir;
use crate::{Aggregate, Error, Result, Source, SourceDescription};
use kerntune_symbols::Kallsyms;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};

const ENABLED: &str = "function_profile_enabled";
const FILTER: &str = "set_ftrace_filter";
const EXCEPT: &str = "set_ftrace_notrace";
/// First characters of an empty filter.
const EMPTY: &str = "#### ";

/// Script that switches the profiler off when its input ends, in whatever way this process ended.
const GUARD: &str = "trap '' INT TERM HUP; while read -r line; do :; done; cd \"$0\" && echo 0 > function_profile_enabled && \
                     echo > set_ftrace_filter && echo > set_ftrace_notrace";

/// Source of call counts from ftrace's function profiler.
pub struct FunctionProfiler {
    tracing: TracefsDir,
    guard: Child,
    what: String,
    why: String,
    /// Calls by name that were reported already or precede the last reset.
    told: HashMap<String, u64>,
    /// Address of each function name; `None` if several functions share it.
    places: HashMap<String, Option<u64>>,
}

impl FunctionProfiler {
    /// Starts counting. `why` is the reason why callers cannot be counted as well.
    ///
    /// # Errors
    /// [`Error::NoProfiler`] if the kernel has no profiler, refuses it, or ftrace is in use.
    pub fn start(calls: &CallCountOptions, why: &str) -> Result<Self> {
        let no = |reason: String| Error::NoProfiler(reason);
        let tracing = TracefsDir::open().map_err(|error| no(format!("no tracefs ({error})")))?;
        let enabled = tracing.read(ENABLED).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                no("this kernel has no function profiler (CONFIG_FUNCTION_PROFILER)".into())
            }
            _ => no(format!("{ENABLED} cannot be read ({error})")),
        })?;
        let tracer = tracing.read("current_tracer").unwrap_or_default();
        let is_empty =
            |file: &str| tracing.read(file).is_ok_and(|text| text.starts_with(EMPTY) || text.is_empty());
        if enabled.trim() != "0" || tracer.trim() != "nop" || !is_empty(FILTER) || !is_empty(EXCEPT) {
            return Err(no(
                "somebody uses ftrace: its tracer, profiler or filter is not as it is after boot".into(),
            ));
        }
        let directory = tracing.path().map_err(|error| no(format!("tracefs has no path ({error})")))?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::Spawn { program: "/bin/sh".into(), source })?;
        let new = Self {
            tracing,
            guard,
            what: calls.to_string(),
            why: why.into(),
            told: HashMap::new(),
            places: places()?,
        };
        let set = |file: &str, globs: &[String]| -> Result<()> {
            for glob in globs {
                if glob.chars().any(|c| c.is_whitespace() || c == ':' || c == '!') {
                    return Err(no(format!("`{glob}` is not a glob of functions")));
                }
            }
            // A kernel may lack some functions of a predefined set.
            let mut found = globs.is_empty();
            for glob in globs {
                match new.tracing.append(file, glob) {
                    Ok(()) => found = true,
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                    Err(error) => return Err(no(format!("{file} does not take {glob} ({error})"))),
                }
            }
            match found {
                true => Ok(()),
                false => {
                    Err(no(format!("no function that can be counted has such a name: {}", globs.join(" "))))
                }
            }
        };
        set(FILTER, &calls.only)?;
        set(EXCEPT, &calls.except)?;
        new.tracing.write(ENABLED, "1").map_err(|error| no(format!("it cannot be switched on ({error})")))?;
        Ok(new)
    }

    /// Returns all calls by name since the start.
    fn hits(&self) -> Result<BTreeMap<String, u64>> {
        let mut hits = BTreeMap::new();
        for cpu in 0.. {
            match self.tracing.read_all(&format!("trace_stat/function{cpu}")) {
                Ok(text) => parse_hits(&text, &mut hits),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(Error::NoProfiler(format!("its figures cannot be read ({error})"))),
            }
        }
        Ok(hits)
    }
}

/// Returns the address of each name. The profiler reports names only, and for a function with
/// several names any of them.
fn places() -> Result<HashMap<String, Option<u64>>> {
    const PATH: &str = "/proc/kallsyms";
    let text = fs::read(PATH).map_err(Error::io("read", PATH))?;
    let mut places = HashMap::new();
    for symbol in Kallsyms::parse(&text, PATH)?.symbols {
        let address = Some(symbol.address);
        let place = places.entry(symbol.name).or_insert(address);
        *place = place.filter(|_| *place == address);
    }
    Ok(places)
}

/// Adds the counts of one CPU (`trace_stat/functionN`); a line has a function's name, its calls,
/// and times.
pub fn parse_hits(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(Ok(hits))) = (words.next(), words.next().map(str::parse::<u64>)) else {
            continue;
        };
        let sum = into.entry(name.to_string()).or_default();
        *sum = sum.saturating_add(hits);
    }
}

impl Source for FunctionProfiler {
    fn description(&self) -> SourceDescription {
        SourceDescription {
            name: format!("ftrace: function profiler, calls of {}", self.what),
            calls: true,
            lacks: vec![
                format!(
                    "calls have no callers: ftrace's function profiler counts them, not kgmon ({})",
                    self.why
                ),
                "functions that share a name are not told apart by it: their calls are in no count".into(),
            ],
            ..SourceDescription::default()
        }
    }

    fn drain(&mut self, _: &mut Aggregate) -> Result<()> {
        Ok(())
    }

    fn flush_counts(&mut self, into: &mut Aggregate) -> Result<()> {
        let function = |name: &String| into.table.lookup(self.places.get(name).copied().flatten()?);
        let hits = self.hits()?;
        let since = |name: &str, count: u64| count.saturating_sub(self.told.get(name).copied().unwrap_or(0));
        let rows: Vec<(Option<u32>, u64)> = hits
            .iter()
            .map(|(name, count)| (function(name), since(name, *count)))
            .filter(|(_, count)| *count > 0)
            .collect();
        for (function, count) in rows {
            into.calls.add(None, function, count);
        }
        self.told = hits.into_iter().collect();
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.told = self.hits()?.into_iter().collect();
        Ok(())
    }
}

impl Drop for FunctionProfiler {
    fn drop(&mut self) {
        // The guard cleans up, as it does if this process is killed.
        if let Some(mut input) = self.guard.stdin.take() {
            let _ = input.flush();
        }
        let _ = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_cpus_are_added_up() {
        // Linux 6.12, with and without CONFIG_FUNCTION_GRAPH_TRACER.
        let graph = "  Function                               Hit    Time            Avg             s^2\n\
                     \x20 --------                               ---    ----            ---             ---\n\
                     \x20 vfs_read                                12    71.000 us       5.916 us        1.000 us\n";
        let plain = "  Function                               Hit\n  --------                               ---\n\
                     \x20 vfs_read                                 3\n  kfree                                    1\n";
        let mut hits = BTreeMap::new();
        parse_hits(graph, &mut hits);
        parse_hits(plain, &mut hits);
        assert_eq!(hits, BTreeMap::from([("kfree".into(), 1), ("vfs_read".into(), 15)]));
    }
}
