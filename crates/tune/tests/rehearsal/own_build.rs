//! Files for users' own builds: the lines of the README, carried out by make, makepkg, rpmbuild and
//! debian/rules, without kerntune, on the stand-in kernel.

use crate::support::{build_request, TestBench};
use kerntune_kernel::{BuildRequest, KernelSource};
use kerntune_optimize::own_build::OwnBuild;
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::own_build::{check, make_files, FilesRequest, MadeFiles};
use kerntune_tune::TuningSettings;
use kerntune_work::WorkDir;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// User that may build packages; makepkg refuses root.
const NOBODY: u32 = 65_534;

struct Files<'a> {
    bench: &'a TestBench,
    work: WorkDir,
    made: MadeFiles,
    readme: String,
}

impl<'a> Files<'a> {
    fn new(bench: &'a TestBench) -> Self {
        let work = bench.work("work");
        let session = bench.session(&work);
        let build = build_request("base");
        let settings = TuningSettings::new(&bench.model);
        let request = FilesRequest { build: &build, workload: &bench.workload, propeller: false, settings };
        let found = Cell::new(0);
        let count = |_, there: Option<&Path>| found.set(found.get() + usize::from(there.is_some()));
        let made = make_files(&session, &request, &count).unwrap();
        assert_eq!(found.get(), 0);
        let again = make_files(&session, &request, &count).unwrap();
        assert_eq!((found.get(), &again.files), (request.steps().unwrap().len(), &made.files));
        let readme = made.files.iter().find(|(name, _)| name == Path::new("README.md")).unwrap();
        let readme = String::from_utf8(readme.1.clone()).unwrap();
        drop(session);
        Self { bench, work, made, readme }
    }

    /// Creates a directory with the source of the stand-in in `linux`, and the files in `profiles`.
    fn place(&self, name: &str, profiles: &str) -> PathBuf {
        let place = self.bench.path(name);
        fs::create_dir(&place).unwrap();
        self.copy_source(&place.join("linux"));
        fs::create_dir_all(place.join(profiles)).unwrap();
        self.made.write(&place.join(profiles)).unwrap();
        place
    }

    fn copy_source(&self, to: &Path) {
        let KernelSource::Directory(from) = kerntune_rehearsal::source() else { unreachable!() };
        run(Command::new("cp").arg("-r").arg(from).arg(to));
    }

