//! End-to-end tests of a build with a substitute source tree: its Makefile has the targets and
//! variables of Kbuild that kerntune uses, and takes a second instead of minutes.

use kerntune_kernel::{
    build, find, list, package, rebuild, relink, BaseConfig, BuildRequest, Error, FunctionOrder, Kernel,
    KernelFunction, KernelSource, PackageRequest, RebuildReport, RebuildRequest, Symbols,
};
use kerntune_work::{NoProgress, WorkDir};
use std::fs;
use std::path::PathBuf;

/// Makefile with Kbuild's interface: `make -C SOURCE O=BUILD …`, objects beside each other in
/// BUILD, short lines of progress, `.cmd` files. `$(GATE)` stands for any outside event that can
/// stop a build.
const MAKEFILE: &str = include_str!("stand_in/Makefile");

/// Records progress messages.
#[derive(Default)]
struct NoteRecorder(std::sync::Mutex<Vec<String>>);

impl kerntune_work::Progress for NoteRecorder {
    fn begin(&self, _: &str, _: Option<u64>) {}

    fn at(&self, _: u64) {}

    fn end(&self) {}

    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.into());
    }
}

struct BuildFixture {
    dir: tempfile::TempDir,
    work: WorkDir,
}

impl BuildFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let bench = BuildFixture { dir, work };
        let gate = bench.path("gate");
        for sub in ["src/kernel", "src/include/linux", "gate"] {
            fs::create_dir_all(bench.path(sub)).unwrap();
        }
        bench.write("src/Makefile", &MAKEFILE.replace("GATE", gate.to_str().unwrap()));
        bench.write("src/Kconfig", "config BLOCKED\n\tbool\nconfig TINY\n\tbool\n");
        bench.write("src/kernel/fork.c", "static __attribute__((used, noinline)) int show(void) { return 5; }\nint copy_process(void) { return 1; }\n");
        bench.write("src/kernel/exit.c", "static __attribute__((used, noinline)) int show(void) { return 6; }\nint do_exit(void) { return 2; }\n");
        bench.write(
            "src/include/linux/kbuild.h",
            "#include <stddef.h>\n#define __used __attribute__((used))\n\
             #define DEFINE(s, v) asm volatile(\"\\n.ascii \\\"->\" #s \" %0 \" #v \"\\\"\" : : \"i\"(v))\n",
        );
        bench.write(
            "src/include/linux/sched.h",
            "struct task_struct { char state[1240]; int pid, tgid; char stack[8], comm[16]; };\n",
        );
        bench.write("gate/open", "");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn request(&self, label: &str) -> BuildRequest {
        BuildRequest::new(KernelSource::Directory(self.path("src")), label)
    }

    fn build(&self, request: &BuildRequest) -> Result<Kernel, Error> {
        build(&self.work, request, &NoProgress)
    }

    fn rebuild(&self, kernel: &Kernel, profile_dir: Option<PathBuf>) -> Result<RebuildReport, Error> {
        let request = RebuildRequest { kernel, profile_dir, modules_to: None, from_kept: false, jobs: None };
        rebuild(&self.work, &request, &NoProgress)
    }

    /// Returns what the Makefile did so far, in order.
    fn runs(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("gate/runs")).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    /// Counts the compilations of an object.
    fn compiled(&self, object: &str) -> usize {
        self.count(&format!("compiled {object}"))
    }

    fn count(&self, run: &str) -> usize {
        self.runs().iter().filter(|line| *line == run).count()
    }
}

