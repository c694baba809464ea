//! Keeps runs, and a machine that brings them back, so that whatever follows a run can be repeated
//! in the time of a copy.
//!
//! The key of a kept run has everything that decides its results: the machine, the contents of
//! kernel and image, the request and the capture. So a replay returns either what that machine
//! would, or an error.

use crate::error::ConsoleTail;
use crate::outcome::read_recording;
use crate::service_log_tail::ServiceLogTail;
use crate::{Error, Machine, Result, RunOutcome, RunRequest};
use kerntune_work::{checked, hash_file, write_json, IoContext, Key, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Kind of result in the archive's directory.
const KIND: &str = "runs";
/// File that describes how a run ended.
const RUN_FILE: &str = "run.json";
/// Directory with the run's files.
const FILES: &str = "files";

/// A machine that runs on another one and keeps its runs.
#[derive(Debug)]
pub struct ArchivingMachine {
    machine: Box<dyn Machine>,
    runs: WorkDir,
}

/// A machine that brings back kept runs of another one, and runs nothing.
#[derive(Debug)]
pub struct ReplayMachine {
    name: &'static str,
    identity: String,
    runs: WorkDir,
}

/// End of a kept run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
enum KeptEnd {
    Well { wall_seconds: f64, phases: Vec<(String, f64)> },
    Panic { phase: String, what: String, tail: ConsoleTail },
    Guest { reason: String, services: ServiceLogTail, tail: ConsoleTail },
    OutOfMemory { phase: String, what: String, tail: ConsoleTail },
    TimeLimit { seconds: u64, phase: String, tail: ConsoleTail },
    NoBoot { seconds: u64, tail: ConsoleTail },
    Silent { phase: String, tail: ConsoleTail },
}

impl ArchivingMachine {
    /// Keeps the runs of `machine` below `directory`.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn new(machine: Box<dyn Machine>, directory: &Path) -> Result<Self> {
        Ok(Self { machine, runs: WorkDir::open(directory)? })
    }
}

impl Machine for ArchivingMachine {
    fn name(&self) -> &'static str {
        self.machine.name()
    }

    fn identity(&self) -> Result<String> {
        self.machine.identity()
    }

    fn emulator(&self) -> Result<Option<String>> {
        self.machine.emulator()
    }

    fn cpu_model(&self) -> Result<Option<String>> {
        self.machine.cpu_model()
    }

    /// Keeps failures of the guest, but not those of the host.
    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        let key = key(&self.identity()?, request)?;
        let ran = self.machine.run(request, directory, progress);
        if let Some(end) = KeptEnd::of(&ran) {
            let staged = self.runs.stage(KIND, &key)?;
            staged.clear()?;
            copy(directory, &staged.path().join(FILES))?;
            write_json(&staged.path().join(RUN_FILE), &end)?;
            staged.publish()?;
        }
        ran
    }
}

impl ReplayMachine {
    /// Replays runs kept in `directory`, of the machine with this name and identity.
    ///
    /// # Errors
    /// A directory that cannot be opened.
    pub fn new(name: &'static str, identity: String, directory: &Path) -> Result<Self> {
        Ok(Self { name, identity, runs: WorkDir::open(directory)? })
    }
}

impl Machine for ReplayMachine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn identity(&self) -> Result<String> {
        Ok(self.identity.clone())
    }

    /// Fails with [`Error::NotKept`] for a run that was not kept.
    fn run(&self, request: &RunRequest, directory: &Path, _: &dyn Progress) -> Result<RunOutcome> {
        let key = key(&self.identity, request)?;
        let kept = self.runs.find(KIND, &key.id()).ok_or_else(|| Error::NotKept {
            directory: self.runs.root().to_owned(),
            run: request.run.to_owned(),
            kernel: request.kernel.map(|kernel| kernel.manifest.label.clone()).unwrap_or_default(),
        })?;
        checked(&kept, &[])?;
        copy(&kept.join(FILES), directory)?;
        let path = kept.join(RUN_FILE);
        let bytes = fs::read(&path).at("read", &path)?;
        let end: KeptEnd = serde_json::from_slice(&bytes)
            .map_err(|source| kerntune_work::Error::Json { path: path.clone(), source })?;
        end.outcome(request, directory)
    }
}

