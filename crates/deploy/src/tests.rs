//! Deployments on a directory that stands for a machine, with the power cut after each command.

use crate::deployment::{DeployOptions, Deployment, DeploymentState};
use crate::env_block::{EnvBlock, BLOCK_BYTES};
use crate::grub::{self, ENTRY, NEXT};
use crate::shell::{LocalShell, Script, ScriptInput, ScriptResult, Shell};
use crate::source::KernelFiles;
use crate::{Error, Result};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const OLD: &str = "6.1.0-50-cloud-amd64";
const NAME: &str = "6.12.117-kt";
const LINE: &str = "root=UUID=0a-1b ro console=ttyS0";

/// A machine: a directory with the files of Debian, and stand-ins of its programs.
struct FakeMachine {
    directory: TempDir,
}

/// The machine's shell. The power is cut after a number of commands.
#[derive(Debug)]
struct FaultyShell {
    local: LocalShell,
    /// Commands until the cut; `None` for no cut.
    left: Cell<Option<usize>>,
    /// Set if the command at the cut gets half of its input.
    is_torn: bool,
}

impl Shell for FaultyShell {
    fn host(&self) -> &str {
        "server"
    }

    fn run(&self, script: &Script) -> Result<ScriptResult> {
        let Some(left) = self.left.get() else { return self.local.run(script) };
        if left >= script.commands.len() {
            self.left.set(Some(left - script.commands.len()));
            return self.local.run(script);
        }
        self.left.set(Some(0));
        let mut cut = Script { commands: script.commands[..left].to_vec(), ..script.clone() };
        if self.is_torn {
            // The cut is in the middle of a command that reads its input.
            let next = &script.commands[left];
            let bytes = match &script.input {
                ScriptInput::Bytes(bytes) => bytes.clone(),
                ScriptInput::File(path) => fs::read(path).unwrap(),
                ScriptInput::Empty => Vec::new(),
            };
            if next.starts_with("cat >") || next.starts_with("tar -x") {
                cut.commands.push(format!("{next} || true"));
                cut.input = ScriptInput::Bytes(bytes[..bytes.len() / 2].to_vec());
            }
        }
        cut.commands.push("true".into());
        self.local.run(&cut)?;
        Err(Error::Unreachable { host: "server".into(), reason: "the power is off".into() })
    }
}

