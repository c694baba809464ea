//! Kernels, tunings and git trees of others that a work directory is asked to use. Each is changed
//! at random; it must be used correctly or refused, and no file outside of the work directory may
//! change.
//!
//! `KERNTUNE_ATTACK_MUTATIONS` is the number of changes; `make attack` makes more than `make test`.

use kerntune_attack::mutate;
use kerntune_guard::GitTree;
use kerntune_kernel::Kernel;
use kerntune_stats::Rng;
use kerntune_work::{seal, write_sealed, Hash, NoProgress, WorkDir};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KERNEL: &str = "4bee713b324fb459";
/// Names that lead elsewhere, or contain more than a name.
const HOSTILE: [&str; 16] = [
    "../victim",
    "../../victim/x",
    "/etc/hostname",
    "/",
    "",
    ".",
    "..",
    "a/../../victim",
    "x\nDepends: evil",
    "x\r\nX: y",
    "$(touch ran)",
    "`touch ran`",
    "\"; touch ran; \"",
    "--help",
    "\u{1b}[2J",
    "a\u{0}b",
];

/// Number of changes, divided by `less` for slow tests.
fn changes(less: usize) -> usize {
    let asked = std::env::var("KERNTUNE_ATTACK_MUTATIONS").ok().and_then(|text| text.parse().ok());
    (asked.unwrap_or(200) / less).max(4)
}

/// Files below a directory with their contents, and links with their targets.
fn tree(root: &Path, except: &[&Path]) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap();
            if except.contains(&&*path) {
                continue;
            }
            let content = if kind.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if kind.is_dir() {
                open.push(path.clone());
                continue;
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path, content);
        }
    }
    found
}

/// A work directory with a tuned kernel and its tuning, next to files of the user.
struct TunedKernel {
    dir: tempfile::TempDir,
    work: WorkDir,
    kernel: PathBuf,
    tuning: PathBuf,
}

impl TunedKernel {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("victim")).unwrap();
        fs::write(dir.path().join("victim/x"), "precious").unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let kernel = work.root().join("kernels").join(KERNEL);
        let tuning = work.root().join("tunes/0123456789abcdef");
        fs::create_dir_all(kernel.join("patches")).unwrap();
        fs::create_dir_all(&tuning).unwrap();
        // The smallest file accepted as a bzImage.
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x30b].copy_from_slice(b"6.12.117-kt");
        let mut manifest: Value = serde_json::from_str(include_str!("../seeds/kernel.json")).unwrap();
        manifest["label"] = "base-gcc-pgo-rr".into();
        manifest["recipe"] = "gcc-pgo".into();
        manifest["source"]["patches"] = json!(["patches/01-fix.patch"]);
        for (name, content) in [
            ("bzImage", image),
            ("vmlinux", b"elf".to_vec()),
            ("System.map", b"0 T x\n".to_vec()),
            ("config", b"CONFIG_BLK_DEV_INITRD=y\n".to_vec()),
            ("patches/01-fix.patch", b"--- a\n".to_vec()),
            ("kernel.json", serde_json::to_vec_pretty(&manifest).unwrap()),
        ] {
            fs::write(kernel.join(name), content).unwrap();
        }
        seal(&kernel, "kernels", KERNEL, &[]).unwrap();
        let mut files = serde_json::Map::new();
        let comparison = json!({"workload": "rr", "tuned": {"id": KERNEL}, "path_length": -5.89});
        for (name, value) in [("comparison.json", comparison), ("proof.json", json!({"change": -5.89}))] {
            let bytes = serde_json::to_vec(&value).unwrap();
            files.insert(name.to_owned(), Hash::of(&bytes).as_str().into());
            fs::write(tuning.join(name), bytes).unwrap();
        }
        let plan = json!({
            "schema": "kerntune-plan/3", "about": [], "keys": {},
            "results": {"tuned-kernel": format!("kernels/{KERNEL}")}, "files": files
        });
        write_sealed(&tuning.join("plan.json"), &plan).unwrap();
        Self { dir, work, kernel, tuning }
    }

    /// The package's file, or the error.
    fn package(&self) -> Result<(PathBuf, Vec<String>), String> {
        let kernel = Kernel::load(&self.kernel).map_err(|error| error.to_string())?;
        let made = kerntune_tune::package::package(&self.work, &kernel, &NoProgress)
            .map_err(|error| error.to_string())?;
        Ok((made.file(), made.manifest.installs.clone()))
    }

    /// Forces packages to be made again.
    fn forget_packages(&self) {
        let _ = fs::remove_dir_all(self.work.root().join("packages"));
    }

    fn around(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(self.dir.path(), &[self.work.root()])
    }
}

