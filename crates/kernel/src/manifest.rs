//! What is written beside a kernel: its provenance.

use crate::compiler::FUNCTION_SECTIONS;
use crate::{Arch, CompilerIdentity, ObjectFlags, Structures, TaskLayout};
use kerntune_work::{checked_text, Id, Label, RelativePath};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The version of the manifest that this crate writes and reads.
pub const SCHEMA: &str = "kerntune-kernel/2";

/// `kernel.json`: what a kernel was made from, and what the other rooms have to know about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelManifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// 16 hex digits over everything that went in.
    #[serde(deserialize_with = "checked_text::<_, Id>")]
    pub id: String,
    /// The name that it was first built under.
    #[serde(deserialize_with = "checked_text::<_, Label>")]
    pub label: String,
    /// Other names under which the same inputs were asked for later. They are kept beside, in `result.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Version of the source, such as `6.12.117`.
    pub version: String,
    /// What it runs on.
    #[serde(default, skip_serializing_if = "Arch::is_default")]
    pub arch: Arch,
    /// Where the source came from.
    pub source: SourceRecord,
    /// Over the final `.config`.
    pub config_hash: String,
    /// What compiled it.
    pub compiler: CompilerIdentity,
    /// The compiler as it was asked for (`gcc`, `clang-19`). The configuration quotes it, so that only
    /// the same word gives the same kernel again.
    pub cc: String,
    /// `KCFLAGS`, in order.
    pub kcflags: Vec<String>,
    /// What is different for single objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_flags: Vec<ObjectFlags>,
    /// Other make variables, in order.
    pub make_vars: Vec<(String, String)>,
    /// Whether its functions can be placed in another order by linking again.
    #[serde(default)]
    pub movable: bool,
    /// What names the order of its functions, if they are in one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// What names the rewriting of its code after it was linked, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite_id: Option<String>,
    /// The recipe that asked for it, if one did.
    pub recipe: Option<String>,
    /// What names the profile that was compiled in, if one was.
    pub profile_id: Option<String>,
    /// The kernel that this one is a rebuild of, if it is.
    pub base_id: Option<String>,
    /// When it was finished, RFC 3339 in UTC.
    pub built: String,
    /// Wall time in seconds of all runs of make that made it, interrupted ones too.
    pub build_seconds: f64,
    /// Object files compiled or assembled.
    pub objects: u64,
    /// Bytes of the `.text` section that functions cover; the padding to 2 MiB pages, which hides
    /// every change in the section's own size, is left out.
    pub text_bytes: u64,
    /// Size of the image that is started ([`Kernel::image`](crate::Kernel::image)) in bytes.
    pub image_bytes: u64,
    /// The build directory as the objects know it, the same on every machine: where a gcov kernel says that its `.gcda`
    /// files belong. Strip it from paths.
    pub build_path: PathBuf,
    /// Offsets in `struct task_struct`.
    pub task: TaskLayout,
    /// Offsets in structures of requests to block devices and of network packets; nothing of what an older kerntune built.
    #[serde(default, skip_serializing_if = "Structures::is_empty")]
    pub structures: Structures,
    /// What was asked of the configuration and did not take.
    pub warnings: Vec<String>,
}

impl KernelManifest {
    /// The first field whose text has a control character, but for warnings, which have lines. Reports, a package's control file and
    /// scripts have these texts within a line.
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

    /// All of `KCFLAGS`.
    pub(crate) fn flags(&self) -> Vec<String> {
        let movable = self.movable.then(|| FUNCTION_SECTIONS.to_string());
        self.kcflags.iter().cloned().chain(movable).collect()
    }

    /// That of a kernel made of this one, with nothing compiled, since `started`.
    pub(crate) fn remade(&self, id: String, label: &str, recipe: &str, started: Instant) -> Self {
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

/// Where a source came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// As the user named it: `debian:6.12`, a path.
    pub origin: String,
    /// Over its content, patches included.
    pub hash: String,
    /// Patches that were applied, in order: files beside this manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<RelativePath>,
}

/// `time` as RFC 3339 in UTC with whole seconds.
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
