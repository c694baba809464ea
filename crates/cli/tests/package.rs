//! `kerntune package`, end to end on a Debian system.

use crate::support::{self, debian, json, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program of the host; returns its standard output.
fn host(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Returns the id and directory of the tuned kernel of tests/tune.rs, which has a profile and an
/// order.
fn tuned() -> (String, PathBuf) {
    let tuned = json(["tune", "--workload", "rr", "--recipe", "gcc-pgo+layout", "--json"]);
    let id = text(&tuned["tuned"]["id"]).to_string();
    let directory = text(&json(["kernel", "show", &id, "--json"])["path"]).into();
    (id, directory)
}

#[test]
fn the_package_installs_in_a_debian_root_which_boots_from_it() {
    let (id, kernel) = tuned();
    let package = json(["package", &id, "--json"]);
    let name = text(&package["name"]);
    assert_eq!(package["schema"], "kerntune-package/1");
    assert!(name.ends_with(&id[..8]) && name.starts_with(text(&package["release"])), "{package}");
    holds_what_was_measured(&package, &kernel);

    // QEMU loads the base kernel for the first boot; later boots are from the disk.
    let mut machine = debian::DebianMachine::new();
    let base = support::work_dir().join("kernels").join(support::base_kernel()).join("bzImage");
    let deb = Path::new(text(&package["path"]));
    let installed = machine.boot(
        Some(&base),
        &[deb],
        "grub-install /dev/vda\n\
         update-grub\n\
         dpkg --install /mnt/*.deb\n\
         ls -1 /boot",
    );
    // initramfs-tools reports no missing modules.
    for word in ["W: ", "ERROR", "WARNING"] {
        assert!(!installed.contains(word), "{installed}");
    }
    for file in ["vmlinuz", "initrd.img", "config", "System.map"] {
        assert!(installed.contains(&format!("\n{file}-{name}\n")), "{file} in:\n{installed}");
    }

    // From the disk: BIOS, GRUB, the packaged kernel, systemd.
    let scratch = tempfile::tempdir().unwrap();
    let rr = rr(scratch.path());
    let booted = machine.boot(
        None,
        &[&rr],
        "uname -r\n\
         cat /proc/version /proc/cmdline\n\
         sha256sum /boot/vmlinuz-*\n\
         echo notes $(od -An -v -tx1 /sys/kernel/notes | tr -d ' \\n')\n\
         echo failed units: $(systemctl --failed --plain --no-legend)\n\
         cp /mnt/rr /tmp/rr\n\
         cd /tmp\n\
         ./rr --only tcp_rr,pipe_rr,fork_exit\n\
         dpkg --verify $(dpkg-query -W -f '${Package}\\n' 'linux-image-*')\n\
         dpkg --purge $(dpkg-query -W -f '${Package}\\n' 'linux-image-*')\n\
         echo left: $(ls /boot /lib/modules /usr/lib 2>/dev/null | grep -e ^vmlinuz -e ^initrd -e ^kerntune -e -kt)\n\
         echo entries: $(grep -c -e ^menuentry /boot/grub/grub.cfg || true)",
    );
    let line = |begin: &str| {
        booted.lines().find(|l| l.starts_with(begin)).unwrap_or_else(|| panic!("{begin} in:\n{booted}"))
    };
    assert_eq!(booted.lines().next(), package["release"].as_str());
    let image = host("sha256sum", &[kernel.join("bzImage").to_str().unwrap()]);
    let hash = image.split(' ').next().unwrap();
    assert_eq!(line(hash), format!("{hash}  /boot/vmlinuz-{name}"));
    assert!(
        line("BOOT_IMAGE=").starts_with(&format!("BOOT_IMAGE=/boot/vmlinuz-{name} root=UUID=")),
        "{booted}"
    );
    // The running kernel is this vmlinux: both have the linker's build id.
    let notes = host("readelf", &["--notes", kernel.join("vmlinux").to_str().unwrap()]);
    let build_id = notes.lines().find_map(|l| l.trim().strip_prefix("Build ID: ")).unwrap();
    assert!(build_id.len() == 40 && line("notes ").contains(build_id), "{build_id} in:\n{booted}");
    assert_eq!(line("failed units:"), "failed units:");
    for row in ["tcp_rr", "pipe_rr", "fork_exit"] {
        assert!(
            booted.contains(&format!("{{\"row\":\"{row}\",\"iteration\":0,\"operations\":")),
            "{row} in:\n{booted}"
        );
    }
    // Removal leaves nothing behind.
    assert_eq!((line("left:"), line("entries:")), ("left:", "entries: 0"), "{booted}");
}

/// Checks that the unpacked package has the kernel of the work directory, with all its files.
fn holds_what_was_measured(package: &Value, kernel: &Path) {
    let root = tempfile::tempdir().unwrap();
    host("dpkg-deb", &["--extract", text(&package["path"]), root.path().to_str().unwrap()]);
    let name = text(&package["name"]);
    let read = |path: &str| std::fs::read(root.path().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    for (packed, own) in [("vmlinuz", "bzImage"), ("config", "config"), ("System.map", "System.map")] {
        assert!(read(&format!("boot/{packed}-{name}")) == std::fs::read(kernel.join(own)).unwrap(), "{own}");
    }
    let about = format!("usr/lib/kerntune/{name}");
    let provenance: Value = serde_json::from_slice(&read(&format!("{about}/kernel.json"))).unwrap();
    assert_eq!(provenance["id"], package["kernel"]);
    assert_eq!(read(&format!("{about}/order.txt")), std::fs::read(kernel.join("order.txt")).unwrap());
    let comparison: Value = serde_json::from_slice(&read(&format!("{about}/comparison-rr.json"))).unwrap();
    assert_eq!(comparison["tuned"]["id"], package["kernel"]);
    let archive = root.path().join(&about).join("profile.tar.zst");
    let files = host("tar", &["--zstd", "-tf", archive.to_str().unwrap()]);
    assert!(files.contains("profile.json\n") && files.contains("net/ipv4/tcp_input.gcda\n"), "{files}");
    let control = host("dpkg-deb", &["--field", text(&package["path"])]);
    assert!(control.contains("Architecture: amd64") && control.contains("recipe gcc-pgo"), "{control}");
}

/// Compiles the benchmark program, statically for any Linux.
fn rr(directory: &Path) -> PathBuf {
    let program = directory.join("rr");
    let source = support::checkout().join("embedded/guest/rr.c");
    host("gcc", &["-std=gnu11", "-O2", "-static", "-o", program.to_str().unwrap(), source.to_str().unwrap()]);
    program
}

#[test]
fn a_package_is_made_once_and_copied_where_it_is_wanted() {
    let kernel = support::base_kernel();
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("new/debs");
    let first = json(["package", &kernel, "--json", "--output", output.to_str().unwrap()]);
    let copy = Path::new(text(&first["path"]));
    assert!(copy.starts_with(output.canonicalize().unwrap()), "{first}");
    let again = json(["package", &kernel, "--json"]);
    assert_eq!(again["id"], first["id"]);
    // A package made elsewhere is identical: it contains no time and no path of this machine.
    let made = std::fs::read(copy).unwrap();
    assert!(std::fs::read(text(&again["path"])).unwrap() == made);
    let elsewhere = directory.path().join("work").display().to_string();
    let directory_of = support::work_dir().join("kernels").join(&kernel);
    let other = json(["--dir", &elsewhere, "package", directory_of.to_str().unwrap(), "--json"]);
    assert!(std::fs::read(text(&other["path"])).unwrap() == made);
    // A base kernel has no profile, and its package has none.
    let installs = first["installs"].as_array().unwrap();
    assert!(installs.iter().all(|file| !text(file).contains("profile")), "{first}");

    support::fails(&mut support::kerntune(["package", "no-such-kernel"]), 2, &["no-such-kernel"]);
}
