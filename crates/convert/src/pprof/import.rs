//! Import of pprof's profiles.

use super::proto::{Location, Profile};
use crate::sampled::{SampledStacks, StackFrame, StackRoot};
use flate2::read::MultiGzDecoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Read;

/// Largest profile, uncompressed, in bytes.
const LARGEST: u64 = 1 << 26;
/// Labels that name a thread.
const THREAD_LABELS: [&str; 5] = ["thread", "thread_name", "comm", "task", "thread name"];
/// Names of the mapping that is the kernel's image.
const KERNELS: [&str; 4] = ["vmlinux", "[kernel.kallsyms]", "[kernel.vmlinux]", "[kernel]"];

/// Reason why a profile cannot be imported.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum ImportError {
    #[error("it cannot be uncompressed: {0}")]
    Gzip(std::io::Error),
    #[error("it is larger than {} MiB uncompressed", LARGEST >> 20)]
    Large,
    #[error("it is no profile of pprof: {0}")]
    Proto(#[from] prost::DecodeError),
    #[error("damaged: {0}")]
    Damaged(String),
    #[error("it has no values `{wanted}`; it has {known}: choose one with --sample-type")]
    NoType { wanted: String, known: String },
    #[error(
        "its values are {0}, which are no samples of time or events; kerntune imports profiles of CPU time, samples and \
         event counts"
    )]
    Unit(String),
    #[error("it has no sample with a value greater than 0")]
    Empty,
}

/// Imported samples.
#[derive(Debug)]
pub struct PprofImport {
    /// The stacks, weighed by samples or, without a number of them, by the chosen value.
    pub stacks: SampledStacks,
    /// Nanoseconds of one unit of weight; `None` if the values are no time and the profile does not
    /// say how much time a sample stands for.
    pub each: Option<u64>,
    /// A unit of weight is a sample.
    pub is_sampled: bool,
    /// Type and unit of the imported values, `cpu/nanoseconds`.
    pub value: String,
    /// Types that were not chosen.
    pub other_values: Vec<String>,
    /// Wall time in ns; 0 if unknown.
    pub duration: u64,
    /// Samples whose chosen value is negative, as in differences, which are left out.
    pub negative: u64,
    /// Frames without a function's name.
    pub unnamed: u64,
}

/// Imports a profile, compressed by gzip or not. `wanted` is a type of values; otherwise it is the
/// profile's default, or the last one, as in pprof.
///
/// # Errors
/// [`ImportError`] for bytes that are no profile, and for values that are no samples.
pub fn import(bytes: &[u8], wanted: Option<&str>) -> Result<PprofImport, ImportError> {
    let mut unpacked = Vec::new();
    let bytes = match bytes.starts_with(b"\x1f\x8b") {
        true => {
            let mut gzip = MultiGzDecoder::new(bytes).take(LARGEST + 1);
            gzip.read_to_end(&mut unpacked).map_err(ImportError::Gzip)?;
            &unpacked[..]
        }
        false => bytes,
    };
    if bytes.len() as u64 > LARGEST {
        return Err(ImportError::Large);
    }
    let profile = Profile::decode(bytes)?;
    PprofReader::new(&profile)?.import(wanted)
}

struct PprofReader<'a> {
    profile: &'a Profile,
    locations: HashMap<u64, &'a Location>,
    functions: HashMap<u64, (&'a str, &'a str)>,
    mappings: HashMap<u64, &'a str>,
    /// Frames of each location, outermost first.
    frames: HashMap<u64, Vec<StackFrame>>,
    unnamed: u64,
}

/// Returns a string of the profile's table.
fn text(profile: &Profile, at: i64) -> Result<&str, ImportError> {
    usize::try_from(at)
        .ok()
        .and_then(|at| profile.string_table.get(at))
        .map(String::as_str)
        .ok_or_else(|| ImportError::Damaged(format!("it has no string {at}")))
}

impl<'a> PprofReader<'a> {
    fn new(profile: &'a Profile) -> Result<Self, ImportError> {
        if profile.string_table.first().is_none_or(|first| !first.is_empty()) {
            return Err(ImportError::Damaged("its table of strings does not begin with an empty one".into()));
        }
        let function = |function: &super::proto::Function| {
            let name = match text(profile, function.name)? {
                "" => text(profile, function.system_name)?,
                name => name,
            };
            Ok((function.id, (name, text(profile, function.filename)?)))
        };
        let mapping = |mapping: &super::proto::Mapping| Ok((mapping.id, text(profile, mapping.filename)?));
        Ok(Self {
            profile,
            locations: profile.location.iter().map(|location| (location.id, location)).collect(),
            functions: profile.function.iter().map(function).collect::<Result<_, ImportError>>()?,
            mappings: profile.mapping.iter().map(mapping).collect::<Result<_, ImportError>>()?,
            frames: HashMap::new(),
            unnamed: 0,
        })
    }