impl KeptEnd {
    /// Returns `None` for failures that are not the guest's.
    fn of(ran: &Result<RunOutcome>) -> Option<Self> {
        Some(match ran {
            Ok(RunOutcome { wall_seconds, phases, .. }) => {
                Self::Well { wall_seconds: *wall_seconds, phases: phases.clone() }
            }
            Err(error) => match error {
                Error::Panic { phase, what, tail } => {
                    Self::Panic { phase: phase.clone(), what: what.clone(), tail: tail.clone() }
                }
                Error::Guest { reason, services, tail } => {
                    Self::Guest { reason: reason.clone(), services: services.clone(), tail: tail.clone() }
                }
                Error::OutOfMemory { phase, what, tail } => {
                    Self::OutOfMemory { phase: phase.clone(), what: what.clone(), tail: tail.clone() }
                }
                Error::TimeLimit { seconds, phase, tail } => {
                    Self::TimeLimit { seconds: *seconds, phase: phase.clone(), tail: tail.clone() }
                }
                Error::NoBoot { seconds, tail } => Self::NoBoot { seconds: *seconds, tail: tail.clone() },
                Error::Silent { phase, tail } => Self::Silent { phase: phase.clone(), tail: tail.clone() },
                _ => return None,
            },
        })
    }

    /// Returns the original result, with the files in `directory`.
    fn outcome(self, request: &RunRequest, directory: &Path) -> Result<RunOutcome> {
        match self {
            Self::Well { wall_seconds, phases } => {
                let directory = directory.canonicalize().at("open", directory)?;
                let recording = request.capture.is_some().then(|| read_recording(&directory)).transpose()?;
                let guest_files = directory.join("guest");
                Ok(RunOutcome { directory, guest_files, recording, wall_seconds, phases, spent: Vec::new() })
            }
            Self::Panic { phase, what, tail } => Err(Error::Panic { phase, what, tail }),
            Self::Guest { reason, services, tail } => Err(Error::Guest { reason, services, tail }),
            Self::OutOfMemory { phase, what, tail } => Err(Error::OutOfMemory { phase, what, tail }),
            Self::TimeLimit { seconds, phase, tail } => Err(Error::TimeLimit { seconds, phase, tail }),
            Self::NoBoot { seconds, tail } => Err(Error::NoBoot { seconds, tail }),
            Self::Silent { phase, tail } => Err(Error::Silent { phase, tail }),
        }
    }
}

/// Key of a run on a machine.
fn key(identity: &str, request: &RunRequest) -> Result<Key> {
    let key = Key::new("run/1", crate::CODE)
        .field("machine", identity)
        .field("image", hash_file(request.initramfs)?);
    let key = match &request.capture {
        Some(capture) => capture.add_to_key(key)?,
        None => key,
    };
    request.add_to_key(key)
}

