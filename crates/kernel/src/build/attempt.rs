//! Build of a kernel: from a request to a result in the work directory.

use crate::build::build_clock::BuildClock;
use crate::build::configure::{configure, FinalConfig};
use crate::build::copied_objects::{begin_with, COPY};
use crate::inputs::release;
use crate::kernels::manifest::{rfc3339, SCHEMA};
use crate::kernels::profile_tree::{hash_tree, list_files};
use crate::kernels::store::{add_label, KIND, MANIFEST, PROFILE, TRASH};
use crate::link::borrowed;
use crate::link::install::{install_modules, ModuleBuild};
use crate::make::aside::{link, remove, restore};
use crate::make::build_tree::{BuildTree, CWD};
use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::make::pool::ObjectPool;
use crate::vmlinux::image::checked_bytes;
use crate::vmlinux::offsets;
use crate::vmlinux::source_map::{self, SourceMap};
use crate::{
    tools, BuildRequest, CompilerIdentity, Error, FunctionOrder, ImportedSource, Kernel, KernelManifest,
    Result, SourceRecord, Symbols, TaskLayout,
};
use kerntune_work::{
    interrupt, write_atomic, write_json, IoContext, Key, Label, Progress, RelativePath, StagedResult, WorkDir,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Objects per built-in option, for kernels whose number of objects was never recorded. The lean
/// 6.12 kernel has 630 options `=y` and 1,079 objects.
pub(crate) const OBJECTS_PER_OPTION: f64 = 1.75;

/// Directory in a kernel's result that holds the patches of its source.
const PATCHES: &str = "patches";

/// Programs that a build needs besides a compiler, with their Debian packages.
pub(crate) const TOOLS: &[(&str, &str)] =
    &[("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("perl", "perl")];

/// Builds the kernel that `request` describes, or returns it if it was built before.
///
/// The id is a hash over the source, the final `.config`, the compiler with its full version,
/// flags, make variables and the profile; a kernel of one id is built only once. An interrupted
/// build resumes where it stopped when the same request comes again. If the kernel was built under
/// another label, the request's label is added to it.
///
/// # Errors
/// Missing tools, a source or configuration that cannot be used, and failed builds, the latter with
/// the first error of the log; see [`Error`](crate::Error).
pub fn build(work: &WorkDir, request: &BuildRequest, progress: &dyn Progress) -> Result<Kernel> {
    request.label.parse::<Label>()?;
    let inputs = BuildInputs::of(work, request, None, progress)?;
    let id = inputs.key.id();
    if let Some(kernel) = finished(work, &id, request)? {
        return Ok(kernel);
    }
    let staged = work.stage(KIND, &inputs.key)?;
    // Another process may have built it while this one waited for the lock.
    if let Some(kernel) = finished(work, &id, request)? {
        return Ok(kernel);
    }
    BuildAttempt::new(work, request, staged, inputs).run(progress)
}

/// Inputs of a build, resolved before anything is compiled.
pub(crate) struct BuildInputs {
    pub source: ImportedSource,
    pub config: FinalConfig,
    pub compiler: CompilerIdentity,
    pub profile_id: Option<String>,
    /// Key whose hash is the kernel's id.
    pub key: Key,
}

impl BuildInputs {
    /// Resolves a request, with the configuration of an existing kernel if one is given, else with
    /// a new one.
    pub fn of(
        work: &WorkDir,
        request: &BuildRequest,
        configured: Option<FinalConfig>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        request.check()?;
        tools::plain_path(work.root())?;
        tools::require(TOOLS)?;
        let compiler = request.compiler.identify()?;
        let source = ImportedSource::import(work, &request.source, progress)?;
        let mut patches = match request.arch.patches(&source)? {
            Some(set) => {
                set.borrowed(source.version()).iter().for_each(|sentence| progress.note(sentence));
                set.write(work)?
            }
            None => Vec::new(),
        };
        patches.extend(request.patches.iter().cloned());
        let source = source.patched(work, &patches, progress)?;
        let config = match configured {
            Some(config) => config,
            None => configure(work, &source, &compiler, request, progress)?,
        };
        release::check(source.version(), &config.text)?;
        if request.modules && !config.has("CONFIG_MODULES=y") {
            let problem = format!("kernel {} has no modules to build: CONFIG_MODULES=y", request.label);
            return Err(Error::ConfigRefused { problems: vec![problem] });
        }
        for warning in &config.warnings {
            progress.note(&format!("warning: {warning}"));
        }
        let profile_id = match (&request.profile_id, &request.profile_dir) {
            (Some(id), _) => Some(id.clone()),
            (None, Some(dir)) => Some(hash_tree(dir)?),
            (None, None) => None,
        };
        let profile = request.profile_dir.as_deref().map(hash_tree).transpose()?;
        let key = kernel_key(&source, &config, &compiler, request, profile.as_deref());
        Ok(Self { source, config, compiler, profile_id, key })
    }
}

/// Returns kernel `id` if it is complete and satisfies the request, and adds the request's label to
/// it.
fn finished(work: &WorkDir, id: &str, request: &BuildRequest) -> Result<Option<Kernel>> {
    let Some(kernel) = work.find_verified(KIND, id).and_then(|dir| Kernel::load(&dir).ok()) else {
        return Ok(None);
    };
    if keeps_objects(request) {
        match kernel.kept_objects() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) => {
                work.note(&format!("{error}: it is built again"));
                return Ok(None);
            }
        }
    }
    add_label(work, kernel, &request.label).map(Some)
}

fn keeps_objects(request: &BuildRequest) -> bool {
    request.keep_objects || request.movable
}

/// Version of the rule by which kernels are named and built. A kernel takes minutes to build, so
/// this is raised by hand; a test reminds of it whenever the code changes
/// (`crates/kernel/tests/code_version.rs`).
pub(crate) const RULE: &str = "kernel/4";

fn kernel_key(
    source: &ImportedSource,
    config: &FinalConfig,
    compiler: &CompilerIdentity,
    request: &BuildRequest,
    profile: Option<&str>,
) -> Key {
    let mut hash = Key::new(RULE, "")
        .field("source", source.hash())
        .field("config", &config.hash)
        .field("compiler", &compiler.program)
        .field("version", &compiler.version)
        .field(PROFILE, profile.unwrap_or_default())
        .field("modules", if request.modules { "yes" } else { "no" });
    if !request.arch.is_default() {
        hash = hash.field("arch", request.arch.name());
    }
    for flag in &request.flags() {
        hash = hash.field("flag", flag);
    }
    for object in &request.object_flags {
        let flags = format!("{}\n{}", object.add.join(" "), object.leave_out.join(" "));
        hash = hash.field("object alone", &object.path).field("object flags", flags);
    }
    for group in &request.object_groups {
        hash = hash.field("objects of a group", group.objects.join("\n"));
        hash = hash.field("flags of the group", group.flags.join("\n"));
    }
    for (name, value) in &request.make_vars {
        hash = hash.field("make", format!("{name}={value}"));
    }
    hash
}

/// One attempt at a build. It holds the lock on the partial directory.
pub(crate) struct BuildAttempt<'a> {
    work: &'a WorkDir,
    request: &'a BuildRequest,
    staged: StagedResult,
    source: ImportedSource,
    config: FinalConfig,
    compiler: CompilerIdentity,
    id: String,
    profile_id: Option<String>,
}

