//! Packages of made-up kernels, packed and unpacked by dpkg-deb.

use super::*;
use crate::kernels::store::tests::manifest;
use kerntune_work::NoProgress;
use std::os::unix::fs::PermissionsExt;

/// Smallest file that passes for a bzImage of release 6.12.117-kt.
fn bzimage() -> Vec<u8> {
    let mut bytes = vec![0; 0x400];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    bytes[0x300..0x30b].copy_from_slice(b"6.12.117-kt");
    bytes
}

struct PackageFixture {
    directory: tempfile::TempDir,
    work: WorkDir,
    kernel: Kernel,
}

fn bench(config: &str) -> PackageFixture {
    let directory = tempfile::tempdir().unwrap();
    let work = WorkDir::open(directory.path().join("work")).unwrap();
    let dir = work.root().join("kernels/647d628482bdcbc9");
    fs::create_dir_all(dir.join("patches")).unwrap();
    let mut manifest = manifest("647d628482bdcbc9", "tuned", "2026-11-21T15:07:04Z");
    manifest.recipe = Some("gcc-pgo".into());
    manifest.profile_id = Some("08fa".into());
    manifest.source.patches = vec!["patches/01-fix.patch".parse().unwrap()];
    for (name, content) in [
        ("bzImage", bzimage()),
        ("vmlinux", b"elf".to_vec()),
        ("System.map", b"0 T x\n".to_vec()),
        ("config", config.into()),
        ("patches/01-fix.patch", b"--- a\n".to_vec()),
    ] {
        fs::write(dir.join(name), content).unwrap();
    }
    write_json(&dir.join("kernel.json"), &manifest).unwrap();
    kerntune_work::seal(&dir, "kernels", "647d628482bdcbc9", &[]).unwrap();
    PackageFixture { kernel: Kernel::load(&dir).unwrap(), directory, work }
}

/// Request with a profile of two objects and a comparison.
fn request(bench: &PackageFixture) -> PackageRequest<'_> {
    let dir = bench.directory.path().join("gcc-pgo");
    fs::create_dir_all(dir.join("gcda/net")).unwrap();
    fs::write(dir.join("profile.json"), "{}\n").unwrap();
    fs::write(dir.join("gcda/net/core.gcda"), "adcg").unwrap();
    fs::write(dir.join("functions.json"), "large").unwrap();
    let comparison = bench.directory.path().join("comparison.json");
    fs::write(&comparison, "{}\n").unwrap();
    PackageRequest {
        kernel: &bench.kernel,
        profile: Some(ProfileFiles { tree: dir.join("gcda"), dir }),
        extras: vec![PackageExtra { name: "comparison-rr.json".into(), path: comparison }],
    }
}

fn said_by(program: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Contents that an untrusted kernel's `kernel.json` must not have, each sealed as an attacker
/// could.
#[test]
fn a_foreign_kernel_puts_nothing_of_this_machine_into_a_package() {
    let bench = bench("CONFIG_BLK_DEV_INITRD=y\n");
    let dir = &bench.kernel.dir;
    let whole = fs::read_to_string(dir.join("kernel.json")).unwrap();
    let forged = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        fs::write(dir.join("kernel.json"), whole.replace(from, to)).unwrap();
        kerntune_work::seal(dir, "kernels", "647d628482bdcbc9", &[]).unwrap();
        Kernel::load(dir)
    };
    for label in ["x\\nDepends: evil-package", "$(reboot)", "a\\\"b", "../x"] {
        assert!(forged("\"label\": \"tuned\"", &format!("\"label\": \"{label}\"")).is_err(), "{label}");
    }
    for patch in ["/etc/hostname", "../../../victim/x", "patches/../../x"] {
        assert!(forged("patches/01-fix.patch", patch).is_err(), "{patch}");
    }
    assert!(forged("\"id\": \"647d628482bdcbc9\"", "\"id\": \"../victim\"").is_err());
    // Each would become a line of the control file.
    for (field, text) in [("recipe", "gcc-pgo"), ("version", "6.12.117")] {
        let error = forged(&format!("\"{field}\": \"{text}\""), &format!("\"{field}\": \"{text}\\nX: y\""));
        assert!(
            error.unwrap_err().to_string().contains(&format!("control character in `{field}`")),
            "{field}"
        );
    }
    // A patch that is no file of the kernel, and a link to a file of this machine.
    let absent = forged("patches/01-fix.patch", "patches/02.patch").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", dir.join("patches/03.patch")).unwrap();
    let linked = forged("patches/01-fix.patch", "patches/03.patch").unwrap();
    for kernel in [absent, linked] {
        let request = PackageRequest { kernel: &kernel, profile: None, extras: Vec::new() };
        let error = package(&bench.work, &request, &NoProgress).unwrap_err().to_string();
        assert!(error.contains("it has no patch"), "{error}");
    }
}

