//! The guest's plan: the steps of one run, from the plan in the guest image.

use kerntune_guest::{step_log, CollectOptions};
use kerntune_work::{IoContext, Result};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const PLAN: &str = "kt/plan";

/// Returns the lines that the stand-in's init reads (`user/init.c`), followed by a zero byte.
///
/// # Errors
/// The image cannot be read.
pub fn of_image(image: &Path, run: &str, collect: CollectOptions) -> Result<Vec<u8>> {
    let mut lines = format!("{run}\t{}\n", u8::from(collect.gcov));
    let (mut section, mut number) = (String::new(), 0);
    for line in text(image)?.lines() {
        let mut fields = line.split('\t');
        match fields.next() {
            Some("run") => section = fields.next().unwrap_or_default().into(),
            Some("step") if section == run => {
                number += 1;
                let (region, operations) = (fields.next().unwrap_or("-"), fields.next().unwrap_or("0"));
                let command: Vec<String> = fields.map(str::to_owned).collect();
                let log = step_log(run, number, &command);
                let _ = writeln!(lines, "{log}\t{region}\t{operations}\t{}", command.join("\t"));
            }
            _ => {}
        }
    }
    lines.push('\0');
    Ok(lines.into_bytes())
}

fn text(image: &Path) -> Result<String> {
    let mut file = BufReader::new(File::open(image).at("open", image)?);
    loop {
        let mut member = cpio::newc::Reader::new(file).at("read", image)?;
        if member.entry().is_trailer() {
            return Ok(String::new());
        }
        if member.entry().name().trim_start_matches('/') == PLAN {
            let mut text = String::new();
            member.read_to_string(&mut text).at("read", image)?;
            return Ok(text);
        }
        file = member.finish().at("read", image)?;
    }
}
