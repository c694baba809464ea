//! Import of a CPU's branch samples as a profile of blocks and edges, which recipes take like a
//! recording.

use crate::runs::record::RecordedProfile;
use crate::{Error, Result};
use kerntune_convert::perf::{BranchStacks, PerfTextError, UnparsedLines};
use kerntune_convert::perf_data::{read_branches, PerfData, PerfDataError};
use kerntune_kernel::Kernel;
use kerntune_optimize::quality::LinkedCode;
use kerntune_profile::{
    load_manifest, rfc3339, Address, Anomaly, Block, CaptureSummary, Edge, Instructions, KernelId, Manifest,
    Profile, RunPurpose, Tables, KIND,
};
use kerntune_work::{ContentHash, IoContext, Key, WorkDir};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

/// Name of this machine in manifests and tables.
pub const MACHINE: &str = "host";

/// First bytes of a perf.data file.
const PERF_DATA: &[u8] = b"PERFILE2";

/// First bytes of compressed files, and the program that unpacks them.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];

/// Maximum share of entries without source or target: CPUs leave entries empty that they had no time
/// to write.
const MAX_EMPTY: f64 = 0.1;

/// Maximum share of pairs of branches without straight code between them.
const MAX_BACKWARD: f64 = 0.25;

/// Granularity at which the kernel's image is moved in memory (`CONFIG_PHYSICAL_ALIGN`).
const ALIGNMENT: u64 = 1 << 21;

/// Addresses of x86-64 kernels that are not moved, without modules and generated code
/// (`KERNEL_IMAGE_SIZE`).
const IMAGES: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_a000_0000;

/// Addresses of kernels that KASLR moved: the range doubles to 1 GiB.
const MOVED_IMAGES: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;

/// Minimum share of runs through the image's code that begin and end at its instructions. Some do
/// not, since the kernel patches itself at boot; most do not if the image is another one.
const MIN_FITTING: f64 = 0.8;

/// Maximum share of lines that are no samples: a truncated file has one, and perf prints a few
/// warnings.
const MAX_STRANGE: f64 = 0.01;

/// Samples to import, and their kernel.
#[derive(Debug, Clone, Copy)]
pub struct PerfImportRequest<'a> {
    /// `perf.data`, or the output of `perf script`.
    pub file: &'a Path,
    /// Kernel that ran.
    pub kernel: &'a Kernel,
    /// Name of the load, for the profile.
    pub workload: &'a str,
    /// True if CPUs without samples were idle, not unrecorded.
    pub idle_cpus: bool,
}

/// Imported profile and statistics of its samples.
#[derive(Debug)]
pub struct PerfImport {
    /// The profile.
    pub recorded: RecordedProfile,
    /// Number of samples with branches.
    pub samples: u64,
    /// Number of imported runs of straight code between two branches.
    pub runs: u64,
    /// Number of runs at kernel addresses outside of the kernel's functions, which were left out.
    pub unplaced: u64,
    /// Lines that were not understood and left out.
    pub strange: UnparsedLines,
    /// Number of boots or machines that the samples come from.
    pub parts: usize,
}

