//! Configuration: from a request to the final `.config`, computed once for each set of inputs.

use crate::inputs::config::{self, ConfigSetting, OptionOrigin, RequestedOptions};
use crate::make::build_tree::BuildTree;
use crate::make::kbuild::Kbuild;
use crate::make::object_cache::ObjectCache;
use crate::{BaseConfig, BuildRequest, CompilerIdentity, ImportedSource, Kernel, Result};
use kerntune_work::{write_atomic, write_json, ContentHash, IoContext, Key, Progress, StagedResult, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

const KIND: &str = "configs";
/// Name of the configuration file in a result of this kind.
const CONFIG: &str = "config";

/// Configuration after `make olddefconfig`.
#[derive(Debug, Clone)]
pub(crate) struct FinalConfig {
    pub text: String,
    /// Hash over `text`.
    pub hash: String,
    pub warnings: Vec<String>,
}

impl FinalConfig {
    fn load(dir: &Path, fragments: &[PathBuf]) -> Result<Self> {
        let (config, warnings) = (dir.join(CONFIG), dir.join("warnings.json"));
        let text = fs::read_to_string(&config).at("read", &config)?;
        let said = fs::read(&warnings).at("read", &warnings)?;
        let said = serde_json::from_slice(&said)
            .map_err(|source| kerntune_work::Error::Json { path: warnings, source })?;
        let hash = ContentHash::new("config/1").field("config", &text).finish();
        Ok(Self { text, hash, warnings: config::with_paths(said, fragments) })
    }

    /// Loads the final configuration of an existing kernel as it is. It is not configured again.
    pub fn of_kernel(kernel: &Kernel) -> Result<Self> {
        let path = kernel.config();
        let text = fs::read_to_string(&path).at("read", &path)?;
        let hash = ContentHash::new("config/1").field("config", &text).finish();
        Ok(Self { text, hash, warnings: Vec::new() })
    }

    /// Counts the built-in options.
    pub fn built_in(&self) -> usize {
        self.text.lines().filter(|l| l.ends_with("=y")).count()
    }

    pub fn has(&self, line: &str) -> bool {
        self.text.lines().any(|l| l == line)
    }
}

/// Configures in a build directory of its own below `configs/<hash of the inputs>`.
pub(crate) fn configure(
    work: &WorkDir,
    source: &ImportedSource,
    compiler: &CompilerIdentity,
    request: &BuildRequest,
    progress: &dyn Progress,
) -> Result<FinalConfig> {
    let base = match &request.base {
        BaseConfig::Ours => None,
        BaseConfig::File(path) => Some((path, read(path)?)),
    };
    let mut hash = Key::new("configure/4", "")
        .field("source", source.configured_as())
        .field("compiler", format!("{} {}", compiler.program, compiler.version))
        .field("base", base.as_ref().map_or(request.arch.base_fragment(), |(_, text)| text))
        .field("base kind", if base.is_some() { "file" } else { "ours" })
        .field("required", request.arch.required_fragment())
        .field("extra", request.extra.join("\n"));
    if !request.arch.is_default() {
        hash = hash.field("arch", request.arch.name());
    }
    let mut wanted = RequestedOptions::default();
    if base.is_none() {
        wanted.merge(config::parse(request.arch.base_fragment(), "base.config")?, &OptionOrigin::Base);
    }
    let certificates = |settings: Vec<ConfigSetting>| {
        let mut settings = settings;
        let emptied = config::drop_absent_certificates(&mut settings, source.dir());
        (settings, emptied)
    };
    let mut emptied = Vec::new();
    for (at, path) in request.fragments.iter().enumerate() {
        let text = read(path)?;
        hash = hash.field("fragment", &text);
        let (settings, said) = certificates(config::parse(&text, &path.display().to_string())?);
        emptied.extend(said);
        wanted.merge(settings, &OptionOrigin::User(at));
    }
    for (name, value) in request.make_vars.iter().filter(|(name, _)| is_seen_by_kconfig(name)) {
        hash = hash.field("make", format!("{name}={value}"));
    }
    wanted
        .merge(config::parse(request.arch.required_fragment(), "required.config")?, &OptionOrigin::Required);
    let (extra, said) = certificates(config::parse(&request.extra.join("\n"), "the recipe's options")?);
    emptied.extend(said);
    wanted.merge(extra, &OptionOrigin::Extra);
    wanted.warnings.extend(emptied);
    let start = match &base {
        Some((path, text)) => Some(config::parse(text, &path.display().to_string())?),
        None => None,
    };

    if let Some(dir) = work.find_verified(KIND, &hash.id()) {
        return FinalConfig::load(&dir, &request.fragments);
    }
    let staged = work.stage(KIND, &hash)?;
    if let Some(dir) = staged.already() {
        return FinalConfig::load(&dir, &request.fragments);
    }
    staged.clear()?;
    let mut start = match start {
        Some(start) => start,
        None => config::parse(&tinyconfig(work, source, compiler, request, progress)?, ".config")?,
    };
    wanted.warnings.extend(config::drop_absent_certificates(&mut start, source.dir()));
    let text = run_config_target(work, source, request, &staged, |kbuild, dot_config| {
        write_atomic(dot_config, wanted.over(&start).as_bytes())?;
        kbuild.make("configure (olddefconfig)", &["olddefconfig".into()], None, progress).map(drop)
    })?;
    let result = config::parse(&text, ".config")?;
    let warnings = wanted.check(&result, || config::known_options(source.dir()))?;
    write_json(&staged.path().join("warnings.json"), &warnings)?;
    FinalConfig::load(&staged.publish()?, &request.fragments)
}

/// Returns the result of `make tinyconfig`, the start of every configuration of ours. It is cached,
/// because it takes two runs of Kconfig, each of which asks the compiler hundreds of questions.
fn tinyconfig(
    work: &WorkDir,
    source: &ImportedSource,
    compiler: &CompilerIdentity,
    request: &BuildRequest,
    progress: &dyn Progress,
) -> Result<String> {
    let mut key = Key::new("configure-tiny/1", "")
        .field("source", source.configured_as())
        .field("compiler", format!("{} {}", compiler.program, compiler.version))
        .field("arch", request.arch.name());
    for (name, value) in request.make_vars.iter().filter(|(name, _)| is_seen_by_kconfig(name)) {
        key = key.field("make", format!("{name}={value}"));
    }
    if let Some(dir) = work.find_verified(KIND, &key.id()) {
        return read(&dir.join(CONFIG));
    }
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return read(&dir.join(CONFIG));
    }
    staged.clear()?;
    let text = run_config_target(work, source, request, &staged, |kbuild, _| {
        kbuild.make("configure (tinyconfig)", &["tinyconfig".into()], None, progress).map(drop)
    })?;
    staged.publish()?;
    Ok(text)
}

