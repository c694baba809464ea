//! The commands `kerntune kernel build|import|relink|list|show|selftest|reproduce|bisect|remove`.

use super::bytes;
use clap::Subcommand;
use kerntune_command::{
    build_request, command_group, label, show_steps, work_to_read, workload, BuildOptions, CliOutput,
    CommandEntry, CpuOptions, DryRunOptions, Exit, Failure, FormatOptions, GlobalOptions, RunSubcommand,
};
use kerntune_guest::read_text;
use kerntune_kernel::{
    relink, Arch, BuildRequest, Compiler, FunctionOrder, Kernel, KernelManifest, ObjectFlags, RebuildReport,
    ShippedFiles, ShippedKernel,
};
use kerntune_optimize::layout::{
    prepare_coloring, prepare_order, prove, OrderAlgorithm, PreparedOrder, DEFAULT_ALGORITHM, NAME,
};
use kerntune_optimize::{PreparedResult, RecipeProof};
use kerntune_profile::Profile;
use kerntune_tune::base::with_needs;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::package::verify;
use kerntune_tune::selftest::{differences, selftest, CheckDifference, CheckOutcome, SelfTestCheck};
use kerntune_tune::{model, Session};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A kernel in the output of `--json`.
#[derive(Serialize)]
struct KernelJson<'a> {
    path: &'a Path,
    #[serde(flatten)]
    manifest: &'a KernelManifest,
}

pub const COMMAND: CommandEntry = command_group::<KernelCommand>("kernel", 25, "Tune");