    fn import(mut self, wanted: Option<&str>) -> Result<PprofImport, ImportError> {
        let profile = self.profile;
        let types: Vec<(&str, &str)> = profile
            .sample_type
            .iter()
            .map(|of| Ok((text(profile, of.r#type)?, text(profile, of.unit)?)))
            .collect::<Result<_, ImportError>>()?;
        let named = |(name, unit): &(&str, &str)| format!("{name}/{unit}");
        let default = text(profile, profile.default_sample_type)?;
        let chosen = match wanted {
            Some(wanted) => {
                types.iter().position(|of| of.0 == wanted).ok_or_else(|| ImportError::NoType {
                    wanted: wanted.into(),
                    known: types.iter().map(named).collect::<Vec<_>>().join(", "),
                })?
            }
            None => types
                .iter()
                .position(|of| of.0 == default && !default.is_empty())
                .or(types.len().checked_sub(1))
                .ok_or_else(|| ImportError::Damaged("it has no types of values".into()))?,
        };
        // Times are divided by the time of a sample, if samples are counted too.
        let unit_ns = |unit: &str| match unit {
            "nanoseconds" | "ns" => Some(1),
            "microseconds" | "us" => Some(1_000),
            "milliseconds" | "ms" => Some(1_000_000),
            "seconds" | "s" => Some(1_000_000_000),
            _ => None,
        };
        let period = match &profile.period_type {
            Some(of) => unit_ns(text(profile, of.unit)?)
                .zip(u64::try_from(profile.period).ok())
                .and_then(|(unit, period): (u64, u64)| unit.checked_mul(period))
                .filter(|period| *period > 0),
            None => None,
        };
        let (name, unit) = types[chosen];
        let each = match (unit_ns(unit), unit) {
            (Some(ns), _) => Some(ns),
            (None, "count" | "samples" | "") => period.filter(|_| name != "calls"),
            (None, "instructions" | "cycles" | "events") => None,
            (None, other) => return Err(ImportError::Unit(format!("{name} in {}", other.escape_debug()))),
        };
        // Times that are multiples of the period are those of whole samples.
        let values =
            profile.sample.iter().filter_map(|sample| u64::try_from(*sample.value.get(chosen)?).ok());
        let whole = match (unit_ns(unit), period) {
            (Some(ns), Some(period)) if period % ns == 0 => {
                Some(period / ns).filter(|of| values.clone().all(|value| value % of == 0))
            }
            _ => None,
        };
        let (each, divisor) = match whole {
            Some(of) => (period, of),
            None => (each, 1),
        };
        let is_sampled = whole.is_some() || unit_ns(unit).is_none() && each.is_some();
        let mut stacks = SampledStacks::default();
        let mut negative = 0;
        let main = profile.mapping.first().map_or(Ok(""), |mapping| text(profile, mapping.filename))?;
        let main = base_name(main);
        for sample in &profile.sample {
            let value = sample.value.get(chosen).copied().unwrap_or(0);
            let Ok(value) = u64::try_from(value) else {
                negative += 1;
                continue;
            };
            let value = value / divisor;
            if value == 0 {
                continue;
            }
            let mut frames = Vec::new();
            for id in sample.location_id.iter().rev() {
                if !self.frames.contains_key(id) {
                    let new = self.location(*id, &mut stacks)?;
                    self.frames.insert(*id, new);
                }
                frames.extend_from_slice(&self.frames[id]);
            }
            let mut thread = None;
            for label in &sample.label {
                if THREAD_LABELS.contains(&text(profile, label.key)?) {
                    thread = Some(text(profile, label.str)?).filter(|name| !name.is_empty());
                }
            }
            let root = match thread {
                Some("[interrupt]") => StackRoot::Interrupt,
                Some("[idle task]" | "swapper") => StackRoot::Idle,
                Some(name) => StackRoot::Thread(name),
                None if main.is_empty() => StackRoot::Thread("[all threads]"),
                None => StackRoot::Thread(main),
            };
            stacks.add(root, &frames, value);
        }
        if stacks.samples() == 0 {
            return Err(ImportError::Empty);
        }
        let others = types.iter().enumerate().filter(|(at, _)| *at != chosen).map(|(_, of)| named(of));
        Ok(PprofImport {
            stacks,
            each,
            is_sampled,
            value: named(&types[chosen]),
            other_values: others.collect(),
            duration: u64::try_from(profile.duration_nanos).unwrap_or(0),
            negative,
            unnamed: self.unnamed,
        })
    }

    /// Returns the frames of a location: inlined functions come last.
    fn location(&mut self, id: u64, stacks: &mut SampledStacks) -> Result<Vec<StackFrame>, ImportError> {
        let location = *self
            .locations
            .get(&id)
            .ok_or_else(|| ImportError::Damaged(format!("it has no location {id}")))?;
        let mapping = self.mappings.get(&location.mapping_id).copied().unwrap_or_default();
        let module = match base_name(mapping) {
            "" => None,
            name if KERNELS.contains(&name) => None,
            name => Some(name),
        };
        let mut frames = Vec::new();
        for line in location.line.iter().rev() {
            let (name, file) =
                self.functions.get(&line.function_id).copied().ok_or_else(|| {
                    ImportError::Damaged(format!("it has no function {}", line.function_id))
                })?;
            frames.push(match name {
                "[user]" => StackFrame::User,
                "[unattributed]" => StackFrame::Unattributed,
                name => {
                    StackFrame::Function(stacks.function(name, module, Some(file).filter(|f| !f.is_empty())))
                }
            });
        }
        if frames.is_empty() {
            self.unnamed += 1;
            let name = format!("0x{:x}", location.address);
            frames.push(StackFrame::Function(stacks.function(&name, module, None)));
        }
        Ok(frames)
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::proto::{Function, Label, Line, Sample, ValueType};
    use super::*;

    fn profile(types: &[(&str, &str)]) -> Profile {
        let mut strings: Vec<String> =
            ["", "main", "inner", "thread", "rr", "app"].map(String::from).to_vec();
        let mut of = |text: &str| {
            strings.push(text.into());
            strings.len() as i64 - 1
        };
        let sample_type =
            types.iter().map(|(name, unit)| ValueType { r#type: of(name), unit: of(unit) }).collect();
        let period_type = Some(ValueType { r#type: of("cpu"), unit: of("nanoseconds") });
        let line = |function_id| Line { function_id, line: 0 };
        Profile {
            sample_type,
            sample: vec![
                Sample { location_id: vec![2, 1], value: vec![3, 30], label: vec![] },
                Sample {
                    location_id: vec![1],
                    value: vec![2, 20],
                    label: vec![Label { key: 3, str: 4, num: 0 }],
                },
                Sample { location_id: vec![3], value: vec![-1, -1], label: vec![] },
            ],
            mapping: vec![super::super::proto::Mapping { id: 1, filename: 5, ..Default::default() }],
            location: vec![
                Location { id: 1, mapping_id: 1, line: vec![line(1)], ..Default::default() },
                Location { id: 2, mapping_id: 1, line: vec![line(2), line(1)], ..Default::default() },
                Location { id: 3, address: 0x10, ..Default::default() },
            ],
            function: vec![
                Function { id: 1, name: 1, ..Default::default() },
                Function { id: 2, name: 2, ..Default::default() },
            ],
            string_table: strings,
            period_type,
            period: 10,
            ..Profile::default()
        }
    }

    fn read(profile: &Profile, wanted: Option<&str>) -> Result<PprofImport, ImportError> {
        import(&profile.encode_to_vec(), wanted)
    }

    #[test]
    fn the_chosen_values_weigh_stacks_with_inlined_functions() {
        let profile = profile(&[("samples", "count"), ("cpu", "nanoseconds")]);
        let made = read(&profile, None).unwrap();
        assert_eq!((made.value.as_str(), made.each, made.negative), ("cpu/nanoseconds", Some(10), 1));
        assert!(made.is_sampled);
        assert_eq!(made.other_values, ["samples/count"]);
        let tables = made.stacks.finish("pprof", 10).unwrap();
        let figures: Vec<_> =
            tables.functions.iter().map(|row| (row.self_ticks.get(), row.total_ticks.get())).collect();
        assert_eq!(figures, [(20, 50), (30, 30)]);
        let threads: Vec<_> = tables.threads.iter().map(|row| row.comm.as_str()).collect();
        assert_eq!(threads, ["app", "rr"]);
        assert!(!tables.symbols[0].is_kernel());
        let samples = read(&profile, Some("samples")).unwrap();
        assert_eq!((samples.each, samples.stacks.samples()), (Some(10), 5));
        let mut odd = profile.clone();
        odd.sample[0].value[1] = 31;
        let odd = read(&odd, None).unwrap();
        assert_eq!((odd.each, odd.is_sampled, odd.stacks.samples()), (Some(1), false, 51));
    }

    #[test]
    fn values_that_are_no_samples_are_refused() {
        let heap = profile(&[("alloc_objects", "count"), ("inuse_space", "bytes")]);
        let error = read(&heap, None).unwrap_err().to_string();
        assert!(error.starts_with("its values are inuse_space in bytes"), "{error}");
        let error = read(&heap, Some("cpu")).unwrap_err().to_string();
        assert_eq!(
            error,
            "it has no values `cpu`; it has alloc_objects/count, inuse_space/bytes: choose one with --sample-type"
        );
    }

    #[test]
    fn damage_is_named() {
        let mut damaged = profile(&[("cpu", "nanoseconds")]);
        damaged.sample[0].location_id[0] = 9;
        assert_eq!(read(&damaged, None).unwrap_err().to_string(), "damaged: it has no location 9");
        damaged.string_table.truncate(3);
        assert!(read(&damaged, None).unwrap_err().to_string().starts_with("damaged: it has no string"));
        assert!(matches!(import(b"\x1f\x8bxx", None), Err(ImportError::Gzip(_))));
        assert!(matches!(import(b"\xff\xff", None), Err(ImportError::Proto(_))));
        assert!(import(b"", None).is_err());
    }
}