impl<'a> BuildAttempt<'a> {
    pub fn new(
        work: &'a WorkDir,
        request: &'a BuildRequest,
        staged: StagedResult,
        inputs: BuildInputs,
    ) -> Self {
        let BuildInputs { source, config, compiler, profile_id, key } = inputs;
        let id = key.id();
        Self { work, request, staged, source, config, compiler, id, profile_id }
    }

    /// Returns the partial directory.
    pub fn partial(&self) -> &Path {
        self.staged.path()
    }

    fn run(self, progress: &dyn Progress) -> Result<Kernel> {
        let partial = self.staged.path().to_owned();
        let tree = BuildTree::of(&partial);
        sweep(&partial)?;
        // The manifest is the last file written; only removing the build directory and the final
        // rename follow.
        if partial.join(MANIFEST).is_file() {
            if !keeps_objects(self.request) || tree.build().is_dir() || kept(&partial).is_dir() {
                return self.publish(&partial, &tree);
            }
            self.staged.clear()?;
        }
        let log = partial.join("build.log");
        let spent = BuildClock::begin(&partial, &log)?;
        self.source.check(self.work)?;
        let cache = ObjectCache::of(self.work);
        // A build that keeps its objects cannot return them to a pool.
        let pool = self.request.pool.as_deref().filter(|_| self.is_plain() && !keeps_objects(self.request));
        let pool = pool.map(|directory| ObjectPool::open(directory, progress)).transpose()?;
        if pool.is_none() && !tree.build().is_dir() {
            self.begin_with_similar(&partial, &tree)?;
        }
        let outputs = self.request.arch.outputs().iter().map(|(from, _)| *from);
        pool.iter().try_for_each(|pool| pool.lend(&tree, outputs.clone()))?;
        let made = self.make(&partial, &tree, (log, spent), cache.as_ref(), progress);
        pool.iter().try_for_each(|pool| pool.take_back(&tree))?;
        made?;
        self.publish(&partial, &tree)
    }