/// Imports samples as a profile named by its content, or returns the existing one.
///
/// # Errors
/// [`Error::PerfData`]: no branch records, or records of another kernel.
pub fn import(work: &WorkDir, request: &PerfImportRequest) -> Result<PerfImport> {
    let refuse = |reason: String| Error::PerfData { file: request.file.to_owned(), reason };
    let stacks = read(request.file, Some(request.kernel))?;
    let manifest = &request.kernel.manifest;
    if let Some((line, text)) =
        stacks.strange.first.as_ref().filter(|_| stacks.unparsed_share() > MAX_STRANGE)
    {
        return Err(refuse(format!(
            "{} of its lines are not understood ({:.1} % of those that hold samples, {:.0} % are allowed); the first is line {line}: \
             {text}. Give perf.data, or what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints of it",
            stacks.strange.lines,
            stacks.unparsed_share() * 100.0,
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
    let key = Key::new("perf/3", crate::CODE)
        .file("samples", request.file)?
        .field("kernel", &manifest.id)
        .field("workload", request.workload)
        .field("idle cpus", [u8::from(request.idle_cpus)]);
    let modified = fs::metadata(request.file).and_then(|file| file.modified());
    let hash = ContentHash::new("file/1").file("content", request.file)?.finish();
    let origin = StackOrigin {
        kernel: request.kernel,
        workload: request.workload,
        idle_cpus: request.idle_cpus,
        recorded: modified.unwrap_or_else(|_| SystemTime::now()),
        sources: vec![format!("branch records {} ({hash})", request.file.display())],
        lost: 0,
    };
    keep(work, &stacks, &key, &origin, &refuse)
}

/// Branch records that were read from the rings of the running kernel.
#[derive(Debug, Clone)]
pub struct LiveBranches<'a> {
    /// The records, with one boot.
    pub stacks: &'a BranchStacks,
    /// Running kernel.
    pub kernel: &'a Kernel,
    /// Name of the load, for the profile.
    pub workload: &'a str,
    /// Descriptions of what was sampled.
    pub sources: Vec<String>,
    /// Lost samples.
    pub lost: u64,
}

/// Keeps branch records of the running kernel as a profile. `key` names it.
///
/// # Errors
/// [`Error::Branches`]: no branch records, bogus ones, or records of another kernel.
pub fn keep_live(work: &WorkDir, live: &LiveBranches, key: &Key) -> Result<PerfImport> {
    let refuse = |reason: String| Error::Branches { reason };
    if live.stacks.samples == 0 {
        return Err(refuse(
            "none was sampled: what was watched ran too briefly in the kernel; record for longer, or with a higher --rate"
                .into(),
        ));
    }
    let origin = StackOrigin {
        kernel: live.kernel,
        workload: live.workload,
        // A CPU that runs no kernel code is idle.
        idle_cpus: true,
        recorded: SystemTime::now(),
        sources: live.sources.clone(),
        lost: live.lost,
    };
    keep(work, live.stacks, key, &origin, &refuse)
}

/// Origin of branch records, for the manifest of their profile.
struct StackOrigin<'a> {
    kernel: &'a Kernel,
    workload: &'a str,
    idle_cpus: bool,
    recorded: SystemTime,
    sources: Vec<String>,
    lost: u64,
}

/// Checks the records and keeps them as a profile of blocks and edges.
fn keep(
    work: &WorkDir,
    stacks: &BranchStacks,
    key: &Key,
    origin: &StackOrigin,
    refuse: &dyn Fn(String) -> Error,
) -> Result<PerfImport> {
    let manifest = &origin.kernel.manifest;
    bogus(stacks).map_or(Ok(()), |reason| Err(refuse(reason)))?;
    let other = |release: &&str| !is_version(release, &manifest.version);
    if let Some(release) = stacks.parts.iter().filter_map(|part| part.release.as_deref()).find(other) {
        return Err(refuse(format!(
            "it was recorded on Linux {release}, and kernel {} is {}: record on this kernel, or name that one{}",
            manifest.label,
            manifest.version,
            if stacks.parts.len() > 1 { "; it has samples of several boots: import those of each kernel alone" } else { "" }
        )));
    }
    if stacks.longest < 2 {
        return Err(refuse(
            "its stacks have one branch each, so that nothing is known of the code between two branches: record whole stacks \
             (`perf record -b`), and do not cut them when they are printed"
                .into(),
        ));
    }
    let image = LinkedCode::load(origin.kernel)?;
    let placed = PlacedSamples::of(stacks, &image);
    if [placed.runs, placed.strange, placed.unplaced].contains(&u64::MAX) {
        return Err(refuse("the sum of its counts overflows 64 bits".into()));
    }
    if placed.runs == 0 || placed.fitting() < MIN_FITTING {
        return Err(refuse(format!(
            "{:.1} % of the runs in kernel code begin and end at instructions of kernel {}, {:.0} % are needed: it is of another \
             image, or of one that was moved in memory (KASLR) and does not say where to: leave --show-mmap-events in. If it has \
             samples of several boots, import each alone and merge the profiles",
            placed.fitting() * 100.0,
            manifest.label,
            MIN_FITTING * 100.0
        )));
    }
    let import = |recorded| PerfImport {
        recorded,
        samples: stacks.samples,
        runs: placed.runs,
        unplaced: placed.unplaced,
        strange: stacks.strange.clone(),
        parts: stacks.parts.iter().filter(|part| part.samples > 0).count(),
    };
    let staged = work.stage(KIND, key)?;
    if let Some(done) = staged.already() {
        let manifest = load_manifest(&done)?;
        return Ok(import(RecordedProfile { path: done, manifest }));
    }
    staged.clear()?;
    let manifest = describe(&key.id(), origin, stacks, &placed);
    let manifest = Profile { manifest, tables: placed.tables.clone() }.save(staged.path())?;
    Ok(import(RecordedProfile { path: staged.publish()?, manifest }))
}

fn describe(id: &str, origin: &StackOrigin, stacks: &BranchStacks, placed: &PlacedSamples) -> Manifest {
    let of = &origin.kernel.manifest;
    let kernel = KernelId { id: of.id.clone(), label: of.label.clone(), version: of.version.clone() };
    let mut manifest = Manifest::new(id, kernel, origin.workload, MACHINE);
    manifest.run = RunPurpose::Training;
    manifest.recorded = rfc3339(origin.recorded);
    manifest.capture = CaptureSummary { edges: true, ..CaptureSummary::default() };
    manifest.events = stacks.samples;
    manifest.lost_events = origin.lost;
    manifest.set_anomaly(Anomaly::StrangeRuns, placed.strange);
    manifest.set_anomaly(Anomaly::UnplacedRuns, placed.unplaced);
    manifest.set_anomaly(Anomaly::SpeculatedBranches, stacks.speculated);
    manifest.set_anomaly(Anomaly::StrangeLines, stacks.strange.lines);
    let boots = stacks.parts.iter().filter(|part| part.samples > 0).count();
    manifest.set_anomaly(Anomaly::Boots, if boots > 1 { boots as u64 } else { 0 });
    if let Some(silent) = stacks.silent_cpus().filter(|_| !origin.idle_cpus) {
        manifest.set_anomaly(Anomaly::SilentCpus, silent.into());
    }
    manifest.sources.clone_from(&origin.sources);
    manifest
}

/// Returns whether a release belongs to a version: `6.12.1-kerntune` to 6.12.1, `6.12.117` not.
fn is_version(release: &str, version: &str) -> bool {
    release.strip_prefix(version).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the reason why the records of the CPU are no branches that it took; `None` if they are.
/// AMD's BRS and LBRv2 may give zeroed entries, or branches of wrong paths, for which see
/// google/autofdo#256.
fn bogus(stacks: &BranchStacks) -> Option<String> {
    let empty = stacks.empty_entries as f64 / stacks.entries.max(1) as f64;
    if empty > MAX_EMPTY {
        return Some(format!(
            "{:.0} % of its {} branch records are empty (source or target 0), {:.0} % are allowed: the CPU or the kernel did not fill \
             them. On AMD use a kernel with LBRv2 (Zen 4 and newer, Linux 6.1), and record fixed periods, as in \
             `perf record -b -e ex_ret_brn_tkn:k -c 1000003 -a`",
            empty * 100.0,
            stacks.entries,
            MAX_EMPTY * 100.0
        ));
    }
    let runs = stacks.parts.iter().flat_map(|part| part.runs.values());
    let forward = runs.fold(0_u64, |sum, count| sum.saturating_add(*count));
    let backward = stacks.backward_runs as f64 / forward.saturating_add(stacks.backward_runs).max(1) as f64;
    (backward > MAX_BACKWARD).then(|| {
        format!(
            "{:.0} % of its successive branches cannot follow each other (the older one goes to code behind the newer one), {:.0} % \
             are allowed: branches are missing between them. Record all taken branches (`perf record -b`, without --branch-filter)",
            backward * 100.0,
            MAX_BACKWARD * 100.0
        )
    })
}

/// Reads the samples of `file`: perf.data, or the text of `perf script`.
fn read(file: &Path, kernel: Option<&Kernel>) -> Result<BranchStacks> {
    let refuse = |reason: String| Error::PerfData { file: file.to_owned(), reason };
    if !fs::metadata(file).at("open", file)?.is_file() {
        return Err(refuse("it is not a regular file: save the samples in one".into()));
    }
    let mut begin = Vec::new();
    let open = || File::open(file).at("open", file);
    open()?.take(PERF_DATA.len() as u64).read_to_end(&mut begin).at("read", file)?;
    if let Some((_, program)) = PACKED.iter().find(|(mark, _)| begin.starts_with(mark)) {
        return Err(refuse(format!("it is packed by {program}: unpack it first")));
    }
    if begin != PERF_DATA {
        return BranchStacks::read(BufReader::new(open()?)).map_err(|error| not_read(file, error));
    }
    let unreadable = |error: PerfDataError| match error {
        PerfDataError::Io(source) => {
            kerntune_work::Error::Io { action: "read", path: file.into(), source }.into()
        }
        other => refuse(other.to_string()),
    };
    let mut data = PerfData::open(open()?).map_err(unreadable)?;
    if let (Some(recorded), Some(kernel)) = (&data.file.kernel_build_id, kernel) {
        let own = kernel.build_id()?;
        if own.as_ref().is_some_and(|own| own != recorded) {
            return Err(refuse(format!(
                "it was recorded on a kernel with build id {recorded}, and kernel {} has {}: record on this kernel, or name that \
                 one",
                kernel.manifest.label,
                own.unwrap_or_default()
            )));
        }
    }
    read_branches(&mut data).map_err(unreadable)
}

fn not_read(file: &Path, error: PerfTextError) -> Error {
    match error {
        PerfTextError::Io(source) => {
            kerntune_work::Error::Io { action: "read", path: file.into(), source }.into()
        }
        other => Error::PerfData { file: file.to_owned(), reason: other.to_string() },
    }
}

/// Samples at the addresses where the image was linked.
#[derive(Debug, Default)]
struct PlacedSamples {
    tables: Tables,
    /// Number of runs in the image's code.
    runs: u64,
    /// Number of runs that do not begin and end at instructions, which are left out.
    strange: u64,
    /// Number of runs at kernel addresses without a function, also left out.
    unplaced: u64,
}

impl PlacedSamples {
    fn of(stacks: &BranchStacks, image: &LinkedCode) -> Self {
        let functions = image.symbols().functions();
        let linked = functions.iter().map(|function| function.address).min().unwrap_or_default();
        let mut placed =
            Self { tables: Tables { symbols: image.rows(), ..Tables::default() }, ..Self::default() };
        let (mut runs, mut branches) = (BTreeMap::new(), BTreeMap::new());
        for part in &stacks.parts {
            let moved = part.kernel_at.map_or(0, |at| aligned(at).wrapping_sub(aligned(linked)));
            let images = if moved == 0 { IMAGES } else { MOVED_IMAGES };
            let here = |address: u64| {
                Some(address.wrapping_sub(moved)).filter(|a| image.symbols().lookup(*a).is_some())
            };
            for (&(first, last), &count) in &part.runs {
                match (here(first), here(last)) {
                    (Some(first), Some(last)) => add(&mut runs, (first, last), count),
                    _ if images.contains(&first) || images.contains(&last) => {
                        placed.unplaced = placed.unplaced.saturating_add(count);
                    }
                    // User code, modules, generated code.
                    _ => {}
                }
            }
            for (&(source, target), &count) in &part.branches {
                let (Some(source), Some(target)) = (here(source), here(target)) else { continue };
                add(&mut branches, (source, target), count);
            }
        }
        for ((start, last), count) in runs {
            let Some((instructions, bytes)) = image.straight(start, last) else {
                placed.strange = placed.strange.saturating_add(count);
                continue;
            };
            placed.runs = placed.runs.saturating_add(count);
            let (start, last, instructions) = (Address(start), Address(last), Instructions(instructions));
            placed.tables.blocks.push(Block { start, last, count, instructions, bytes });
        }
        for ((source, target), count) in branches {
            let kind = image.branch(source);
            placed.tables.edges.push(Edge { source: Address(source), target: Address(target), count, kind });
        }
        placed
    }

    fn fitting(&self) -> f64 {
        let all = self.runs.saturating_add(self.strange).saturating_add(self.unplaced);
        self.runs as f64 / all.max(1) as f64
    }
}

fn add(counts: &mut BTreeMap<(u64, u64), u64>, what: (u64, u64), count: u64) {
    let sum = counts.entry(what).or_default();
    *sum = sum.saturating_add(count);
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
        let zero = read(Path::new("/dev/zero"), None).unwrap_err().to_string();
        assert_eq!(zero, "/dev/zero: it is not a regular file: save the samples in one");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("samples");
        fs::write(&file, "99999999999999999999\n 0x30/0x60/P/-/-/0\n").unwrap();
        let error = read(&file, None).unwrap_err().to_string();
        assert!(error.ends_with("line 1: the counts overflow 64 bits: 99999999999999999999"), "{error}");
    }
}