#[test]
fn dpkg_unpacks_what_was_packed() {
    let bench = bench("CONFIG_BLK_DEV_INITRD=y\n");
    let made = package(&bench.work, &request(&bench), &NoProgress).unwrap();
    assert_eq!(made.manifest.file, "linux-image-6.12.117-kt-647d6284_6.12.117-1kt20261121150704_amd64.deb");
    let root = bench.directory.path().join("root");
    let deb = made.file();
    said_by("dpkg-deb", &["--raw-extract".as_ref(), deb.as_os_str(), root.as_os_str()]);
    let name = &made.manifest.name;
    assert_eq!(fs::read(root.join(format!("boot/vmlinuz-{name}"))).unwrap(), bzimage());
    let about = root.join(format!("usr/lib/kerntune/{name}"));
    for file in ["kernel.json", "README", "patches/01-fix.patch", "comparison-rr.json"] {
        assert!(about.join(file).is_file(), "{file}");
    }
    let files =
        said_by("tar", &["--zstd".as_ref(), "-tf".as_ref(), about.join("profile.tar.zst").as_os_str()]);
    assert_eq!(files, "profile.json\ngcda/\ngcda/net/\ngcda/net/core.gcda\n");
    for script in control::SCRIPTS {
        let path = root.join("DEBIAN").join(script);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755, "{script}");
        said_by("sh", &["-n".as_ref(), path.as_os_str()]);
    }
    assert!(made.manifest.installs.contains(&format!("/usr/lib/kerntune/{name}/profile.tar.zst")));
    assert_eq!(made.manifest.modules, 0);
}

#[test]
fn dpkg_takes_a_vendors_version() {
    let mut bench = bench("");
    bench.kernel.manifest.version = "6.12.117-Vendor_x1".into();
    let made = package(&bench.work, &request(&bench), &NoProgress).unwrap();
    assert_eq!(made.manifest.version, "6.12.117-Vendor.x1-1kt20261121150704");
    let version = said_by("dpkg-deb", &["--field".as_ref(), made.file().as_os_str(), "Version".as_ref()]);
    assert_eq!(version.trim(), made.manifest.version);
}

#[test]
fn a_file_of_the_kernel_that_was_changed_is_not_packed() {
    for name in ["System.map", "config", "patches/01-fix.patch", "bzImage"] {
        let bench = bench("");
        let path = bench.kernel.dir.join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes.push(b'\n');
        fs::write(&path, bytes).unwrap();
        let error = package(&bench.work, &request(&bench), &NoProgress).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("not the file that was written"), "{error}");
    }
}

#[test]
fn a_name_that_the_kernel_gets_later_makes_no_other_package() {
    let mut bench = bench("");
    let first = package(&bench.work, &request(&bench), &NoProgress).unwrap();
    bench.kernel.manifest.aliases.push("other".into());
    assert_eq!(package(&bench.work, &request(&bench), &NoProgress).unwrap(), first);
    // Another comparison file does.
    let mut more = request(&bench);
    let extra = PackageExtra { name: "comparison-redis.json".into(), ..more.extras[0].clone() };
    more.extras.push(extra);
    assert_ne!(package(&bench.work, &more, &NoProgress).unwrap().manifest.id, first.manifest.id);
}

#[test]
fn a_kernel_with_modules_is_not_packed_without_them() {
    let bench = bench("CONFIG_MODULES=y\n");
    let mut request = request(&bench);
    request.profile = None;
    // Its profile is gone, so it cannot be built again.
    let error = package(&bench.work, &request, &NoProgress).unwrap_err().to_string();
    assert!(error.contains("profile 08fa"), "{error}");
    assert!(bench.work.list(KIND).unwrap().is_empty());
}