/// Build, order, list, test and remove kernels
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Build a kernel; the same inputs are never built twice
    Build {
        #[command(flatten)]
        build: BuildOptions,
        /// Architecture: x86-64, or um for a kernel that runs as a process (User-Mode Linux,
        /// docs/uml.md)
        #[arg(long, default_value_t, value_name = "ARCH")]
        arch: Arch,
        /// Label of the kernel; base-disk, base-numa or the like if not given and the kernel gets what
        /// a workload needs
        #[arg(long, default_value = "base", value_parser = label)]
        label: String,
        /// Add the options that this workload needs (docs/workload-file.md): drivers of its disk, NUMA
        /// nodes, what its `kernel_config` names. A name or a .toml file; may be repeated
        #[arg(long, value_name = "WORKLOAD")]
        workload: Vec<String>,
        /// Put every function into its own section and keep the objects (0.5 GB), so that `kernel
        /// relink` can place functions
        #[arg(long)]
        movable: bool,
        /// Keep the objects (0.3 GB and more), so that `kernel bisect` can mix them with another kernel's
        #[arg(long)]
        keep_objects: bool,
        /// Compiler flag for one object (net/ipv4/tcp.o=-O3) or for a directory (net/=-O3); may be
        /// repeated
        #[arg(long, value_name = "PATH=FLAG")]
        object_flags: Vec<ObjectFlags>,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Make a kernel as a distribution ships it a kernel of the work directory, without source or
    /// build (docs/kernel-import.md)
    Import {
        /// Debian packages of one kernel: linux-image-…, or linux-binary-…, linux-base-… and
        /// linux-modules-…; linux-image-…-dbg if its symbols are wanted; a package of pacman's
        /// (.pkg.tar.zst); or a directory in which a kernel was built
        #[arg(value_name = "PACKAGE", required_unless_present_any = ["running", "image"], conflicts_with_all = ["running", "image"])]
        packages: Vec<PathBuf>,
        /// The kernel that this machine runs, from /boot, /lib/modules or apt's cache
        #[arg(long, conflicts_with = "image")]
        running: bool,
        /// The bootable image (vmlinuz)
        #[arg(long, value_name = "FILE")]
        image: Option<PathBuf>,
        /// The configuration of the image's kernel; may be compressed [default: that in the image]
        #[arg(long, value_name = "FILE", requires = "image")]
        config: Option<PathBuf>,
        /// The image's kernel with symbols [default: the symbols in the image]
        #[arg(long, value_name = "FILE", requires = "image")]
        vmlinux: Option<PathBuf>,
        /// The directory of the image's modules (/lib/modules/RELEASE)
        #[arg(long, value_name = "DIR", requires = "image")]
        modules: Option<PathBuf>,
        /// Label of the kernel [default: its release]
        #[arg(long, value_parser = label)]
        label: Option<String>,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Relink a movable kernel with its functions in another order
    #[command(alias = "order")]
    Relink {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Order the functions by the calls in this profile: a recording of the kernel with edges, or
        /// counted calls or call chains of any kernel (docs/recipes.md)
        #[arg(long, required_unless_present = "file", conflicts_with = "file")]
        profile: Option<String>,
        /// Algorithm for the order (docs/layout.md)
        #[arg(long, default_value = "c3", value_parser = ["pettis-hansen", "c3", "cdsort"], conflicts_with = "file")]
        algorithm: String,
        /// Use cache coloring for a 32-KiB cache with 8 ways; needs a profile with functions
        #[arg(long, alias = "sets", requires = "profile", conflicts_with = "file")]
        cache_coloring: bool,
        /// Place the functions of this file first: one name per line, followed by `@ OFFSET` for a
        /// fixed place
        #[arg(long)]
        file: Option<PathBuf>,
        /// Label of the new kernel
        #[arg(long, value_parser = label)]
        label: String,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// List all built kernels
    List {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Show the provenance of a kernel
    Show {
        /// Label, beginning of an id, or directory
        kernel: String,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Run functional checks on a kernel
    #[command(alias = "check")]
    Selftest {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// The kernel whose results count as correct [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        against: Option<String>,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Build a kernel again from its source, and compare every byte
    #[command(alias = "verify")]
    Reproduce {
        /// Label, beginning of an id, or directory
        kernel: String,
        /// Number of parallel jobs [default: number of CPUs]
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Find which objects break a kernel that does not boot or fails a check (docs/bisect.md)
    Bisect {
        /// The broken kernel: label, beginning of an id, or directory
        kernel: String,
        /// A working build of the same kernel [default: its base kernel, if it has one]
        #[arg(long, value_name = "KERNEL")]
        good: Option<String>,
        #[command(flatten)]
        dry: DryRunOptions,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Delete a kernel
    Remove {
        /// Label, beginning of an id, or directory
        kernel: String,
    },
}

impl RunSubcommand<GlobalOptions> for KernelCommand {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let work = match self {
            Self::Build { dry, .. } | Self::Import { dry, .. } => dry.work(global)?,
            Self::Relink { dry, .. }
            | Self::Selftest { dry, .. }
            | Self::Reproduce { dry, .. }
            | Self::Bisect { dry, .. } => dry.work_to_read(global)?,
            Self::List { .. } | Self::Show { .. } | Self::Remove { .. } => work_to_read(global)?,
        };
        match self {
            Self::Build {
                build,
                arch,
                label,
                workload: of,
                movable,
                keep_objects,
                object_flags,
                dry,
                format,
            } => {
                let workloads = of
                    .iter()
                    .map(|name| workload(name, &CpuOptions::default()))
                    .collect::<Result<Vec<_>, _>>()?;
                let request = BuildRequest {
                    arch: *arch,
                    movable: *movable,
                    keep_objects: *keep_objects,
                    object_flags: object_flags.clone(),
                    ..build_request(build, label, Compiler::default())?
                };
                let request = with_needs(request, &workloads);
                if dry.dry_run {
                    let session = Session::on(*arch, &work, output.progress())?;
                    let mut dry = DryRun::new(&session);
                    dry.kernel(format!("build the kernel {}", request.label), &request)?;
                    return Ok(show_steps(dry, format.json, output));
                }
                let kernel = kerntune_kernel::build(&work, &request, output.progress())?;
                show(&kernel, format.json, output)?;
            }
            Self::Import { packages, running, image, config, vmlinux, modules, label, dry, format } => {
                let given = match (image, &packages[..]) {
                    (Some(image), _) => ShippedKernel::Files(ShippedFiles {
                        image: image.clone(),
                        config: config.clone(),
                        vmlinux: vmlinux.clone(),
                        modules: modules.clone(),
                    }),
                    _ if *running => ShippedKernel::running()?,
                    (_, [tree]) if tree.is_dir() => ShippedKernel::Files(ShippedFiles::of_build(tree)?),
                    _ => ShippedKernel::Packages(packages.clone()),
                };
                if dry.dry_run {
                    let session = Session::new(&work, output.progress())?;
                    let mut dry = DryRun::new(&session);
                    dry.import(&given)?;
                    return Ok(show_steps(dry, format.json, output));
                }
                output.progress().begin("import the kernel", None);
                let imported = kerntune_kernel::import(&work, &given, label.as_deref());
                output.progress().end();
                show(&imported?, format.json, output)?;
            }
            Self::Relink { kernel, profile, algorithm, cache_coloring, file, label, dry, format } => {
                let kernel = kerntune_kernel::find(&work, kernel)?;
                let given = match (file, profile) {
                    (Some(file), _) => OrderSource::File(file),
                    (None, Some(profile)) => {
                        OrderSource::Profile { profile, algorithm, cache_coloring: *cache_coloring }
                    }
                    (None, None) => return Err(Failure::usage("an order needs --profile or --file")),
                };
                if dry.dry_run {
                    let session = Session::on(kernel.manifest.arch, &work, output.progress())?;
                    let mut dry = DryRun::new(&session);
                    let linked = dry.find(|_| order(&work, &kernel, &given, label, output))?;
                    let linked = linked.as_ref().map(|(kernel, _)| &*kernel.dir);
                    dry.add(
                        "link",
                        format!("link {label} with its functions in another order"),
                        linked,
                        |_| None,
                    );
                    return Ok(show_steps(dry, format.json, output));
                }
                let (ordered, prepared) = order(&work, &kernel, &given, label, output)?;
                show(&ordered, format.json, output)?;
                if let Some(prepared) = prepared {
                    let proof = prove(&kernel, &prepared, &ordered)?;
                    if !format.json {
                        output.print(&format!("{proof}\n"));
                    }
                    proof.verdict()?;
                }
            }
            Self::List { format } => list(&work, format.json, output)?,
            Self::Show { kernel, format } => {
                show(&kerntune_kernel::find(&work, kernel)?, format.json, output)?;
            }
            Self::Selftest { kernel, against, dry, format } => {
                return check(&work, (kernel.as_str(), against.as_deref()), *dry, format.json, output);
            }
            Self::Reproduce { kernel, jobs, dry, format } => {
                let kernel = kerntune_kernel::find(&work, kernel)?;
                if dry.dry_run {
                    let session =
                        Session::on(kernel.manifest.arch, &work, output.progress())?.with_jobs(*jobs);
                    let mut dry = DryRun::new(&session);
                    let estimate = dry.of_rebuild(&kernel)?;
                    let what = format!("build {} again, and compare every byte", kernel.manifest.label);
                    dry.add("rebuild", what, None, |_| Some(estimate));
                    return Ok(show_steps(dry, format.json, output));
                }
                let rebuilt = verify(&work, &kernel, *jobs, output.progress())?;
                return Ok(verified(&kernel, &rebuilt, format.json, output));
            }
            Self::Bisect { kernel, good, dry, format } => {
                return super::bisect::run(
                    &work,
                    (kernel.as_str(), good.as_deref()),
                    *dry,
                    format.json,
                    output,
                );
            }
            Self::Remove { kernel } => {
                let removed = kerntune_kernel::remove(&work, kernel)?;
                output.note(&format!("removed {}", removed.display()));
            }
        }
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Show { .. })
    }
}

/// Source of the function order for `kernel relink`.
enum OrderSource<'a> {
    File(&'a Path),
    Profile { profile: &'a str, algorithm: &'a str, cache_coloring: bool },
}

/// Relinks a kernel with another function order. Returns it with the order, if a recording gave it.
fn order(
    work: &WorkDir,
    kernel: &Kernel,
    given: &OrderSource,
    label: &str,
    output: &CliOutput,
) -> Result<(Kernel, Option<PreparedOrder>), Failure> {
    let (order, prepared) = match given {
        OrderSource::File(path) => (FunctionOrder::parse(&read_text("read", path)?)?, None),
        OrderSource::Profile { profile, algorithm, cache_coloring } => {
            let algorithm = OrderAlgorithm::named(algorithm).unwrap_or(DEFAULT_ALGORITHM);
            let recording = Profile::load(&kerntune_profile::find(work, profile)?.path)?;
            let mut prepared = prepare_order(work, &recording, kernel, algorithm)?;
            if let Some(quality) = prepared.quality()?.filter(|_| prepared.summary.counts.is_some()) {
                output.note(&quality.line());
                for finding in &quality.findings {
                    output.note(&format!("warning: {finding}"));
                }
            }
            if *cache_coloring && prepared.summary.counts.is_some() {
                return Err(Failure::usage(
                    "--cache-coloring needs executed blocks by region, and this profile has calls only: leave it out",
                ));
            }
            if *cache_coloring {
                let listed = format!("{}-{}", kernel.manifest.label, algorithm.name());
                let linked = relink(work, kernel, &prepared.order, (&listed, NAME), output.progress())?;
                let cache = model::find(model::DEFAULT)?.l1i;
                prepared = prepare_coloring(
                    work,
                    &recording,
                    (kernel, &linked),
                    &prepared,
                    &cache,
                    output.progress(),
                )?;
            }
            (prepared.order.clone(), Some(prepared))
        }
    };
    let ordered = relink(work, kernel, &order, (label, NAME), output.progress())?;
    Ok((ordered, prepared))
}

/// Runs the functional checks on a kernel, and prints its results beside its base kernel's.
fn check(
    work: &WorkDir,
    (kernel, against): (&str, Option<&str>),
    dry: DryRunOptions,
    json: bool,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let kernel = kerntune_kernel::find(work, kernel)?;
    let session = Session::on(kernel.manifest.arch, work, output.progress())?;
    let base = match against.or(kernel.manifest.base_id.as_deref()) {
        Some(base) => Some(kerntune_kernel::find(work, base)?),
        None => None,
    };
    if dry.dry_run {
        let mut dry = DryRun::new(&session);
        for kernel in std::iter::once(&kernel).chain(&base) {
            let what = format!("run the functional checks on {}", kernel.manifest.label);
            dry.selftests(what, &[Some(kernel)])?;
        }
        return Ok(show_steps(dry, json, output));
    }
    let checks = selftest(&session, &kernel)?.checks;
    let right = base.as_ref().map(|base| selftest(&session, base)).transpose()?.map(|base| base.checks);
    let different = right.as_ref().map(|right| differences(right, &checks)).unwrap_or_default();
    let failed = checks.iter().filter(|check| check.result == CheckOutcome::Failed).count();
    if json {
        output.json(&serde_json::json!({
            "schema": "kerntune-selftest/1",
            "kernel": kernel.manifest.id,
            "against": base.as_ref().map(|base| &base.manifest.id),
            "checks": checks,
            "differences": different,
        }));
    } else {
        let word = |check: Option<&SelfTestCheck>| match check {
            Some(SelfTestCheck { result, why, .. }) => {
                let result = format!("{result:?}").to_lowercase();
                why.as_ref().map_or(result.clone(), |why| format!("{result}: {why}"))
            }
            None => "not reached".into(),
        };
        for check in checks.iter().filter(|check| check.result != CheckOutcome::Ok) {
            output.print(&format!("{:20} {}\n", check.name, word(Some(check))));
        }
        for CheckDifference { check, base, kernel } in &different {
            output.print(&format!("{check:20} {}, on the base kernel {}\n", word(*kernel), word(*base)));
        }
        let count = |wanted| checks.iter().filter(|check| check.result == wanted).count();
        let compared = match &base {
            Some(base) => format!("; {} differ from {}", different.len(), base.manifest.label),
            None => String::new(),
        };
        output.print(&format!(
            "{}: {} checks, {} ok, {failed} failed, {} unsupported{compared}\n",
            kernel.manifest.label,
            checks.len(),
            count(CheckOutcome::Ok),
            count(CheckOutcome::Unsupported),
        ));
    }
    Ok(if failed == 0 && different.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// Reports whether the rebuilt kernel is the same, and returns the exit status.
fn verified(kernel: &Kernel, rebuilt: &RebuildReport, json: bool, output: &CliOutput) -> Exit {
    let same = rebuilt.is_same();
    if json {
        output.json(&serde_json::json!({
            "schema": "kerntune-verify/1",
            "kernel": kernel.manifest.id,
            "same": same,
            "files": rebuilt.files,
            "seconds": rebuilt.seconds,
            "kept": rebuilt.kept,
        }));
    } else {
        output.table(
            &["FILE", "#BYTES", "#AGAIN", "BUILT AGAIN"],
            rebuilt.files.iter().map(|file| {
                let word = match file.first_difference {
                    Some(at) => format!("differs from byte {at}"),
                    None => "the same".into(),
                };
                vec![file.name.clone(), file.bytes[0].to_string(), file.bytes[1].to_string(), word]
            }),
        );
        if let Some(kept) = &rebuilt.kept {
            output.note(&format!("the new build is kept in {}", kept.display()));
        }
    }
    match same {
        true => Exit::Ok,
        false => Exit::Findings,
    }
}

fn list(work: &WorkDir, json: bool, output: &CliOutput) -> Result<(), Failure> {
    let kernels = kerntune_kernel::list(work)?;
    kerntune_kernel::list_damaged(work)?.iter().for_each(|error| output.damaged(error));
    if json {
        let shown: Vec<KernelJson> =
            kernels.iter().map(|k| KernelJson { path: &k.dir, manifest: &k.manifest }).collect();
        output.json(&shown);
    } else if kernels.is_empty() {
        output.note("no kernels yet: `kerntune kernel build` makes one. Another work directory: --dir or KERNTUNE_DIR");
    } else {
        output.table(
            &["ID", "LABEL", "VERSION", "RECIPE", "COMPILER", "#TEXT", "#IMAGE", "BUILT"],
            kernels.iter().map(|k| {
                let m = &k.manifest;
                vec![
                    m.id.clone(),
                    m.label.clone(),
                    m.version.clone(),
                    recipe(m),
                    m.compiler.version.clone(),
                    bytes(m.text_bytes),
                    bytes(m.image_bytes),
                    m.built.clone(),
                ]
            }),
        );
    }
    Ok(())
}

pub(super) fn show(kernel: &Kernel, json: bool, output: &CliOutput) -> Result<(), Failure> {
    let m = &kernel.manifest;
    if json {
        output.json(&KernelJson { path: &kernel.dir, manifest: m });
        return Ok(());
    }
    let mut lines = vec![
        ("kernel", format!("{} ({})", m.label, m.id)),
        ("version", m.version.clone()),
        ("image", format!("{} ({})", kernel.image().display(), bytes(m.image_bytes))),
        ("vmlinux", format!("{} ({} of code)", kernel.vmlinux().display(), bytes(m.text_bytes))),
        ("source", format!("{} ({})", m.source.origin, m.source.hash)),
        ("config", format!("{} ({})", kernel.config().display(), m.config_hash)),
        ("compiler", format!("{} ({})", m.compiler.version, m.compiler.program)),
        ("flags", if m.kcflags.is_empty() { "-".into() } else { m.kcflags.join(" ") }),
        ("recipe", recipe(m)),
        ("profile", m.profile_id.clone().unwrap_or_else(|| "-".into())),
        match m.source.is_shipped() {
            true => ("imported", m.built.clone()),
            false => ("built", format!("{} in {:.0} s, {} objects", m.built, m.build_seconds, m.objects)),
        },
    ];
    if kernel.sources_are_inferred()? {
        let text = "source files are inferred from names and from the order of the code; of `?` only the \
                    directory is known";
        lines.push(("note", text.into()));
    }
    lines.extend(m.warnings.iter().map(|warning| ("warning", warning.clone())));
    let text: Vec<String> = lines.iter().map(|(what, value)| format!("{what:9} {value}")).collect();
    output.print(&text.join("\n"));
    Ok(())
}

/// Returns the recipe that made a kernel, or that it was imported.
fn recipe(manifest: &KernelManifest) -> String {
    match manifest.source.is_shipped() {
        true => "imported".into(),
        false => manifest.recipe.clone().unwrap_or_else(|| "-".into()),
    }
}