#[test]
fn a_kernel_is_built_once_with_its_provenance() {
    let bench = BuildFixture::new();
    let mut request = bench.request("base");
    request.kcflags = vec!["-O2".into(), "-DX=1".into()];
    request.recipe = Some("gcc-pgo".into());
    let kernel = bench.build(&request).unwrap();
    let manifest = &kernel.manifest;
    assert_eq!((manifest.version.as_str(), manifest.objects), ("6.12.117", 2));
    assert_eq!(
        (manifest.task.pid_offset, manifest.task.tgid_offset, manifest.task.comm_offset),
        (1240, 1244, 1256)
    );
    assert_eq!(manifest.recipe.as_deref(), Some("gcc-pgo"));
    assert!(manifest.text_bytes > 0 && manifest.image_bytes == 6);
    assert_eq!(manifest.build_path, PathBuf::from("/proc/self/cwd"));
    assert!(kernel.build_dir().is_none());
    let symbols = Symbols::load(&kernel.vmlinux()).unwrap();
    assert_eq!(symbols.functions().len(), 4);
    let files = |symbols: &Symbols| {
        let file = |f: &KernelFunction| format!("{} {}", f.name, f.file.as_deref().unwrap_or("-"));
        symbols.functions().iter().map(file).collect::<Vec<_>>()
    };
    assert_eq!(files(&symbols), ["show fork.c", "copy_process -", "show exit.c", "do_exit -"]);
    assert_eq!(
        files(&kernel.symbols().unwrap()),
        ["show kernel/fork.c", "copy_process kernel/fork.c", "show kernel/exit.c", "do_exit kernel/exit.c"]
    );
    let log = fs::read_to_string(kernel.dir.join("build.log")).unwrap();
    assert!(log.contains("user kerntune level 0 cflags -O2 -DX=1"), "{log}");
    let config = fs::read_to_string(kernel.config()).unwrap();
    for line in ["CONFIG_TINY=y", "CONFIG_SMP=y", "CONFIG_PVH=y", "# CONFIG_VT is not set"] {
        assert!(config.lines().any(|l| l == line), "{line}");
    }
    let mut entries: Vec<_> =
        fs::read_dir(&kernel.dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    entries.sort();
    assert_eq!(
        entries,
        [
            "BLAKE3SUMS",
            "System.map",
            "build.log",
            "bzImage",
            "config",
            "kernel.json",
            "result.json",
            "sources.tsv",
            "vmlinux"
        ]
    );

    let before = bench.runs();
    assert_eq!(bench.build(&request).unwrap(), kernel);
    assert_eq!(bench.runs(), before, "nothing ran again");
    request.kcflags.clear();
    assert_ne!(bench.build(&request).unwrap().manifest.id, kernel.manifest.id);
    assert_eq!(list(&bench.work).unwrap().len(), 2);
}

#[test]
fn an_interrupted_build_goes_on_and_a_failed_one_shows_its_first_error() {
    let bench = BuildFixture::new();
    fs::remove_file(bench.path("gate/open")).unwrap();
    let error = bench.build(&bench.request("base")).unwrap_err().to_string();
    assert!(error.contains("kernel/exit.c:3:5: error: the gate is closed"), "{error}");
    assert!(error.contains(".partial/build.log"), "{error}");
    assert!(list(&bench.work).unwrap().is_empty());

    bench.write("gate/open", "");
    bench.build(&bench.request("base")).unwrap();
    let mut compiled: Vec<_> = bench.runs().into_iter().filter(|r| r.starts_with("compiled")).collect();
    compiled.sort();
    assert_eq!(compiled, ["compiled exit", "compiled fork"], "each once, over both attempts");
}

#[test]
fn objects_are_kept_or_made_again_when_asked_for() {
    let bench = BuildFixture::new();
    let plain = bench.build(&bench.request("base")).unwrap();
    let mut request = bench.request("objects");
    request.keep_objects = true;
    let kept = bench.build(&request).unwrap();
    assert_eq!(kept.manifest.id, plain.manifest.id);
    assert!(kept.build_dir().unwrap().join("kernel/fork.o").is_file());
    for name in ["base", "objects"] {
        assert_eq!(find(&bench.work, name).unwrap().dir, kept.dir);
    }
    let runs = bench.runs();
    bench.build(&bench.request("base")).unwrap();
    assert_eq!(bench.runs(), runs);
}

#[test]
fn a_profile_is_in_place_before_the_build_and_names_the_kernel() {
    let bench = BuildFixture::new();
    fs::create_dir_all(bench.path("profile/kernel")).unwrap();
    bench.write("profile/kernel/fork.gcda", "adcg");
    let mut request = bench.request("tuned");
    request.profile_dir = Some(bench.path("profile"));
    let tuned = bench.build(&request).unwrap();
    assert_eq!(fs::read_to_string(tuned.image()).unwrap(), "adcg");
    assert!(tuned.manifest.profile_id.is_some());
    bench.write("profile/kernel/fork.gcda", "other");
    assert_ne!(bench.build(&request).unwrap().manifest.id, tuned.manifest.id);
}

#[test]
fn options_that_do_not_take_are_told() {
    let bench = BuildFixture::new();
    bench.write("user.config", "CONFIG_NOSUCH=y\nCONFIG_BLOCKED=y\nCONFIG_PVH=n\n");
    let mut request = bench.request("base");
    request.fragments = vec![bench.path("user.config")];
    let warnings = bench.build(&request).unwrap().manifest.warnings.join("\n");
    assert!(warnings.contains("CONFIG_NOSUCH=y from") && warnings.contains("no such option"), "{warnings}");
    assert!(warnings.contains("CONFIG_BLOCKED=y from") && warnings.contains("did not take"), "{warnings}");
    assert!(warnings.contains("kerntune needs CONFIG_PVH=y"), "{warnings}");

    // A fragment with the same text elsewhere finds the same configuration, and warnings name its
    // own path.
    fs::create_dir(bench.path("other")).unwrap();
    fs::copy(bench.path("user.config"), bench.path("other/mine.config")).unwrap();
    let again = BuildRequest { fragments: vec![bench.path("other/mine.config")], ..request.clone() };
    let said = NoteRecorder::default();
    build(&bench.work, &again, &said).unwrap();
    let said = said.0.into_inner().unwrap().join("\n");
    assert!(said.contains("other/mine.config did not take") && !said.contains("user.config"), "{said}");
    // The source does not have the distribution's certificates.
    let certificates = "CONFIG_SYSTEM_TRUSTED_KEYS=\"debian/canonical-certs.pem\"";
    bench.write("certs.config", &format!("{certificates} # theirs\n"));
    let by_fragment = BuildRequest { fragments: vec![bench.path("certs.config")], ..bench.request("certs") };
    let by_line = BuildRequest { extra: vec![certificates.into()], ..bench.request("certs") };
    for request in [by_fragment, by_line] {
        let kernel = bench.build(&request).unwrap();
        let config = fs::read_to_string(kernel.config()).unwrap();
        assert!(config.contains("CONFIG_SYSTEM_TRUSTED_KEYS=\"\"\n"), "{config}");
        let warnings = kernel.manifest.warnings.join("\n");
        assert!(
            warnings.contains("CONFIG_SYSTEM_TRUSTED_KEYS emptied: debian/canonical-certs.pem"),
            "{warnings}"
        );
    }
    request.extra = vec!["CONFIG_BLOCKED=y".into()];
    let error = bench.build(&request).unwrap_err();
    assert!(matches!(&error, Error::ConfigRefused { problems } if problems.len() == 1), "{error}");
}

#[test]
fn a_full_config_of_the_users_replaces_ours_but_for_what_is_required() {
    let bench = BuildFixture::new();
    bench.write("full.config", "CONFIG_THEIRS=y\nCONFIG_SERIAL_8250_CONSOLE=m\n");
    let mut request = bench.request("theirs");
    request.base = BaseConfig::File(bench.path("full.config"));
    let kernel = bench.build(&request).unwrap();
    let config = fs::read_to_string(kernel.config()).unwrap();
    for line in ["CONFIG_THEIRS=y", "CONFIG_SERIAL_8250_CONSOLE=y", "CONFIG_PVH=y"] {
        assert!(config.lines().any(|l| l == line), "{line}");
    }
    assert!(!config.contains("CONFIG_EXT4_FS") && !bench.runs().contains(&"tinyconfig".to_string()));
}

#[test]
fn a_changed_source_is_another_kernel() {
    let bench = BuildFixture::new();
    let first = bench.build(&bench.request("base")).unwrap();
    bench.write("src/kernel/fork.c", "int copy_process(void) { return 100; }\n");
    let second = bench.build(&bench.request("base")).unwrap();
    assert_ne!(first.manifest.source.hash, second.manifest.source.hash);
    let error = find(&bench.work, "base").unwrap_err();
    assert!(matches!(&error, Error::AmbiguousKernel { candidates, .. } if candidates.len() == 2), "{error}");
}

#[test]
fn a_patched_kernel_has_another_id_and_keeps_its_patches() {
    let bench = BuildFixture::new();
    let plain = bench.build(&bench.request("base")).unwrap();
    bench.write(
        "one.patch",
        "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -1 +1 @@\n-int copy_process(void) { return 1; }\n\
         +int copy_process(void) { return 100; }\n",
    );
    let mut request = bench.request("patched");
    request.patches = vec![bench.path("one.patch")];
    let patched = bench.build(&request).unwrap();
    assert_ne!(patched.manifest.id, plain.manifest.id);
    assert_ne!(patched.manifest.source.hash, plain.manifest.source.hash);
    assert_eq!(patched.manifest.source.patches, ["patches/01-one.patch"]);
    // The user's tree is unchanged, and the kernel's own copy of the patch makes the same kernel.
    assert!(fs::read_to_string(bench.path("src/kernel/fork.c")).unwrap().contains("return 1;"));
    fs::rename(bench.path("one.patch"), bench.path("moved")).unwrap();
    request.patches = vec![patched.dir.join("patches/01-one.patch")];
    assert_eq!(bench.build(&request).unwrap().manifest.id, patched.manifest.id);

    bench.write(
        "two.patch",
        "--- a/kernel/exit.c\n+++ b/kernel/exit.c\n@@ -1 +1 @@\n-int other;\n+int new;\n",
    );
    request.patches.push(bench.path("two.patch"));
    let error = bench.build(&request).unwrap_err().to_string();
    assert!(error.contains("two.patch") && error.contains("-int other;"), "{error}");
}

#[test]
fn a_kernel_built_again_is_the_same_and_nothing_is_left_over() {
    let bench = BuildFixture::new();
    fs::create_dir_all(bench.path("profile/kernel")).unwrap();
    bench.write("profile/kernel/fork.gcda", "adcg");
    let mut request = bench.request("tuned");
    request.profile_dir = Some(bench.path("profile"));
    request.kcflags = vec!["-O2".into()];
    let tuned = bench.build(&request).unwrap();
    // After an interruption it resumes.
    fs::remove_file(bench.path("gate/open")).unwrap();
    bench.rebuild(&tuned, request.profile_dir.clone()).unwrap_err();
    bench.write("gate/open", "");
    let again = bench.rebuild(&tuned, request.profile_dir.clone()).unwrap();
    assert!(again.is_same() && again.kept.is_none(), "{again:?}");
    let names: Vec<_> = again.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["vmlinux", "bzImage", "System.map", "config"]);
    assert_eq!(bench.compiled("fork"), 2, "once for the kernel, once for the rebuild over both attempts");
    assert!(!tuned.dir.with_extension("partial").exists());
    assert_eq!(Kernel::load(&tuned.dir).unwrap(), tuned);

    let error = bench.rebuild(&tuned, None).unwrap_err().to_string();
    assert!(error.contains("its profile") && error.contains("no longer"), "{error}");
    bench.write("src/kernel/fork.c", "int copy_process(void) { return 3; }\n");
    let error = bench.rebuild(&tuned, request.profile_dir).unwrap_err().to_string();
    assert!(error.contains("the source was"), "{error}");
}

