//! Kernels of a work directory: load, list, find, remove.

use crate::kernels::kept;
use crate::kernels::manifest::SCHEMA;
use crate::kernels::profile_tree::hash_tree;
use crate::vmlinux::known_sources;
use crate::vmlinux::source_map::{self, SourceMap};
use crate::{Error, KernelManifest, Result, Symbols};
use kerntune_work::{
    checked, hash_file, read_file, read_versioned, ContentHash, Id, IoContext, Seal, WorkDir, RESULT_FILE,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
pub(crate) const KIND: &str = "kernels";
pub(crate) const MANIFEST: &str = "kernel.json";
/// Field of a kernel's key with the hash of its profile ([`hash_tree`]).
pub(crate) const PROFILE: &str = "profile";
/// Field of a key with the id of the kernel that was relinked.
pub(crate) const LINKED_FROM: &str = "kernel";
/// Name in a partial directory of files that are being deleted. Results never contain it.
pub(crate) const TRASH: &str = "removed";

/// Built kernel: a directory with `vmlinux`, `bzImage` (unless for User-Mode Linux), `System.map`,
/// `config`, `sources.tsv`, `build.log` and `kernel.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Result directory, absolute.
    pub dir: PathBuf,
    /// Provenance of the kernel.
    pub manifest: KernelManifest,
}

impl Kernel {
    /// Loads the kernel in `dir` and checks that all files are as they were built.
    ///
    /// # Errors
    /// A directory without a kernel of this schema, or with a file that changed.
    pub fn load(dir: &Path) -> Result<Self> {
        let kernel = Self::peek(dir)?;
        checked(&kernel.dir, &[])?;
        Ok(kernel)
    }

    /// Loads the manifest of the kernel in `dir` without checking the images.
    ///
    /// # Errors
    /// A directory without a kernel of this schema, or with a changed `kernel.json`.
    pub fn peek(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().at("open kernel", dir)?;
        let seal = checked(&dir, &[MANIFEST])?;
        let damaged = |reason: String| Error::Damaged { dir: dir.clone(), reason };
        let mut manifest: KernelManifest = read_versioned(&dir.join(MANIFEST), SCHEMA)?;
        for name in ["vmlinux", manifest.arch.image(), "config"] {
            if !dir.join(name).is_file() {
                return Err(damaged(format!("{name} is missing")));
            }
        }
        if manifest.id != seal.id {
            return Err(damaged(format!("{MANIFEST} is of the kernel {}", manifest.id)));
        }
        if let Some(field) = manifest.field_with_controls() {
            return Err(damaged(format!("{MANIFEST} has a control character in `{field}`")));
        }
        manifest.aliases = seal.names;
        Ok(Self { dir, manifest })
    }

    /// Returns the id of the profile that the kernel was compiled with: `id` if that profile's
    /// `tree` has the same contents. Kernels are found by a profile's contents, so the recorded id
    /// may be that of an equal profile.
    ///
    /// # Errors
    /// A profile that cannot be read.
    pub fn built_with(&self, id: &str, tree: &Path) -> Result<Option<String>> {
        let recorded = self.manifest.profile_id.clone();
        if recorded.is_none() || recorded.as_deref() == Some(id) {
            return Ok(recorded);
        }
        let field = |dir: &Path, wanted: &str| -> Option<String> {
            let key = Seal::read(dir).ok()?.key;
            key.into_iter().find_map(|(name, value)| (name == wanted).then_some(value))
        };
        // A relinked kernel was compiled as the kernel that its objects came from.
        let compiled = match &self.manifest.order_id {
            Some(_) => field(&self.dir, LINKED_FROM)
                .and_then(|id| id.parse::<Id>().ok())
                .map(|id| self.dir.with_file_name(id)),
            None => None,
        };
        match field(compiled.as_deref().unwrap_or(&self.dir), PROFILE) {
            Some(contents) if contents == hash_tree(tree)? => Ok(Some(id.to_owned())),
            _ => Ok(recorded),
        }
    }

    /// Returns a hash over the contents of the images, which does not depend on the kernel's
    /// location.
    ///
    /// # Errors
    /// An image that cannot be read.
    pub fn content(&self) -> Result<String> {
        let hash = ContentHash::new("kernel-images/1").field("vmlinux", hash_file(&self.vmlinux())?);
        Ok(hash.field("image", hash_file(&self.image())?).finish())
    }

