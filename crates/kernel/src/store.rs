//! The kernels of a work directory: load, list, find, remove.

use crate::manifest::SCHEMA;
use crate::profile_tree::hash_tree;
use crate::sources::{self, Sources};
use crate::{kept, Error, KernelManifest, Result, Symbols};
use kerntune_work::{
    checked, hash_file, read_file, read_versioned, ContentHash, Id, IoContext, Seal, WorkDir, RESULT_FILE,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The kind of result in the work directory.
pub(crate) const KIND: &str = "kernels";
pub(crate) const MANIFEST: &str = "kernel.json";
/// The field of a kernel's key that has what its profile says ([`hash_tree`]).
pub(crate) const PROFILE: &str = "profile";
/// The field of a key that names the kernel whose objects were linked again.
pub(crate) const LINKED_FROM: &str = "kernel";
/// The name, in a partial directory, of what is being deleted: never part of a result.
pub(crate) const DOOMED: &str = "removed";

/// One built kernel: a directory with `vmlinux`, `bzImage` (where there is one), `System.map`, `config`, `sources.tsv`,
/// `build.log` and `kernel.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The result directory, absolute.
    pub dir: PathBuf,
    /// What it was made from.
    pub manifest: KernelManifest,
}

impl Kernel {
    /// Loads the kernel in `dir` and checks that every file of it is as it was built.
    ///
    /// # Errors
    /// A directory that is no kernel of this version, or one in which something changed.
    pub fn load(dir: &Path) -> Result<Self> {
        let kernel = Self::peek(dir)?;
        checked(&kernel.dir, &[])?;
        Ok(kernel)
    }

    /// What the kernel in `dir` says of itself; its images are not looked at.
    ///
    /// # Errors
    /// A directory that is no kernel of this version, or whose `kernel.json` changed.
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

    /// The id of the profile that it was compiled with: `id` if that profile's files, `tree`, are the same as those. A kernel is
    /// found by what its profile says, so the one that it was built for first may have another id.
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
        // One that was linked again was compiled where its objects were.
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

    /// What names the contents of its images, wherever the kernel came from.
    ///
    /// # Errors
    /// An image that cannot be read.
    pub fn content(&self) -> Result<String> {
        let hash = ContentHash::new("kernel-images/1").field("vmlinux", hash_file(&self.vmlinux())?);
        Ok(hash.field("image", hash_file(&self.image())?).finish())
    }

    /// The ELF image with symbols.
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// Its functions, each with the path of its source file where the build told it.
    ///
    /// # Errors
    /// What is wrong with `vmlinux` or `sources.tsv`; the latter need not be there.
    pub fn symbols(&self) -> Result<Symbols> {
        let mut symbols = Symbols::load(&self.vmlinux())?;
        if let Some(sources) = self.sources()? {
            symbols.set_files(&sources);
        }
        Ok(symbols)
    }

    /// The source files of its functions; none if the build did not tell them.
    ///
    /// # Errors
    /// What is wrong with `sources.tsv`.
    pub fn source_files(&self) -> Result<BTreeSet<String>> {
        Ok(self.sources()?.map(|sources| sources.paths()).unwrap_or_default())
    }

    fn sources(&self) -> Result<Option<Sources>> {
        let path = self.dir.join(sources::FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).at("read", &path)?;
        Sources::parse(&text, &self.dir).map(Some)
    }

    /// What is started: `bzImage`, or `vmlinux` itself for User-Mode Linux.
    pub fn image(&self) -> PathBuf {
        self.dir.join(self.manifest.arch.image())
    }

    /// The image that a PC boots.
    pub fn bzimage(&self) -> PathBuf {
        self.dir.join("bzImage")
    }

