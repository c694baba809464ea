//! Damaged input for all readers of untrusted bytes.
//!
//! An [`AttackTarget`] is a reader with valid inputs. Its result does not matter, but it must
//! return, without a panic and without memory that the input does not justify. It is called from
//! `tests/mutations.rs`, with a fixed number of seeds damaged by [`mutate`], and from the fuzzers
//! in `fuzz/`, for an unlimited time.
//!
//! ```
//! let gcda = kerntune_attack::target("gcda").unwrap();
//! (gcda.run)(b"\x61\x64\x63\x67 and so on");
//! ```

mod convert;
mod elf;
mod image_seeds;
mod imports;
mod live;
mod live_seeds;
mod mutate;
mod profile;
mod seeds;
mod shipped_seeds;
mod stored;
mod text;
mod trace;

pub use mutate::mutate;

/// A reader of untrusted bytes.
#[derive(Debug, Clone, Copy)]
pub struct AttackTarget {
    /// Name of the target, also of the fuzz target.
    pub name: &'static str,
    /// Returns valid or nearly valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input.
    ///
    /// # Panics
    /// Any defect of the reader; finding these is the purpose.
    pub run: fn(&[u8]),
}

/// Returns all targets.
pub fn targets() -> Vec<AttackTarget> {
    let target = |name, seeds, run| AttackTarget { name, seeds, run };
    vec![
        target("autofdo_text", seeds::autofdo_text, convert::autofdo_text),
        target("bench_results", seeds::bench_results, text::bench_results),
        target("block_map", seeds::block_map, convert::block_map),
        target("btf", shipped_seeds::btf, elf::btf),
        target("build_id", seeds::build_id, elf::build_id),
        target("chunk", seeds::chunk, trace::chunk),
        target("code_calls", seeds::elf, elf::code_calls),
        target("console", seeds::console, text::console),
        target("debug_info", seeds::elf, elf::debug_info),
        target("discovered_files", seeds::discovered_files, text::discovered_files),
        target("folded", imports::folded_seeds, imports::folded),
        target("function_order", seeds::function_order, text::function_order),
        target("gcda", seeds::gcda, convert::gcda),
        target("gcno", seeds::gcno, convert::gcno),
        target("gcov_archive", live_seeds::gcov_archive, live::gcov_archive),
        target("gmon", seeds::gmon, convert::gmon),
        target("grub_env", seeds::grub_env, text::grub_env),
        target("guard", seeds::guard, text::guard),
        target("guest_elf", seeds::elf, elf::guest),
        target("guest_module", shipped_seeds::guest_module, elf::guest_module),
        target("hints", seeds::hints, elf::hints),
        target("image_documents", image_seeds::documents, stored::image_documents),
        target("image_layer", image_seeds::layers, stored::image_layer),
        target("image_symbols", shipped_seeds::images, elf::image_symbols),
        target("inlined", seeds::elf, elf::inlined),
        target("instructions", seeds::instructions, trace::instructions),
        target("json_manifests", seeds::json_manifests, text::json_manifests),
        target("kallsyms", live_seeds::kallsyms, live::kallsyms),
        target("kernel_config", seeds::kernel_config, text::kernel_config),
        target("kernel_elf", seeds::elf, elf::kernel),
        target("kgmon", seeds::kgmon, convert::kgmon),
        target("machine_code", seeds::elf, elf::machine_code),
        target("matrix", seeds::matrix, text::matrix),
        target("mcrae", seeds::mcrae, trace::mcrae),
        target("mcrae_stream", seeds::mcrae_stream, trace::mcrae_stream),
        target("model", seeds::model, text::model),
        target("module", shipped_seeds::modules, elf::module),
        target("names", seeds::names, stored::names),
        target("package", seeds::package, stored::package),
        target("paper", seeds::paper, text::paper),
        target("perf_data", seeds::perf_data, convert::perf_data),
        target("perf_record", live_seeds::perf_record, live::perf_record),
        target("perf_script", imports::perf_script_seeds, imports::perf_script),
        target("perf_text", seeds::perf_text, convert::perf_text),
        target("trace_event", live_seeds::trace_event, live::trace_event),
        target("proc_counts", live_seeds::proc_counts, live::proc_counts),
        target("pprof", imports::pprof_seeds, imports::pprof),
        target("profile", seeds::profile, profile::table),
        target("results", seeds::results, text::results),
        target("sample_weights", seeds::autofdo_text, imports::sample_weights),
        target("sealed", seeds::sealed, stored::sealed),
        target("source_lines", seeds::elf, elf::source_lines),
        target("step_output", seeds::step_output, text::step_output),
        target("suite_lines", seeds::suite_lines, text::suite_lines),
        target("tool_output", seeds::tool_output, text::tool_output),
        target("trace_dat", imports::trace_dat_seeds, imports::trace_dat),
        target("trace_file", seeds::trace_file, trace::whole),
        target("triggers", seeds::triggers, elf::triggers),
        target("uftrace", imports::uftrace_seeds, imports::uftrace),
        target("user_elf", seeds::elf, elf::user),
        target("vmcoreinfo", live_seeds::vmcoreinfo, live::notes),
        target("workload", seeds::workload, text::workload),
    ]
}

/// Passes one input to a target.
///
/// # Panics
/// If there is no target of that name, or the target panics.
pub fn run(name: &str, bytes: &[u8]) {
    let target = target(name).unwrap_or_else(|| panic!("there is no target {name}"));
    (target.run)(bytes);
}

/// Returns the target of that name.
pub fn target(name: &str) -> Option<AttackTarget> {
    targets().into_iter().find(|target| target.name == name)
}