    /// Returns the path of the ELF image with symbols.
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// Reads the functions, each with its source file if the build recorded it.
    ///
    /// # Errors
    /// A bad `vmlinux`; a bad `sources.tsv`, which may be absent.
    pub fn symbols(&self) -> Result<Symbols> {
        let mut symbols = Symbols::load(&self.vmlinux())?;
        if let Some(sources) = self.sources()? {
            symbols.set_files(&sources);
        }
        Ok(symbols)
    }

    /// Returns the source files of the functions; empty if the build did not record them.
    ///
    /// # Errors
    /// A bad `sources.tsv`.
    pub fn source_files(&self) -> Result<BTreeSet<String>> {
        Ok(self.sources()?.map(|sources| sources.paths()).unwrap_or_default())
    }

    /// Checks whether the source files were inferred from names and link order.
    ///
    /// # Errors
    /// A bad `sources.tsv`.
    pub fn sources_are_inferred(&self) -> Result<bool> {
        Ok(self.source_files()?.iter().any(|path| known_sources::is_directory_only(path)))
    }

    fn sources(&self) -> Result<Option<SourceMap>> {
        let path = self.dir.join(source_map::FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).at("read", &path)?;
        SourceMap::parse(&text, &self.dir).map(Some)
    }

    /// Returns the path of the bootable image: `bzImage`, or `vmlinux` for User-Mode Linux.
    pub fn image(&self) -> PathBuf {
        self.dir.join(self.manifest.arch.image())
    }

    /// Returns the path of the final `.config`.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// Returns the path of the log of make and the compiler.
    pub fn build_log(&self) -> PathBuf {
        self.dir.join("build.log")
    }

    /// Returns the build directory with all objects, if it was kept. Its contents are not checked;
    /// see [`kept_objects`](Self::kept_objects).
    pub fn build_dir(&self) -> Option<PathBuf> {
        Some(self.dir.join("build")).filter(|p| p.is_dir())
    }

    /// Returns the build directory, if it was kept, after checking all objects and notes.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first object that changed.
    pub fn kept_objects(&self) -> Result<Option<PathBuf>> {
        let Some(build) = self.build_dir() else { return Ok(None) };
        kept::check(&self.dir, &build)?;
        Ok(Some(build))
    }

    /// Checks whether `name` is the label or an alias.
    fn is_called(&self, name: &str) -> bool {
        self.manifest.label == name || self.manifest.aliases.iter().any(|a| a == name)
    }

    /// Returns label and id: `base (0123456789abcdef)`.
    fn named(&self) -> String {
        format!("{} ({})", self.manifest.label, self.manifest.id)
    }
}

/// Lists the kernels of the work directory, oldest first, without unfinished builds and damaged
/// kernels ([`list_damaged`]).
pub fn list(work: &WorkDir) -> Result<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = work.list(KIND)?.iter().filter_map(|dir| Kernel::peek(dir).ok()).collect();
    kernels.sort_by(|a, b| (&a.manifest.built, &a.manifest.id).cmp(&(&b.manifest.built, &b.manifest.id)));
    Ok(kernels)
}

/// Returns an error for each damaged kernel that [`list`] leaves out.
///
/// # Errors
/// A work directory that cannot be listed.
pub fn list_damaged(work: &WorkDir) -> Result<Vec<Error>> {
    // Debian packages and configurations of the work directory are kinds of their own.
    let mut found: Vec<Error> = work.damaged(KIND)?.into_iter().map(|(_, error)| error.into()).collect();
    found.extend(work.list(KIND)?.iter().filter_map(|dir| Kernel::peek(dir).err()));
    Ok(found)
}

/// Finds a kernel by label, by id or the beginning of one, or by the path of its directory.
///
/// # Errors
/// [`Error::UnknownKernel`] with the existing kernels, [`Error::AmbiguousKernel`] with the
/// candidates; a damaged kernel.
pub fn find(work: &WorkDir, name: &str) -> Result<Kernel> {
    if name.contains('/') {
        return Kernel::load(Path::new(name));
    }
    let kernels = list(work)?;
    let by_label: Vec<&Kernel> = kernels.iter().filter(|k| k.is_called(name)).collect();
    let by_id: Vec<&Kernel> =
        kernels.iter().filter(|k| !name.is_empty() && k.manifest.id.starts_with(name)).collect();
    let found = if by_label.is_empty() { by_id } else { by_label };
    match found[..] {
        [kernel] => Kernel::load(&kernel.dir),
        [] if Path::new(name).join(MANIFEST).is_file() => Kernel::load(Path::new(name)),
        [] => match find_damage(work, &|id, label| {
            label == Some(name) || (!name.is_empty() && id.starts_with(name))
        })? {
            Some(damage) => Err(damage),
            None => Err(Error::UnknownKernel { name: name.to_string(), known: describe_known(&kernels) }),
        },
        _ => {
            let candidates = found.iter().map(|k| k.named()).collect();
            Err(Error::AmbiguousKernel { name: name.to_string(), candidates })
        }
    }
}