/// Copies regular files and directories, the only ones that a run leaves.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).at("create", to)?;
    for entry in fs::read_dir(from).at("list", from)? {
        let entry = entry.at("list", from)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).at("copy to", &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::CaptureRequest;
    use crate::test_program;
    use kerntune_kernel::Arch;
    use kerntune_work::NoProgress;

    /// A machine that panics in `measured` and otherwise succeeds.
    #[derive(Debug)]
    struct Fragile;

    impl Machine for Fragile {
        fn name(&self) -> &'static str {
            "fragile"
        }
        fn identity(&self) -> Result<String> {
            Ok("fragile/1".into())
        }
        fn run(&self, request: &RunRequest, directory: &Path, _: &dyn Progress) -> Result<RunOutcome> {
            let guest_files = directory.join("guest");
            fs::create_dir_all(&guest_files).unwrap();
            fs::write(guest_files.join("log"), request.run).unwrap();
            fs::write(directory.join("console.log"), "kt: phase boot\n").unwrap();
            if request.run == "measured" {
                let (phase, what) = ("boot".into(), "Kernel panic".into());
                return Err(Error::Panic { phase, what, tail: ConsoleTail::default() });
            }
            let (directory, phases) = (directory.to_owned(), vec![("boot".into(), 0.5)]);
            Ok(RunOutcome {
                directory,
                guest_files,
                recording: None,
                wall_seconds: 1.5,
                phases,
                spent: Vec::new(),
            })
        }
    }

    #[test]
    fn what_was_kept_comes_back_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut kernel = test_program::kernel(Arch::X86_64);
        kernel.dir = dir.path().join("kernel");
        fs::create_dir(&kernel.dir).unwrap();
        for name in [kernel.vmlinux(), kernel.image()] {
            fs::write(name, "image").unwrap();
        }
        let image = dir.path().join("image");
        fs::write(&image, "guest").unwrap();
        let (runs, place) = (dir.path().join("runs"), |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        let keeping = ArchivingMachine::new(Box::new(Fragile), &runs).unwrap();
        let replay = ReplayMachine::new("fragile", keeping.identity().unwrap(), &runs).unwrap();
        let training = RunRequest::new(&kernel, &image, "training");
        let measured = RunRequest::new(&kernel, &image, "measured");

        let unknown = replay.run(&training, &place("a"), &NoProgress).unwrap_err();
        assert!(matches!(unknown, Error::NotKept { .. }), "{unknown}");
        keeping.run(&training, &place("b"), &NoProgress).unwrap();
        keeping.run(&measured, &place("c"), &NoProgress).unwrap_err();

        let again = replay.run(&training, &place("d"), &NoProgress).unwrap();
        assert_eq!((again.wall_seconds, again.phases), (1.5, vec![("boot".to_string(), 0.5)]));
        assert_eq!(fs::read_to_string(again.guest_files.join("log")).unwrap(), "training");
        let failed = replay.run(&measured, &place("e"), &NoProgress).unwrap_err();
        assert!(matches!(&failed, Error::Panic { what, .. } if what == "Kernel panic"), "{failed}");
        assert!(dir.path().join("e/console.log").is_file());

        let recorded = RunRequest { capture: Some(CaptureRequest::default()), ..training.clone() };
        assert!(replay.run(&recorded, &place("f"), &NoProgress).is_err(), "another capture is another run");
        fs::write(kernel.vmlinux(), "another").unwrap();
        assert!(replay.run(&training, &place("g"), &NoProgress).is_err(), "another kernel, too");
    }

    #[test]
    fn a_damaged_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut kernel = test_program::kernel(Arch::X86_64);
        kernel.dir = dir.path().to_owned();
        for name in [kernel.vmlinux(), kernel.image(), dir.path().join("initramfs")] {
            fs::write(name, "image").unwrap();
        }
        let (runs, image) = (dir.path().join("runs"), dir.path().join("initramfs"));
        let request = RunRequest::new(&kernel, &image, "training");
        let keeping = ArchivingMachine::new(Box::new(Fragile), &runs).unwrap();
        let first = dir.path().join("first");
        fs::create_dir(&first).unwrap();
        keeping.run(&request, &first, &NoProgress).unwrap();
        let id = key("fragile/1", &request).unwrap().id();
        fs::write(runs.join(KIND).join(id).join("files/guest/log"), "other").unwrap();
        let replay = ReplayMachine::new("fragile", "fragile/1".into(), &runs).unwrap();
        let second = dir.path().join("second");
        fs::create_dir(&second).unwrap();
        assert!(replay.run(&request, &second, &NoProgress).is_err());
    }
}