    /// The final `.config`.
    pub fn config(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// What make and the compiler said.
    pub fn build_log(&self) -> PathBuf {
        self.dir.join("build.log")
    }

    /// The build directory with all objects, if it was kept. Its contents are not looked at
    /// ([`kept_objects`](Self::kept_objects)).
    pub fn build_dir(&self) -> Option<PathBuf> {
        Some(self.dir.join("build")).filter(|p| p.is_dir())
    }

    /// The build directory if it was kept, every object and note of it as it was compiled.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first object that is not.
    pub fn kept_objects(&self) -> Result<Option<PathBuf>> {
        let Some(build) = self.build_dir() else { return Ok(None) };
        kept::check(&self.dir, &build)?;
        Ok(Some(build))
    }

    /// Whether `name` is its label or one of its aliases.
    fn is_called(&self, name: &str) -> bool {
        self.manifest.label == name || self.manifest.aliases.iter().any(|a| a == name)
    }

    /// `base (0123456789abcdef)`.
    fn named(&self) -> String {
        format!("{} ({})", self.manifest.label, self.manifest.id)
    }
}

/// Every kernel of the work directory, oldest first. Unfinished builds are left out, damaged ones too
/// ([`damaged`]).
pub fn list(work: &WorkDir) -> Result<Vec<Kernel>> {
    let mut kernels: Vec<Kernel> = work.list(KIND)?.iter().filter_map(|dir| Kernel::peek(dir).ok()).collect();
    kernels.sort_by(|a, b| (&a.manifest.built, &a.manifest.id).cmp(&(&b.manifest.built, &b.manifest.id)));
    Ok(kernels)
}

/// What is wrong with the entries that [`list`] leaves out.
///
/// # Errors
/// A work directory that cannot be listed.
pub fn damaged(work: &WorkDir) -> Result<Vec<Error>> {
    // What Debian packages and configurations leave beside kernels is not theirs.
    let mut found: Vec<Error> = work.damaged(KIND)?.into_iter().map(|(_, error)| error.into()).collect();
    found.extend(work.list(KIND)?.iter().filter_map(|dir| Kernel::peek(dir).err()));
    Ok(found)
}

/// Finds a kernel by label, by id or the beginning of one, or by the path of its directory.
///
/// # Errors
/// [`Error::UnknownKernel`] names what there is, [`Error::AmbiguousKernel`] the candidates; one that is there and damaged.
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
        [] => match damage_of(work, &|id, label| {
            label == Some(name) || (!name.is_empty() && id.starts_with(name))
        })? {
            Some(damage) => Err(damage),
            None => Err(Error::UnknownKernel { name: name.to_string(), known: known(&kernels) }),
        },
        _ => {
            let candidates = found.iter().map(|k| k.named()).collect();
            Err(Error::AmbiguousKernel { name: name.to_string(), candidates })
        }
    }
}

/// The kernel with this id, of which a recording is; none if it is not in the work directory (built elsewhere, or removed).
///
/// # Errors
/// One that is there and damaged.
pub fn find_recorded(work: &WorkDir, id: &str) -> Result<Option<Kernel>> {
    match work.find(KIND, id) {
        Some(dir) => Kernel::load(&dir).map(Some),
        None => damage_of(work, &|found, _| found == id)?.map_or(Ok(None), Err),
    }
}

/// Damage of the first kernel whose id and label are meant, if any of the damaged ones is.
fn damage_of(work: &WorkDir, is_meant: &dyn Fn(&str, Option<&str>) -> bool) -> Result<Option<Error>> {
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
        // Not to be relied on, but enough to know what is meant.
        let text = read_file(dir.join(MANIFEST)).ok();
        let manifest = text.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        let label = manifest.as_ref().and_then(|manifest| manifest.get("label")?.as_str());
        is_meant(&id, label)
    });
    Ok(found.map(|(_, error)| error))
}

/// What a message says of kernels that were not meant: the newest, and how to see all.
fn known(kernels: &[Kernel]) -> String {
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

/// The kernel, listed under this name too from now on.
pub(crate) fn known_as(work: &WorkDir, mut kernel: Kernel, label: &str) -> Result<Kernel> {
    let of = &mut kernel.manifest;
    if of.label != label && !of.aliases.iter().any(|alias| alias == label) {
        work.add_name(KIND, &of.id, label)?;
        of.aliases.push(label.to_string());
    }
    Ok(kernel)
}

/// Deletes the kernel of the work directory that is called `name`: by label, by id or the beginning of one. A damaged
/// one is deleted by its whole id. Returns its directory.
///
/// # Errors
/// [`Error::NotInStore`] for a path: only what the store owns is deleted. Those of [`find`].
pub fn remove(work: &WorkDir, name: &str) -> Result<PathBuf> {
    if name.contains('/') {
        return Err(Error::NotInStore { path: name.into() });
    }
    let id = match find(work, name) {
        Ok(kernel) if Some(kernel.dir.as_path()) == work.find(KIND, &kernel.manifest.id).as_deref() => {
            kernel.manifest.id
        }
        Ok(kernel) => return Err(Error::NotInStore { path: kernel.dir }),
        // Damaged, or of an older version.
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

        // Linked again it has the same objects.
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
        // It is not listed as sound, and the listing can say what is wrong.
        assert!(list(&work).unwrap().is_empty());
        assert!(damaged(&work).unwrap()[0].to_string().contains("kernel.json is not the file"));
        // It goes by its id.
        remove(&work, "aa11").unwrap();
        assert!(damaged(&work).unwrap().is_empty());
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
        // A kernel that names another directory as its id.
        let bad = put(&work, "bb22", "bad", "2025-01-01T00:00:00Z");
        let victim = here.path().join("victim");
        fs::create_dir(&victim).unwrap();
        let text = fs::read_to_string(bad.join(MANIFEST)).unwrap();
        fs::write(bad.join(MANIFEST), text.replace("bb22", "../victim")).unwrap();
        assert!(remove(&work, "bad").is_err() && remove(&work, "../victim").is_err());
        assert!(victim.is_dir() && kernel.is_dir());
    }
}
