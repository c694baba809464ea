//! Manifest of a kernel: its provenance.

use crate::inputs::source::SHIPPED;
use crate::make::object_flags::with_sections;
use crate::{Arch, CompilerIdentity, ObjectFlags, ObjectGroup, StructureOffsets, TaskLayout};
use kerntune_work::{checked_text, Id, Label, RelativePath};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Schema of the manifest that this crate writes and reads.
pub const SCHEMA: &str = "kerntune-kernel/2";

/// `kernel.json`: a kernel's provenance, and the facts that other crates need about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelManifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Id of the kernel: 16 hex digits, a hash over all inputs.
    #[serde(deserialize_with = "checked_text::<_, Id>")]
    pub id: String,
    /// Label under which the kernel was first built.
    #[serde(deserialize_with = "checked_text::<_, Label>")]
    pub label: String,
    /// Other labels under which the same inputs were requested later, stored in `result.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Version of the source, such as `6.12.117`.
    pub version: String,
    /// Architecture of the kernel.
    #[serde(default, skip_serializing_if = "Arch::is_default")]
    pub arch: Arch,
    /// Source of the kernel, with its patches.
    pub source: SourceRecord,
    /// Hash over the final `.config`.
    pub config_hash: String,
    /// Compiler that was used.
    pub compiler: CompilerIdentity,
    /// Compiler as requested (`gcc`, `clang-19`). The configuration quotes it, so only the same
    /// name gives the same kernel again.
    pub cc: String,
    /// `KCFLAGS`, in order.
    pub kcflags: Vec<String>,
    /// Flags of single objects or directories that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_flags: Vec<ObjectFlags>,
    /// Groups of objects with flags of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_groups: Vec<ObjectGroup>,
    /// Other make variables, in order.
    pub make_vars: Vec<(String, String)>,
    /// Functions can be placed in another order by relinking.
    #[serde(default)]
    pub movable: bool,
    /// Id of the function order, if the kernel was linked in a requested order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// Id of the rewrite, if the code was rewritten after linking (BOLT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite_id: Option<String>,
    /// Recipe that built the kernel, if one did.
    pub recipe: Option<String>,
    /// Id of the profile that was compiled in, if any.
    pub profile_id: Option<String>,
    /// Id of the base kernel, if this kernel is a rebuild of one.
    pub base_id: Option<String>,
    /// Time of completion, RFC 3339 in UTC.
    pub built: String,
    /// Wall time in seconds of all make runs, interrupted ones included.
    pub build_seconds: f64,
    /// Number of objects compiled or assembled.
    pub objects: u64,
    /// Bytes of `.text` that functions cover. The padding to 2 MiB pages is left out, because it
    /// hides every change of the section's own size.
    pub text_bytes: u64,
    /// Size of the bootable image ([`Kernel::image`](crate::Kernel::image)) in bytes.
    pub image_bytes: u64,
    /// Build directory as the objects know it, the same on every machine. A gcov kernel reports
    /// paths of `.gcda` files below it; strip it from them.
    pub build_path: PathBuf,
    /// Offsets in `struct task_struct`.
    pub task: TaskLayout,
    /// Offsets in structures of block requests and network packets; empty in kernels of an older
    /// kerntune.
    #[serde(default, skip_serializing_if = "StructureOffsets::is_empty")]
    pub structures: StructureOffsets,
    /// Requested options that did not take, one message each.
    pub warnings: Vec<String>,
}

impl KernelManifest {
    /// Returns the first field whose text has a control character. Warnings may have line ends; all
    /// other texts become part of a line in reports, a package's control file and scripts.
    pub(crate) fn field_with_controls(&self) -> Option<String> {
        fn has_controls(value: &serde_json::Value) -> bool {
            match value {
                serde_json::Value::String(text) => text.contains(char::is_control),
                serde_json::Value::Array(all) => all.iter().any(has_controls),
                serde_json::Value::Object(all) => all.values().any(has_controls),
                _ => false,
            }
        }
        let serde_json::Value::Object(fields) = serde_json::to_value(self).ok()? else { return None };
        fields
            .into_iter()
            .find(|(name, value)| name != "warnings" && has_controls(value))
            .map(|(name, _)| name)
    }

    /// Returns `KCFLAGS` with the flags that `movable` adds.
    pub(crate) fn flags(&self) -> Vec<String> {
        with_sections(&self.kcflags, self.movable, &self.object_groups)
    }

    /// Returns the manifest of a kernel derived from this one without compiling; the work began at
    /// `started`.
    pub(crate) fn derived(&self, id: String, label: &str, recipe: &str, started: Instant) -> Self {
        Self {
            id,
            label: label.into(),
            aliases: Vec::new(),
            movable: false,
            recipe: Some(recipe.into()),
            base_id: Some(self.id.clone()),
            built: rfc3339(SystemTime::now()),
            build_seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            ..self.clone()
        }
    }
}

/// Origin and contents of a kernel source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Source as the user named it: `debian:6.12`, or a path; `shipped:RELEASE` for a kernel that was
    /// imported without one.
    pub origin: String,
    /// Hash over the contents, patches included.
    pub hash: String,
    /// Applied patches, in order, as files beside this manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<RelativePath>,
}

impl SourceRecord {
    /// Checks whether the kernel was imported as a distribution ships it: there is no source, and
    /// nothing can be built from this kernel.
    pub fn is_shipped(&self) -> bool {
        self.origin.starts_with(SHIPPED)
    }
}

/// Formats `time` as RFC 3339 in UTC with whole seconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_right_around_leap_days() {
        // Expected values from `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
