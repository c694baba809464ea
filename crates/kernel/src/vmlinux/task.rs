//! Offsets of the members of `task_struct` that identify a thread, computed by the compiler.

use crate::make::object_cache::PROGRAM;
use crate::{Arch, Error, Result};
use kerntune_work::{IoContext, Job};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;

const TASK_OFFSETS_SOURCE: &str = include_str!("../../../../embedded/kernel/task_offsets.c");

/// Byte offsets of members of `struct task_struct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLayout {
    /// `pid`: the thread's number (`int`).
    pub pid_offset: u64,
    /// `tgid`: the process's number (`int`).
    pub tgid_offset: u64,
    /// `comm`: 16 bytes, NUL-terminated.
    pub comm_offset: u64,
}

impl TaskLayout {
    /// Compiles `embedded/kernel/task_offsets.c` with the command that Kbuild used for `asm-offsets.s` in
    /// the finished build directory `build`, writing into `scratch`, and reads the offsets from the
    /// assembly.
    pub fn probe(arch: Arch, build: &Path, scratch: &Path) -> Result<Self> {
        Self::parse(&compile_offsets(arch, build, scratch, "task_offsets", TASK_OFFSETS_SOURCE)?)
    }

    /// Reads the `.ascii "->KERNTUNE_pid $1234 …"` lines. GCC and Clang write `$` before the
    /// number.
    pub(crate) fn parse(assembly: &str) -> Result<Self> {
        let value = |name: &str| {
            parse_offsets(assembly).find_map(|(known, value)| (known == name).then_some(value)).ok_or_else(
                || Error::TaskLayout { reason: format!("no value for {name} in the compiler's output") },
            )
        };
        Ok(Self {
            pid_offset: value("KERNTUNE_pid")?,
            tgid_offset: value("KERNTUNE_tgid")?,
            comm_offset: value("KERNTUNE_comm")?,
        })
    }
}

/// Compiles a source `name.c`, which writes lines as `asm-offsets.c` does, with the command that
/// Kbuild used for that file in the build directory `build`. Writes into `scratch` and returns the
/// assembly.
pub(crate) fn compile_offsets(
    arch: Arch,
    build: &Path,
    scratch: &Path,
    name: &str,
    question: &str,
) -> Result<String> {
    let command_file = build.join(arch.offsets_command());
    let text = fs::read_to_string(&command_file).at("read", &command_file)?;
    let (source, output) = (scratch.join(format!("{name}.c")), scratch.join(format!("{name}.s")));
    let Some(command) = redirect(&text, &source, &output) else {
        let reason = format!("{} has no compile command in it", command_file.display());
        return Err(Error::TaskLayout { reason });
    };
    fs::write(&source, question).at("write", &source)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(build).env("LC_ALL", "C");
    let (end, said) = Job::new(shell).output()?;
    let assembly = match end.success() {
        true => Ok(fs::read_to_string(&output).at("read", &output)?),
        false => {
            Err(Error::TaskLayout { reason: format!("the compiler refused the probe:\n{}", said.trim()) })
        }
    };
    for file in [source, output] {
        let _ = fs::remove_file(&file);
    }
    assembly
}

/// Returns names and values from the `.ascii "->NAME $1234 …"` lines of the assembly. GCC and Clang
/// write `$` before the number.
pub(crate) fn parse_offsets(assembly: &str) -> impl Iterator<Item = (&str, u64)> {
    assembly.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"->")?;
        let mut words = rest.trim_end_matches('"').split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        Some((name, value.trim_start_matches(['$', '#']).parse().ok()?))
    })
}

/// Returns the command of a `.cmd` file with another source and output. Its variable is `savedcmd_`
/// since 6.3, `cmd_` before; make's escapes are removed.
pub(crate) fn redirect(command_file: &str, source: &Path, output: &Path) -> Option<String> {
    let line = command_file.lines().find(|l| l.starts_with("savedcmd_") || l.starts_with("cmd_"))?;
    let (_, command) = line.split_once(":=")?;
    let command = command.replace("$(pound)", "#").replace("$$", "$");
    let mut words: Vec<&str> = command.split(' ').filter(|w| !w.is_empty()).collect();
    // The dependency file belongs to Kbuild; a new one would make the next make rebuild.
    words.retain(|w| !w.starts_with("-Wp,-MMD,") && !w.starts_with("-Wp,-MD,") && *w != PROGRAM);
    let out = words.iter().position(|w| *w == "-o")? + 1;
    let last = words.len().checked_sub(1).filter(|last| *last > out && words[*last].ends_with(".c"))?;
    let (source, output) = (source.to_str()?, output.to_str()?);
    words[out] = output;
    words[last] = source;
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_command_is_redirected_for_old_and_new_kbuild() {
        for prefix in ["savedcmd_", "cmd_"] {
            let file = format!(
                "{prefix}arch/x86/kernel/asm-offsets.s := gcc -Wp,-MMD,arch/x86/kernel/.asm-offsets.s.d -I./include \
                 -DKBUILD_MODFILE='\"./asm-offsets\"' -DCOST='$$1$(pound)' -fverbose-asm -S \
                 -o arch/x86/kernel/asm-offsets.s /s/arch/x86/kernel/asm-offsets.c \n\nsource_x := y\n"
            );
            assert_eq!(
                redirect(&file, Path::new("/t/a.c"), Path::new("/t/a.s")).unwrap(),
                "gcc -I./include -DKBUILD_MODFILE='\"./asm-offsets\"' -DCOST='$1#' -fverbose-asm -S -o /t/a.s /t/a.c"
            );
        }
        assert!(redirect("source_x := y\n", Path::new("a"), Path::new("b")).is_none());
        assert!(redirect("cmd_x := gcc -o\n", Path::new("a"), Path::new("b")).is_none());
    }

    #[test]
    fn gcc_and_clang_assembly_are_read() {
        let gcc = ".ascii \"->KERNTUNE_pid $1240 offsetof(struct task_struct, pid)\"\t#\n\
                   .ascii \"->KERNTUNE_tgid $1244 offsetof(struct task_struct, tgid)\"\n\
                   .ascii \"->KERNTUNE_comm 1800 offsetof(struct task_struct, comm)\"\n";
        let expected = TaskLayout { pid_offset: 1240, tgid_offset: 1244, comm_offset: 1800 };
        assert_eq!(TaskLayout::parse(gcc).unwrap(), expected);
        assert!(TaskLayout::parse("nothing").unwrap_err().to_string().contains("KERNTUNE_pid"));
    }

    proptest! {
        #[test]
        fn any_assembly_is_read_or_refused(text in "(\\PC*|\\.ascii \"->KERNTUNE_pid \\$?[0-9]*\"\n)*") {
            let _ = TaskLayout::parse(&text);
            let _ = redirect(&text, Path::new("a"), Path::new("b"));
        }
    }
}
