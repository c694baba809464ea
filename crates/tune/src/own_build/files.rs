//! Contents of the files, from recordings in the store.

use crate::runs::record::RecordedProfile;
use crate::runs::train::counters_of_recording;
use crate::{Error, Result};
use kerntune_convert::own_build::SourceNames;
use kerntune_convert::propeller::{parse_list, portable_list};
use kerntune_kernel::{find_recorded, Kernel, Symbols};
use kerntune_optimize::clang_autofdo::{prepare_profile, AutofdoProfile, AutofdoSummary};
use kerntune_optimize::gcc_pgo::{
    self, counter_files, CounterFiles, GccPgoProfile, WeightedRun, INSTRUMENTED,
};
use kerntune_optimize::layout::{prepare_order_for_own_build, DEFAULT_ALGORITHM};
use kerntune_optimize::propeller::{block_list, BlocksSummary};
use kerntune_optimize::PreparedResult;
use kerntune_profile::{find, Profile};
use kerntune_work::{read_file, write_atomic, IoContext, WorkDir};
use std::collections::HashMap;
use std::path::Path;

/// Returns Clang's profile of a recording of `kernel`, for `CLANG_AUTOFDO_PROFILE`.
///
/// # Errors
/// A recording or a kernel that recipe `clang-autofdo` would refuse.
pub fn afdo(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<(Vec<u8>, AutofdoSummary)> {
    let profile = prepare_profile(work, recording, kernel)?;
    let file = profile.file();
    Ok((read_file(&file).at("read", &file)?, profile.summary))
}

/// Files for `CLANG_PROPELLER_PROFILE_PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropellerFiles {
    /// `PREFIX_cc_profile.txt`: blocks of each function that ran, in order.
    pub compiler: String,
    /// `PREFIX_ld_profile.txt`: these functions, in order.
    pub linker: String,
    /// Profile that the recorded kernel was compiled with. The numbers of the blocks hold for builds
    /// with the same one.
    pub afdo: Option<Vec<u8>>,
    /// Sizes of the list.
    pub summary: BlocksSummary,
}

/// Returns the files of a recording of `kernel`, which has a map of its blocks.
///
/// # Errors
/// A recording or a kernel that recipes with `propeller` would refuse; a kernel whose own profile is
/// gone.
pub fn propeller(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    sources: &SourceNames,
) -> Result<PropellerFiles> {
    let label = || kernel.manifest.label.clone();
    let (list, summary) = block_list(work, recording, kernel)?;
    let entries = parse_list(&list).map_err(|reason| Error::BadList { kernel: label(), reason })?;
    let symbols = Symbols::load(&kernel.vmlinux())?;
    let mut times: HashMap<&str, u32> = HashMap::new();
    for function in symbols.functions() {
        for name in function.aliases.iter().chain([&function.name]) {
            *times.entry(name).or_default() += 1;
        }
    }
    let shared = |name: &str| times.get(name).is_some_and(|times| *times > 1);
    let afdo = match &kernel.manifest.profile_id {
        None => None,
        Some(id) => {
            let gone = || Error::ProfileGone { kernel: label(), profile: id.clone() };
            let file = AutofdoProfile::find(work, id)?.ok_or_else(gone)?.file();
            Some(read_file(&file).at("read", &file)?)
        }
    };
    let linker = kerntune_convert::link_order::symbol_order(
        order(work, recording, kernel)?.iter().map(String::as_str),
    );
    Ok(PropellerFiles { compiler: portable_list(&entries, shared, sources), linker, afdo, summary })
}

/// Returns the functions of `kernel` that ran, in the order that the recording's calls suggest.
///
/// # Errors
/// A recording that recipe `layout` would refuse.
pub fn order(work: &WorkDir, recording: &Profile, kernel: &Kernel) -> Result<Vec<String>> {
    let order = prepare_order_for_own_build(work, recording, kernel, DEFAULT_ALGORITHM)?;
    Ok(order.order.names().to_vec())
}

/// GCC's counters, and the kernel that counted.
#[derive(Debug, Clone)]
pub struct OwnBuildCounters {
    /// Files and objects.
    pub counters: CounterFiles,
    /// The instrumented kernel.
    pub kernel: Kernel,
}

/// Returns GCC's counters for builds that name their sources as in `sources`.
///
/// `name` is a recording of an instrumented kernel, the id of a profile of recipe `gcc-pgo`, or a
/// directory of `.gcda` files, of which `kernel` is the instrumented kernel.
///
/// # Errors
/// [`Error::CountsNoArcs`]; counters that recipe `gcc-pgo` would refuse.
pub fn counters(
    work: &WorkDir,
    name: &str,
    kernel: Option<&Kernel>,
    sources: &SourceNames,
) -> Result<OwnBuildCounters> {
    if let Some(profile) = GccPgoProfile::find(work, name)? {
        let kernel = kerntune_kernel::find(work, &profile.gcov_kernel)?;
        return Ok(OwnBuildCounters { counters: counter_files(&profile, &kernel, sources)?, kernel });
    }
    let (run, kernel) = match kernel {
        Some(kernel) => (Path::new(name).to_owned(), kernel.clone()),
        None => {
            let entry = find(work, name)?;
            let (profile, of) = (entry.manifest.id.clone(), entry.manifest.kernel.clone());
            let counting = find_recorded(work, &of.id)?
                .filter(|kernel| kernel.manifest.recipe.as_deref() == Some(INSTRUMENTED));
            let Some(gcov) = counting else {
                return Err(Error::CountsNoArcs { profile, kernel: of.label });
            };
            let recording = RecordedProfile { manifest: entry.manifest, path: entry.path };
            (counters_of_recording(work, &gcov, &recording)?, gcov)
        }
    };
    let profile = gcc_pgo::prepare_profile(work, &[WeightedRun::from(&*run)], &kernel)?;
    Ok(OwnBuildCounters { counters: counter_files(&profile, &kernel, sources)?, kernel })
}

/// File that lists the objects with counters, beside them.
const OBJECTS: &str = "objects";

/// Writes the files into an existing directory, and the list of their objects.
///
/// # Errors
/// Files that cannot be written.
pub fn write_counters(counters: &CounterFiles, directory: &Path) -> Result<()> {
    for (name, bytes) in &counters.files {
        write_atomic(&directory.join(name), bytes)?;
    }
    let objects: String = counters.objects.iter().map(|object| format!("{object}\n")).collect();
    Ok(write_atomic(&directory.join(OBJECTS), objects.as_bytes())?)
}
