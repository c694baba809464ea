//! [pprof](https://github.com/google/pprof/blob/main/proto/profile.proto)'s `profile.proto`, compressed by gzip.
//!
//! Threads of a name, interrupts and idle tasks are the label `thread` of samples. Values are
//! instructions and calls; in sampled profiles, samples and time.

mod import;
mod proto;

use crate::stacks::{CallStacks, FigureUnit, StackFigures};
use flate2::write::GzEncoder;
use flate2::Compression;
use kerntune_profile::{PathKind, Tables};
use prost::Message;
use proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use std::collections::HashMap;
use std::io::{self, Write};

pub use import::{import, ImportError, PprofImport};

/// Description of a profile for pprof.
#[derive(Debug, Clone, Copy)]
pub struct PprofMetadata<'a> {
    /// Lines that `pprof -comments` prints.
    pub comments: &'a [String],
    /// Wall time of the recording in nanoseconds; 0 if no clock measured it.
    pub duration_ns: u64,
    /// Id of the kernel, used as its build id.
    pub kernel: &'a str,
}

/// Distinct strings of a profile; the first is empty.
struct StringTable {
    all: Vec<String>,
    places: HashMap<String, i64>,
}

impl StringTable {
    fn of(&mut self, text: &str) -> i64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as i64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// Writes every path with time or calls as a sample. Returns the number of samples.
pub fn write(
    stacks: &CallStacks,
    tables: &Tables,
    about: &PprofMetadata<'_>,
    out: &mut impl Write,
) -> io::Result<usize> {
    let profile = profile(stacks, tables, about);
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&profile.encode_to_vec())?;
    gzip.finish()?;
    Ok(profile.sample.len())
}

