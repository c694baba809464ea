//! The format `autofdo` of `kerntune import`.

use super::common::{name_of, ImportedProfile};
use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, work, CliOutput, Exit, Failure, FormatOptions, GlobalOptions, ImportInput, Recognition,
    RunSubcommand,
};
use kerntune_convert::autofdo::{import, is_function_line};
use kerntune_guest::read_input;
use kerntune_profile::Anomaly;
use kerntune_work::{find_program, Job, Key};
use std::path::PathBuf;
use std::process::Command;

pub const ENTRY: Entry = import_entry::<ImportAutofdoOptions>("autofdo", 8, recognize);

/// First number of LLVM's binary sample profiles without its last byte, which is the format.
const MAGIC: u64 = 0x53_5052_4f46_3432;

fn recognize(input: &ImportInput) -> Option<Recognition> {
    if is_binary(&input.bytes) {
        return Recognition::certain("a sample profile of LLVM");
    }
    let mut lines = input.lines()?.filter(|line| !line.is_empty());
    match is_function_line(lines.next()?)
        && lines.next().is_none_or(|line| line.starts_with(' ') || is_function_line(line))
    {
        true => Recognition::likely("a sample profile of LLVM as text"),
        false => None,
    }
}

/// Decodes the first number, in LEB128, and compares it.
fn is_binary(bytes: &[u8]) -> bool {
    let mut number = 0_u128;
    for (byte, at) in bytes.iter().take(10).zip(0..) {
        number |= u128::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return number >> 8 == u128::from(MAGIC);
        }
    }
    false
}

/// Sample profile of LLVM (AutoFDO), as text or binary: weights of functions, for reports
#[derive(Debug, Args)]
pub struct ImportAutofdoOptions {
    /// The profile; llvm-profdata must be installed for a binary one
    file: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

/// Largest text in bytes.
const LARGEST: u64 = 1 << 30;

impl RunSubcommand<GlobalOptions> for ImportAutofdoOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = work(global)?;
        let mut bytes = read_input("read", &self.file, LARGEST)?;
        let key = Key::new("import-autofdo/1", kerntune_tune::CODE).field("profile", &bytes);
        let failed =
            |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", self.file.display()));
        if is_binary(&bytes) {
            bytes = self.as_text()?;
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| failed(&"it is neither text nor a sample profile of LLVM"))?;
        let made = import(&text).map_err(|error| failed(&error))?;
        if made.stacks.samples() == 0 {
            return Err(failed(&"it has no samples"));
        }
        let mut notes = vec![format!(
            "used: {} functions with {} counts; a count is how often a place ran, shown as 1 ns, and not time",
            made.functions,
            made.stacks.samples()
        )];
        let left_out = [
            (made.targets, "targets of calls"),
            (made.attributes, "attributes"),
            (made.empty, "places without counts"),
        ];
        let left_out: Vec<String> = left_out
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, of)| format!("{count} {of}"))
            .collect();
        notes.push(format!(
            "left out: the lines that counts are of{}{}",
            if left_out.is_empty() { "" } else { ", " },
            left_out.join(", ")
        ));
        let (samples, folded) = (made.stacks.samples(), made.stacks.folded());
        let tables =
            made.stacks.finish("samples", 1).ok_or_else(|| failed(&"its counts overflow 64 bits"))?;
        let imported = ImportedProfile {
            path: &self.file,
            tool: "sample profile of LLVM",
            workload: name_of(&self.file),
            release: None,
            tables,
            events: samples,
            lost: 0,
            health: vec![(Anomaly::FoldedSamples, folded)],
            sampled: None,
            notes,
        };
        imported.publish(&work, &key, self.format, output)
    }
}

impl ImportAutofdoOptions {
    /// Converts a binary profile to text with the newest installed llvm-profdata.
    fn as_text(&self) -> Result<Vec<u8>, Failure> {
        const VERSIONS: std::ops::RangeInclusive<u32> = 14..=24;
        let file = self.file.display();
        let names = VERSIONS.rev().map(|version| format!("llvm-profdata-{version}"));
        let Some(program) = names.chain(["llvm-profdata".into()]).find_map(|name| find_program(&name, &[]))
        else {
            return Err(Failure {
                exit: Exit::Missing,
                message: format!(
                    "{file} is a binary sample profile, and there is no llvm-profdata to read it: install LLVM, or convert \
                     it elsewhere with `llvm-profdata merge --sample --text {file} -o FILE`"
                ),
            });
        };
        let mut command = Command::new(&program);
        command.args(["merge", "--sample", "--text"]).arg(&self.file).arg("--output=-");
        let (end, [text, errors]) = Job::new(command).outputs()?;
        if !end.success() {
            let printed = errors.lines().take(3).collect::<Vec<_>>().join("; ");
            return Err(Failure::usage(format!("{file}: {} cannot read it: {printed}", program.display())));
        }
        Ok(text.into_bytes())
    }
}