#[test]
fn what_comes_out_differently_is_found_and_kept() {
    let bench = BuildFixture::new();
    bench.write("gate/image", "one image\n");
    let kernel = bench.build(&bench.request("base")).unwrap();
    // As if the build had generated a key.
    bench.write("gate/image", "one other image\n");
    let again = bench.rebuild(&kernel, None).unwrap();
    let differing: Vec<_> = again.files.iter().filter(|file| file.first_difference.is_some()).collect();
    assert_eq!(differing.len(), 1, "{again:?}");
    assert_eq!((differing[0].name.as_str(), differing[0].first_difference), ("bzImage", Some(4)));
    let kept = again.kept.unwrap();
    assert_eq!(fs::read_to_string(kept.join("bzImage")).unwrap(), "one other image\n");
    assert_eq!(fs::read_to_string(kernel.image()).unwrap(), "one image\n");
}

/// Boot header that names release 6.12.117-m.
fn image_of_a_kernel_with_modules() -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    image[0x300..0x30a].copy_from_slice(b"6.12.117-m");
    image
}

#[test]
fn modules_come_from_a_build_of_the_same_image_or_not_at_all() {
    let bench = BuildFixture::new();
    let image = image_of_a_kernel_with_modules();
    fs::write(bench.path("gate/image"), &image).unwrap();
    let mut request = bench.request("with-modules");
    request.extra = vec!["CONFIG_MODULES=y".into()];
    request.kcflags = vec!["-O2".into()];
    let kernel = bench.build(&request).unwrap();
    let wanted = PackageRequest { kernel: &kernel, profile: None, extras: Vec::new() };
    let packed = package(&bench.work, &wanted, &NoProgress).unwrap();
    assert_eq!((packed.manifest.package.as_str(), packed.manifest.modules), ("linux-image-6.12.117-m", 1));
    let root = bench.path("root");
    let unpacked =
        std::process::Command::new("dpkg-deb").arg("--extract").args([packed.file(), root.clone()]).status();
    assert!(unpacked.unwrap().success());
    let modules = root.join("lib/modules/6.12.117-m");
    assert_eq!(fs::read_to_string(modules.join("kernel/crc16.ko")).unwrap(), "-O2\n");
    assert!(modules.join("modules.dep").is_file() && !modules.join("build").is_symlink());
    assert_eq!(fs::read(root.join("boot/vmlinuz-6.12.117-m")).unwrap(), image);

    // Modules of another image would be loaded into this one, and do harm.
    fs::remove_dir_all(&packed.dir).unwrap();
    bench.write("gate/image", "another");
    let error = package(&bench.work, &wanted, &NoProgress).unwrap_err();
    assert!(matches!(&error, Error::NotReproduced { what, .. } if what.contains("bzImage")), "{error}");
}