    /// Returns the lines of a section, without their indent.
    fn lines(&self, title: &str) -> String {
        let section = self.readme.split("\n## ").find(|section| section.starts_with(title)).unwrap();
        let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn check(&self, vmlinux: &Path) -> OwnBuild {
        check(&self.work, &self.made.recording, vmlinux).unwrap()
    }

    /// Checks that an image has the hot functions in front, in order, and with cold parts.
    fn assert_taken(&self, vmlinux: &Path) {
        let built = self.check(vmlinux);
        built.verdict().unwrap();
        assert!(built.in_front[1] > 0.9 && built.in_front[0] < 0.9, "{built}");
        assert!(built.in_order.unwrap()[1] > 0.9, "{built}");
        assert!(built.split[1] > built.split[0], "{built}");
    }
}

/// Runs a command with no program of kerntune's on the PATH.
fn run(command: &mut Command) -> String {
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
    for (name, _) in std::env::vars_os() {
        // Make of cargo's own has jobs and options here.
        if name.to_string_lossy().contains("MAKE") {
            command.env_remove(name);
        }
    }
    let output = command.output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn shell(directory: &Path, script: &str) -> String {
    run(Command::new("bash").current_dir(directory).args(["-euc", script]))
}

#[test]
fn the_lines_for_make_build_in_the_tree_and_elsewhere() {
    let bench = TestBench::new();
    let files = Files::new(&bench);
    let place = files.place("make", "profiles");
    let profiles = place.join("profiles");
    let lines = files.lines("make,").replace("/path/to/this/directory", profiles.to_str().unwrap());
    let said = shell(&place.join("linux"), &lines);
    assert!(!said.contains("warning"), "{said}");
    files.assert_taken(&place.join("linux/vmlinux"));

    // The same tree is a source that was built in place.
    let build =
        BuildRequest { source: KernelSource::Directory(place.join("linux")), ..build_request("again") };
    let session = bench.session(&files.work);
    let settings = TuningSettings::new(&bench.model);
    let request = FilesRequest { build: &build, workload: &bench.workload, propeller: false, settings };
    let mut dry = DryRun::new(&session);
    request.dry_run(&mut dry).unwrap();
    let names: Vec<&str> = dry.into_steps().iter().map(|step| step.step).collect();
    let steps =
        ["image", "base-kernel", "record-training", "instrumented-kernel", "training", "counters", "profile"];
    assert_eq!(names, steps);
    drop(session);

    files.copy_source(&place.join("plain"));
    shell(&place.join("plain"), "make olddefconfig\nmake");
    let plain = files.check(&place.join("plain/vmlinux"));
    assert!(plain.verdict().unwrap_err().to_string().contains("did not take the profile"), "{plain}");

    // With O= below the source the names of sources are others.
    files.copy_source(&place.join("below"));
    fs::create_dir(place.join("below/out")).unwrap();
    let said = shell(&place.join("below"), &lines.replace("make ", "make O=out "));
    assert!(said.contains("source locations for function"), "{said}");
    files.assert_taken(&place.join("below/out/vmlinux"));
}

#[test]
fn the_lines_for_makepkg_build_a_package() {
    let bench = TestBench::new();
    let files = Files::new(&bench);
    let place = files.place("pkg", "profiles");
    shell(&place, "tar -cf linux.tar linux && rm -r linux");
    let head = "pkgname=stand-in\npkgver=1\npkgrel=1\narch=(x86_64)\nsource=(linux.tar)\nsha256sums=(SKIP)\n_srcname=linux\n";
    let package = "package() { install -D \"$srcdir/$_srcname/vmlinux\" \"$pkgdir/boot/vmlinux\"; }\noptions=(!strip)\n";
    fs::write(place.join("PKGBUILD"), format!("{head}{}{package}", files.lines("PKGBUILD"))).unwrap();
    let is_root = run(Command::new("id").arg("-u")).trim() == "0";
    let mut command = match is_root {
        false => Command::new("makepkg"),
        true => {
            let ids = format!("{NOBODY}:{NOBODY}");
            run(Command::new("chown").args(["-R", &ids]).arg(&place));
            run(Command::new("chmod").arg("o+x").arg(place.parent().unwrap()));
            let mut command = Command::new("setpriv");
            let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            command.args(ids).args(["--clear-groups", "makepkg"]);
            command
        }
    };
    run(command.current_dir(&place).env("HOME", &place).args(["--nodeps", "--force"]));
    shell(&place, "bsdtar -xf stand-in-1-1-x86_64.pkg.tar* boot/vmlinux");
    files.assert_taken(&place.join("boot/vmlinux"));
}

#[test]
fn the_lines_for_rpmbuild_and_debian_rules_build() {
    let bench = TestBench::new();
    let files = Files::new(&bench);
    let place = files.place("rpm", "SOURCES/profiles");
    shell(&place, "tar -cf SOURCES/linux.tar linux");
    let head = "Name: stand-in\nVersion: 1\nRelease: 1\nSummary: stand-in\nLicense: GPL\nSource0: linux.tar\n\
        %global debug_package %{nil}\n%global __os_install_post %{nil}\n%description\nstand-in\n%prep\n%setup -q -n linux\n";
    let rest = "%install\ninstall -D vmlinux %{buildroot}/boot/vmlinux\n%files\n/boot/vmlinux\n";
    fs::write(place.join("stand-in.spec"), format!("{head}{}{rest}", files.lines("RPM spec"))).unwrap();
    run(Command::new("rpmbuild").current_dir(&place).args([
        "-bb",
        "--define",
        &format!("_topdir {}", place.display()),
        "stand-in.spec",
    ]));
    let package = place.join("RPMS/x86_64/stand-in-1-1.x86_64.rpm");
    let contents = run(Command::new("rpm").args(["-qpl"]).arg(&package));
    assert!(contents.contains("/boot/vmlinux"), "{contents}");
    run(Command::new("bsdtar").current_dir(&place).arg("-xf").arg(package));
    files.assert_taken(&place.join("boot/vmlinux"));

    let place = files.place("deb", "linux/debian/profiles");
    let rules = place.join("linux/debian/rules");
    fs::write(&rules, format!("#!/usr/bin/make -f\n{}", files.lines("debian/rules"))).unwrap();
    run(Command::new("make").current_dir(place.join("linux")).args([
        "-f",
        "debian/rules",
        "override_dh_auto_build",
    ]));
    files.assert_taken(&place.join("linux/vmlinux"));
}
