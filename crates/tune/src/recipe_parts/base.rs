//! The base kernel of a workload: options that the workload needs besides those of every guest.

use kerntune_guest::{lacking_options, DiskKind, Workload};
use kerntune_kernel::{fragment, BaseConfig, BuildRequest};
use std::collections::HashSet;
use std::fs;

/// Default label of kernels.
pub const LABEL: &str = "base";

/// Adds the options that these workloads need to `request`: drivers of their disks, mitigations for
/// their CPU, NUMA nodes, and what they name. The user's own lines come last and win. A kernel with the
/// default label ([`LABEL`]) gets suffixes: `base-disk`, or `base-NAME` for options that the workload
/// NAME names.
pub fn with_needs<'a>(
    mut request: BuildRequest,
    workloads: impl IntoIterator<Item = &'a Workload>,
) -> BuildRequest {
    let ours = request.base == BaseConfig::Ours;
    let workloads: Vec<_> = workloads.into_iter().collect();
    let disks = workloads.iter().filter_map(|workload| workload.disk.as_ref());
    let disks: Vec<_> = disks.filter(|disk| !ours || !disk.lacking(fragment::BASE).is_empty()).collect();
    let pmem =
        disks.iter().any(|disk| disk.kind == DiskKind::Pmem || disk.needs().contains(&"CONFIG_FS_DAX"));
    let mitigations = workloads.iter().any(|workload| workload.mitigations.is_some());
    let nodes = workloads.iter().any(|workload| workload.nodes > 1);
    let needs = [
        (!disks.is_empty() && !pmem, "disk", &[fragment::DISK][..]),
        (pmem, "pmem", &[fragment::DISK, fragment::PMEM]),
        (mitigations, "mitigations", &[fragment::MITIGATIONS]),
        (nodes, "numa", &[fragment::NUMA]),
    ];
    let mut lines = Vec::new();
    let named = request.label != LABEL;
    for (_, name, fragments) in needs.into_iter().filter(|(needed, ..)| *needed) {
        lines.extend(fragments.iter().flat_map(|text| fragment::lines(text)));
        if !named {
            request.label = format!("{}-{name}", request.label);
        }
    }
    for workload in workloads.iter().filter(|workload| !workload.kernel_config.is_empty()) {
        if ours && lacking_options(&workload.kernel_config, fragment::BASE).is_empty() {
            continue;
        }
        lines.extend(workload.kernel_config.iter().cloned());
        if !named {
            request.label = format!("{}-{}", request.label, workload.name);
        }
    }
    let own = named_in_fragments(&request);
    lines.retain(|line| option(line).is_none_or(|option| !own.contains(option)));
    lines.append(&mut request.extra);
    request.extra = lines;
    request
}

/// Returns the options that the user's fragments set. A fragment that cannot be read has none: the
/// configuration reads it again, and says so.
fn named_in_fragments(request: &BuildRequest) -> HashSet<String> {
    let texts = request.fragments.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.flat_map(|text| text.lines().filter_map(option).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns the option that a line of a configuration sets, also in the form of a comment.
fn option(line: &str) -> Option<&str> {
    let line = line.trim();
    let unset = line.strip_prefix("# ").and_then(|line| line.strip_suffix(" is not set"));
    unset.or_else(|| line.split_once('=').map(|(name, _)| name)).filter(|name| name.starts_with("CONFIG_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn workload(disk: &str) -> Workload {
        let text = format!("{disk}\n[[measured.step]]\ncommand = [\"rr\"]\n");
        Workload::parse(&text, Path::new("x.toml")).unwrap()
    }

    fn request(disk: &str, label: &str) -> BuildRequest {
        let mut request = BuildRequest::new("debian:6.12".parse().unwrap(), label);
        request.extra = vec!["CONFIG_XFS_FS=n".into()];
        with_needs(request, [&workload(disk)])
    }

    #[test]
    fn only_what_the_base_kernel_lacks_is_added() {
        for without in ["", "[disk]\nkind = \"virtio\"\nsize_mb = 64\nfilesystem = \"ext4\""] {
            let request = request(without, LABEL);
            assert_eq!((request.extra.len(), request.label.as_str()), (1, "base"));
        }
        let brd = "[disk]\nkind = \"brd\"\nsize_mb = 64\nfilesystem = \"none\"";
        let with = request(brd, LABEL);
        assert!(with.extra.contains(&"CONFIG_BLK_DEV_RAM=y".into()), "{with:?}");
        // The user's lines win.
        assert_eq!(with.extra.last().unwrap(), "CONFIG_XFS_FS=n");
        assert_eq!(with.label, "base-disk");
        assert_eq!(request(brd, "mine").label, "mine");
        let pmem = request("[disk]\nkind = \"pmem\"\nsize_mb = 64\nfilesystem = \"none\"", LABEL);
        assert!(pmem.extra.contains(&"CONFIG_FS_DAX=y".into()) && pmem.label == "base-pmem", "{pmem:?}");
        let both = request(&format!("mitigations = \"zen2\"\n{brd}"), LABEL);
        assert!(both.extra.contains(&"CONFIG_MITIGATION_RETPOLINE=y".into()), "{both:?}");
        assert_eq!(both.label, "base-disk-mitigations");
        let nodes = request("nodes = 2", LABEL);
        assert!(nodes.extra.contains(&"CONFIG_X86_64_ACPI_NUMA=y".into()), "{nodes:?}");
        assert_eq!(nodes.label, "base-numa");
        let named = request("name = \"mine\"\nkernel_config = [\"CONFIG_NFSD=y\"]", LABEL);
        assert_eq!((named.extra[0].as_str(), named.label.as_str()), ("CONFIG_NFSD=y", "base-mine"));
        // What the user's fragment says of an option stays, also where it is a module.
        let dir = tempfile::tempdir().unwrap();
        let fragment = dir.path().join("own.config");
        fs::write(&fragment, "CONFIG_EXT4_FS=m\n# CONFIG_XFS_FS is not set\n").unwrap();
        let mut own = BuildRequest::new("debian:6.12".parse().unwrap(), LABEL);
        own.fragments = vec![fragment];
        let own = with_needs(own, [&workload(brd)]).extra;
        assert!(own.contains(&"CONFIG_BLK_DEV_RAM=y".into()), "{own:?}");
        assert!(!own.contains(&"CONFIG_EXT4_FS=y".into()) && !own.contains(&"CONFIG_XFS_FS=y".into()));
        // The base kernel has it.
        assert_eq!(request("kernel_config = [\"CONFIG_SMP=y\"]", LABEL).label, "base");
    }
}
