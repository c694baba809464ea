//! Properties of a machine that decide if a kernel can be deployed there, found by one script that
//! changes nothing.

use crate::shell::{last_line, quoted, Script, Shell};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Properties of a machine, by name.
#[derive(Debug, Clone, Default)]
pub struct MachineFacts {
    /// Name of the machine, for messages.
    pub host: String,
    values: BTreeMap<String, String>,
    /// Device names of the buses, as in `modules.alias`.
    pub aliases: Vec<String>,
    /// Drivers of watchdog devices that the running kernel has.
    pub watchdogs: Vec<String>,
}

/// Prints a line `key=value` for each property; `root` is set before it.
const PROBE: &str = r#"
p() { printf '%s=%s\n' "$1" "$(printf %s "$2" | tr '\n' ' ')"; }
yes() { key=$1; shift; if "$@" >/dev/null 2>&1; then p "$key" yes; else p "$key" no; fi; }
g=$root/boot/grub
p uid "$(id -u)"
p running "$(uname -r)"
p machine "$(uname -m)"
p cmdline "$(cat "$root/proc/cmdline")"
yes systemd [ -d "$root/run/systemd/system" ]
yes grub_cfg [ -f "$g/grub.cfg" ]
yes grub_next grep -q 'save_env next_entry' "$g/grub.cfg"
yes grub_custom grep -q 'source.*custom\.cfg' "$g/grub.cfg"
yes env_link [ -L "$g/grubenv" ]
yes env_file [ -f "$g/grubenv" ]
yes custom_link [ -L "$g/custom.cfg" ]
yes custom_file [ -f "$g/custom.cfg" ]
p grub_fs "$(grub-probe --target=fs "$g" 2>/dev/null)"
p grub_abstraction "$(grub-probe --target=abstraction "$g" 2>/dev/null)"
p grub_uuid "$(grub-probe --target=fs_uuid "$root/boot" 2>/dev/null)"
p grub_partmap "$(grub-probe --target=partmap "$root/boot" 2>/dev/null)"
p grub_path "$(grub-mkrelpath "$root/boot" 2>/dev/null)"
yes boot_writable [ -w "$root/boot" ]
yes grub_writable [ -w "$g" ]
yes etc_writable [ -w "$root/etc/systemd/system" ]
yes modules_writable [ -w "$root/lib/modules" ]
p boot_free "$(df -Pk "$root/boot" | awk 'NR == 2 { print $4 }')"
p modules_free "$(df -Pk "$root/lib/modules" | awk 'NR == 2 { print $4 }')"
p boot_device "$(df -Pk "$root/boot" | awk 'NR == 2 { print $1 }')"
p modules_device "$(df -Pk "$root/lib/modules" | awk 'NR == 2 { print $1 }')"
# The files of a kernel can have a longer name than its release: those of kerntune without modules do.
old=$(sed -n 's/.*BOOT_IMAGE=\([^ ]*\).*/\1/p' "$root/proc/cmdline")
old=${old##*/vmlinuz-}
[ -f "$root/boot/vmlinuz-$old" ] || old=$(uname -r)
p old "$old"
yes old_kernel [ -f "$root/boot/vmlinuz-$old" ]
yes old_initrd [ -f "$root/boot/initrd.img-$old" ]
p initrd_bytes "$( { wc -c <"$root/boot/initrd.img-$old"; } 2>/dev/null)"
yes mkinitramfs command -v mkinitramfs
yes unshare command -v unshare
yes deployed [ -e "$root/var/lib/kerntune-deploy" ]
for module in "$root"/lib/modules/*; do
    [ ! -e "$module" ] || [ -e "$module/.kerntune-deploy" ] || p "module:${module##*/}" yes
done
for config in "$root"/boot/config-*; do
    [ ! -e "$config" ] || p "config:${config##*/config-}" yes
done
for watchdog in "$root"/sys/class/watchdog/watchdog*; do
    driver=$(readlink -f "$watchdog/device/driver/module" 2>/dev/null) && p watchdog "${driver##*/}"
done
cat "$root"/sys/bus/pci/devices/*/modalias "$root"/sys/bus/acpi/devices/*/modalias 2>/dev/null | sed 's/^/alias=/'
true
"#;

impl MachineFacts {
    /// Asks a machine; `root` is in front of every path, for tests.
    ///
    /// # Errors
    /// A machine that cannot be reached, or no POSIX shell.
    pub fn of(shell: &dyn Shell, root: &str) -> Result<Self> {
        let script = Script::new("look at the machine", [format!("root={}\n{PROBE}", quoted(root))]);
        let result = shell.run(&script)?;
        if result.status != Some(0) {
            let reason = last_line(&result.errors);
            return Err(Error::Step { host: shell.host().into(), what: script.what, reason });
        }
        Ok(Self::read(shell.host(), &result.output))
    }

    fn read(host: &str, output: &str) -> Self {
        let mut facts = Self { host: host.into(), ..Self::default() };
        for (key, value) in output.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "alias" => facts.aliases.push(value.into()),
                "watchdog" => facts.watchdogs.push(value.into()),
                _ => drop(facts.values.insert(key.into(), value.into())),
            }
        }
        facts
    }

    /// Returns a property; empty if the machine did not give it.
    pub fn get(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// Returns whether a property holds.
    pub fn is(&self, key: &str) -> bool {
        self.get(key) == "yes"
    }

    /// Returns a number of the machine, 0 if it gave none.
    pub fn number(&self, key: &str) -> u64 {
        self.get(key).trim().parse().unwrap_or(0)
    }

    /// Returns the parts of the running kernel's command line, without what the boot loader adds.
    pub fn command_line(&self) -> Vec<&str> {
        let words = self.get("cmdline").split_whitespace();
        words.filter(|word| !word.starts_with("BOOT_IMAGE=")).collect()
    }

    /// Returns the id of the deployment whose kernel runs.
    pub fn running_deployment(&self) -> Option<&str> {
        self.get("cmdline").split_whitespace().find_map(|word| word.strip_prefix("kerntune_deploy="))
    }
}
