//! Probes of Clang and of LLVM's tools.

use super::build_log::ClangLog;
use super::flags::{profile_flags, source_flags, thin_lto_linker, PROFILE_FILE};
use crate::debug_info::FS_DISCRIMINATOR;
use crate::llvm::ProfileTools;
use crate::probe::{Outcome, Scratch, FUNCTION, SOURCE_FILE};
use kerntune_debuginfo::Elf;
use kerntune_kernel::Compiler;

/// Name of the object.
pub(crate) const OBJECT: &str = "probe.o";
/// Name of the linked image.
pub(crate) const IMAGE: &str = "probe";
/// Flags of a kernel that decide what its code looks like.
const KERNEL_FLAGS: [&str; 5] = ["-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-mno-sse"];
/// Arguments that link an image at a kernel's address.
const LINK: [&str; 4] = ["-e", "_start", "--image-base=0xffffffff81000000", "-o"];

/// Compiles and links the file as the base kernel, makes a profile of it, and compiles it with the
/// profile: Clang must say how much of it it applied.
pub(crate) fn autofdo(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    profile(scratch, compiler)?;
    let said = compile(scratch, compiler, &with_output(profile_flags(), &[]))?;
    if ClangLog::parse(&said).applied.iter().any(|function| function.used > 0) {
        return Ok(());
    }
    let said = said.lines().next().unwrap_or("nothing");
    Err(format!("it did not say that it applied a profile; it said: {said}"))
}

/// Generates code at link time, with the profile.
pub(crate) fn thin_lto(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    profile(scratch, compiler)?;
    compile(scratch, compiler, &with_output(profile_flags(), &["-flto=thin"]))?;
    let linker = thin_lto_linker(compiler);
    let mut words = linker.split(' ');
    let program = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.chain(LINK).chain([IMAGE, OBJECT]).collect();
    scratch.run(program, &arguments)?;
    let image = scratch.read(IMAGE)?;
    function(&Elf::parse_any(&image).map_err(|error| error.to_string())?)?;
    Ok(())
}

/// Makes a profile of the file as the base kernel is compiled.
fn profile(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    compile(scratch, compiler, &with_output(source_flags(), &[]))?;
    link(scratch, compiler)?;
    let image = scratch.read(IMAGE)?;
    let elf = Elf::parse_any(&image).map_err(|error| error.to_string())?;
    if !elf.has_section(".debug_line") {
        return Err("it wrote no line tables (-gmlt)".into());
    }
    if elf.address_of(FS_DISCRIMINATOR).is_none() {
        return Err(
            "it wrote no discriminators of machine code (-mllvm=-enable-fs-discriminator=true)".into()
        );
    }
    let (address, size) = function(&elf)?;
    let counts = format!("1\n{address:x}-{:x}:1000\n0\n", address + size.saturating_sub(1));
    scratch.write("counts.txt", counts)?;
    let tools = ProfileTools::of(compiler).map_err(|error| error.to_string())?;
    let [image, counts, output, log] =
        [IMAGE, "counts.txt", PROFILE_FILE, "profgen.log"].map(|name| scratch.path(name));
    let made = tools.profgen(&image, &counts, &output, &log);
    made.map_err(|failure| failure.on(FUNCTION).to_string())?;
    if output.metadata().map_or(0, |meta| meta.len()) == 0 {
        return Err("llvm-profgen made an empty profile of its code".into());
    }
    Ok(())
}

fn with_output(flags: Vec<String>, more: &[&str]) -> Vec<String> {
    let output = ["-c", SOURCE_FILE, "-o", OBJECT];
    flags.into_iter().chain(more.iter().chain(&output).map(ToString::to_string)).collect()
}

/// Compiles with the flags of a kernel that matter, and these.
pub(crate) fn compile(scratch: &Scratch, compiler: &Compiler, flags: &[impl AsRef<str>]) -> Outcome<String> {
    let flags: Vec<&str> = KERNEL_FLAGS.into_iter().chain(flags.iter().map(AsRef::as_ref)).collect();
    scratch.run(&compiler.program(), &flags)
}

/// Links the object at a kernel's address.
pub(crate) fn link(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    let arguments = [&LINK[..], &[IMAGE, OBJECT]].concat();
    scratch.run(&compiler.llvm_program("ld.lld"), &arguments).map(drop)
}

/// Returns address and size of the function.
pub(crate) fn function(elf: &Elf) -> Outcome<(u64, u64)> {
    let found = elf.symbols().flatten().find(|symbol| symbol.name == FUNCTION);
    found.map(|symbol| (symbol.address, symbol.size)).ok_or_else(|| format!("its image has no {FUNCTION}"))
}
