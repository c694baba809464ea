//! `record --image` and `--root`: the command runs in this root and sees nothing of this machine's.

use crate::support::{self, fails, said};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a blob; returns its descriptor without the last brace.
fn blob(layout: &Path, bytes: &[u8]) -> String {
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let new = blobs.join("new");
    fs::write(&new, bytes).unwrap();
    let digest = sha256(&new);
    fs::rename(new, blobs.join(&digest)).unwrap();
    format!(r#"{{"digest":"sha256:{digest}","size":{}"#, bytes.len())
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

fn tar(directory: &Path, archive: &Path) {
    let mut command = Command::new("tar");
    command.args(["--format=ustar", "-cf"]).arg(archive).arg("-C").arg(directory).arg(".");
    assert!(command.status().unwrap().success());
}

/// Root of busybox with a user, and the archive of an image of it.
fn small_image(directory: &Path) -> (PathBuf, PathBuf) {
    let root = directory.join("root");
    for name in ["bin", "etc", "srv"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let busybox = kerntune_work::find_program("busybox", &["/bin", "/usr/bin"]).unwrap();
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    std::os::unix::fs::symlink("/bin/busybox", root.join("bin/sh")).unwrap();
    fs::write(root.join("etc/passwd"), "web:x:33:34::/srv:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "web:x:34:\n").unwrap();
    fs::write(root.join("srv/motd"), "of the image\n").unwrap();
    let (archive, layer) = (directory.join("image.tar"), directory.join("layer.tar"));
    tar(&root, &layer);
    let layout = directory.join("layout");
    let stored = blob(&layout, &fs::read(&layer).unwrap());
    let script =
        "busybox id; busybox cat motd; echo $MODE $HOME $PWD; busybox ls /; busybox touch new 2>&1 || true";
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{"User":"web","Env":["PATH=/bin","MODE=fast"],
            "Entrypoint":["sh","-c","{script}"],"WorkingDir":"/srv"}},"rootfs":{{"type":"layers","diff_ids":["sha256:{}"]}}}}"#,
        sha256(&layer)
    );
    let config = blob(&layout, config.as_bytes());
    let manifest = blob(&layout, format!(r#"{{"config":{config}}},"layers":[{stored}}}]}}"#).as_bytes());
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{manifest},"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#
    );
    fs::write(layout.join("index.json"), index).unwrap();
    tar(&layout, &archive);
    (root, archive)
}

/// Returns the instructions of the command and what it printed.
fn recorded(arguments: &[&str]) -> (String, String) {
    let kernel = support::base_kernel();
    let output = support::kerntune([&["record", "--no-edges", "--kernel", &kernel][..], arguments].concat());
    let output = { output }.output().unwrap();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let line =
        |prefix: &str| text.lines().rev().find_map(|line| line.strip_prefix(prefix)).unwrap().to_owned();
    let figures = text.lines().find(|line| line.starts_with("command ")).unwrap().to_owned();
    (figures, fs::read_to_string(line("output: ")).unwrap())
}

#[test]
fn a_command_runs_in_an_image_as_it_says() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (root, archive) = small_image(directory.path());
    let image = archive.display().to_string();
    let (figures, printed) = recorded(&["--image", &image]);
    assert!(printed.starts_with("uid=33(web) gid=34(web)"), "{printed}");
    assert!(printed.contains("of the image\nfast /srv /srv\n"), "{printed}");
    assert!(!printed.contains("home\n") && !printed.contains("boot\n"), "{printed}");
    assert!(printed.ends_with("touch: new: Permission denied\n"), "{printed}");
    // The layout as a directory is the same image, and twice the same instructions.
    let layout = directory.path().join("layout").display().to_string();
    assert_eq!(recorded(&["--image", &layout]), (figures, printed));
    let (_, other) = recorded(&["--image", &image, "--chdir", "/etc", "--", "busybox", "cat", "passwd"]);
    assert_eq!(other, "web:x:33:34::/srv:/bin/sh\n");

    let root_name = root.display().to_string();
    let script = "busybox id -u; busybox cat motd; echo x >motd; echo $HOME $PWD $PATH; \
                  busybox env | busybox grep -vE '^(HOME|LANG|PATH|PWD|OLDPWD|SHLVL|TERM|KT_OUT|_)='; exit 0";
    let (_, printed) =
        recorded(&["--root", &root_name, "--chdir", "srv", "--", "busybox", "sh", "-c", script]);
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/kt/bin";
    assert_eq!(printed, format!("0\nof the image\n/root /srv {path}\n"));
    assert_eq!(fs::read_to_string(root.join("srv/motd")).unwrap(), "of the image\n");
}

#[test]
fn what_is_no_image_or_not_in_the_root_is_refused() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let (root, archive) = small_image(directory.path());
    let (root, image) = (root.display().to_string(), archive.display().to_string());
    let refused = |arguments: &[&str], said: &[&str]| {
        fails(&mut support::kerntune([&["record"][..], arguments].concat()), 2, said);
    };
    refused(&["--root", &root, "--", "cargo"], &["cargo is no program of the root"]);
    refused(&["--root", "/no/such", "--", "true"], &["/no/such"]);
    refused(&["--root", &root, "--chdir", "/none", "--", "busybox"], &["no directory /none"]);
    refused(&["--root", &root], &["COMMAND"]);
    refused(&["--root", &root, "--image", &image], &["--root", "--image"]);
    refused(&["--image", &root], &["no index.json", "--root"]);
    let bytes = fs::read(&archive).unwrap();
    let at = bytes.windows(12).position(|window| window == b"of the image").unwrap();
    fs::write(&archive, [&bytes[..at], b"OF", &bytes[at + 2..]].concat()).unwrap();
    refused(&["--image", &image], &["cannot be used", "have the digest"]);
    fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    refused(&["--image", &image], &["cannot be used"]);
}
