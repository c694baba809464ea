//! State of the machine beside the samples: the kernel's configuration and the settings that
//! advice depends on. Nothing is changed, and nothing is guessed: what cannot be read is absent.

use kerntune_profile::HostState;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Limit of a configuration in bytes, unpacked. That of a distribution has 300,000.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Limit of a setting's file in bytes.
const MAX_SETTING_BYTES: u64 = 64 << 10;
/// Limit of files in a directory of settings.
const MAX_FILES: usize = 256;

/// Settings of `/proc/sys` that decide whether a rule of advice is in force already.
const SYSCTLS: [&str; 15] = [
    "kernel.perf_event_paranoid",
    "kernel.kptr_restrict",
    "kernel.sched_autogroup_enabled",
    "kernel.numa_balancing",
    "kernel.randomize_va_space",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "vm.dirty_ratio",
    "vm.nr_hugepages",
    "vm.swappiness",
];

/// Files with one value, by setting.
const FILES: [(&str, &str); 8] = [
    ("command_line", "proc/cmdline"),
    ("cpus", "sys/devices/system/cpu/online"),
    ("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("transparent_hugepage", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("transparent_hugepage_defrag", "sys/kernel/mm/transparent_hugepage/defrag"),
    ("lockdown", "sys/kernel/security/lockdown"),
];

/// State of a machine, with the text of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineState {
    /// State as a manifest has it.
    pub host: HostState,
    /// Text of the running kernel's configuration.
    pub config: Option<String>,
}

impl MachineState {
    /// Reads the state of this machine.
    ///
    /// ```
    /// let state = kerntune_live::MachineState::read("6.12.90");
    /// assert_eq!(state.config.is_some(), state.host.config.is_some());
    /// ```
    pub fn read(release: &str) -> Self {
        Self::below(Path::new("/"), release)
    }

    /// Reads the state below a root directory.
    fn below(root: &Path, release: &str) -> Self {
        let mut host = HostState { settings: settings(root), ..HostState::default() };
        let places = config_places(release);
        let found = places.iter().find_map(|place| Some((place, config(&root.join(place))?)));
        let embedded = || {
            let images = [format!("boot/vmlinuz-{release}"), format!("lib/modules/{release}/vmlinuz")];
            images.into_iter().find_map(|image| {
                let text = kerntune_kernel::embedded_config(&root.join(&image))?;
                Some((format!("/{image} (CONFIG_IKCONFIG)"), text))
            })
        };
        let found = found.map(|(place, text)| (format!("/{place}"), text)).or_else(embedded);
        match &found {
            Some((source, text)) => host.set_config(source, text),
            None => {
                host.config_looked = places.iter().map(|place| format!("/{place}")).collect();
                host.config_looked.push(format!("/boot/vmlinuz-{release}"));
            }
        }
        Self { host, config: found.map(|(_, text)| text) }
    }
}

/// Returns the files that may have the configuration of a release, the surest first.
fn config_places(release: &str) -> Vec<String> {
    let modules = ["lib/modules", "usr/lib/modules"];
    let mut places = vec!["proc/config.gz".to_string(), format!("boot/config-{release}")];
    for directory in modules {
        places.extend(["config", "build/.config"].map(|name| format!("{directory}/{release}/{name}")));
    }
    places
}

/// Reads a configuration, packed or not; `None` if the file is no configuration.
fn config(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let is_packed = path.extension().is_some_and(|end| end == "gz");
    let mut text = String::new();
    match is_packed {
        true => flate2::read::GzDecoder::new(file).take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text),
        false => file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text),
    }
    .ok()?;
    let is_config =
        text.len() as u64 <= MAX_CONFIG_BYTES && text.lines().any(|line| line.starts_with("CONFIG_"));
    is_config.then_some(text)
}

fn settings(root: &Path) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut put = |name: String, path: PathBuf| {
        if let Some(value) = setting(&path) {
            settings.insert(name, value);
        }
    };
    for (name, path) in FILES {
        put(name.into(), root.join(path));
    }
    for name in SYSCTLS {
        put(format!("sysctl {name}"), root.join("proc/sys").join(name.replace('.', "/")));
    }
    for path in listed(&root.join("sys/devices/system/cpu/vulnerabilities")) {
        put(format!("vulnerability {}", file_name(&path)), path);
    }
    for disk in listed(&root.join("sys/block")) {
        put(format!("io_scheduler {}", file_name(&disk)), disk.join("queue/scheduler"));
    }
    settings
}

/// Reads a setting of one line. Of a list of choices, `always [madvise] never`, it is the one in
/// brackets.
fn setting(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_SETTING_BYTES).read_to_string(&mut text).ok()?;
    let text = text.trim_matches(['\n', ' ', '\0']);
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let is_choice = chosen.is_some() && text.split_whitespace().all(|word| !word.contains('='));
    let value = if is_choice { chosen? } else { text };
    let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (!value.is_empty()).then_some(value)
}

fn listed(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).take(MAX_FILES).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn put(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn the_running_kernels_own_configuration_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let none = MachineState::below(root.path(), "6.1.0");
        assert_eq!((none.config, none.host.config), (None, None));
        assert!(none.host.config_looked.contains(&"/boot/config-6.1.0".to_string()));
        // Of another release, and no configuration.
        put(root.path(), "boot/config-6.2.0", b"CONFIG_A=y\n");
        put(root.path(), "lib/modules/6.1.0/config", b"nothing\n");
        assert_eq!(MachineState::below(root.path(), "6.1.0").config, None);
        put(root.path(), "boot/config-6.1.0", b"CONFIG_B=y\n");
        let boot = MachineState::below(root.path(), "6.1.0");
        assert_eq!(boot.config.as_deref(), Some("CONFIG_B=y\n"));
        put(root.path(), "proc/config.gz", &packed("CONFIG_C=y\n"));
        let own = MachineState::below(root.path(), "6.1.0");
        assert_eq!(own.config.as_deref(), Some("CONFIG_C=y\n"));
        assert_eq!(own.host.config.unwrap().source, "/proc/config.gz");
        put(root.path(), "proc/config.gz", &packed("CONFIG_C=y\n")[..12]);
        assert_eq!(MachineState::below(root.path(), "6.1.0").config.as_deref(), Some("CONFIG_B=y\n"));
    }

    #[test]
    fn settings_have_what_is_in_force() {
        let root = tempfile::tempdir().unwrap();
        // Linux 6.18 of a cloud machine.
        put(root.path(), "sys/kernel/mm/transparent_hugepage/enabled", b"always [madvise] never\n");
        put(
            root.path(),
            "sys/devices/system/cpu/vulnerabilities/spectre_v1",
            b"Mitigation: usercopy/swapgs barriers\n",
        );
        put(root.path(), "proc/sys/net/ipv4/tcp_congestion_control", b"cubic\n");
        put(root.path(), "proc/cmdline", b"console=ttyS0 init=[x] quiet\n");
        put(root.path(), "sys/block/vda/queue/scheduler", b"[none] mq-deadline kyber\n");
        put(root.path(), "sys/devices/system/cpu/online", b"");
        let settings = settings(root.path());
        let expected = [
            ("command_line", "console=ttyS0 init=[x] quiet"),
            ("io_scheduler vda", "none"),
            ("sysctl net.ipv4.tcp_congestion_control", "cubic"),
            ("transparent_hugepage", "madvise"),
            ("vulnerability spectre_v1", "Mitigation: usercopy/swapgs barriers"),
        ];
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
        assert_eq!(settings, expected);
    }
}
