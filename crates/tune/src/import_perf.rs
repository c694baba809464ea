//! Samples of a CPU's last branches → a profile of blocks and edges, which the recipes take as they take a recording.

use crate::record::Recorded;
use crate::{Error, Result};
use kerntune_convert::perf::{BranchStacks, Lines, ReadError, Strange};
use kerntune_kernel::Kernel;
use kerntune_optimize::quality::Image;
use kerntune_profile::{
    load_manifest, rfc3339, Address, Block, Capture, Edge, Instructions, KernelId, Manifest, Profile, Run,
    Tables, ROOM,
};
use kerntune_work::{ContentHash, IoContext, Job, Key, WorkDir};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// What manifests and tables call this machine.
pub const MACHINE: &str = "host";

/// The first bytes of a perf.data file.
const PERF_DATA: &[u8] = b"PERFILE2";

/// The kernel's image is moved by multiples of this much (`CONFIG_PHYSICAL_ALIGN`).
const ALIGNMENT: u64 = 1 << 21;

/// Least share of the runs through the image's code that must begin and end at its instructions. Some do not where the
/// kernel patches itself as it boots; most do not if it is another image.
const MIN_FITTING: f64 = 0.8;

/// Largest share of the lines that may be none of a sample's: a file that was cut off has one, perf's warnings are a few.
const MAX_STRANGE: f64 = 0.01;

/// What to import.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `perf.data`, or what `perf script` printed of it.
    pub file: &'a Path,
    /// The kernel that ran.
    pub kernel: &'a Kernel,
    /// What it was busy with, in a word.
    pub workload: &'a str,
    /// CPUs without a single sample were idle, and nothing is missing.
    pub idle_cpus: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Import {
    /// The profile.
    pub recorded: Recorded,
    /// Samples with branches.
    pub samples: u64,
    /// Runs of straight code between two branches that are in the profile.
    pub runs: u64,
    /// Lines that were not understood, and left out.
    pub strange: Strange,
}

/// Makes a profile of `request`, in the work directory; named by its content, and not made again if it is there.
///
/// # Errors
/// [`Error::PerfData`]: no branch records, of another kernel.
pub fn import(work: &WorkDir, request: &Request) -> Result<Import> {
    let refuse = |reason: String| Error::PerfData { file: request.file.to_owned(), reason };
    let stacks = read(request.file)?;
    let manifest = &request.kernel.manifest;
    if let Some((line, text)) = stacks.strange.first.as_ref().filter(|_| stacks.strange_share() > MAX_STRANGE)
    {
        return Err(refuse(format!(
            "{} of its lines are not understood ({:.1} % of those that hold samples, {:.0} % are allowed); the first is line {line}: \
             {text}. Give perf.data, or what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints of it",
            stacks.strange.lines,
            stacks.strange_share() * 100.0,
            MAX_STRANGE * 100.0
        )));
    }
    if stacks.samples == 0 {
        return Err(refuse(
            "no sample in it has the CPU's last branches. Record them with `perf record -b -e cycles:k -a`, on a CPU that \
             has them, and give perf.data, or what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints of it"
                .into(),
        ));
    }
    if let Some(release) = stacks.release.as_deref().filter(|release| !is_version(release, &manifest.version))
    {
        return Err(refuse(format!(
            "it was recorded on Linux {release}, and kernel {} is {}: record on this kernel, or name that one",
            manifest.label, manifest.version
        )));
    }
    let image = Image::load(request.kernel)?;
    let placed = Placed::of(&stacks, &image);
    if placed.runs == u64::MAX || placed.strange == u64::MAX {
        return Err(refuse("the sum of its counts overflows 64 bits".into()));
    }
    if placed.runs == 0 || placed.fitting() < MIN_FITTING {
        return Err(refuse(format!(
            "{:.1} % of the runs in kernel code begin and end at instructions of kernel {}, {:.0} % are needed: it is of another \
             image, or of one that was moved in memory (KASLR) and does not say where to: leave --show-mmap-events in",
            placed.fitting() * 100.0,
            manifest.label,
            MIN_FITTING * 100.0
        )));
    }
    let key = Key::new("perf/2", crate::CODE)
        .file("samples", request.file)?
        .field("kernel", &manifest.id)
        .field("workload", request.workload)
        .field("idle cpus", [u8::from(request.idle_cpus)]);
    let id = key.id();
    let (samples, runs, strange) = (stacks.samples, placed.runs, stacks.strange.clone());
    let staged = work.stage(ROOM, &key)?;
    if let Some(done) = staged.already() {
        let path = done;
        let manifest = load_manifest(&path)?;
        return Ok(Import { recorded: Recorded { path, manifest }, samples, runs, strange });
    }
    staged.clear()?;
    let manifest = describe(&id, request, &stacks, &placed)?;
    let manifest = Profile { manifest, tables: placed.tables }.save(staged.path())?;
    Ok(Import { recorded: Recorded { path: staged.publish()?, manifest }, samples, runs, strange })
}