fn profile(stacks: &CallStacks, tables: &Tables, about: &PprofMetadata<'_>) -> Profile {
    let mut strings = StringTable { all: vec![String::new()], places: HashMap::from([(String::new(), 0)]) };
    let mut profile = Profile::default();
    let types = match stacks.unit {
        FigureUnit::Instructions => [("instructions", "count"), ("calls", "count")],
        FigureUnit::Nanoseconds => [("cpu", "nanoseconds"), ("calls", "count")],
        FigureUnit::Sampled(_) => [("samples", "count"), ("cpu", "nanoseconds")],
    };
    let mut of = |(name, unit): (&str, &str)| ValueType { r#type: strings.of(name), unit: strings.of(unit) };
    profile.sample_type = types.into_iter().map(&mut of).collect();
    let main = usize::from(matches!(stacks.unit, FigureUnit::Sampled(_)));
    profile.default_sample_type = profile.sample_type[main].r#type;
    profile.period_type = profile.sample_type.get(main).copied();
    profile.period = match stacks.unit {
        FigureUnit::Sampled(each) => signed(each.get()),
        _ => 1,
    };
    profile.duration_nanos = signed(about.duration_ns);
    profile.comment = about.comments.iter().map(|line| strings.of(line)).collect();
    places(stacks, tables, about, &mut strings, &mut profile);
    let key = strings.of("thread");
    for (at, path) in stacks.paths.iter().enumerate() {
        let StackFigures { calls, own } = path.figures;
        let value = match stacks.unit.samples_in(own) {
            Some(samples) => [samples, own],
            None => [own, calls],
        };
        if value == [0, 0] {
            continue;
        }
        let stack = stacks.stack(at);
        // The thread is a label. Alone it is a frame as well, because pprof needs a frame in every
        // sample.
        let is_thread = |at: usize| stacks.frames.get(at).is_some_and(|frame| frame.kind == PathKind::Thread);
        let skipped = usize::from(stack.len() > 1 && is_thread(stack[0]));
        let thread = stack.first().and_then(|at| stacks.frames.get(*at)).map_or("", |frame| &frame.name);
        profile.sample.push(Sample {
            location_id: stack[skipped..].iter().rev().map(|frame| *frame as u64 + 1).collect(),
            value: value.map(signed).to_vec(),
            label: vec![Label { key, str: strings.of(thread), ..Label::default() }],
        });
    }
    profile.string_table = strings.all;
    profile
}

/// Adds functions, locations and mappings.
fn places(
    stacks: &CallStacks,
    tables: &Tables,
    about: &PprofMetadata<'_>,
    strings: &mut StringTable,
    profile: &mut Profile,
) {
    let mut mappings: HashMap<Option<&str>, usize> = HashMap::new();
    for (id, frame) in (1..).zip(&stacks.frames) {
        let symbol = frame.function.and_then(|function| tables.symbols.get(function.get() as usize));
        let mapping_id = symbol.map_or(0, |symbol| {
            let module = frame.module.as_deref();
            let at = *mappings.entry(module).or_insert_with(|| {
                profile.mapping.push(Mapping {
                    id: profile.mapping.len() as u64 + 1,
                    filename: strings.of(module.unwrap_or("vmlinux")),
                    build_id: if module.is_none() { strings.of(about.kernel) } else { 0 },
                    memory_start: u64::MAX,
                    // Names are complete, so pprof need not look for the binary.
                    has_functions: true,
                    has_filenames: true,
                    ..Mapping::default()
                });
                profile.mapping.len() - 1
            });
            let mapping = &mut profile.mapping[at];
            mapping.memory_start = mapping.memory_start.min(symbol.address.get());
            let end = symbol.address.get().saturating_add(symbol.size.max(1));
            mapping.memory_limit = mapping.memory_limit.max(end);
            mapping.id
        });
        let name = strings.of(&frame.name);
        let filename = frame.file.as_deref().map_or(0, |file| strings.of(file));
        profile.function.push(Function { id, name, system_name: name, filename, start_line: 0 });
        profile.location.push(Location {
            id,
            mapping_id,
            address: symbol.map_or(0, |symbol| symbol.address.get()),
            line: vec![Line { function_id: id, line: 0 }],
            is_folded: false,
        });
    }
}

/// Limits a number to pprof's signed range.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::{profile as example, stacks};
    use kerntune_profile::Ticks;
    use std::io::Read;

    fn read(stacks: &CallStacks) -> Profile {
        let about = PprofMetadata { comments: &["a comment".into()], duration_ns: 0, kernel: "k1" };
        let mut out = Vec::new();
        write(stacks, &example().tables, &about, &mut out).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&out[..]).read_to_end(&mut bytes).unwrap();
        Profile::decode(&bytes[..]).unwrap()
    }

    #[test]
    fn values_sum_to_the_whole_and_stacks_begin_at_the_leaf() {
        let profile = read(&stacks());
        let text = |at: i64| profile.string_table[at as usize].as_str();
        let types: Vec<_> = profile.sample_type.iter().map(|of| (text(of.r#type), text(of.unit))).collect();
        assert_eq!(types, [("instructions", "count"), ("calls", "count")]);
        let sum = |which: usize| profile.sample.iter().map(|sample| sample.value[which]).sum::<i64>();
        assert_eq!((sum(0), sum(1)), (1000, 9));
        let deepest = profile.sample.iter().find(|sample| sample.value[0] == 20).unwrap();
        let name = |id: &u64| text(profile.function[*id as usize - 1].name);
        assert_eq!(deepest.location_id.iter().map(name).collect::<Vec<_>>(), ["walk", "walk", "sys"]);
        assert_eq!(text(deepest.label[0].str), "rr");
        let mapping = &profile.mapping[0];
        assert_eq!(
            (text(mapping.filename), mapping.memory_start, mapping.memory_limit),
            ("vmlinux", 0x1000, 0x3010)
        );
        assert_eq!(text(profile.comment[0]), "a comment");
    }

    #[test]
    fn sampled_profiles_have_samples_and_time() {
        let mut stacks = stacks();
        stacks.unit = FigureUnit::Sampled(Ticks(10));
        let profile = read(&stacks);
        assert_eq!(profile.sample.iter().map(|sample| sample.value[0]).sum::<i64>(), 100);
        assert_eq!(
            (profile.period, profile.string_table[profile.default_sample_type as usize].as_str()),
            (10, "cpu")
        );
    }
}
