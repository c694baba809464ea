//! Counters as files for a build of the user's own.

use super::gcno::GcnoFile;
use super::GccPgoProfile;
use crate::{Error, Result};
use kerntune_convert::gcda::{FunctionSite, Gcda, RenamedCounters};
use kerntune_convert::own_build::SourceNames;
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use std::fs;
use std::path::Path;

/// Files for GCC's `-fprofile-use=DIRECTORY` with `-fprofile-prefix-path`, and the objects that they
/// are for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterFiles {
    /// Name of each file as GCC looks for it (`kernel#fork.gcda`), and its bytes.
    pub files: Vec<(String, Vec<u8>)>,
    /// Objects of which something ran (`kernel/fork.o`), to be compiled with the counters.
    pub objects: Vec<String>,
    /// Records of functions in all files; a static function has one for each name of its source.
    pub records: u64,
    /// Functions whose ident GCC computed in a way that is not known here: a build with other names
    /// of the sources does not find their counters.
    pub kept: u64,
}

/// Returns the files of `profile` for builds that name their sources as in `sources`. `gcov` is the
/// kernel that counted, with its objects kept.
///
/// # Errors
/// [`Error::NoObjects`]; notes or counters that cannot be read.
pub fn counter_files(profile: &GccPgoProfile, gcov: &Kernel, sources: &SourceNames) -> Result<CounterFiles> {
    let missing = "build directory";
    let build = gcov
        .kept_objects()?
        .ok_or_else(|| Error::NoObjects { kernel: gcov.manifest.label.clone(), missing })?;
    let mut all = CounterFiles::default();
    for counts in profile.counts()? {
        if counts.total() == 0 {
            continue;
        }
        let path = Path::new(&counts.object);
        let stem = path.with_extension("");
        let object = stem.to_string_lossy();
        let (file, notes) = (profile.tree().join(path).with_extension("gcda"), build.join(path));
        let bytes = fs::read(&file).at("read", &file)?;
        let gcda = Gcda::parse(&bytes).map_err(|source| Error::BadFile { file, source })?;
        let notes = read_notes(&notes.with_extension("gcno"))?;
        let site = |ident: u32| {
            let note = notes.functions.get(&ident)?;
            Some(FunctionSite { name: &note.name, file: &note.file, line: note.line, object: &object })
        };
        let RenamedCounters { gcda, kept } = gcda.renamed(site, |name| sources.of(name));
        all.kept += kept;
        all.records += gcda.functions.len() as u64;
        all.files.push((format!("{}.gcda", object.replace('/', "#")), gcda.to_bytes()));
        all.objects.push(counts.object);
    }
    Ok(all)
}

fn read_notes(path: &Path) -> Result<GcnoFile> {
    let bytes = fs::read(path).at("read", path)?;
    GcnoFile::parse(&bytes).map_err(|reason| Error::BadNotes { file: path.to_owned(), reason })
}