    /// Copies the objects of a similar kernel, if one is named and its objects are whole.
    fn begin_with_similar(&self, partial: &Path, tree: &BuildTree) -> Result<()> {
        let Some(similar) = &self.request.begin_with else { return Ok(()) };
        let kernel = Kernel::load(similar)?;
        if kernel.build_dir().is_none() || !self.is_similar(&kernel.manifest) {
            return Ok(());
        }
        match begin_with(self.work, &kernel, partial, tree) {
            Ok(()) => {}
            Err(error) => {
                interrupt::check()?;
                // A partial copy would become part of the kernel.
                remove(&partial.join(COPY))?;
                self.work.note(&format!("{error}: all objects are compiled"));
            }
        }
        Ok(())
    }

    /// Checks that make sees all that differs from a kernel: configuration and flags, but neither
    /// sources with dates of their own, nor compilers, nor profiles.
    fn is_similar(&self, of: &KernelManifest) -> bool {
        fn others(vars: &[(String, String)]) -> Vec<&(String, String)> {
            vars.iter().filter(|(name, _)| !name.starts_with("CFLAGS_")).collect()
        }
        of.source.hash == self.source.hash()
            && of.compiler == self.compiler
            && of.arch == self.request.arch
            && of.profile_id.is_none()
            && others(&of.make_vars) == others(&self.request.make_vars)
    }

    /// Compiles, and collects the outputs beside the build directory.
    fn make(
        &self,
        partial: &Path,
        tree: &BuildTree,
        (log, spent): (PathBuf, BuildClock),
        cache: Option<&ObjectCache>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let objects = self.compile(tree, log, cache, progress)?;
        if let Err(error) = self.source.check_unchanged() {
            self.staged.clear()?;
            return Err(error);
        }
        interrupt::check()?;
        self.collect(partial, &tree.build(), objects, spent)
    }

    /// Checks whether compilers read and write only sources and objects: no profiles or counters
    /// beside them.
    fn is_plain(&self) -> bool {
        let BuildRequest { profile_dir, movable, .. } = self.request;
        profile_dir.is_none() && !movable && !self.config.has("CONFIG_GCOV_KERNEL=y")
    }

    /// Checks whether AutoFDO is to read line tables from this build, by the flags or the option that
    /// it has only for that.
    fn is_to_be_profiled(&self) -> bool {
        let has_flag = self.request.kcflags.iter().any(|flag| flag == "-fdebug-info-for-profiling");
        self.request.profile_dir.is_none() && (has_flag || self.config.has("CONFIG_AUTOFDO_CLANG=y"))
    }

    /// Returns the lock on the partial directory, if the source is still the imported one.
    pub fn into_staged(self) -> Result<StagedResult> {
        self.source.check_unchanged()?;
        Ok(self.staged)
    }