impl FakeMachine {
    fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap() };
        let grub_cfg = "if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   \
                        save_env next_entry\n   set boot_once=true\nelse\n   set default=\"0\"\nfi\nmenuentry 'Debian' { true }\n\
                        source ${config_directory}/custom.cfg\n";
        let mut env = EnvBlock::default();
        env.set("saved_entry", "0").unwrap();
        for (path, content) in [
            ("boot/grub/grub.cfg", grub_cfg.as_bytes()),
            ("boot/grub/grubenv", &env.bytes()),
            ("boot/vmlinuz-6.1.0-50-cloud-amd64", b"old kernel"),
            ("boot/initrd.img-6.1.0-50-cloud-amd64", b"old disk"),
            ("etc/initramfs-tools/modules", b"# none\n"),
            ("etc/systemd/system/other.service", b"[Unit]\n"),
            ("lib/modules/6.1.0-50-cloud-amd64/modules.dep", b""),
            ("proc/cmdline", b""),
            ("proc/uptime", b"10.00 5.00\n"),
            ("proc/sys/kernel/random/boot_id", b"1\n"),
            ("run/systemd/system/x", b""),
            ("var/lib/dpkg/status", b""),
            ("sys/bus/pci/devices/0/modalias", b"pci:v00008086d000025ABsv00001AF4sd00001100bc08sc80i00\n"),
        ] {
            machine.put(path, content);
        }
        machine.start();
        let stub = |name: &str, text: &str| machine.stub(name, text);
        stub("id", "echo 0");
        stub("uname", "case $1 in -m) echo x86_64 ;; *) sed 's/.*vmlinuz-*//; s/ .*//; s/^$/new/' \"${0%/*}/../root/proc/cmdline\" ;; esac");
        stub(
            "grub-probe",
            "case $1 in *fs) echo ext2 ;; *uuid) echo 0a-1b ;; *partmap) echo msdos ;; *) echo ;; esac",
        );
        stub("grub-mkrelpath", "echo /boot");
        // Fails, as the real one does, where the kernel's modules are not in place.
        stub(
            "mkinitramfs",
            "[ -e \"${2%/var/*}/lib/modules/$5/modules.dep\" ] && [ -e \"${2%/var/*}/boot/config-$5\" ] && cat \"$2\"/modules \"$2\"/scripts/*/* >\"$4\"",
        );
        stub("sync", "exit 0");
        stub(
            "systemctl",
            "case $1 in is-system-running) echo running ;; *) echo \"$@\" >>\"${0%/*}/../systemctl\" ;; esac",
        );
        stub(
            "sleep",
            "awk '{ printf \"%d.00 0\\n\", $1 + 100 }' \"${0%/*}/../root/proc/uptime\" >\"${0%/*}/../up\"; \
                       cat \"${0%/*}/../up\" >\"${0%/*}/../root/proc/uptime\"",
        );
        machine
    }

    /// Makes a machine on which another kernel has the release of the new one.
    fn with_shared_release() -> Self {
        let machine = Self::new();
        for file in [format!("lib/modules/{NAME}/modules.dep"), format!("boot/config-{NAME}")] {
            machine.put(&file, b"of another kernel\n");
        }
        machine.stub("unshare", "shift; exec \"$@\"");
        // Only what is there can be mounted, over what is there.
        machine.stub("mount", "[ -e \"$2\" ] && [ -e \"$3\" ]");
        machine
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    fn programs(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    fn put(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a stand-in of a program.
    fn stub(&self, name: &str, text: &str) {
        let path = self.programs().join(name);
        fs::create_dir_all(self.programs()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn shell(&self, left: Option<usize>, is_torn: bool) -> FaultyShell {
        let local = LocalShell { programs: Some(self.programs()) };
        FaultyShell { local, left: Cell::new(left), is_torn }
    }

    fn on<T>(
        &self,
        left: Option<usize>,
        is_torn: bool,
        work: impl FnOnce(&Deployment) -> Result<T>,
    ) -> Result<T> {
        let shell = self.shell(left, is_torn);
        work(&Deployment::new(&shell, self.root().to_str().unwrap()))
    }

    fn state(&self) -> DeploymentState {
        self.on(None, false, |deployment| deployment.status()).unwrap().state
    }

    /// Starts the machine as GRUB does with this `grub.cfg` and `custom.cfg`: the entry of
    /// `next_entry` once, else the default. Returns whether the new kernel started.
    fn start(&self) -> bool {
        let path = self.root().join("boot/grub/grubenv");
        let read = fs::read(&path).ok().map(|bytes| EnvBlock::read(&bytes));
        let mut chosen = false;
        if let Some(block) = read {
            let mut block = block.expect("the block can be read at any time");
            chosen = block.get(NEXT) == Some(ENTRY);
            assert!(block.get(NEXT).is_none() || chosen);
            if chosen {
                // GRUB writes in place.
                block.set(NEXT, "").unwrap();
                fs::write(&path, block.bytes()).unwrap();
            }
        }
        let custom = fs::read(self.root().join("boot/grub/custom.cfg")).unwrap_or_default();
        let text = String::from_utf8(custom.clone()).unwrap();
        let begins = text.matches("# kerntune deploy: begin\n").count();
        assert!(begins <= 1 && begins == text.matches("# kerntune deploy: end\n").count(), "{text}");
        chosen |= grub::is_default(&custom);
        assert!(!chosen || begins == 1, "an entry is chosen that is not there:\n{text}");
        let line = text.lines().find_map(|line| line.trim().strip_prefix("if linux ")).map(str::to_string);
        let line = line.filter(|_| chosen).map(|line| {
            for file in ["vmlinuz", "initrd.img"] {
                assert!(self.is_whole(file), "{file} of an entry that starts");
            }
            let has_modules = |place: &str| {
                let marked = self.root().join(place).join(NAME).join(".kerntune-deploy");
                marked.is_file() && marked.with_file_name("modules.dep").is_file()
            };
            assert!(has_modules("lib/modules") || has_modules("lib/modules/.kerntune-deploy"));
            line.replace("; then", "").replacen(' ', " BOOT_IMAGE=", 0)
        });
        for file in ["boot/vmlinuz-6.1.0-50-cloud-amd64", "boot/initrd.img-6.1.0-50-cloud-amd64"] {
            assert!(self.root().join(file).is_file(), "the old kernel is there at any time");
        }
        let old = format!("BOOT_IMAGE=/boot/vmlinuz-{OLD} {LINE}");
        self.put("proc/cmdline", line.clone().unwrap_or(old).as_bytes());
        self.put("proc/uptime", b"10.00 5.00\n");
        line.is_some()
    }

    fn is_whole(&self, file: &str) -> bool {
        let content =
            fs::read_to_string(self.root().join("boot/kerntune-deploy").join(file)).unwrap_or_default();
        match file {
            "vmlinuz" => content == "new kernel ".repeat(100),
            _ => content.ends_with("echo >/dev/watchdog0\n"),
        }
    }

    /// Returns all files with their content, except what changes without us.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.root()];
        while let Some(next) = left.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.root()).unwrap().to_str().unwrap().to_string();
                if name == "proc" {
                    continue;
                }
                if path.is_dir() {
                    found.insert(format!("{name}/"), Vec::new());
                    left.push(path);
                } else {
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    /// Runs the unit's script. With `cut`, it is killed before its `cut`th change of a file.
    fn unit(&self, action: &str, cut: Option<usize>) {
        let wrappers = self.directory.path().join("wrappers");
        fs::create_dir_all(&wrappers).unwrap();
        let counter = self.directory.path().join("count");
        fs::write(&counter, "0").unwrap();
        for program in ["sed", "cat", "mv"] {
            let path = wrappers.join(program);
            let limit = cut.map_or(u32::MAX as usize, |cut| cut);
            let text = format!(
                "#!/bin/sh\nread -r n <{0}\nn=$((n + 1))\necho $n >{0}\n[ $n -le {limit} ] || {{ kill -9 $PPID; exit 1; }}\n\
                 exec /usr/bin/{program} \"$@\"\n",
                counter.display()
            );
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", wrappers.display(), self.programs().display());
        let script = self.root().join("etc/systemd/kerntune-deploy.sh");
        Command::new("sh").arg(script).arg(action).env("PATH", path).output().unwrap();
    }
}

/// Makes a package with a kernel and two modules.
fn kernel() -> KernelFiles {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let put = |path: &str, content: &str| {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    put(&format!("boot/vmlinuz-{NAME}"), &"new kernel ".repeat(100));
    put(
        &format!("boot/config-{NAME}"),
        "CONFIG_MODULES=y\nCONFIG_SOFTLOCKUP_DETECTOR=y\nCONFIG_HP_WATCHDOG=y\n",
    );
    // depmod takes files of any content for modules without aliases.
    for module in ["net/a", "watchdog/softdog"] {
        put(&format!("lib/modules/{NAME}/kernel/drivers/{module}.ko"), "");
    }
    put(&format!("lib/modules/{NAME}/modules.order"), "");
    put(&format!("lib/modules/{NAME}/modules.builtin"), "");
    put(
        &format!("lib/modules/{NAME}/modules.builtin.modinfo"),
        "hpwdt.alias=pci:v0000103C*\0hpwdt.license=GPL\0",
    );
    put(
        "DEBIAN/control",
        "Package: linux-image-x\nVersion: 1\nArchitecture: amd64\nMaintainer: x <x@y>\nDescription: x\n",
    );
    let deb = directory.path().join("x.deb");
    let made = Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Znone", "--build"])
        .arg(&tree)
        .arg(&deb)
        .output();
    assert!(made.unwrap().status.success());
    KernelFiles::unpack(&[deb]).unwrap()
}

fn options(check: Option<&str>) -> DeployOptions {
    DeployOptions {
        check: check.map(String::from),
        within_seconds: 300,
        watchdog_seconds: 60,
        append: vec!["quiet".into()],
    }
}

fn deploy(deployment: &Deployment, kernel: &KernelFiles, check: Option<&str>) -> Result<()> {
    let steps = deployment.steps(kernel, &options(check))?;
    steps.scripts.iter().try_for_each(|script| deployment.carry_out(script))
}

/// Rolls back, restarting in between if the new kernel runs.
fn roll_back(machine: &FakeMachine, deployment: &Deployment) -> Result<()> {
    let steps = deployment.rollback()?;
    steps.disarm.iter().try_for_each(|script| deployment.carry_out(script))?;
    if steps.runs_new {
        assert!(!machine.start(), "the old kernel is the default");
        return roll_back(machine, deployment);
    }
    steps.remove.iter().try_for_each(|script| deployment.carry_out(script))
}

#[test]
fn a_kernel_starts_once_and_is_confirmed_by_its_check() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    let before = machine.files();
    machine.on(None, false, |deployment| deploy(deployment, &kernel, Some("true"))).unwrap();
    assert_eq!(machine.state(), DeploymentState::Armed);
    assert!(machine.start());
    assert_eq!(machine.state(), DeploymentState::Trying);
    let line = fs::read_to_string(machine.root().join("proc/cmdline")).unwrap();
    for word in
        [LINE, "quiet", "panic=10", "softlockup_panic=1", "softdog.soft_margin=60", "systemd.watchdog_sec=60"]
    {
        assert!(line.contains(word), "{word} in {line}");
    }
    assert!(!line.contains("hung_task_panic"), "the kernel has no detector of hung tasks: {line}");
    machine.unit("trial", None);
    assert_eq!(machine.state(), DeploymentState::Confirmed);
    assert!(machine.start() && machine.start());
    let line = fs::read_to_string(machine.root().join("proc/cmdline")).unwrap();
    assert!(line.contains("quiet") && !line.contains("panic="), "{line}");
    machine.on(None, false, |deployment| roll_back(&machine, deployment)).unwrap();
    assert_eq!(machine.files(), before);
    assert_eq!(machine.state(), DeploymentState::None);
}

#[test]
fn a_failed_check_restarts_with_the_old_kernel() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    machine.on(None, false, |deployment| deploy(deployment, &kernel, Some("false"))).unwrap();
    assert!(machine.start());
    machine.unit("trial", None);
    let asked = fs::read_to_string(machine.directory.path().join("systemctl")).unwrap();
    assert!(asked.starts_with("--no-block reboot\n"), "{asked}");
    assert!(!machine.start());
    let status = machine.on(None, false, |deployment| deployment.status()).unwrap();
    assert_eq!((status.state, status.outcome.as_str()), (DeploymentState::Returned, "failed"));
}

#[test]
fn a_device_comes_before_the_timer_of_the_kernel() {
    let (kernel, of_hp) = (kernel(), "pci:v0000103Cd00003306sv*".to_string());
    let found = |devices: &[String], running: &[String]| kernel.watchdog(devices, running).unwrap().driver;
    assert_eq!(found(&[], &[]), "softdog");
    assert_eq!(found(&[of_hp], &[]), "hpwdt", "built in, and the device is there");
    assert_eq!(found(&[], &["hpwdt".into()]), "hpwdt", "the running kernel uses it");
    assert_eq!(found(&[], &["iTCO_wdt".into()]), "softdog", "the new kernel does not have that");
}

#[test]
fn a_running_kernel_with_a_longer_name_than_its_release_is_found() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    machine.stub("uname", "case $1 in -m) echo x86_64 ;; *) echo 6.12.100-kt ;; esac");
    for file in ["vmlinuz", "initrd.img"] {
        machine.put(&format!("boot/{file}-6.12.100-kt-0a1b2c3d"), b"own");
    }
    let line = format!("BOOT_IMAGE=/boot/vmlinuz-6.12.100-kt-0a1b2c3d {LINE}\n");
    machine.put("proc/cmdline", line.as_bytes());
    machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap();
    let menu = fs::read_to_string(machine.root().join("boot/grub/custom.cfg")).unwrap();
    assert!(menu.contains("/boot/vmlinuz-6.12.100-kt-0a1b2c3d"), "{menu}");
}

#[test]
fn without_a_check_a_person_confirms() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap();
    let early = machine.on(None, false, |deployment| deployment.confirm()).unwrap_err();
    assert!(early.to_string().contains("does not run"), "{early}");
    assert!(machine.start());
    machine.unit("trial", None);
    assert_eq!(machine.state(), DeploymentState::Trying);
    machine.on(None, false, |deployment| deployment.confirm()).unwrap();
    assert_eq!(machine.state(), DeploymentState::Confirmed);
    assert!(machine.start());
}

/// Cuts the power after each command of a deployment on a new machine. `after` is what is done then.
fn cut_everywhere(
    is_torn: bool,
    new_machine: fn() -> FakeMachine,
    after: impl Fn(&FakeMachine, &KernelFiles, bool),
) {
    let kernel = kernel();
    for cut in 0.. {
        let machine = new_machine();
        let before = machine.files();
        let ended = machine.on(Some(cut), is_torn, |deployment| deploy(deployment, &kernel, Some("true")));
        let is_new = machine.start();
        // The new kernel starts only if all of it is there, which `start` checks, and once.
        assert!(!machine.start(), "a second start at {cut}");
        after(&machine, &kernel, is_new);
        machine.on(None, false, |deployment| roll_back(&machine, deployment)).unwrap();
        assert_eq!(machine.files(), before, "left after a cut at {cut}");
        if ended.is_ok() {
            assert!(is_new && cut > 40, "{cut}");
            return;
        }
    }
}

#[test]
fn a_power_cut_at_any_command_leaves_the_old_kernel() {
    // The next test has the cuts between two commands.
    cut_everywhere(true, FakeMachine::new, |_, _, _| ());
}

#[test]
fn kernels_of_one_release_have_modules_of_their_own() {
    cut_everywhere(false, FakeMachine::with_shared_release, |_, _, _| ());
    let (machine, kernel) = (FakeMachine::with_shared_release(), kernel());
    machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap();
    let disk = fs::read_to_string(machine.root().join("boot/kerntune-deploy/initrd.img")).unwrap();
    assert!(disk.contains("mount -o bind \"$rootmnt/lib/modules/.kerntune-deploy/6.12.117-kt\""), "{disk}");
}

#[test]
fn a_deployment_is_repeated_after_a_power_cut_at_any_command() {
    cut_everywhere(false, FakeMachine::new, |machine, kernel, _| {
        machine.on(None, false, |deployment| deploy(deployment, kernel, Some("true"))).unwrap();
        assert_eq!(machine.state(), DeploymentState::Armed);
        assert!(machine.start());
        assert!(!machine.start());
    });
}

#[test]
fn a_power_cut_at_any_command_of_a_removal_leaves_the_old_kernel() {
    let kernel = kernel();
    for cut in 0.. {
        let machine = FakeMachine::new();
        machine.put("boot/grub/custom.cfg", b"set timeout=2\n");
        let before = machine.files();
        machine.on(None, false, |deployment| deploy(deployment, &kernel, Some("true"))).unwrap();
        machine.start();
        machine.unit("trial", None);
        assert_eq!(machine.state(), DeploymentState::Confirmed);
        let ended = machine.on(Some(cut), false, |deployment| roll_back(&machine, deployment));
        // The start is that of a confirmed kernel with all its files, or of the old one.
        machine.start();
        machine.on(None, false, |deployment| roll_back(&machine, deployment)).unwrap();
        assert_eq!(machine.files(), before, "left after a cut at {cut}");
        if ended.is_ok() {
            assert!(cut > 15, "{cut}");
            return;
        }
    }
}

#[test]
fn a_power_cut_at_any_change_of_the_unit_leaves_one_of_the_kernels() {
    let kernel = kernel();
    for cut in 0..12 {
        let machine = FakeMachine::new();
        let before = machine.files();
        machine.on(None, false, |deployment| deploy(deployment, &kernel, Some("true"))).unwrap();
        assert!(machine.start());
        machine.unit("trial", Some(cut));
        let state = machine.state();
        assert!([DeploymentState::Trying, DeploymentState::Confirmed].contains(&state), "{cut}: {state:?}");
        assert_eq!(machine.start(), state == DeploymentState::Confirmed, "{cut}");
        machine.on(None, false, |deployment| roll_back(&machine, deployment)).unwrap();
        assert_eq!(machine.files(), before, "left after a cut at {cut}");
    }
}

#[test]
fn machines_that_cannot_start_an_entry_once_are_refused() {
    let kernel = kernel();
    let refused = |words: &str, change: &dyn Fn(&FakeMachine)| {
        let machine = FakeMachine::new();
        change(&machine);
        let before = machine.files();
        let error = machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).expect_err(words);
        assert_eq!(machine.files(), before, "{error}");
        error.to_string()
    };
    let probe = |fs: &str, abstraction: &str| {
        format!("case $1 in *=fs) echo {fs} ;; *uuid) echo 0a-1b ;; *abstraction) echo {abstraction} ;; esac")
    };
    let remove = |machine: &FakeMachine, path: &str| fs::remove_file(machine.root().join(path)).unwrap();
    let mut other = EnvBlock::default();
    other.set(NEXT, "memtest").unwrap();
    for (words, change) in [
        (
            "file system of /boot/grub, btrfs",
            &(|m: &FakeMachine| m.stub("grub-probe", &probe("btrfs", ""))) as &dyn Fn(&FakeMachine),
        ),
        ("lies on lvm", &|m| m.stub("grub-probe", &probe("ext2", "lvm"))),
        ("no /boot/grub/grub.cfg", &|m| remove(m, "boot/grub/grub.cfg")),
        ("does not clear `next_entry`", &|m| m.put("boot/grub/grub.cfg", b"menuentry a { true }\n")),
        ("does not read custom.cfg", &|m| m.put("boot/grub/grub.cfg", b"save_env next_entry\n")),
        ("it has 3 bytes", &|m| m.put("boot/grub/grubenv", b"abc")),
        ("another entry next, memtest", &|m| m.put("boot/grub/grubenv", &other.bytes())),
        ("nothing to come back to", &|m| remove(m, "boot/initrd.img-6.1.0-50-cloud-amd64")),
        ("no mkinitramfs", &|m| {
            fs::remove_file(m.programs().join("mkinitramfs")).unwrap();
        }),
        ("root only", &|m| m.stub("id", "echo 1000")),
        ("aarch64", &|m| {
            m.stub("uname", "case $1 in -m) echo aarch64 ;; *) echo 6.1.0-50-cloud-amd64 ;; esac")
        }),
        ("belongs to another kernel", &|m| m.put("boot/config-6.12.117-kt", b"")),
        ("MiB free, and the new kernel needs", &|m| m.stub("df", "echo; echo /dev/x 100 90 10 90% /")),
        ("does not run systemd", &|m| fs::remove_dir_all(m.root().join("run/systemd")).unwrap()),
        ("cannot pass `a=\\\"b\\\"`", &|m| {
            m.put("proc/cmdline", b"BOOT_IMAGE=/boot/vmlinuz-6.1.0-50-cloud-amd64 a=\"b\"\n")
        }),
    ] {
        if words == "no mkinitramfs" && Path::new("/usr/sbin/mkinitramfs").exists() {
            continue;
        }
        let reason = refused(words, change);
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

#[test]
fn another_deployment_and_a_hostile_record_are_refused() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap();
    let record = machine.root().join("var/lib/kerntune-deploy/state.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace(&kernel.id, "00000000")).unwrap();
    let error = machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap_err();
    assert!(error.to_string().contains("--rollback"), "{error}");
    fs::write(&record, text.replace(NAME, "../../etc")).unwrap();
    let error = machine.on(None, false, |deployment| deployment.rollback().map(drop)).unwrap_err();
    assert!(error.to_string().contains("cannot be that of a kernel"), "{error}");
}

#[test]
fn a_block_whose_variables_fill_two_sectors_is_replaced_by_a_file() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    let mut env = EnvBlock::default();
    env.set("long", &"x".repeat(600)).unwrap();
    machine.put("boot/grub/grubenv", &env.bytes());
    machine
        .on(None, false, |deployment| {
            let steps = deployment.steps(&kernel, &options(None))?;
            let last = steps.scripts.last().unwrap();
            assert!(last.commands.len() > 1 && last.commands[0].starts_with("cat >"), "{last:?}");
            deploy(deployment, &kernel, None)
        })
        .unwrap();
    assert_eq!(fs::read(machine.root().join("boot/grub/grubenv")).unwrap().len(), BLOCK_BYTES);
    assert!(machine.start() && !machine.start());
}

#[test]
fn kernels_take_turns() {
    let (machine, kernel) = (FakeMachine::new(), kernel());
    let before = machine.files();
    let on = |work: &dyn Fn(&Deployment) -> Result<()>| machine.on(None, false, work);
    let early = on(&|deployment| deployment.arm()).unwrap_err();
    assert!(early.to_string().contains("no kernel is deployed"), "{early}");
    on(&|deployment| deploy(deployment, &kernel, None)).unwrap();
    on(&|deployment| deployment.disarm()).unwrap();
    assert!(!machine.start());
    // The second time under the new kernel.
    for _ in 0..2 {
        on(&|deployment| deployment.arm()).unwrap();
        assert!(machine.start());
    }
    assert!(!machine.start());
    on(&|deployment| deployment.arm().and_then(|()| deployment.disarm())).unwrap();
    assert!(!machine.start());
    on(&|deployment| roll_back(&machine, deployment)).unwrap();
    assert_eq!(machine.files(), before);
}

#[test]
fn a_power_cut_between_two_turns_leaves_one_of_the_kernels() {
    let kernel = kernel();
    for cut in 0.. {
        let machine = FakeMachine::new();
        machine.on(None, false, |deployment| deploy(deployment, &kernel, None)).unwrap();
        assert!(machine.start() && !machine.start());
        let ended = machine.on(Some(cut), false, |deployment| deployment.arm());
        let is_new = machine.start();
        assert!(!machine.start(), "a second start at {cut}");
        if ended.is_ok() {
            assert!(is_new && cut > 3, "{cut}");
            return;
        }
    }
}
