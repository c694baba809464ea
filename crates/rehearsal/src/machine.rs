//! The stand-in machine.

use crate::console::ConsoleLog;
use crate::{plan, run};
use kerntune_machine::{recorder_spec, Error, Machine, MachineDemands, Result, RunOutcome, RunRequest};
use kerntune_recorder::{Failure, HookRunner};
use kerntune_trace::files;
use kerntune_work::{write_json, ContentHash, IoContext, Job, Progress};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Compiler flags for the user programs.
const FLAGS: [&str; 15] = [
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-tree-loop-distribute-patterns",
    "-mgeneral-regs-only",
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--build-id=none,-Ttext-segment=0x400000",
];
const PROGRAMS: [&str; 3] = ["init.c", "rr.c", "selftest.c"];

/// A machine that interprets the code of the stand-in kernel and its init.
#[derive(Debug)]
pub struct Rehearsal {
    /// The init program, an ELF file.
    init: Vec<u8>,
}

impl Rehearsal {
    /// Compiles the user programs in an existing directory.
    ///
    /// # Errors
    /// No compiler, or a compile error.
    pub fn new(directory: &Path) -> Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("user");
        let program = directory.join("init");
        let mut command = Command::new("gcc");
        command.args(FLAGS).args(PROGRAMS).arg("-o").arg(&program).current_dir(&source).env("LC_ALL", "C");
        let (end, said) = Job::new(command).output()?;
        assert!(end.success(), "the stand-in's user side does not compile:\n{said}");
        Ok(Self { init: fs::read(&program).at("read", &program)? })
    }
}

impl Machine for Rehearsal {
    fn name(&self) -> &'static str {
        "rehearsal"
    }

    fn identity(&self) -> Result<String> {
        let hash = ContentHash::new("rehearsal/1").field("init", &self.init);
        let code = hash.field("code", env!("KERNTUNE_CODE")).field("recorder", kerntune_recorder::CODE);
        Ok(code.finish())
    }

    fn run(&self, request: &RunRequest, directory: &Path, progress: &dyn Progress) -> Result<RunOutcome> {
        let started = Instant::now();
        let kernel = request.kernel()?;
        let directory = directory.canonicalize().at("open", directory)?;
        let mut driver = match &request.capture {
            Some(capture) => {
                let spec = recorder_spec(kernel, capture, &MachineDemands::default(), &directory)?;
                write_json(&directory.join(files::SPEC), &spec)?;
                Some(HookRunner::new(&spec).map_err(gave_up)?)
            }
            None => None,
        };
        let plan = plan::of_image(request.initramfs, request.run, request.collect)?;
        let (path, image) = (kernel.image(), read(&kernel.image())?);
        let mut cpu = run::boot(&image, &self.init, &plan).map_err(|reason| Error::Code { path, reason })?;
        progress.begin(&format!("{} on {}", request.run, kernel.manifest.label), None);
        let ended = run::run(&mut cpu, driver.as_mut());
        progress.end();
        let late = !ended.map_err(gave_up)?;
        if let Some(driver) = &mut driver {
            driver.finish().map_err(gave_up)?;
        }
        let (log, guest_files) = (directory.join("console.log"), directory.join("guest"));
        fs::write(&log, &cpu.console).at("write", &log)?;
        fs::create_dir_all(&guest_files).at("create", &guest_files)?;
        let console = ConsoleLog::read(&String::from_utf8_lossy(&cpu.console), log);
        let wall_seconds = started.elapsed().as_secs_f64();
        let phases = console.phases.iter().map(|phase| (phase.clone(), wall_seconds)).collect();
        console.judge(late, request)?;
        tar::Archive::new(&cpu.results[..]).unpack(&guest_files).at("unpack into", &guest_files)?;
        let recording = driver.is_some().then(|| recording(&directory)).transpose()?;
        Ok(RunOutcome { directory, guest_files, recording, wall_seconds, phases, spent: Vec::new() })
    }
}

fn gave_up(failure: Failure) -> Error {
    Error::Recorder { message: failure.0 }
}

fn recording(directory: &Path) -> Result<kerntune_trace::Recording> {
    let path: PathBuf = directory.join(files::RECORDING);
    serde_json::from_slice(&read(&path)?)
        .map_err(|error| Error::Recording { path, message: error.to_string() })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    Ok(fs::read(path).at("read", path)?)
}