/// Finds the kernel with the id that a recording names; `None` if it is not in the work directory
/// (built elsewhere, or removed).
///
/// # Errors
/// A damaged kernel.
pub fn find_recorded(work: &WorkDir, id: &str) -> Result<Option<Kernel>> {
    match work.find(KIND, id) {
        Some(dir) => Kernel::load(&dir).map(Some),
        None => find_damage(work, &|found, _| found == id)?.map_or(Ok(None), Err),
    }
}

/// Returns the error of the first damaged kernel whose id and label match.
fn find_damage(work: &WorkDir, is_meant: &dyn Fn(&str, Option<&str>) -> bool) -> Result<Option<Error>> {
    let of_work = work.damaged(KIND)?.into_iter().map(|(dir, error)| match error {
        kerntune_work::Error::NotAResult { .. } => {
            (dir.clone(), Error::Damaged { dir, reason: format!("{RESULT_FILE} is missing") })
        }
        error => (dir, error.into()),
    });
    let own =
        work.list(KIND)?.into_iter().filter_map(|dir| Kernel::peek(&dir).err().map(|error| (dir, error)));
    let mut all = of_work.chain(own);
    let found = all.find(|(dir, _)| {
        let id = dir.file_name().unwrap_or_default().to_string_lossy();
        // The label of a damaged manifest is not reliable, but good enough to match.
        let text = read_file(dir.join(MANIFEST)).ok();
        let manifest = text.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        let label = manifest.as_ref().and_then(|manifest| manifest.get("label")?.as_str());
        is_meant(&id, label)
    });
    Ok(found.map(|(_, error)| error))
}

/// Lists the newest kernels for a message, and how to see all.
fn describe_known(kernels: &[Kernel]) -> String {
    const SHOWN: usize = 6;
    if kernels.is_empty() {
        return "is none yet: `kerntune kernel build` makes one".to_string();
    }
    let shown: Vec<String> = kernels.iter().rev().take(SHOWN).map(Kernel::named).collect();
    let more = match kernels.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more: `kerntune kernel list`"),
    };
    format!("are {}{more}", shown.join(", "))
}

/// Adds a label to the kernel as an alias.
pub(crate) fn add_label(work: &WorkDir, mut kernel: Kernel, label: &str) -> Result<Kernel> {
    let of = &mut kernel.manifest;
    if of.label != label && !of.aliases.iter().any(|alias| alias == label) {
        work.add_name(KIND, &of.id, label)?;
        of.aliases.push(label.to_string());
    }
    Ok(kernel)
}