    /// Builds the images in `tree`, resuming an interrupted build, and installs the modules into the
    /// partial directory if they are requested. Returns the number of objects without theirs.
    pub fn compile(
        &self,
        tree: &BuildTree,
        log: PathBuf,
        cache: Option<&ObjectCache>,
        progress: &dyn Progress,
    ) -> Result<u64> {
        tree.link(self.work, self.source.dir())?;
        let build = tree.build();
        self.prepare(&build)?;
        let kbuild = Kbuild {
            tree,
            arch: self.request.arch,
            compiler: &self.request.compiler,
            make_vars: &self.request.make_vars,
            log,
            cache,
        };
        let counts = self.work.kind_dir(KIND)?.join(".objects");
        let count_file = counts.join(&self.config.hash);
        let recorded = fs::read_to_string(&count_file).ok().and_then(|t| t.trim().parse::<u64>().ok());
        let (what, expected) = match recorded {
            Some(count) => (format!("build {} {}", self.request.label, self.source.version()), count),
            None => {
                let estimate = (self.config.built_in() as f64 * OBJECTS_PER_OPTION) as u64;
                (
                    format!("build {} {} (objects estimated)", self.request.label, self.source.version()),
                    estimate,
                )
            }
        };
        let BuildRequest { jobs, object_flags, object_groups, .. } = self.request;
        let (jobs, flags) = (*jobs, make_flags(&self.request.flags(), object_flags, object_groups));
        if self.request.movable {
            let args = make_args(jobs, &flags, &[self.request.arch.link_script()]);
            kbuild.make("make the linker script", &args, None, progress)?;
            borrowed::place(&build, self.request.arch, &FunctionOrder::default())?;
        }
        let targets = self.request.arch.targets();
        let objects = kbuild.make(&what, &make_args(jobs, &flags, targets), Some(expected), progress)?;
        if self.request.modules {
            let label = self.request.label.as_str();
            let order = self.request.movable.then(FunctionOrder::default);
            let keep_debug_info = self.is_to_be_profiled();
            let of = ModuleBuild { label, flags: &flags, order: order.as_ref(), keep_debug_info, jobs };
            install_modules(&kbuild, &of, self.partial(), progress)?;
        }
        if self.request.pool.is_some() || self.request.begin_with.is_some() {
            // Only what changed was compiled, so this count is not that of a whole build.
            return Ok(objects);
        }
        fs::create_dir_all(&counts).at("create", &counts)?;
        write_atomic(&count_file, format!("{objects}\n").as_bytes())?;
        Ok(objects)
    }

    /// Puts `.config` and the profile in place. Files that are already there are not touched, so
    /// that make resumes an interrupted build.
    fn prepare(&self, build: &Path) -> Result<()> {
        // A killed borrower may have left kept objects mixed.
        restore(build)?;
        let dot_config = build.join(".config");
        if fs::read(&dot_config).ok().as_deref() != Some(self.config.text.as_bytes()) {
            write_atomic(&dot_config, self.config.text.as_bytes())?;
        }
        if let Some(profile) = &self.request.profile_dir {
            for name in list_files(profile)? {
                let (from, to) = (profile.join(&name), build.join(&name));
                let parent = to.parent().unwrap_or(build);
                fs::create_dir_all(parent).at("create", parent)?;
                fs::copy(&from, &to).at("copy profile to", &to)?;
            }
        }
        Ok(())
    }