#[test]
fn a_package_has_no_figure_that_was_changed_on_the_disk() {
    let bench = TunedKernel::new();
    let bytes = || bench.package().map(|(file, _)| fs::read(file).unwrap());
    let whole = bytes().unwrap();
    // Without a readable plan, the package leaves the plan's results out.
    let plan = bench.tuning.join("plan.json");
    let kept = fs::read(&plan).unwrap();
    fs::write(&plan, "{").unwrap();
    bench.forget_packages();
    let without = bytes().unwrap();
    fs::write(&plan, kept).unwrap();
    assert_ne!(whole, without, "the package has the comparison");
    let mut files: Vec<(PathBuf, Vec<u8>)> = tree(&bench.kernel, &[]).into_iter().collect();
    files.extend(tree(&bench.tuning, &[]));
    let all: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| bytes.clone()).collect();
    let before = bench.around();
    let mut rng = Rng::new(13);
    let (mut refused, mut same, mut left_out) = (0, 0, 0);
    for _ in 0..changes(1) {
        let (path, sound) = &files[rng.index(files.len())];
        let changed = mutate(sound, &all, &mut rng);
        if changed == *sound {
            continue;
        }
        fs::write(path, &changed).unwrap();
        bench.forget_packages();
        match bytes() {
            Ok(made) if made == whole => same += 1,
            Ok(made) => {
                assert_eq!((&made, path), (&without, &plan), "another package");
                left_out += 1;
            }
            Err(_) => refused += 1,
        }
        fs::write(path, sound).unwrap();
    }
    assert_eq!(bench.around(), before);
    println!("{refused} changed kernels and tunings refused, {left_out} without a comparison, {same} not concerned");
}

/// Collects the JSON pointers of all texts and nulls of a document.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) | Value::Null => found.push(at.to_owned()),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(number, one)| texts(one, &format!("{at}/{number}"), found));
        }
        Value::Object(all) => all.iter().for_each(|(key, one)| texts(one, &format!("{at}/{key}"), found)),
        _ => {}
    }
}

/// Names of a package's control fields.
fn fields(file: &Path) -> BTreeSet<String> {
    let output = Command::new("dpkg-deb").arg("--field").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(':').next().unwrap().into())
        .collect()
}

#[test]
fn no_name_in_a_foreign_kernel_gets_out_of_its_package() {
    let bench = TunedKernel::new();
    let path = bench.kernel.join("kernel.json");
    let sound: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut places = Vec::new();
    texts(&sound, "", &mut places);
    let ours = fields(&bench.package().unwrap().0);
    let before = bench.around();
    let mut rng = Rng::new(7);
    let (mut refused, mut packed) = (0, 0);
    for _ in 0..changes(5) {
        let mut forged = sound.clone();
        for _ in 0..=rng.index(2) {
            let hostile = HOSTILE[rng.index(HOSTILE.len())];
            let place = &places[rng.index(places.len())];
            let text = forged.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
            *forged.pointer_mut(place).unwrap() =
                if rng.index(2) == 0 { hostile.into() } else { format!("{text}{hostile}").into() };
        }
        fs::write(&path, serde_json::to_vec_pretty(&forged).unwrap()).unwrap();
        seal(&bench.kernel, "kernels", KERNEL, &[]).unwrap();
        bench.forget_packages();
        match bench.package() {
            Err(_) => refused += 1,
            Ok((file, installs)) => {
                packed += 1;
                assert!(file.starts_with(bench.work.root()), "{}", file.display());
                for name in &installs {
                    let ours = [
                        "/boot/",
                        "/usr/lib/kerntune/",
                        "/lib/modules/",
                        "/usr/lib/modules/",
                        "/usr/share/doc/linux-image-",
                    ];
                    let stays = ours.iter().any(|start| name.starts_with(start));
                    assert!(
                        stays && !name.contains("..") && !name.contains(char::is_control),
                        "{name:?}: {forged}"
                    );
                }
                assert!(fields(&file).is_subset(&ours), "{forged}");
            }
        }
    }
    assert_eq!(bench.around(), before);
    assert!(!Path::new("ran").exists());
    println!("{refused} foreign kernels refused, {packed} packed");
}