/// Checks whether a make variable may change a configuration. Flags of objects do not.
fn is_seen_by_kconfig(name: &str) -> bool {
    !name.starts_with("CFLAGS_")
}

/// Runs `make` in a temporary build directory and returns the configuration, which also becomes a
/// file of the result.
fn run_config_target(
    work: &WorkDir,
    source: &ImportedSource,
    request: &BuildRequest,
    staged: &StagedResult,
    make: impl FnOnce(&Kbuild, &Path) -> Result<()>,
) -> Result<String> {
    let tree = BuildTree::of(staged.path());
    tree.link(work, source.dir())?;
    let cache = ObjectCache::of(work);
    let kbuild = Kbuild {
        tree: &tree,
        arch: request.arch,
        compiler: &request.compiler,
        make_vars: &request.make_vars,
        log: staged.path().join("config.log"),
        cache: cache.as_ref(),
    };
    let dot_config = tree.build().join(".config");
    make(&kbuild, &dot_config)?;
    let text = read(&dot_config)?;
    write_atomic(&staged.path().join(CONFIG), text.as_bytes())?;
    tree.remove()?;
    Ok(text)
}

/// Reads a configuration, compressed or not.
fn read(path: &Path) -> Result<String> {
    crate::inputs::packed::read_text(path)
}
