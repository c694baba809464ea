//! Runs that are kept, and a machine that brings them back: whatever is made of a run can be made again in the time
//! that copying takes.
//!
//! A kept run is named by what decides how it comes out: the machine that it ran on, the contents of kernel and
//! image, what was asked for and captured. So a replay is either what that machine would bring back, or an error.

use crate::error::Tail;
use crate::last_words::LastWords;
use crate::outcome::read_recording;
use crate::{Error, Machine, Outcome, Result, RunRequest};
use kerntune_work::{checked, hash_file, write_json, IoContext, Key, Progress, WorkDir};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The kind of result that kept runs are.
const KIND: &str = "runs";
/// What is said of a run beside its files.
const RUN_FILE: &str = "run.json";
/// What the run left, as the machine left it.
const FILES: &str = "files";

/// A machine whose runs are kept.
#[derive(Debug)]
pub struct Keeping {
    machine: Box<dyn Machine>,
    runs: WorkDir,
}

/// A machine on which nothing runs: it brings back what another one's runs left.
#[derive(Debug)]
pub struct Replay {
    name: &'static str,
    identity: String,
    runs: WorkDir,
}

/// How a kept run ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
enum End {
    Well { wall_seconds: f64, phases: Vec<(String, f64)> },
    Panic { phase: String, what: String, tail: Tail },
    Guest { reason: String, services: LastWords, tail: Tail },
    OutOfMemory { phase: String, what: String, tail: Tail },
    TimeLimit { seconds: u64, phase: String, tail: Tail },
    NoBoot { seconds: u64, tail: Tail },
    Silent { phase: String, tail: Tail },
}

impl Keeping {
    /// Keeps the runs of `machine` below `directory`.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub fn new(machine: Box<dyn Machine>, directory: &Path) -> Result<Self> {
        Ok(Self { machine, runs: WorkDir::open(directory)? })
    }
}

impl Machine for Keeping {
    fn name(&self) -> &'static str {
        self.machine.name()
    }

    fn identity(&self) -> Result<String> {
        self.machine.identity()
    }

    /// Failures of the guest are kept; those of the host are not.
    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<Outcome> {
        let key = key(&self.identity()?, request)?;
        let ran = self.machine.run(request, directory, progress);
        if let Some(end) = End::of(&ran) {
            let staged = self.runs.stage(KIND, &key)?;
            staged.clear()?;
            copy(directory, &staged.path().join(FILES))?;
            write_json(&staged.path().join(RUN_FILE), &end)?;
            staged.publish()?;
        }
        ran
    }
}

impl Replay {
    /// The runs that are kept in `directory`, of the machine of this name and identity.
    ///
    /// # Errors
    /// A directory that cannot be opened.
    pub fn new(name: &'static str, identity: String, directory: &Path) -> Result<Self> {
        Ok(Self { name, identity, runs: WorkDir::open(directory)? })
    }
}

impl Machine for Replay {
    fn name(&self) -> &'static str {
        self.name
    }

    fn identity(&self) -> Result<String> {
        Ok(self.identity.clone())
    }

    /// [`Error::NotKept`] for what never ran.
    fn run(&self, request: &RunRequest, directory: &Path, _: &dyn Progress) -> Result<Outcome> {
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
        let end: End = serde_json::from_slice(&bytes)
            .map_err(|source| kerntune_work::Error::Json { path: path.clone(), source })?;
        end.outcome(request, directory)
    }
}

impl End {
    /// None for what is no property of the guest.
    fn of(ran: &Result<Outcome>) -> Option<Self> {
        Some(match ran {
            Ok(Outcome { wall_seconds, phases, .. }) => {
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

    /// What the run came to, its files in `directory`.
    fn outcome(self, request: &RunRequest, directory: &Path) -> Result<Outcome> {
        match self {
            Self::Well { wall_seconds, phases } => {
                let directory = directory.canonicalize().at("open", directory)?;
                let recording = request.capture.is_some().then(|| read_recording(&directory)).transpose()?;
                let guest_files = directory.join("guest");
                Ok(Outcome { directory, guest_files, recording, wall_seconds, phases, spent: Vec::new() })
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

/// Names a run on a machine.
fn key(identity: &str, request: &RunRequest) -> Result<Key> {
    let key = Key::new("run/1", crate::CODE)
        .field("machine", identity)
        .field("image", hash_file(request.initramfs)?)
        .field("capture", format!("{:?}", request.capture));
    request.named(key)
}

/// Regular files and directories, which are all that a run leaves.
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

    /// A machine that panics in `measured` and does well otherwise.
    #[derive(Debug)]
    struct Fragile;

    impl Machine for Fragile {
        fn name(&self) -> &'static str {
            "fragile"
        }
        fn identity(&self) -> Result<String> {
            Ok("fragile/1".into())
        }
        fn run(&self, request: &RunRequest, directory: &Path, _: &dyn Progress) -> Result<Outcome> {
            let guest_files = directory.join("guest");
            fs::create_dir_all(&guest_files).unwrap();
            fs::write(guest_files.join("log"), request.run).unwrap();
            fs::write(directory.join("console.log"), "kt: phase boot\n").unwrap();
            if request.run == "measured" {
                let (phase, what) = ("boot".into(), "Kernel panic".into());
                return Err(Error::Panic { phase, what, tail: Tail::default() });
            }
            let (directory, phases) = (directory.to_owned(), vec![("boot".into(), 0.5)]);
            Ok(Outcome {
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
        let keeping = Keeping::new(Box::new(Fragile), &runs).unwrap();
        let replay = Replay::new("fragile", keeping.identity().unwrap(), &runs).unwrap();
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
        let keeping = Keeping::new(Box::new(Fragile), &runs).unwrap();
        let first = dir.path().join("first");
        fs::create_dir(&first).unwrap();
        keeping.run(&request, &first, &NoProgress).unwrap();
        let id = key("fragile/1", &request).unwrap().id();
        fs::write(runs.join(KIND).join(id).join("files/guest/log"), "other").unwrap();
        let replay = Replay::new("fragile", "fragile/1".into(), &runs).unwrap();
        let second = dir.path().join("second");
        fs::create_dir(&second).unwrap();
        assert!(replay.run(&request, &second, &NoProgress).is_err());
    }
}
