//! A Debian system on a disk, run in QEMU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for one boot, which takes half a minute on an idle machine.
const PATIENCE: Duration = Duration::from_secs(600);

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", crate::support::said(&output));
}

/// A machine with its own disk, with a boot loader once one is installed.
pub struct DebianMachine {
    directory: tempfile::TempDir,
    boots: u32,
}

impl DebianMachine {
    /// Copies a fresh Debian system, which `scripts/debian-root` makes once in the work directory.
    pub fn new() -> Self {
        let script = crate::support::checkout().join("scripts/debian-root");
        let key = kerntune_work::Key::new("debian-root/2", "").file("script", &script).unwrap();
        let work = kerntune_work::WorkDir::open(crate::support::work_dir()).unwrap();
        let root = work.find_verified("debian-roots", &key.id()).unwrap_or_else(|| {
            let staged = work.stage("debian-roots", &key).unwrap();
            if let Some(whole) = staged.already() {
                return whole;
            }
            staged.clear().unwrap();
            must(Command::new(&script).arg(staged.path().join("disk")));
            staged.publish().unwrap()
        });
        let directory = tempfile::tempdir_in(work.root()).unwrap();
        must(
            Command::new("cp")
                .arg("--sparse=always")
                .arg(root.join("disk"))
                .arg(directory.path().join("disk")),
        );
        Self { directory, boots: 0 }
    }

    /// Boots from `kernel` or else from the disk, runs `script` with `files` in /mnt, and powers
    /// off; returns the script's output.
    pub fn boot(&mut self, kernel: Option<&Path>, files: &[&Path], script: &str) -> String {
        self.boots += 1;
        let path = |name: &str| self.directory.path().join(format!("{name}-{}", self.boots));
        let (second, said, console) = (path("second"), path("said"), path("console"));
        self.second_disk(&second, files, script);
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // Virtual time: kernels without ACPI can calibrate the TSC only with a clock that a busy
        // host disturbs.
        command.args([
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=0,sleep=off",
            "-smp",
            "1",
            "-m",
            "1024",
        ]);
        command.args([
            "-object",
            "rng-random,id=rng,filename=/dev/urandom",
            "-device",
            "virtio-rng-pci,rng=rng",
        ]);
        for serial in [&console, &said] {
            command.arg("-serial").arg(format!("file:{}", serial.display()));
        }
        for (disk, more) in [(&self.directory.path().join("disk"), ""), (&second, ",readonly=on")] {
            command.arg("-drive").arg(format!("file={},format=raw,if=virtio{more}", disk.display()));
        }
        if let Some(kernel) = kernel {
            command.arg("-kernel").arg(kernel).args(["-append", "root=/dev/vda1 rw console=ttyS0 panic=-1"]);
        }
        let mut qemu = command.spawn().unwrap();
        let started = Instant::now();
        while qemu.try_wait().unwrap().is_none() && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = qemu.kill();
        qemu.wait().unwrap();
        let text =
            |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).replace('\r', "");
        let said = text(&said);
        assert!(said.ends_with("ended with 0\n"), "{said}\n--- the console:\n{}", text(&console));
        said
    }

    fn second_disk(&self, disk: &Path, files: &[&Path], script: &str) {
        let tree = disk.with_extension("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("run"), format!("set -e\n{script}\n")).unwrap();
        for file in files {
            fs::copy(file, tree.join(file.file_name().unwrap())).unwrap();
        }
        must(
            Command::new("/usr/sbin/mke2fs").args(["-q", "-t", "ext4", "-d"]).arg(&tree).arg(disk).arg("64M"),
        );
    }
}
