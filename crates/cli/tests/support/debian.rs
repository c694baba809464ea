//! A Debian system on a disk, run in QEMU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Wall time for one boot; it takes half a minute where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(600);

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", crate::support::said(&output));
}

/// A machine with one disk that is its own, and a boot loader on it once one is installed.
pub struct Machine {
    directory: tempfile::TempDir,
    boots: u32,
}

impl Machine {
    /// With a fresh Debian, made by `scripts/debian-root` once and kept in the work directory.
    pub fn new() -> Self {
        let script = crate::support::checkout().join("scripts/debian-root");
        let key = kerntune_work::Key::new("debian-root/2", "").file("script", &script).unwrap();
        let work = kerntune_work::WorkDir::open(crate::support::work_dir()).unwrap();
        let root = work.sound("debian-roots", &key.id()).unwrap_or_else(|| {
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

    /// Boots, does what `script` says with `files` beside it in /mnt, and powers off; what the script said. From
    /// `kernel`, or from the disk by its own boot loader.
    pub fn boot(&mut self, kernel: Option<&Path>, files: &[&Path], script: &str) -> String {
        self.boots += 1;
        let path = |name: &str| self.directory.path().join(format!("{name}-{}", self.boots));
        let (second, said, console) = (path("second"), path("said"), path("console"));
        self.second_disk(&second, files, script);
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // In virtual time: kernels without ACPI have no other clock to measure the TSC by than one that a busy host disturbs.
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
