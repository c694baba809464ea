//! [speedscope](https://www.speedscope.app/file-format-schema.json)'s own format: JSON with stacks and their weights.
//!
//! speedscope's units are time and bytes. Instructions have its unit `none`, and the profile's name
//! says what they are.

use crate::stacks::{CallStacks, FigureUnit};
use serde_json::{json, to_writer, Value};
use std::io::{self, Write};

/// Schema that a file names.
pub const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// Largest weight that viewers in a browser show exactly; they have only floating-point numbers.
pub const EXACT: u64 = 1 << 53;

/// Writes every stack with self time as one sample with that weight. Returns the number of samples.
pub fn write(stacks: &CallStacks, title: &str, exporter: &str, out: &mut impl Write) -> io::Result<usize> {
    let frame = |frame: &crate::stacks::StackFrame| match frame.file.as_ref().or(frame.module.as_ref()) {
        Some(file) => json!({ "name": frame.name, "file": file }),
        None => json!({ "name": frame.name }),
    };
    let frames: Vec<Value> = stacks.frames.iter().map(frame).collect();
    let (unit, words) = match stacks.unit {
        FigureUnit::Instructions => ("none", "instructions"),
        FigureUnit::Nanoseconds => ("nanoseconds", "time"),
        FigureUnit::Sampled(_) => ("nanoseconds", "sampled time"),
    };
    let (title, name) = (json!(title), json!(format!("{words}: {title}")));
    write!(out, r#"{{"$schema":"{SCHEMA}","exporter":{},"name":{title},"#, json!(exporter))?;
    write!(out, r#""activeProfileIndex":0,"shared":{{"frames":"#)?;
    to_writer(&mut *out, &frames)?;
    write!(out, r#"}},"profiles":[{{"type":"sampled","name":{name},"unit":"{unit}","#)?;
    write!(out, r#""startValue":0,"endValue":{},"samples":["#, stacks.total())?;
    let mut samples = 0;
    for (at, _) in stacks.taken() {
        let comma = if samples == 0 { "" } else { "," };
        writeln!(out, "{comma}")?;
        to_writer(&mut *out, &stacks.stack(at))?;
        samples += 1;
    }
    write!(out, "],\n\"weights\":")?;
    let weights: Vec<u64> = stacks.taken().map(|(_, path)| path.figures.own).collect();
    to_writer(&mut *out, &weights)?;
    writeln!(out, "}}]}}")?;
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::tests::stacks;
    use kerntune_profile::Ticks;

    #[test]
    fn weights_sum_to_the_end() {
        let mut out = Vec::new();
        assert_eq!(write(&stacks(), "rr \"x\"", "kerntune 0", &mut out).unwrap(), 5);
        let file: Value = serde_json::from_slice(&out).unwrap();
        let profile = &file["profiles"][0];
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), 1000);
        assert_eq!((profile["endValue"].as_u64(), profile["unit"].as_str()), (Some(1000), Some("none")));
        assert_eq!(profile["name"], "instructions: rr \"x\"");
        assert_eq!(profile["samples"].as_array().unwrap().len(), weights.len());
        let frames = file["shared"]["frames"].as_array().unwrap();
        let names = profile["samples"][2].as_array().unwrap().iter().map(|at| {
            let frame = &frames[at.as_u64().unwrap() as usize];
            frame["name"].as_str().unwrap()
        });
        assert_eq!(names.collect::<Vec<_>>(), ["rr", "sys", "walk", "walk"]);
        assert_eq!(frames[1]["file"], "a/sys.c");
    }

    #[test]
    fn time_is_time() {
        let (mut out, mut stacks) = (Vec::new(), stacks());
        stacks.unit = FigureUnit::Sampled(Ticks(10));
        write(&stacks, "live", "kerntune 0", &mut out).unwrap();
        let file: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(file["profiles"][0]["unit"], "nanoseconds");
    }
}
