//! Check of a recipe's compiler by use: it compiles and links one small file with the recipe's own
//! flags, and kerntune reads the result. A kernel takes minutes to build, and a compiler that
//! ignores a flag or writes another format would waste them.
//!
//! Start from [`check`]. Each program is asked once in a process.

use crate::{Error, Result};
use kerntune_kernel::{installed, Compiler, CompilerIdentity};
use kerntune_work::Job;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Time limit of one run of a program on the small file.
const LIMIT: Duration = Duration::from_secs(60);
/// Name of the small file.
pub(crate) const SOURCE_FILE: &str = "probe.c";

/// Function of the small file that is looked for, with a call and a loop.
pub(crate) const FUNCTION: &str = "kerntune_probe";
const SOURCE: &str = "\
static __attribute__((noinline)) int leaf(int x)
{
	return x > 2 ? 2 * x : x + 1;
}

__attribute__((noinline)) int kerntune_probe(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += i & 1 ? leaf(i) : leaf(x - i);
	return sum;
}

volatile int kerntune_seen;

void _start(void)
{
	kerntune_seen = kerntune_probe(kerntune_seen);
	for (;;)
		;
}
";

/// A check of a compiler: an error says what it did that the recipe cannot use.
pub(crate) type Probe = fn(&Scratch, &Compiler) -> Outcome;

/// Finding of a probe, or the reason why the recipe cannot use the compiler.
pub(crate) type Outcome<T = ()> = std::result::Result<T, String>;

/// Checks that a compiler passes a probe of `recipe`.
///
/// # Errors
/// [`Error::CompilerFails`] with what the compiler did, and the installed versions that pass.
pub(crate) fn check(
    recipe: &'static str,
    compiler: &Compiler,
    identity: &CompilerIdentity,
    probe: Probe,
) -> Result<()> {
    let Err(reason) = outcome(recipe, compiler, identity, probe) else { return Ok(()) };
    let family = if matches!(compiler, Compiler::Clang { .. }) { "clang" } else { "gcc" };
    let others = installed(family).into_iter().filter_map(|other| other.name.parse::<Compiler>().ok());
    let fits = others.filter(|other| other != compiler).find(|other| {
        other.identify().is_ok_and(|identity| outcome(recipe, other, &identity, probe).is_ok())
    });
    let fits = fits.map(|other| other.program());
    Err(Error::CompilerFails { recipe, found: identity.version.clone(), reason, fits })
}

/// Outcomes by recipe, program and version.
type Outcomes = HashMap<[String; 3], Outcome>;

fn outcome(recipe: &str, compiler: &Compiler, identity: &CompilerIdentity, probe: Probe) -> Outcome {
    static OUTCOMES: Mutex<Option<Outcomes>> = Mutex::new(None);
    let key = [recipe.to_owned(), compiler.program(), format!("{} {}", identity.program, identity.version)];
    let known = || OUTCOMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(outcome) = known().get_or_insert_default().get(&key) {
        return outcome.clone();
    }
    let outcome = Scratch::new().and_then(|scratch| probe(&scratch, compiler));
    known().get_or_insert_default().insert(key, outcome.clone());
    outcome
}

/// Temporary directory with the small file.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Outcome<Self> {
        let made = tempfile::tempdir().and_then(|dir| {
            fs::write(dir.path().join(SOURCE_FILE), SOURCE)?;
            Ok(Self(dir))
        });
        made.map_err(|error| format!("a temporary directory cannot be used: {error}"))
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Outcome {
        fs::write(self.path(name), bytes).map_err(|error| format!("{name} cannot be written: {error}"))
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Outcome<Vec<u8>> {
        fs::read(self.path(name)).map_err(|error| format!("it wrote no {name}: {error}"))
    }

    /// Runs a program in the directory and returns what it printed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Outcome<String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).env("LC_ALL", "C");
        let (end, printed) = Job::new(command)
            .time_limit(LIMIT)
            .output()
            .map_err(|error| format!("{program} does not run: {error}"))?;
        if end.success() {
            return Ok(printed);
        }
        let lines: Vec<&str> = printed.lines().take(3).map(str::trim).collect();
        let words: Vec<&str> = arguments.iter().copied().filter(|word| word.starts_with('-')).collect();
        Err(format!("`{} {}` fails: {}", name_of(program), words.join(" "), lines.join(" | ")))
    }
}

fn name_of(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}