/// Kernel with modules and kept objects.
fn kernel_with_modules_and_objects(bench: &BuildFixture) -> Kernel {
    fs::write(bench.path("gate/image"), image_of_a_kernel_with_modules()).unwrap();
    let mut request = bench.request("with-modules");
    request.extra = vec!["CONFIG_MODULES=y".into(), "CONFIG_MODULE_SIG_KEY=\"\"".into()];
    request.keep_objects = true;
    bench.build(&request).unwrap()
}

#[test]
fn modules_of_a_kernel_that_kept_its_objects_are_made_beside_a_copy_of_them() {
    let bench = BuildFixture::new();
    let kernel = kernel_with_modules_and_objects(&bench);
    let wanted = PackageRequest { kernel: &kernel, profile: None, extras: Vec::new() };
    let packed = || {
        let packed = package(&bench.work, &wanted, &NoProgress).unwrap();
        fs::remove_dir_all(&packed.dir).unwrap();
        assert!(!kernel.dir.with_extension("partial").exists());
        packed.manifest
    };
    let first = packed();
    assert_eq!((first.modules, bench.compiled("fork")), (1, 1));
    assert_eq!(bench.count("made tools"), 1, "Kbuild compiles all objects anew after its tools");
    let kept = kernel.kept_objects().unwrap().unwrap();
    assert!(!kept.join("crc16.ko").exists(), "the kernel's own objects are left alone");

    // The check that a kernel is reproducible compiles everything, and so does a package after a
    // fault.
    assert!(bench.rebuild(&kernel, None).unwrap().is_same());
    assert_eq!(bench.compiled("fork"), 2);
    fs::write(kept.join("kernel/fork.o"), "another").unwrap();
    assert_eq!((packed(), bench.compiled("fork")), (first, 3));
}