    /// Writes outputs and manifest beside the build directory.
    fn collect(&self, partial: &Path, build: &Path, objects: u64, spent: BuildClock) -> Result<()> {
        for (from, to) in self.request.arch.outputs() {
            let to = partial.join(to);
            let _ = fs::remove_file(&to);
            link(&build.join(from), &to)?;
        }
        let located = SourceMap::of_build(build, self.source.dir())?;
        if !located.is_empty() {
            write_atomic(&partial.join(source_map::FILE), located.text().as_bytes())?;
        }
        let mut manifest = KernelManifest {
            schema: SCHEMA.to_string(),
            id: self.id.clone(),
            label: self.request.label.clone(),
            aliases: Vec::new(),
            version: self.source.version().to_string(),
            arch: self.request.arch,
            source: SourceRecord {
                origin: self.source.origin().to_string(),
                hash: self.source.hash().to_string(),
                patches: self.keep_patches(partial)?,
            },
            config_hash: self.config.hash.clone(),
            compiler: self.compiler.clone(),
            cc: self.request.compiler.to_string(),
            kcflags: self.request.kcflags.clone(),
            object_flags: self.request.object_flags.clone(),
            object_groups: self.request.object_groups.clone(),
            make_vars: self.request.make_vars.clone(),
            movable: self.request.movable,
            order_id: None,
            rewrite_id: None,
            recipe: self.request.recipe.clone(),
            profile_id: self.profile_id.clone(),
            base_id: self.request.base_id.clone(),
            built: rfc3339(SystemTime::now()),
            build_seconds: spent.end()?,
            objects,
            text_bytes: Symbols::load(&partial.join("vmlinux"))?.text_bytes(),
            image_bytes: checked_bytes(self.request.arch, partial)?,
            build_path: CWD.into(),
            task: TaskLayout::probe(self.request.arch, build, partial)?,
            // A kernel of another form has none of these structures, which is no failure.
            structures: offsets::in_build(self.request.arch, build, partial).unwrap_or_default(),
            warnings: self.config.warnings.clone(),
        };
        // A kernel built again for its objects keeps its first label; the store keeps the others.
        if let Some(before) = self.work.find(KIND, &self.id).and_then(|dir| Kernel::peek(&dir).ok()) {
            manifest.label = before.manifest.label;
        }
        write_json(&partial.join(MANIFEST), &manifest)?;
        Ok(())
    }

    /// Copies the patches, so that the kernel can be built again without the user's files.
    fn keep_patches(&self, partial: &Path) -> Result<Vec<RelativePath>> {
        let mut kept = Vec::new();
        for (number, from) in (1..).zip(&self.request.patches) {
            let name = from.file_name().unwrap_or_default().to_string_lossy().replace(char::is_control, "_");
            let to: RelativePath = format!("{PATCHES}/{number:02}-{name}").parse()?;
            fs::create_dir_all(partial.join(PATCHES)).at("create", partial.join(PATCHES))?;
            fs::copy(from, partial.join(&to)).at("copy", from)?;
            kept.push(to);
        }
        Ok(kept)
    }

    fn publish(self, partial: &Path, tree: &BuildTree) -> Result<Kernel> {
        if keeps_objects(self.request) && tree.build().is_dir() {
            tree.release(&kept(partial))?;
        }
        if tree.top().is_dir() {
            // Renamed before it is deleted, so that a directory called `build` is always complete.
            fs::rename(tree.top(), partial.join(TRASH)).at("rename", tree.top())?;
        }
        sweep(partial)?;
        let mut staged = self.staged;
        let objects = kept(partial);
        if objects.is_dir() {
            crate::kernels::kept::write(partial, &objects)?;
            staged.loose("build");
        }
        let dir = staged.publish()?;
        // The attempt that wrote the manifest may have had another label.
        let kernel = Kernel::load(&dir)?;
        Ok(finished(self.work, &self.id, self.request)?.unwrap_or(kernel))
    }
}

/// Returns the path of the objects in a published kernel.
fn kept(dir: &Path) -> PathBuf {
    dir.join("build")
}

/// Finishes an interrupted deletion.
fn sweep(partial: &Path) -> Result<()> {
    remove(&partial.join(TRASH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::store::tests::manifest;
    use crate::KernelSource;

    #[test]
    fn a_second_label_becomes_an_alias_and_nothing_is_built() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage_as(KIND, "aa11", &Key::new(RULE, "")).unwrap();
        for name in ["vmlinux", "bzImage", "config"] {
            fs::write(staged.path().join(name), name).unwrap();
        }
        write_json(&staged.path().join(MANIFEST), &manifest("aa11", "base", "2025-01-01T00:00:00Z")).unwrap();
        staged.publish().unwrap();

        let mut request = BuildRequest::new(KernelSource::Debian("6.12".into()), "plain");
        for _ in 0..2 {
            let kernel = finished(&work, "aa11", &request).unwrap().unwrap();
            assert_eq!(kernel.manifest.label, "base");
            assert_eq!(kernel.manifest.aliases, ["plain"]);
        }
        assert_eq!(crate::find(&work, "plain").unwrap().manifest.id, "aa11");
        request.keep_objects = true;
        assert!(finished(&work, "aa11", &request).unwrap().is_none(), "its objects are gone");
    }
}
