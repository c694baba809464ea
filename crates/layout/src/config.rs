//! Sizes of a front end and costs of its events, as given in `data/cpu-models/*.toml`.

use crate::{parts, DirectionConfig, Error, Result};
use serde::{Deserialize, Serialize};

/// Size of the small page of x86-64, in bytes.
pub const SMALL_PAGE_BYTES: u64 = 4096;
/// Size of the large page that maps kernel text, in bytes.
pub const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// Upper bound for entries; a larger value is taken for a mistake in the model file.
const MAX_ENTRIES: u64 = 1 << 20;
/// Upper bound for the cost of one event, in cycles.
const MAX_CYCLES: f64 = 10_000.0;
/// Upper bound for the entries of a return stack.
const MAX_RETURNS: u64 = 1024;

/// Names and texts of the built-in models.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/cpu-models.rs"));

/// Documented CPU front end: instruction cache, instruction TLB, and what is known of the parts
/// behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontEndConfig {
    /// Short name, printed by reports beside the misses.
    pub name: String,
    /// Description of the machine in one sentence.
    pub description: String,
    /// Page size of kernel text in the iTLB: [`SMALL_PAGE_BYTES`] or [`LARGE_PAGE_BYTES`]. User
    /// text always uses small pages.
    pub kernel_text_page_bytes: u64,
    /// Instruction cache.
    pub l1i: CacheConfig,
    /// Instruction TLB for 4-KiB pages.
    pub itlb: TlbConfig,
    /// Instruction TLB for 2-MiB pages; required if kernel text uses large pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub itlb_large: Option<LargeTlbConfig>,
    /// Second-level cache. Without it, every L1I miss costs the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<L2Config>,
    /// Instruction prefetcher. Without it, lines are fetched only on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchConfig>,
    /// Predictor of branch targets. Without it, every taken branch is followed in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchConfig>,
    /// Predictor of branch directions. Without it, every conditional branch that a BTB holds is
    /// predicted right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<DirectionConfig>,
    /// Data caches and data TLBs, used only by `record --data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataConfig>,
    /// Costs of the events. Without them, no model cycles are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CycleCosts>,
}

/// Geometry of the data caches and data TLBs. Their lines are as long as those of the L1I.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// First-level data cache.
    pub l1d: L2Config,
    /// Second-level cache of code and data. The cache of `[l2]`, if both are given, is the same one
    /// but sees only code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<L2Config>,
    /// Third-level cache, shared by all cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3: Option<L2Config>,
    /// Data TLB for 4-KiB pages, or for all pages if `dtlb_large` is absent.
    pub dtlb: TlbConfig,
    /// Data TLB for 2-MiB pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtlb_large: Option<LargeTlbConfig>,
    /// Second-level TLB; the model puts only data translations into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stlb: Option<TlbConfig>,
}

impl DataConfig {
    /// Returns name, page size in bytes and number of entries of each TLB. A TLB that holds both
    /// page sizes is listed twice.
    pub fn tlbs(&self) -> Vec<(&'static str, u64, u64)> {
        let mut tlbs = vec![("dtlb", SMALL_PAGE_BYTES, self.dtlb.entries)];
        tlbs.push(match self.dtlb_large {
            Some(large) => ("dtlb_large", LARGE_PAGE_BYTES, large.entries),
            None => ("dtlb", LARGE_PAGE_BYTES, self.dtlb.entries),
        });
        if let Some(stlb) = self.stlb {
            tlbs.extend([SMALL_PAGE_BYTES, LARGE_PAGE_BYTES].map(|bytes| ("stlb", bytes, stlb.entries)));
        }
        tlbs
    }
}

