//! Probe of GCC: it must write notes that kerntune reads, and use counters that kerntune writes.

use super::gcno::{FunctionNote, GcnoFile};
use crate::probe::{Outcome, Scratch, SOURCE_FILE};
use kerntune_convert::gcda::{
    ByteOrder, CounterKind, CounterRecord, CounterValues, Gcda, GcdaFunction, GcovVersion,
};
use kerntune_debuginfo::Elf;
use kerntune_kernel::Compiler;

/// Flags of the tuned kernel, for objects with counts.
///
/// `-fprofile-use` stays with all that GCC enables by it: unrolling, peeling, tail duplication and
/// cloning act only on hot code, and without value counters the value transformations (`-fvpt`)
/// find nothing to do.
pub(super) const USE_FLAGS: &[&str] = &[
    "-fprofile-use",
    // Counters of one function can be inconsistent: interrupts, and several CPUs.
    "-fprofile-correction",
    // GCC reports mismatches in the log, which `prove` reads. An object that was never instrumented
    // has no counters; that is no failure.
    "-Wmissing-profile",
    "-Wno-error=missing-profile",
    "-Wcoverage-mismatch",
    "-Wno-error=coverage-mismatch",
];

/// Flags of the gcov kernel, as Kbuild's `CFLAGS_GCOV` has them.
const COUNT_FLAGS: [&str; 2] = ["-fprofile-arcs", "-ftest-coverage"];
const KERNEL_FLAGS: [&str; 5] = ["-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-mno-sse"];
const OBJECT: &str = "probe.o";
/// Executions of each counted arc.
const COUNT: i64 = 1000;
/// Function that is given no executions, and section in which GCC then puts it.
const NEVER_RAN: (&str, &str) = ("leaf", ".text.unlikely");

/// Compiles the file with counters, and with a profile in which one function never ran: GCC must
/// put that one apart.
pub(super) fn counters(scratch: &Scratch, compiler: &Compiler) -> Outcome {
    let compile = |flags: &[&str]| {
        let output = ["-c", SOURCE_FILE, "-o", OBJECT];
        scratch.run(&compiler.program(), &[&KERNEL_FLAGS[..], flags, &output[..]].concat())
    };
    compile(&COUNT_FLAGS)?;
    let notes = GcnoFile::parse(&scratch.read("probe.gcno")?)
        .map_err(|reason| format!("its notes cannot be read: {reason}"))?;
    let version = GcovVersion(notes.version);
    if version.counter_kinds().is_none() {
        let (first, last) = (GcovVersion::FIRST_MAJOR, GcovVersion::LAST_MAJOR);
        return Err(format!("its counters are of {version}, where those of GCC {first} to {last} are read"));
    }
    let mut gcda = Gcda {
        byte_order: ByteOrder::Little,
        version,
        stamp: notes.stamp,
        checksum: 0,
        summary: None,
        functions: notes.functions.iter().map(|(ident, note)| counted(*ident, note)).collect(),
        end_marker: false,
    };
    gcda.set_summary(1, COUNT as u64);
    scratch.write("probe.gcda", gcda.to_bytes())?;
    let said = compile(USE_FLAGS)?;
    let object = scratch.read(OBJECT)?;
    let elf = Elf::parse_any(&object).map_err(|error| error.to_string())?;
    let (function, section) = NEVER_RAN;
    if elf.has_section(section) {
        return Ok(());
    }
    let said = said.lines().next().unwrap_or("nothing");
    Err(format!("it did not use counters (-fprofile-use): {function}, which never ran, is not in {section}; it said: {said}"))
}

/// Returns the counters of a function.
fn counted(ident: u32, note: &FunctionNote) -> GcdaFunction {
    let arcs = note.graph.arcs.iter().filter(|arc| arc.counter.is_some()).count();
    let count = if note.name == NEVER_RAN.0 { 0 } else { COUNT };
    let values = CounterValues::Listed(vec![count; arcs]);
    GcdaFunction {
        ident,
        lineno_checksum: 0,
        cfg_checksum: note.cfg_checksum,
        counters: vec![CounterRecord { kind: CounterKind::Arcs, values }],
    }
}
