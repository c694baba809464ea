//! Finds the plugin API level of a QEMU.
//!
//! QEMU tells its level only to a loaded plugin, so the recorder says it. Without the recorder, the
//! level is inferred from the functions that QEMU exports (include/plugins/qemu-plugin.h,
//! "Versioning plugins").

use kerntune_debuginfo::Elf;

/// API level that the recorder needs.
pub(crate) const NEEDED: u32 = 4;

/// A function that was added with each level, newest first. Level 7 added none.
const MARKERS: [(u32, &str); 5] = [
    (6, "qemu_plugin_register_vcpu_discon_cb"),
    (5, "qemu_plugin_write_memory_vaddr"),
    (4, "qemu_plugin_read_memory_vaddr"),
    (2, "qemu_plugin_num_vcpus"),
    (1, "qemu_plugin_register_vcpu_tb_trans_cb"),
];

/// Symbols that the recorder uses to update the clock before a CPU halts
/// (`crates/recorder/src/ffi/halt.rs`); QEMU exports them for its own modules.
pub(crate) const CLOCK: [&str; 2] = ["icount_update", "current_cpu"];

/// Findings in QEMU's dynamic symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QemuExports {
    /// The highest level of which a function is exported.
    pub level: u32,
    /// Set if all symbols of [`CLOCK`] are exported.
    pub clock: bool,
}

/// Reads the exports of a QEMU. `None` if the bytes are no ELF file, or if plugins are not built
/// in.
pub(crate) fn exported(qemu: &[u8]) -> Option<QemuExports> {
    let elf = Elf::parse_any(qemu).ok()?;
    let (mut level, mut clock) = (None, 0);
    for symbol in elf.dynamic_symbols().flatten().filter(|symbol| symbol.section.is_some()) {
        level = level.max(MARKERS.iter().find(|(_, marker)| *marker == symbol.name).map(|(at, _)| *at));
        clock += usize::from(CLOCK.contains(&&*symbol.name));
    }
    Some(QemuExports { level: level?, clock: clock == CLOCK.len() })
}

/// Result of loading the recorder with a missing spec.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PluginLoad {
    /// The recorder reached its spec: the plugin API suits it. QEMU's level, if the recorder says
    /// it.
    Yes(Option<u32>),
    /// QEMU has no level yet that the recorder speaks, with the reason.
    TooOld(String),
    /// QEMU no longer has a level that the recorder speaks, with the reason.
    TooNew(String),
    /// QEMU was built without plugins, with its message.
    NoPlugins(String),
    /// The recorder was refused otherwise, with the reason.
    No(String),
}

/// Parses the messages of QEMU and the recorder.
pub(crate) fn loaded(output: &str, spec: &str) -> PluginLoad {
    let said = |words: &str| output.lines().find(|line| line.contains(words));
    if let Some(line) = said(spec).filter(|line| line.contains("kerntune-recorder: ")) {
        let level = line.rsplit_once(" to ").filter(|(before, _)| before.contains("plugin API "));
        return PluginLoad::Yes(level.and_then(|(_, level)| level.trim().parse().ok()));
    }
    // The recorder's reason comes first, then QEMU's, which is its last line.
    let reason = said("kerntune-recorder: ")
        .or_else(|| said("requires API version"))
        .or_else(|| said("Could not load plugin"))
        .or_else(|| output.lines().rfind(|line| !line.trim().is_empty()));
    let reason = reason.unwrap_or("QEMU ended without output");
    let has = |words: &str| reason.contains(words);
    let kind = if has("supports only up to version") || has("QEMU 9.2 or newer") {
        PluginLoad::TooOld
    } else if has("supports only a minimum version of") {
        PluginLoad::TooNew
    } else if has("-plugin: invalid option") {
        PluginLoad::NoPlugins
    } else {
        PluginLoad::No
    };
    kind(reason.trim_start_matches("kerntune-recorder: ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_qemu_and_recorder() {
        let yes = "kerntune-recorder: cannot read /x/spec: No such file or directory (os error 2)\n\
            qemu-system-x86_64: Could not load plugin /l.so: qemu_plugin_install returned error code 1\n";
        assert_eq!(loaded(yes, "/x/spec"), PluginLoad::Yes(None));
        let told =
            "kerntune-recorder: cannot read /x/spec: No such file or directory (os error 2); this QEMU has \
            plugin API 7 to 7\n";
        assert_eq!(loaded(told, "/x/spec"), PluginLoad::Yes(Some(7)));
        let old = "kerntune-recorder: this QEMU has plugin API 2, 4 is needed (QEMU 9.2 or newer)\n";
        assert_eq!(
            loaded(old, "/x/spec"),
            PluginLoad::TooOld("this QEMU has plugin API 2, 4 is needed (QEMU 9.2 or newer)".into())
        );
        let qemu = "qemu-system-x86_64: Could not load plugin /b.so: plugin requires API version 4, but \
            this QEMU supports only up to version 1\n";
        assert!(
            matches!(loaded(qemu, "/x/spec"), PluginLoad::TooOld(why) if why.contains("up to version 1"))
        );
        let new = "qemu-system-x86_64: Could not load plugin /b.so: plugin requires API version 7, but \
            this QEMU supports only a minimum version of 8\n";
        assert!(
            matches!(loaded(new, "/x/spec"), PluginLoad::TooNew(why) if why.contains("minimum version of 8"))
        );
        let none = "qemu-system-x86_64: -plugin: invalid option\n";
        assert!(
            matches!(loaded(none, "/x/spec"), PluginLoad::NoPlugins(why) if why.contains("invalid option"))
        );
        assert!(matches!(loaded("", "/x/spec"), PluginLoad::No(_)));
    }

    #[test]
    fn what_is_no_qemu_exports_nothing() {
        assert_eq!(exported(b"#!/bin/sh\n"), None);
        assert_eq!(exported(b"\x7fELF\x02\x01\x01"), None);
        assert_eq!(exported(&std::fs::read("/proc/self/exe").unwrap()), None);
    }

    #[test]
    fn the_installed_qemu_shows_its_level() {
        // QEMU 10.0 has API level 4; newer versions have higher levels.
        let Ok(mut bytes) = std::fs::read("/usr/bin/qemu-system-x86_64") else { return };
        let found = exported(&bytes).unwrap();
        assert!(found.clock, "Debian's has modules");
        // The same program without one of the symbols.
        let name = b"\0icount_update\0";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at + 1] = b'x';
        assert_eq!(exported(&bytes), Some(QemuExports { clock: false, ..found }));
    }
}