/// Cost of one event of each kind, in cycles. The sum of events times costs estimates the time of a
/// front end that never waits for data. The last four belong to optional parts of a model; their
/// cost is added to that of the L1I miss or taken branch that they accompany.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleCosts {
    /// Cost of an instruction: 1 / the width of the pipeline.
    pub instruction: f64,
    /// Cost of a taken and correctly predicted branch.
    pub taken_branch: f64,
    /// Cost of a line that misses the L1I and hits the L2.
    pub l1i_miss: f64,
    /// Cost of a translation that misses the first-level iTLB and hits the second-level TLB.
    pub itlb_miss: f64,
    /// Cost of a line that also misses the L2. Requires `[l2]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_miss: Option<f64>,
    /// Cost of a target found only in the second-level BTB. Requires `[branch.btb_l2]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub btb_l2_hit: Option<f64>,
    /// Cost of a call, jump or return that misses all BTBs. Requires `[branch]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub btb_miss: Option<f64>,
    /// Cost of a branch that left the fetched path. Requires `[branch]` or `[direction]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misprediction: Option<f64>,
}

/// Geometry of the instruction cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Associativity: lines per set.
    pub ways: u64,
    /// Line size in bytes, a power of two.
    pub line_bytes: u64,
}

/// Geometry of a TLB. It is fully associative if `ways == entries`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbConfig {
    /// Number of translations.
    pub entries: u64,
    /// Associativity: entries per set.
    pub ways: u64,
}

/// Geometry of a TLB for large pages; fully associative unless `ways` is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeTlbConfig {
    /// Number of translations.
    pub entries: u64,
    /// Associativity, if not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u64>,
}

/// Geometry of a cache behind a first-level cache, with lines as long as those of the L1I. The
/// cache of `[l2]` sees only instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L2Config {
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Associativity: lines per set.
    pub ways: u64,
}

/// Upper bound for run-ahead lines, above the size of any fetch queue.
const MAX_RUN_AHEAD_LINES: u64 = 1024;

/// Instruction prefetcher; exactly one of the two keys is given. A prefetched line is always there
/// in time, so the model shows the largest possible benefit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchConfig {
    /// Number of lines prefetched after an L1I miss, within the same 4-KiB page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_lines: Option<u64>,
    /// Number of lines on the program's path that the front end requests while it waits for a
    /// missing line. A mispredicted branch ends the run-ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ahead_lines: Option<u64>,
}

/// Predictor of the targets of taken branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchConfig {
    /// Number of return addresses in the return stack. Without it, returns count as predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_stack: Option<u64>,
    /// Branch target buffer, or its first level.
    pub btb: BtbConfig,
    /// Second level of the branch target buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub btb_l2: Option<BtbConfig>,
    /// Table of indirect branch targets, each entry a branch with a target. Without it, indirect
    /// branches that a BTB holds count as predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indirect: Option<BtbConfig>,
}

/// Geometry of a table of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BtbConfig {
    /// Number of branches.
    pub entries: u64,
    /// Associativity, if published; see [`BtbConfig::ways`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u64>,
}

impl BtbConfig {
    /// Returns the entries per set. If unpublished, this is the smallest number from 4 on that
    /// makes the number of sets a power of two (6 for 1536 entries, 7 for 7168).
    pub fn ways(&self) -> u64 {
        const LEAST: u64 = 4;
        let all = self.entries.max(1);
        let odd = all >> all.trailing_zeros();
        self.ways.unwrap_or_else(|| (odd * LEAST.div_ceil(odd).next_power_of_two()).min(all))
    }
}