#[test]
fn modules_that_were_built_with_a_kernel_are_linked_and_packed_with_it() {
    let bench = BuildFixture::new();
    fs::write(bench.path("gate/image"), image_of_a_kernel_with_modules()).unwrap();
    let mut request = bench.request("with-modules");
    request.extra = vec!["CONFIG_MODULES=y".into()];
    (request.modules, request.movable) = (true, true);
    let kernel = bench.build(&request).unwrap();
    let module = |of: &Kernel| {
        let modules = of.dir.join("lib/modules/6.12.117-m");
        assert!(modules.join("modules.dep").is_file() && !modules.join("build").is_symlink());
        fs::read_to_string(modules.join("kernel/crc16.ko")).unwrap()
    };
    assert_eq!(module(&kernel), "-ffunction-sections\n");
    let order = FunctionOrder::parse("do_exit\ncrc16 [crc16]\ncrc16_table [crc16]\n").unwrap();
    let linked = relink(&bench.work, &kernel, &order, ("ordered", "layout"), &NoProgress).unwrap();
    assert_eq!(module(&linked), "-ffunction-sections\ntext.crc16 \ntext.crc16_table \n");
    assert_eq!((module(&kernel).lines().count(), bench.compiled("fork")), (1, 1));
    let again = relink(&bench.work, &kernel, &FunctionOrder::default(), ("plain", "layout"), &NoProgress);
    assert_eq!(module(&again.unwrap()), "-ffunction-sections\n", "nothing is left of an order before");

    let wanted = PackageRequest { kernel: &linked, profile: None, extras: Vec::new() };
    let packed = package(&bench.work, &wanted, &NoProgress).unwrap();
    assert_eq!((packed.manifest.modules, bench.compiled("fork")), (1, 1), "nothing is built again");
    let listed =
        std::process::Command::new("dpkg-deb").arg("--contents").arg(packed.file()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("./lib/modules/6.12.117-m/kernel/crc16.ko"), "{listed}");
    fs::write(linked.dir.join("lib/modules/6.12.117-m/kernel/crc16.ko"), "another").unwrap();
    let error = package(&bench.work, &wanted, &NoProgress).unwrap_err().to_string();
    assert!(error.contains("crc16.ko"), "{error}");
}

#[test]
fn an_interrupted_package_is_not_gone_on_with_for_a_proof() {
    let bench = BuildFixture::new();
    let kernel = kernel_with_modules_and_objects(&bench);
    let wanted = PackageRequest { kernel: &kernel, profile: None, extras: Vec::new() };
    fs::remove_file(bench.path("gate/open")).unwrap();
    package(&bench.work, &wanted, &NoProgress).unwrap_err();
    assert!(kernel.dir.with_extension("partial").join("linux/build/kernel/fork.o").is_file());
    bench.write("gate/open", "");
    assert!(bench.rebuild(&kernel, None).unwrap().is_same());
    assert_eq!(bench.compiled("fork"), 2, "the copy of kept objects proves nothing");
    assert_eq!(package(&bench.work, &wanted, &NoProgress).unwrap().manifest.modules, 1);
    assert_eq!(bench.compiled("fork"), 2);
}