fn describe(id: &str, request: &Request, stacks: &BranchStacks, placed: &Placed) -> Result<Manifest> {
    let of = &request.kernel.manifest;
    let kernel = KernelId { id: of.id.clone(), label: of.label.clone(), version: of.version.clone() };
    let mut manifest = Manifest::new(id, kernel, request.workload, MACHINE);
    manifest.run = Run::Training;
    let modified = fs::metadata(request.file).and_then(|file| file.modified());
    manifest.recorded = rfc3339(modified.unwrap_or_else(|_| SystemTime::now()));
    manifest.capture = Capture { edges: true, ..Capture::default() };
    manifest.events = stacks.samples;
    manifest.health.insert("strange_runs".into(), placed.strange);
    manifest.health.insert("strange_lines".into(), stacks.strange.lines);
    if let Some(silent) = stacks.silent_cpus().filter(|_| !request.idle_cpus) {
        manifest.health.insert("silent_cpus".into(), silent.into());
    }
    let hash = ContentHash::new("file/1").file("content", request.file)?.finish();
    manifest.sources.push(format!("branch records {} ({hash})", request.file.display()));
    Ok(manifest)
}

/// Whether a kernel's release is of that version: `6.12.1-kerntune` is of 6.12.1, `6.12.117` is not.
fn is_version(release: &str, version: &str) -> bool {
    release.strip_prefix(version).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The samples of `file`, by way of `perf script` if they are not text yet.
fn read(file: &Path) -> Result<BranchStacks> {
    let refuse = |reason: String| Error::PerfData { file: file.to_owned(), reason };
    let not_read = |error: ReadError| match error {
        ReadError::Io(source) => {
            kerntune_work::Error::Io { action: "read", path: file.into(), source }.into()
        }
        other => refuse(other.to_string()),
    };
    if !fs::metadata(file).at("open", file)?.is_file() {
        return Err(refuse("it is not a regular file: save the samples in one".into()));
    }
    let mut begin = Vec::new();
    let open = || File::open(file).at("open", file);
    open()?.take(PERF_DATA.len() as u64).read_to_end(&mut begin).at("read", file)?;
    if begin != PERF_DATA {
        return BranchStacks::read(BufReader::new(open()?)).map_err(not_read);
    }
    let mut command = Command::new("perf");
    command.args(["script", "--header", "--show-mmap-events", "-F", "cpu,ip,brstack", "-i"]).arg(file);
    let (mut lines, mut messages, mut failed) = (Lines::default(), Vec::new(), None);
    let end = Job::new(command).run(
        |line| {
            if messages.len() < 4 && !line.starts_with(['#', ' ', '[']) && !line.is_empty() {
                messages.push(line.to_string());
            }
            failed = lines.line(line).err();
            failed.is_none()
        },
        || true,
    )?;
    if let Some(error) = failed {
        return Err(not_read(error));
    }
    if end.success() {
        return Ok(lines.finish());
    }
    Err(refuse(format!("`perf script` cannot read its branch records: {}", messages.join(" "))))
}

/// What was sampled, at the addresses where the image was linked.
#[derive(Debug, Default)]
struct Placed {
    tables: Tables,
    /// Runs in the image's code.
    runs: u64,
    /// Those that do not begin and end at instructions, and are left out.
    strange: u64,
}

impl Placed {
    fn of(stacks: &BranchStacks, image: &Image) -> Self {
        let functions = image.symbols().functions();
        let linked = functions.iter().map(|function| function.address).min().unwrap_or_default();
        let moved = stacks.kernel_at.map_or(0, |at| aligned(at).wrapping_sub(aligned(linked)));
        let here =
            |address: u64| Some(address.wrapping_sub(moved)).filter(|a| image.symbols().lookup(*a).is_some());
        let mut placed =
            Self { tables: Tables { symbols: image.rows(), ..Tables::default() }, ..Self::default() };
        for (&(first, last), &count) in &stacks.runs {
            // Otherwise user code, modules, generated code.
            let (Some(start), Some(last)) = (here(first), here(last)) else { continue };
            let Some((instructions, bytes)) = image.straight(start, last) else {
                placed.strange = placed.strange.saturating_add(count);
                continue;
            };
            placed.runs = placed.runs.saturating_add(count);
            let (start, last, instructions) = (Address(start), Address(last), Instructions(instructions));
            placed.tables.blocks.push(Block { start, last, count, instructions, bytes });
        }
        for (&(source, target), &count) in &stacks.branches {
            let (Some(source), Some(target)) = (here(source), here(target)) else { continue };
            let kind = image.branch(source);
            placed.tables.edges.push(Edge { source: Address(source), target: Address(target), count, kind });
        }
        placed
    }

    fn fitting(&self) -> f64 {
        let all = self.runs.saturating_add(self.strange);
        self.runs as f64 / all.max(1) as f64
    }
}

fn aligned(address: u64) -> u64 {
    address & !(ALIGNMENT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_of_one_version() {
        assert!(is_version("6.12.1", "6.12.1") && is_version("6.12.1-kerntune+", "6.12.1"));
        assert!(!is_version("6.12.117", "6.12.1") && !is_version("6.12", "6.12.1"));
    }

    #[test]
    fn devices_and_counts_that_overflow_are_refused() {
        let zero = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(zero, "/dev/zero: it is not a regular file: save the samples in one");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("samples");
        fs::write(&file, "99999999999999999999\n 0x30/0x60/P/-/-/0\n").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.ends_with("line 1: the counts overflow 64 bits: 99999999999999999999"), "{error}");
    }
}