impl FrontEndConfig {
    /// Parses and validates the text of a `data/cpu-models/*.toml`.
    ///
    /// # Errors
    /// [`Error::Syntax`] with line and key. [`Error::Value`], [`Error::FetchedAhead`] or
    /// [`Error::NoLargeTlb`] for sizes that no machine can have.
    pub fn parse(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text)?;
        config.validate()?;
        Ok(config)
    }

    /// Writes the model as TOML that [`FrontEndConfig::parse`] reads back. Comments of the original
    /// file are lost.
    pub fn to_toml(&self) -> String {
        // Tables of numbers and strings can always be written.
        toml::to_string(self).unwrap_or_default()
    }

    /// Returns a built-in model, with parts if the name has them: `zen4` or `zen4+tage+next-line`.
    /// [`FrontEndConfig::built_in`] lists the models.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] and [`Error::UnknownPart`], which list the known names.
    pub fn named(name: &str) -> Result<Self> {
        let (model, named) = Self::split(name);
        Self::with_parts(Self::named_text(model)?, named)
    }

    /// Splits a name at each `+`, and returns the model's name and the names of the parts.
    pub fn split(name: &str) -> (&str, impl Iterator<Item = &str>) {
        let mut words = name.split('+');
        (words.next().unwrap_or_default(), words)
    }

    /// Parses the text of a model file and applies parts to it.
    ///
    /// # Errors
    /// Those of [`FrontEndConfig::parse`], and [`Error::UnknownPart`].
    pub fn with_parts<'a>(text: &str, named: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut named = named.peekable();
        let config = Self::parse(text)?;
        match named.peek() {
            None => Ok(config),
            Some(_) => Self::parse(&parts::apply_parts(text, named)?),
        }
    }

    /// Returns the TOML text of a built-in model.
    ///
    /// # Errors
    /// [`Error::UnknownModel`].
    pub fn named_text(name: &str) -> Result<&'static str> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Ok(text),
            None => Err(Error::UnknownModel {
                name: name.to_owned(),
                known: Self::built_in().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Returns the names of the built-in models.
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Checks that a machine can have these sizes. [`FrontEndConfig::parse`] does this itself; call
    /// it for a model built in code.
    ///
    /// # Errors
    /// [`Error::Value`] with key and value, [`Error::FetchedAhead`], [`Error::NoLargeTlb`].
    pub fn validate(&self) -> Result<()> {
        let CacheConfig { size_bytes, ways, line_bytes } = self.l1i;
        self.check("l1i.line_bytes", line_bytes, line_bytes.is_power_of_two(), || {
            "not a power of two".into()
        })?;
        self.check("l1i.line_bytes", line_bytes, (8..=SMALL_PAGE_BYTES).contains(&line_bytes), || {
            format!("a line has 8 to {SMALL_PAGE_BYTES} bytes")
        })?;
        self.check("l1i.size_bytes", size_bytes, size_bytes % line_bytes == 0, || {
            format!("not a multiple of l1i.line_bytes = {line_bytes}")
        })?;
        let keys = ["l1i.size_bytes", "l1i.ways"];
        self.check_sets(keys, size_bytes, size_bytes / line_bytes, ways, "lines")?;

        let TlbConfig { entries, ways } = self.itlb;
        self.check_sets(["itlb.entries", "itlb.ways"], entries, entries, ways, "entries")?;
        if let Some(LargeTlbConfig { entries, ways }) = self.itlb_large {
            let keys = ["itlb_large.entries", "itlb_large.ways"];
            self.check_sets(keys, entries, entries, ways.unwrap_or(entries), "entries")?;
        }

        if let Some(L2Config { size_bytes, ways }) = self.l2 {
            self.check("l2.size_bytes", size_bytes, size_bytes % line_bytes == 0, || {
                format!("not a multiple of l1i.line_bytes = {line_bytes}")
            })?;
            self.check_sets(
                ["l2.size_bytes", "l2.ways"],
                size_bytes,
                size_bytes / line_bytes,
                ways,
                "lines",
            )?;
        }
        self.check_data()?;
        self.check_prefetch()?;
        self.check_branch()?;
        if let Some((key, value, rule)) = self.direction.and_then(|direction| direction.fault()) {
            return Err(Error::Value { model: self.name.clone(), key, value, rule });
        }

        let page = self.kernel_text_page_bytes;
        self.check(
            "kernel_text_page_bytes",
            page,
            page == SMALL_PAGE_BYTES || page == LARGE_PAGE_BYTES,
            || format!("must be {SMALL_PAGE_BYTES} or {LARGE_PAGE_BYTES}"),
        )?;
        if page == LARGE_PAGE_BYTES && self.itlb_large.is_none() {
            return Err(Error::NoLargeTlb { model: self.name.clone() });
        }
        self.check_costs()
    }

    fn check_prefetch(&self) -> Result<()> {
        let Some(PrefetchConfig { next_lines, run_ahead_lines }) = self.prefetch else { return Ok(()) };
        let among = |key, lines: u64, max: u64, what: &str| {
            self.check(key, lines, (1..=max).contains(&lines), || format!("must be 1 to {max}{what}"))
        };
        match (next_lines, run_ahead_lines) {
            (Some(lines), None) => {
                let max = (SMALL_PAGE_BYTES / self.l1i.line_bytes).max(2) - 1;
                among("prefetch.next_lines", lines, max, ": lines of the same page")
            }
            (None, Some(lines)) => among("prefetch.run_ahead_lines", lines, MAX_RUN_AHEAD_LINES, ""),
            _ => Err(Error::FetchedAhead { model: self.name.clone() }),
        }
    }

    fn check_data(&self) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let line_bytes = self.l1i.line_bytes;
        for (keys, cache) in [
            (["data.l1d.size_bytes", "data.l1d.ways"], Some(data.l1d)),
            (["data.l2.size_bytes", "data.l2.ways"], data.l2),
            (["data.l3.size_bytes", "data.l3.ways"], data.l3),
        ] {
            let Some(L2Config { size_bytes, ways }) = cache else { continue };
            self.check(keys[0], size_bytes, size_bytes % line_bytes == 0, || {
                format!("not a multiple of l1i.line_bytes = {line_bytes}")
            })?;
            self.check_sets(keys, size_bytes, size_bytes / line_bytes, ways, "lines")?;
        }
        if let (Some(l2), Some(own)) = (self.l2, data.l2) {
            self.check("data.l2.size_bytes", own.size_bytes, l2 == own, || {
                format!("not the cache of [l2]: {} bytes, {} ways", l2.size_bytes, l2.ways)
            })?;
        }
        let TlbConfig { entries, ways } = data.dtlb;
        self.check_sets(["data.dtlb.entries", "data.dtlb.ways"], entries, entries, ways, "entries")?;
        if let Some(LargeTlbConfig { entries, ways }) = data.dtlb_large {
            let keys = ["data.dtlb_large.entries", "data.dtlb_large.ways"];
            self.check_sets(keys, entries, entries, ways.unwrap_or(entries), "entries")?;
        }
        match data.stlb {
            Some(TlbConfig { entries, ways }) => {
                self.check_sets(["data.stlb.entries", "data.stlb.ways"], entries, entries, ways, "entries")
            }
            None => Ok(()),
        }
    }

    fn check_branch(&self) -> Result<()> {
        let Some(branch) = &self.branch else { return Ok(()) };
        for (keys, table) in [
            (["branch.btb.entries", "branch.btb.ways"], Some(branch.btb)),
            (["branch.btb_l2.entries", "branch.btb_l2.ways"], branch.btb_l2),
            (["branch.indirect.entries", "branch.indirect.ways"], branch.indirect),
        ] {
            if let Some(table) = table {
                self.check_sets(keys, table.entries, table.entries, table.ways(), "entries")?;
            }
        }
        match branch.return_stack {
            Some(entries) => {
                self.check("branch.return_stack", entries, (1..=MAX_RETURNS).contains(&entries), || {
                    format!("must be 1 to {MAX_RETURNS} return addresses")
                })
            }
            None => Ok(()),
        }
    }

    fn check_costs(&self) -> Result<()> {
        let Some(cycles) = self.cycles else { return Ok(()) };
        let CycleCosts { instruction, taken_branch, l1i_miss, itlb_miss, .. } = cycles;
        let mut costs = vec![
            ("cycles.instruction", instruction),
            ("cycles.taken_branch", taken_branch),
            ("cycles.l1i_miss", l1i_miss),
            ("cycles.itlb_miss", itlb_miss),
        ];
        let btb_l2 = self.branch.is_some_and(|branch| branch.btb_l2.is_some());
        for (part, exists, key, cost) in [
            ("[l2]", self.l2.is_some(), "cycles.l2_miss", cycles.l2_miss),
            ("[branch.btb_l2]", btb_l2, "cycles.btb_l2_hit", cycles.btb_l2_hit),
            ("[branch]", self.branch.is_some(), "cycles.btb_miss", cycles.btb_miss),
            (
                if self.branch.is_some() { "[branch]" } else { "[direction]" },
                self.branch.is_some() || self.direction.is_some(),
                "cycles.misprediction",
                cycles.misprediction,
            ),
        ] {
            match (exists, cost) {
                (true, None) => return Err(Error::NoCost { model: self.name.clone(), part, key }),
                (false, Some(_)) => return Err(Error::NoPart { model: self.name.clone(), part, key }),
                (_, cost) => costs.extend(cost.map(|cost| (key, cost))),
            }
        }
        match costs.into_iter().find(|(_, cost)| !(0.0..=MAX_CYCLES).contains(cost)) {
            Some((key, cost)) => Err(Error::Cost { model: self.name.clone(), key, cost, max: MAX_CYCLES }),
            None => Ok(()),
        }
    }

    /// Checks that `entries` can be divided into sets of `ways`. `value` is the file's value of
    /// `keys[0]`.
    fn check_sets(
        &self,
        keys: [&'static str; 2],
        value: u64,
        entries: u64,
        ways: u64,
        unit: &str,
    ) -> Result<()> {
        let [size_key, ways_key] = keys;
        self.check(size_key, value, entries > 0, || format!("there are no {unit}"))?;
        self.check(size_key, value, entries <= MAX_ENTRIES, || {
            format!("{entries} {unit} are more than the {MAX_ENTRIES} this model allows")
        })?;
        self.check(ways_key, ways, (1..=entries).contains(&ways), || {
            format!("must be 1 to {entries}, the number of {unit} ({entries} is fully associative)")
        })?;
        self.check(ways_key, ways, entries % ways == 0, || format!("does not divide the {entries} {unit}"))?;
        self.check(ways_key, ways, (entries / ways).is_power_of_two(), || {
            format!("{entries} {unit} make {} sets, not a power of two", entries / ways)
        })
    }

    fn check(&self, key: &'static str, value: u64, holds: bool, rule: impl FnOnce() -> String) -> Result<()> {
        if holds {
            Ok(())
        } else {
            Err(Error::Value { model: self.name.clone(), key, value, rule: rule() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(find: &str, replace: &str) -> String {
        let text = BUILT_IN[0].1;
        assert!(text.contains(find), "{find}");
        FrontEndConfig::parse(&text.replace(find, replace)).unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_model_is_valid_and_carries_its_name() {
        for name in FrontEndConfig::built_in() {
            let config = FrontEndConfig::named(name).unwrap();
            assert_eq!(config.name, name);
            assert_eq!(FrontEndConfig::parse(&config.to_toml()).unwrap(), config);
        }
        let generic = FrontEndConfig::named("generic").unwrap();
        assert_eq!(generic.l1i, CacheConfig { size_bytes: 32768, ways: 8, line_bytes: 64 });
        assert_eq!(generic.itlb, TlbConfig { entries: 64, ways: 8 });
        let skylake = FrontEndConfig::named("skylake").unwrap();
        assert_eq!(skylake.itlb_large, Some(LargeTlbConfig { entries: 8, ways: None }));
        // More parts do not change the first level's counts.
        assert_eq!((skylake.l1i, skylake.itlb), (generic.l1i, TlbConfig { entries: 128, ways: 8 }));
    }

    #[test]
    fn every_model_file_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/cpu-models");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.is_file());
        let mut files: Vec<_> =
            files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let mut names: Vec<_> = FrontEndConfig::built_in().collect();
        files.sort();
        names.sort();
        assert_eq!(files, names);
        // Each model names the sources of its figures.
        for name in names {
            let text = FrontEndConfig::named_text(name).unwrap();
            assert!(text.contains("https://") || text.contains("OpenBSD"), "{name}");
        }
    }

    #[test]
    fn the_documentation_has_every_model_and_an_example_that_is_one() {
        let text = include_str!("../../../docs/models.md");
        for name in FrontEndConfig::built_in() {
            assert!(text.contains(&format!("| `{name}`")), "docs/models.md lacks {name}");
        }
        let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let config = FrontEndConfig::parse(example).unwrap();
        let zen4 = FrontEndConfig::named("zen4").unwrap();
        assert_eq!((config.l2, config.branch, config.cycles), (zen4.l2, zen4.branch, zen4.cycles));
    }

    #[test]
    fn errors_name_key_and_value() {
        assert_eq!(
            with("line_bytes = 64", "line_bytes = 48"),
            "front-end model \"generic\": l1i.line_bytes = 48: not a power of two"
        );
        assert!(with("line_bytes = 64", "line_bytes = 0").contains("l1i.line_bytes = 0"));
        assert_eq!(
            with("size_bytes = 32768", "size_bytes = 0"),
            "front-end model \"generic\": l1i.size_bytes = 0: there are no lines"
        );
        assert!(
            with("size_bytes = 32768", "size_bytes = 49152").contains("l1i.ways = 8: 768 lines make 96 sets")
        );
        assert!(with("entries = 64", "entries = 4").contains("itlb.ways = 8: must be 1 to 4"));
        assert!(with("entries = 64", "entries = 9000000000000").contains("itlb.entries = 9000000000000"));
        assert!(with("= 4096", "= 8192").contains("kernel_text_page_bytes = 8192: must be 4096 or 2097152"));
        assert!(with("= 4096", "= 2097152").contains("[itlb_large]"));
    }

    #[test]
    fn costs_are_cycles() {
        let text =
            |costs: &str| format!("{}\n[cycles]\n{costs}", BUILT_IN[0].1.split("[cycles]").next().unwrap());
        let costs = "instruction = 0.25\ntaken_branch = 1\nl1i_miss = 12\nitlb_miss = 14.5\n";
        assert_eq!(FrontEndConfig::parse(&text(costs)).unwrap().cycles.unwrap().itlb_miss, 14.5);
        let refused = |costs: &str| FrontEndConfig::parse(&text(costs)).unwrap_err().to_string();
        for bad in ["-1", "nan", "1e9"] {
            let error = refused(&costs.replace("= 12", &format!("= {bad}")));
            assert!(error.contains("cycles.l1i_miss"), "{error}");
        }
        assert!(refused("instruction = 0.25\n").contains("taken_branch"));
    }

    /// Parses a model with all parts after replacing one text by another.
    fn whole(find: &str, replace: &str) -> Result<FrontEndConfig> {
        let parts = "[l2]\nsize_bytes = 524288\nways = 8\n[branch]\nreturn_stack = 31\n\
                     [branch.btb]\nentries = 512\nways = 4\n[branch.btb_l2]\nentries = 7168\n\
                     [branch.indirect]\nentries = 1024\n\
                     [cycles]\ninstruction = 0.25\ntaken_branch = 0\nl1i_miss = 12\nitlb_miss = 7\n\
                     l2_miss = 27\nbtb_l2_hit = 4\nbtb_miss = 12\nmisprediction = 18\n";
        let text = format!("{}{parts}", BUILT_IN[0].1.split("[cycles]").next().unwrap());
        assert!(text.contains(find), "{find}");
        FrontEndConfig::parse(&text.replace(find, replace))
    }

    #[test]
    fn the_parts_behind_the_first_level_are_checked_like_the_first() {
        let config = whole("", "").unwrap();
        assert_eq!(FrontEndConfig::parse(&config.to_toml()).unwrap(), config);
        assert_eq!(config.branch.unwrap().btb_l2.unwrap().ways(), 7);
        let refused = |find: &str, replace: &str| whole(find, replace).unwrap_err().to_string();
        for (find, replace, words) in [
            ("size_bytes = 524288", "size_bytes = 524289", "l2.size_bytes = 524289: not a multiple"),
            ("size_bytes = 524288", "size_bytes = 0", "l2.size_bytes = 0: there are no lines"),
            ("size_bytes = 524288", "size_bytes = 9000000000000", "l2.size_bytes = 9000000000000"),
            ("ways = 4", "ways = 3", "branch.btb.ways = 3: does not divide the 512 entries"),
            ("ways = 4", "ways = 0", "branch.btb.ways = 0"),
            ("entries = 7168", "entries = 0", "branch.btb_l2.entries = 0: there are no entries"),
            ("entries = 1024", "entries = 9000000000000", "branch.indirect.entries = 9000000000000"),
            ("entries = 1024", "entries = -1", "-1"),
            ("return_stack = 31", "return_stack = 0", "branch.return_stack = 0: must be 1 to 1024"),
            ("return_stack = 31", "return_stack = 4096", "branch.return_stack = 4096"),
            ("return_stack = 31", "return_stak = 31", "return_stak"),
            ("l2_miss = 27\n", "", "there is a [l2] table, but not what its events cost: cycles.l2_miss"),
            ("misprediction = 18\n", "", "cycles.misprediction"),
            ("l2_miss = 27", "l2_miss = nan", "cycles.l2_miss"),
            ("btb_miss = 12", "btb_miss = -1", "cycles.btb_miss"),
            (
                "[l2]\nsize_bytes = 524288\nways = 8\n",
                "",
                "cycles.l2_miss is the cost of what a [l2] table would count",
            ),
            (
                "[branch.btb_l2]\nentries = 7168\n",
                "",
                "cycles.btb_l2_hit is the cost of what a [branch.btb_l2] table",
            ),
        ] {
            let error = refused(find, replace);
            assert!(error.contains(words), "{words:?} is not in: {error}");
        }
    }

    #[test]
    fn tables_of_unknown_associativity_have_few_ways_and_a_power_of_two_of_sets() {
        for (entries, ways) in [
            (1, 1),
            (2, 2),
            (3, 3),
            (8, 4),
            (1024, 4),
            (1536, 6),
            (5120, 5),
            (6656, 13),
            (7168, 7),
            (7680, 15),
        ] {
            let table = BtbConfig { entries, ways: None };
            assert_eq!(table.ways(), ways, "{entries}");
            assert!((entries / ways).is_power_of_two());
        }
    }

    #[test]
    fn syntax_errors_name_line_and_key() {
        let error = with("entries = 64", "entrys = 64");
        assert!(error.contains("line ") && error.contains("entrys"), "{error}");
        let error = with("ways = 8\nline", "ways = -8\nline");
        assert!(error.contains("-8"), "{error}");
        assert!(FrontEndConfig::named("z80").unwrap_err().to_string().contains("generic, icelake"));
    }

    #[test]
    fn lines_ahead_are_of_the_same_page() {
        let with = |lines: &str| {
            let text = format!("{}\n[prefetch]\nnext_lines = {lines}\n", BUILT_IN[0].1);
            FrontEndConfig::parse(&text).map_err(|error| error.to_string())
        };
        let prefetch = PrefetchConfig { next_lines: Some(63), run_ahead_lines: None };
        assert_eq!(with("63").unwrap().prefetch, Some(prefetch));
        for lines in ["0", "64"] {
            let error = with(lines).unwrap_err();
            assert!(error.contains("prefetch.next_lines") && error.contains("1 to 63"), "{error}");
        }
    }

    #[test]
    fn lines_are_fetched_ahead_in_one_way() {
        let with = |keys: &str| {
            let text = format!("{}\n[prefetch]\n{keys}\n", BUILT_IN[0].1);
            FrontEndConfig::parse(&text).map_err(|error| error.to_string())
        };
        let prefetch = PrefetchConfig { next_lines: None, run_ahead_lines: Some(1024) };
        assert_eq!(with("run_ahead_lines = 1024").unwrap().prefetch, Some(prefetch));
        for (keys, words) in [
            ("run_ahead_lines = 0", "must be 1 to 1024"),
            ("run_ahead_lines = 1025", "must be 1 to 1024"),
            ("next_lines = 1\nrun_ahead_lines = 12", "either"),
            ("", "next_lines or run_ahead_lines"),
        ] {
            let error = with(keys).unwrap_err();
            assert!(error.contains("prefetch") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn twelve_ways_are_a_machine() {
        let text = BUILT_IN[0].1.replace("size_bytes = 32768\nways = 8", "size_bytes = 49152\nways = 12");
        assert_eq!(FrontEndConfig::parse(&text).unwrap().l1i.ways, 12);
    }
}
