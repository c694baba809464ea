//! Kernel modules that a workload names are loaded before anything else of it.

use crate::support;
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{build_module, Kernel, ModuleSource};
use kerntune_machine::{guest_modules, Emulator, Error, Machine, RunOutcome, RunRequest};
use kerntune_work::{NoProgress, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

const MODULE: ModuleSource = ModuleSource {
    name: "kt_loaded",
    files: &[
        ("Makefile", "obj-m := kt_loaded.o\n"),
        (
            "kt_loaded.c",
            "#include <linux/module.h>\nstatic int number;\nmodule_param(number, int, 0444);\n\
             static int __init loaded_init(void) { return number < 0 ? -ENODEV : 0; }\nstatic void __exit loaded_exit(void) { }\n\
             module_init(loaded_init);\nmodule_exit(loaded_exit);\nMODULE_LICENSE(\"GPL\");\nMODULE_DESCRIPTION(\"test\");\n",
        ),
    ],
};

/// Gives the kernel a directory of modules, in a place of its own.
fn with_module(kernel: &Kernel, module: &Path, to: &Path) -> Kernel {
    for path in [kernel.vmlinux(), kernel.image(), kernel.config()] {
        std::os::unix::fs::symlink(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    // With CONFIG_LOCALVERSION of our configuration.
    let release = format!("{}-kt", kernel.manifest.version);
    let modules = to.join("lib/modules").join(release).join("extra");
    fs::create_dir_all(&modules).unwrap();
    let packed = fs::File::create(modules.join("kt-loaded.ko.xz")).unwrap();
    let xz = std::process::Command::new("xz").arg("-c").arg(module).stdout(packed).status().unwrap();
    assert!(xz.success());
    Kernel { dir: to.to_owned(), manifest: kernel.manifest.clone() }
}

fn run(kernel: &Kernel, keys: &str, directory: &Path) -> Result<RunOutcome, Error> {
    let work = WorkDir::open(support::work_dir()).unwrap();
    let script =
        "cat /proc/modules /sys/module/kt_loaded/parameters/number; cut -d: -f1 /lib/modules/*/modules.dep";
    let text = format!(
        "{keys}\n[[measured.step]]\nregion = \"shown\"\noperations = 1\ncommand = [\"sh\", \"-c\", {script:?}]\n"
    );
    let workload = Workload::parse(&text, Path::new("loads.toml")).unwrap();
    let modules = guest_modules(kernel, &workload)?;
    let image = GuestImage::with_modules(&work, &workload, modules.as_ref(), &NoProgress).unwrap();
    let request = RunRequest::of_workload(kernel, &image.initramfs, &workload, "measured");
    Emulator::find().unwrap().run(&request, directory, &NoProgress)
}

#[test]
fn a_named_module_is_loaded_at_the_same_address_each_time() {
    let work = WorkDir::open(support::work_dir()).unwrap();
    let kernel = kerntune_kernel::find(&work, &support::ftrace_kernel()).unwrap();
    let module: PathBuf = {
        let _alone = support::with_objects();
        build_module(&work, &kernel, &MODULE, &NoProgress).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let kernel = with_module(&kernel, &module, dir.path());
    let shown = || {
        let directory = tempfile::tempdir().unwrap();
        let keys = "modules = [\"kt-loaded\"]\nappend = \"kt_loaded.number=42\"";
        let outcome = run(&kernel, keys, directory.path()).unwrap();
        fs::read_to_string(outcome.guest_files.join("measured-1-sh.log")).unwrap()
    };
    let first = shown();
    let lines: Vec<&str> = first.lines().collect();
    assert!(lines[0].starts_with("kt_loaded ") && lines[0].contains(" Live 0xffffffff"), "{first}");
    assert_eq!(lines[1..], ["42", "extra/kt-loaded.ko"], "{first}");
    assert_eq!(shown(), first);

    let directory = tempfile::tempdir().unwrap();
    let refused = |keys: &str| run(&kernel, keys, directory.path()).unwrap_err().to_string();
    let own = refused("modules = [\"kt_loaded\"]\nappend = \"kt_loaded.number=-1\"");
    assert!(
        own.contains("module kt_loaded (/lib/modules/") && own.contains("No such device (errno 19)"),
        "{own}"
    );
    let unknown = refused("modules = [\"kt_load\"]");
    assert!(unknown.contains("no module `kt_load`: did you mean kt_loaded?"), "{unknown}");
}
