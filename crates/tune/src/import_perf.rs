//! Samples of a CPU's last branches → a profile of blocks and edges, which the recipes take as they take a recording.

use crate::record::Recorded;
use crate::{Error, Result};
use kerntune_convert::perf::{BranchStacks, Lines};
use kerntune_kernel::Kernel;
use kerntune_optimize::quality::Image;
use kerntune_profile::{
    load_manifest, rfc3339, Address, Block, Capture, Edge, Instructions, KernelId, Manifest, Profile, Run,
    Tables, ROOM,
};
use kerntune_work::{ContentHash, IoContext, Job, WorkDir};
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
}

/// Makes a profile of `request`, in the work directory; named by its content, and not made again if it is there.
///
/// # Errors
/// [`Error::PerfData`]: no branch records, of another kernel.
pub fn import(work: &WorkDir, request: &Request) -> Result<Import> {
    let refuse = |reason: String| Error::PerfData { file: request.file.to_owned(), reason };
    let stacks = read(request.file)?;
    let manifest = &request.kernel.manifest;
    if stacks.samples == 0 {
        return Err(refuse(
            "no sample in it has the CPU's last branches. Record them with `perf record -b -e cycles:k -a`, on a CPU that \
             has them, and give perf.data, or what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints of it"
                .into(),
        ));
    }
    if let Some(release) = stacks.release.as_deref().filter(|release| !release.starts_with(&manifest.version))
    {
        return Err(refuse(format!(
            "it was recorded on Linux {release}, and kernel {} is {}: record on this kernel, or name that one",
            manifest.label, manifest.version
        )));
    }
    let image = Image::load(request.kernel)?;
    let placed = Placed::of(&stacks, &image);
    if placed.runs == 0 || placed.fitting() < MIN_FITTING {
        return Err(refuse(format!(
            "{:.1} % of the runs in kernel code begin and end at instructions of kernel {}, {:.0} % are needed: it is of another \
             image, or of one that was moved in memory (KASLR) and does not say where to: leave --show-mmap-events in",
            placed.fitting() * 100.0,
            manifest.label,
            MIN_FITTING * 100.0
        )));
    }
    let id = ContentHash::new("perf/1")
        .file("samples", request.file)?
        .field("kernel", &manifest.id)
        .field("workload", request.workload)
        .field("idle cpus", [u8::from(request.idle_cpus)])
        .finish();
    let (samples, runs) = (stacks.samples, placed.runs);
    let staged = work.stage(ROOM, &id)?;
    if let Some(done) = staged.already() {
        let path = done.to_owned();
        let manifest = load_manifest(&path)?;
        return Ok(Import { recorded: Recorded { path, manifest }, samples, runs });
    }
    staged.clear()?;
    let manifest = describe(&id, request, &stacks, &placed)?;
    let manifest = Profile { manifest, tables: placed.tables }.save(staged.path())?;
    Ok(Import { recorded: Recorded { path: staged.publish()?, manifest }, samples, runs })
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
    if let Some(silent) = stacks.silent_cpus().filter(|_| !request.idle_cpus) {
        manifest.health.insert("silent_cpus".into(), silent.into());
    }
    let hash = ContentHash::new("file/1").file("content", request.file)?.finish();
    manifest.sources.push(format!("branch records {} ({hash})", request.file.display()));
    Ok(manifest)
}

/// The samples of `file`, by way of `perf script` if they are not text yet.
fn read(file: &Path) -> Result<BranchStacks> {
    let mut begin = Vec::new();
    let open = || File::open(file).at("open", file);
    open()?.take(PERF_DATA.len() as u64).read_to_end(&mut begin).at("read", file)?;
    if begin != PERF_DATA {
        return Ok(BranchStacks::read(BufReader::new(open()?)).at("read", file)?);
    }
    let mut command = Command::new("perf");
    command.args(["script", "--header", "--show-mmap-events", "-F", "cpu,ip,brstack", "-i"]).arg(file);
    let (mut lines, mut said) = (Lines::default(), Vec::new());
    let end = Job::new(command).run(
        |line| {
            lines.line(line);
            if said.len() < 4 && !line.starts_with(['#', ' ', '[']) && !line.is_empty() {
                said.push(line.to_string());
            }
            true
        },
        || true,
    )?;
    if end.success() {
        return Ok(lines.finish());
    }
    let reason = format!("`perf script` cannot read its branch records: {}", said.join(" "));
    Err(Error::PerfData { file: file.to_owned(), reason })
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