/// Deletes a kernel of the work directory by label, by id or the beginning of one. A damaged kernel
/// is deleted by its full id. Returns its directory.
///
/// # Errors
/// [`Error::NotInStore`] for a path: only kernels of the store are deleted. Those of [`find`].
pub fn remove(work: &WorkDir, name: &str) -> Result<PathBuf> {
    if name.contains('/') {
        return Err(Error::NotInStore { path: name.into() });
    }
    let id = match find(work, name) {
        Ok(kernel) if Some(kernel.dir.as_path()) == work.find(KIND, &kernel.manifest.id).as_deref() => {
            kernel.manifest.id
        }
        Ok(kernel) => return Err(Error::NotInStore { path: kernel.dir }),
        // Damaged, or of an older schema.
        Err(error) => {
            let known = work.damaged(KIND)?.into_iter().map(|(path, _)| path).chain(work.list(KIND)?);
            let mut names = known.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
            names.find(|known| known == name).ok_or(error)?
        }
    };
    work.remove(KIND, &id)?;
    Ok(work.root().join(KIND).join(id))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{CompilerIdentity, SourceRecord, TaskLayout};
    use kerntune_work::{Key, SUMS_FILE};

    pub(crate) fn manifest(id: &str, label: &str, built: &str) -> KernelManifest {
        KernelManifest {
            schema: SCHEMA.into(),
            id: id.into(),
            label: label.into(),
            aliases: vec![],
            version: "6.12.117".into(),
            arch: crate::Arch::default(),
            source: SourceRecord { origin: "debian:6.12".into(), hash: "0".into(), patches: Vec::new() },
            config_hash: "1".into(),
            compiler: CompilerIdentity { program: "/usr/bin/gcc".into(), version: "gcc 12.2.0".into() },
            cc: "gcc".into(),
            kcflags: vec![],
            object_flags: vec![],
            object_groups: vec![],
            make_vars: vec![],
            movable: false,
            order_id: None,
            rewrite_id: None,
            recipe: None,
            profile_id: None,
            base_id: None,
            built: built.into(),
            build_seconds: 223.5,
            objects: 1436,
            text_bytes: 1,
            image_bytes: 2,
            build_path: "/w/kernels/x.partial/build".into(),
            task: TaskLayout { pid_offset: 1, tgid_offset: 2, comm_offset: 3 },
            structures: Default::default(),
            warnings: vec![],
        }
    }

    fn put(work: &WorkDir, id: &str, label: &str, built: &str) -> PathBuf {
        let staged = work.stage_as(KIND, id, &Key::new("test/1", "")).unwrap();
        for name in ["vmlinux", "bzImage", "config"] {
            fs::write(staged.path().join(name), name).unwrap();
        }
        kerntune_work::write_json(&staged.path().join(MANIFEST), &manifest(id, label, built)).unwrap();
        staged.publish().unwrap()
    }

    #[test]
    fn a_kernel_was_built_with_every_profile_that_says_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("fork.gcda"), "adcg").unwrap();
        let key = Key::new("kernel/0", "").field(PROFILE, hash_tree(&tree).unwrap());
        let staged = work.stage_as(KIND, "aa11", &key).unwrap();
        for name in ["vmlinux", "bzImage", "config"] {
            fs::write(staged.path().join(name), name).unwrap();
        }
        let mut manifest = manifest("aa11", "tuned", "2025-01-01T00:00:00Z");
        manifest.profile_id = Some("first".into());
        kerntune_work::write_json(&staged.path().join(MANIFEST), &manifest).unwrap();
        let kernel = Kernel::load(&staged.publish().unwrap()).unwrap();
        let built_with = |id: &str| kernel.built_with(id, &tree).unwrap().unwrap();
        assert_eq!((built_with("first"), built_with("second")), ("first".into(), "second".into()));

        // A relinked kernel has the same objects.
        let key = Key::new("relink/0", "").field(LINKED_FROM, "aa11");
        let staged = work.stage_as(KIND, "bb22", &key).unwrap();
        for name in ["vmlinux", "bzImage", "config"] {
            fs::write(staged.path().join(name), name).unwrap();
        }
        manifest = KernelManifest { id: "bb22".into(), order_id: Some("o".into()), ..manifest };
        kerntune_work::write_json(&staged.path().join(MANIFEST), &manifest).unwrap();
        let linked = Kernel::load(&staged.publish().unwrap()).unwrap();
        assert_eq!(linked.built_with("second", &tree).unwrap().unwrap(), "second");

        fs::write(tree.join("fork.gcda"), "adch").unwrap();
        assert_eq!(built_with("second"), "first");
        assert_eq!(linked.built_with("second", &tree).unwrap().unwrap(), "first");
    }

    #[test]
    fn kernels_are_listed_by_age_and_found_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        assert!(find(&work, "base").unwrap_err().to_string().contains("is none yet"));
        let newer = put(&work, "aa11", "tuned", "2025-02-01T00:00:00Z");
        put(&work, "aa22", "base", "2025-01-01T00:00:00Z");
        let half = work.stage_as(KIND, "bb33", &Key::new("test/1", "")).unwrap();
        fs::write(half.path().join("vmlinux"), "").unwrap();
        fs::create_dir(dir.path().join("kernels/.objects")).unwrap();

        let labels: Vec<_> = list(&work).unwrap().into_iter().map(|k| k.manifest.label).collect();
        assert_eq!(labels, ["base", "tuned"]);
        assert_eq!(find(&work, "tuned").unwrap().dir, newer);
        assert_eq!(find(&work, "aa2").unwrap().manifest.label, "base");
        assert_eq!(find(&work, newer.to_str().unwrap()).unwrap().manifest.id, "aa11");
        let error = find(&work, "aa").unwrap_err().to_string();
        assert!(error.contains("base (aa22)") && error.contains("tuned (aa11)"), "{error}");
        let error = find(&work, "other").unwrap_err().to_string();
        assert!(error.contains("no kernel `other`; there are tuned (aa11), base (aa22)"), "{error}");
        for more in 1..=5 {
            put(&work, &format!("cc{more}"), "more", "2025-03-01T00:00:00Z");
        }
        let error = find(&work, "other").unwrap_err().to_string();
        assert!(error.contains("tuned (aa11) and 1 more: `kerntune kernel list`"), "{error}");
        assert!(find(&work, "").is_err());
    }

    #[test]
    fn a_removed_kernel_is_gone_and_can_be_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        put(&work, "aa11", "base", "2025-01-01T00:00:00Z");
        remove(&work, "base").unwrap();
        assert!(list(&work).unwrap().is_empty());
        put(&work, "aa11", "base", "2025-01-01T00:00:00Z");
        assert_eq!(list(&work).unwrap().len(), 1);
    }

    #[test]
    fn damage_and_other_versions_are_said() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let kernel = put(&work, "aa11", "base", "2025-01-01T00:00:00Z");
        fs::write(kernel.join("bzImage"), "another image").unwrap();
        for error in [Kernel::load(&kernel).unwrap_err(), find(&work, "base").unwrap_err()] {
            assert!(error.to_string().contains("bzImage is not the file that was written"), "{error}");
        }
        fs::remove_file(kernel.join("bzImage")).unwrap();
        assert!(Kernel::load(&kernel).unwrap_err().to_string().contains("bzImage is missing"));
        let text = fs::read_to_string(kernel.join(MANIFEST)).unwrap();
        fs::write(kernel.join(MANIFEST), text.replace("223.5", "0.5")).unwrap();
        assert!(Kernel::peek(&kernel).unwrap_err().to_string().contains("kernel.json is not the file"));
        // It is not listed as intact, and the listing reports the damage.
        assert!(list(&work).unwrap().is_empty());
        assert!(list_damaged(&work).unwrap()[0].to_string().contains("kernel.json is not the file"));
        // It is removed by its id.
        remove(&work, "aa11").unwrap();
        assert!(list_damaged(&work).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_kernel_is_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        assert!(find_recorded(&work, "aa11").unwrap().is_none());
        let kernel = put(&work, "aa11", "base", "2025-01-01T00:00:00Z");
        put(&work, "bb22", "other", "2025-01-01T00:00:00Z");
        assert_eq!(find_recorded(&work, "aa11").unwrap().unwrap().manifest.label, "base");
        assert!(find_recorded(&work, "aa1").unwrap().is_none(), "a beginning is no id");
        type Damage = fn(&str) -> String;
        let damages: [(&str, Damage, &str); 3] = [
            (SUMS_FILE, |text| format!("0{text}"), "BLAKE3SUMS is not the list that was written"),
            (MANIFEST, |text| text.replace("223.5", "0.5"), "kernel.json is not the file that was written"),
            (RESULT_FILE, |text| text.replace("aa11", "aa12"), "is not what was written"),
        ];
        for (name, change, words) in damages {
            let path = kernel.join(name);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, change(&text)).unwrap();
            for meant in ["base", "aa11", "aa"] {
                let error = find(&work, meant).unwrap_err().to_string();
                assert!(error.contains(words), "{meant}: {error}");
            }
            assert!(find_recorded(&work, "aa11").unwrap_err().to_string().contains(words));
            assert!(matches!(find(&work, "cc"), Err(Error::UnknownKernel { .. })));
            assert!(find(&work, "other").is_ok() && find_recorded(&work, "bb22").unwrap().is_some());
            fs::write(&path, text).unwrap();
        }
        fs::remove_file(kernel.join(RESULT_FILE)).unwrap();
        assert!(find(&work, "base").unwrap_err().to_string().contains("result.json is missing"));
    }

    #[test]
    fn only_what_the_store_owns_is_removed() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let work = WorkDir::open(here.path()).unwrap();
        let other = WorkDir::open(there.path()).unwrap();
        let kernel = put(&other, "aa11", "base", "2025-01-01T00:00:00Z");
        for name in [kernel.to_str().unwrap(), "../kernels/aa11", "./aa11"] {
            let error = remove(&work, name).unwrap_err();
            assert!(matches!(error, Error::NotInStore { .. }), "{name}: {error}");
        }
        // A kernel whose manifest has the id of another directory.
        let bad = put(&work, "bb22", "bad", "2025-01-01T00:00:00Z");
        let victim = here.path().join("victim");
        fs::create_dir(&victim).unwrap();
        let text = fs::read_to_string(bad.join(MANIFEST)).unwrap();
        fs::write(bad.join(MANIFEST), text.replace("bb22", "../victim")).unwrap();
        assert!(remove(&work, "bad").is_err() && remove(&work, "../victim").is_err());
        assert!(victim.is_dir() && kernel.is_dir());
    }
}
