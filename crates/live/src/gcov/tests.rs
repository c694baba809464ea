use super::*;
use std::io::Write;
use std::os::unix::fs::{symlink, PermissionsExt};

fn sink(top: &Path) -> CounterSink {
    CounterSink { top: top.to_owned(), files: Vec::new(), bytes: 0 }
}

#[test]
fn names_are_checked_before_they_become_paths() {
    for good in ["a.gcda", "./proc/self/cwd/kernel/fork.gcda"] {
        assert!(checked_name(Path::new(good)).is_ok(), "{good}");
    }
    for bad in ["/etc/passwd", "../x.gcda", "a/../../x.gcda", "a.gcno", "", ".", "a.gcda/.."] {
        let text = checked_name(Path::new(bad)).unwrap_err().to_string();
        assert!(text.contains(&format!("{bad:?}")), "{text}");
    }
}

#[test]
fn hosts_are_names() {
    for good in ["root@server", "server.example.org", "root@[::1]", "user-1@10.0.0.1"] {
        assert!(GcovMachine::ssh(good, &[]).is_ok(), "{good}");
    }
    for bad in ["", "-oProxyCommand=x", "a b", "a;b", "a\nb", "$(x)"] {
        assert!(GcovMachine::ssh(bad, &[]).is_err(), "{bad:?}");
    }
}

#[test]
fn a_tree_is_copied_without_its_links() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::create_dir_all(from.join("w/kernel")).unwrap();
    fs::write(from.join("w/kernel/fork.gcda"), "fork").unwrap();
    fs::write(from.join("reset"), "0").unwrap();
    symlink("/nowhere", from.join("w/kernel/fork.gcno")).unwrap();
    symlink("fork.gcda", from.join("w/kernel/link.gcda")).unwrap();
    let mut sink = sink(&to);
    local::copy(&from, &mut sink).unwrap();
    assert_eq!((sink.files, sink.bytes), (vec![PathBuf::from("w/kernel/fork.gcda")], 4));
    assert_eq!(fs::read_to_string(to.join("w/kernel/fork.gcda")).unwrap(), "fork");
}

fn archive(members: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, bytes) in members {
        let mut header = tar::Header::new_gnu();
        // Written as it is: the crate itself refuses bad names.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn an_archive_has_the_counters_and_facts_of_the_kernel() {
    use tar::EntryType::{Directory, Regular, Symlink};
    let dir = tempfile::tempdir().unwrap();
    let bytes = archive(&[
        ("release", Regular, b"6.12.1\n"),
        ("modules", Regular, b"tun 1 0 - Live 0x0\n"),
        ("notes", Regular, b"n"),
        ("gcov", Directory, b""),
        ("gcov/./w/drivers/net/tun.gcda", Regular, b"tun"),
    ]);
    let mut into = sink(dir.path());
    let kernel = read_archive(&bytes[..], &mut |name, bytes| into.add(name, bytes)).unwrap();
    assert_eq!((kernel.release.as_str(), &kernel.notes[..]), ("6.12.1\n", &b"n"[..]));
    assert_eq!(into.files, [PathBuf::from("w/drivers/net/tun.gcda")]);
    let modules = ModuleFiles::of(&kernel.modules, &into.files);
    assert_eq!((modules[0].name.as_str(), &modules[0].files), ("tun", &into.files));

    for (members, why) in [
        (archive(&[("gcov/../../x.gcda", Regular, b"x")]), "no relative path"),
        (archive(&[("gcov/x.gcda", Symlink, b"")]), "no regular file"),
        (archive(&[("etc/passwd", Regular, b"x")]), "not asked for"),
        (archive(&[("gcov/x.gcda", Regular, b"x")])[..600].to_vec(), "damaged"),
    ] {
        let mut into = sink(dir.path());
        let text =
            read_archive(&members[..], &mut |name, bytes| into.add(name, bytes)).unwrap_err().to_string();
        assert!(text.contains(why), "{why}: {text}");
    }
}

/// Runs the script of the other side with a shell and programs in place of root, `ssh` and debugfs.
#[test]
fn the_other_side_sends_its_counters_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (debug, programs, temporary) =
        (dir.path().join("debug"), dir.path().join("bin"), dir.path().join("tmp"));
    for made in [&debug.join("gcov/w/kernel"), &programs, &temporary] {
        fs::create_dir_all(made).unwrap();
    }
    fs::write(debug.join("gcov/w/kernel/fork.gcda"), "fork").unwrap();
    fs::write(debug.join("gcov/reset"), "").unwrap();
    let script = |name: &str, text: &str| {
        let path = programs.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("mount", "echo mount >> \"$TMPDIR/../calls\"");
    script("umount", "echo umount >> \"$TMPDIR/../calls\"");
    script("id", "echo 0");
    let run = |what: &str, debug: &Path| {
        let text =
            remote::script(what).replace("debug=/sys/kernel/debug", &format!("debug={}", debug.display()));
        let mut child = std::process::Command::new("sh")
            .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
            .env("TMPDIR", &temporary)
            .args(["-s"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let out = run(remote::COLLECT, &debug);
    assert!(out.status.success());
    let mut into = sink(&dir.path().join("out"));
    let kernel = read_archive(&out.stdout[..], &mut |name, bytes| into.add(name, bytes)).unwrap();
    assert_eq!(into.files, [PathBuf::from("w/kernel/fork.gcda")]);
    assert!(!kernel.release.trim().is_empty());
    assert!(run(remote::RESET, &debug).status.success());
    assert_eq!(fs::read_to_string(debug.join("gcov/reset")).unwrap(), "1\n");
    // It was not mounted before, and no temporary directory is left.
    assert_eq!(fs::read_to_string(dir.path().join("calls")).unwrap(), "mount\numount\nmount\numount\n");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert_eq!(run(remote::RESET, &dir.path().join("none")).status.code(), Some(71));
}

#[test]
fn a_manifest_is_read_again_and_others_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(GcovManifest::load(dir.path()).unwrap(), None);
    let manifest = GcovManifest {
        schema: manifest::SCHEMA.into(),
        host: Some("root@server".into()),
        release: "6.12.1".into(),
        build_id: None,
        collected: "2026-01-01T00:00:00.000Z".into(),
        files: 1,
        bytes: 4,
        modules: Vec::new(),
    };
    manifest.write(dir.path()).unwrap();
    assert_eq!(GcovManifest::load(dir.path()).unwrap(), Some(manifest));
    fs::write(dir.path().join(GCOV_MANIFEST), "{}").unwrap();
    assert!(GcovManifest::load(dir.path()).is_err());
}