/// Runs git with input in a tree; returns the first line of its output.
fn git(tree: &Path, words: &[&str], input: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {words:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Names that git itself would not write, or that have a meaning in paths.
const HOSTILE_ENTRY_NAMES: [&[u8]; 14] = [
    b"..",
    b".git",
    b".GIT",
    b"git~1",
    b"a/b",
    b"../victim",
    b".gitmodules",
    b".gitattributes",
    b"line\nend",
    b"\x1b[2J",
    b"\xff\xfe",
    b"--help",
    b"way",
    b"Makefile",
];

#[test]
fn no_git_tree_of_others_leaves_its_room_or_runs_anything() {
    let dir = tempfile::tempdir().unwrap();
    let (origin, ran, victim) = (dir.path().join("linux"), dir.path().join("ran"), dir.path().join("victim"));
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("x"), "precious").unwrap();
    git(dir.path(), &["init", "--quiet", "-b", "main", "linux"], b"");
    let work = WorkDir::open(dir.path().join("work")).unwrap();
    let literally = ["hash-object", "-w", "--stdin", "--literally", "-t"];
    let put = |kind: &str, bytes: &[u8]| git(&origin, &[&literally[..], &[kind]].concat(), bytes);
    let touch = format!("#!/bin/sh\ntouch {}\n", ran.display());
    let contents: Vec<Vec<u8>> = vec![
        touch.clone().into(),
        victim.display().to_string().into(),
        b"../../../victim".to_vec(),
        b"* filter=x diff=x export-subst\n".to_vec(),
        format!(
            "[submodule \"s\"]\n\tpath = way\n\turl = ext::sh -c touch% {}\n\tupdate = !{touch}\n",
            ran.display()
        )
        .into(),
        format!("[filter \"x\"]\n\tsmudge = touch {}\n", ran.display()).into(),
    ];
    let blobs: Vec<String> = contents.iter().map(|bytes| put("blob", bytes)).collect();
    let mut rng = Rng::new(11);
    let raw = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let opened = GitTree::open(&work, &origin).unwrap();
    let before = tree(dir.path(), &[work.root(), &origin]);
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..changes(50) {
        let mut inner = Vec::new();
        let entry = |into: &mut Vec<u8>, mode: &str, name: &[u8], id: &str| {
            into.extend_from_slice(format!("{mode} ").as_bytes());
            into.extend_from_slice(name);
            into.push(0);
            into.extend_from_slice(&raw(id));
        };
        for _ in 0..1 + rng.index(3) {
            let mode = ["100644", "100755", "120000"][rng.index(3)];
            entry(
                &mut inner,
                mode,
                HOSTILE_ENTRY_NAMES[rng.index(HOSTILE_ENTRY_NAMES.len())],
                &blobs[rng.index(blobs.len())],
            );
        }
        let inner = put("tree", &inner);
        let mut outer = Vec::new();
        for _ in 0..1 + rng.index(3) {
            let name = HOSTILE_ENTRY_NAMES[rng.index(HOSTILE_ENTRY_NAMES.len())];
            match rng.index(3) {
                0 => entry(&mut outer, "40000", name, &inner),
                // A link and a directory of one name, a submodule.
                1 => entry(
                    &mut outer,
                    ["120000", "160000", "100644"][rng.index(3)],
                    name,
                    &blobs[rng.index(blobs.len())],
                ),
                _ => entry(&mut outer, "100755", name, &blobs[rng.index(blobs.len())]),
            }
        }
        let outer = put("tree", &outer);
        let subject = HOSTILE[rng.index(HOSTILE.len())].replace('\0', "");
        let commit = format!(
            "tree {outer}\nauthor k <k@example.org> 1700000000 +0000\ncommitter k{} <k@example.org> 1700000000 +0000\n\n{subject}",
            if rng.index(4) == 0 { "\u{1b}[2J" } else { "" },
        );
        let commit = put("commit", commit.as_bytes());
        let told = opened.commit(&commit).unwrap();
        assert_eq!(told.id, commit);
        match opened.check_out(&commit, &NoProgress) {
            Ok(_) => taken += 1,
            Err(_) => refused += 1,
        }
        let _ = opened.file(&commit, "Makefile");
        assert_eq!(tree(dir.path(), &[work.root(), &origin]), before, "{outer}");
        assert!(!ran.exists(), "{outer}");
    }
    println!("{refused} git trees refused, {taken} checked out");
}
