use super::*;
use crate::init::{with_seed, RANDOM_BYTES};
use crate::{host, GuestModule, InitPlan, SEED};
use kerntune_work::NoProgress;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

fn workload(text: &str) -> Workload {
    Workload::parse(text, Path::new("test.toml")).unwrap()
}

/// Path to mode and contents.
fn unpack(image: &GuestImage) -> HashMap<String, (u32, Vec<u8>)> {
    let mut files = HashMap::new();
    let mut input: Box<dyn Read> = Box::new(File::open(&image.initramfs).unwrap());
    loop {
        let mut reader = cpio::NewcReader::new(input).unwrap();
        if reader.entry().is_trailer() {
            return files;
        }
        let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
        assert_eq!((reader.entry().mtime(), reader.entry().uid(), reader.entry().gid()), (1, 0, 0));
        let mut contents = Vec::new();
        reader.read_to_end(&mut contents).unwrap();
        files.insert(name, (mode, contents));
        input = reader.finish().unwrap();
    }
}

const SIMPLE: &str = "binaries = [\"bash\"]\nfiles = [\"/etc/hostname\"]\n[[training.step]]\n\
                      command = [\"rr\"]\n[[measured.step]]\ncommand = [\"sh\", \"-c\", \"true\"]\n";

#[test]
fn an_image_holds_what_init_and_the_commands_need() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let workload = workload(SIMPLE);
    let image = GuestImage::build(&work, &workload, &NoProgress).unwrap();
    let files = unpack(&image);
    for path in ["init", "kt/bin/rr", "etc/hostname", "etc/passwd", "etc/nsswitch.conf"] {
        assert_eq!(files[path].0 & 0o170000, 0o100000, "{path}");
    }
    assert_eq!(files["kt/plan"].1, InitPlan::of(&workload).text().as_bytes());
    assert_eq!(files["dev/console"].0, 0o020600);
    let bash = host::find_program("bash").unwrap().canonicalize().unwrap();
    assert_eq!(files[bash.strip_prefix("/").unwrap().to_str().unwrap()].1, fs::read(&bash).unwrap());
    assert_eq!(image.manifest.bytes, image.initramfs.metadata().unwrap().len());
    assert!(image.manifest.files.iter().any(|file| file.path == "/init" && file.size > 100_000));
    // Every directory comes before its contents, or the kernel drops the file.
    let paths: Vec<&String> = image.manifest.files.iter().map(|file| &file.path).collect();
    assert!(paths.is_sorted());
}

#[test]
fn texts_of_a_workload_are_packed_with_what_their_scripts_run() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let build = |text: &str| GuestImage::build(&work, &workload(&format!("{SIMPLE}{text}")), &NoProgress);
    let image = build(
        "[texts]\n\"/etc/hostname\" = \"theirs\"\n\"/srv/a/run\" = \"\"\"\n#!/bin/bash\nfor i in 1 2; do /usr/bin/env true; done\n\"\"\"\n",
    )
    .unwrap();
    let files = unpack(&image);
    assert_eq!(files["etc/hostname"], (0o100644, b"theirs".to_vec()), "instead of the host's");
    assert_eq!(files["srv/a/run"].0, 0o100755);
    assert!(files["srv/a/run"].1.starts_with(b"#!/bin/bash\nfor"));
    assert!(files.contains_key("usr/bin/env"), "a script names it");
    let image =
        build("[texts]\n\"/srv/b\" = \"#!/usr/bin/env -S K=1 dash -e\\n/usr/bin/timeout 1 true\"\n").unwrap();
    let files = unpack(&image);
    for path in ["usr/bin/env", "usr/bin/dash", "usr/bin/timeout"] {
        assert!(files.contains_key(path), "{path}, which a script started by env needs");
    }
    let error = build("[texts]\n\"/srv/x\" = \"#!/no/such/interpreter\"\n").unwrap_err().to_string();
    assert!(error.contains("/no/such/interpreter, needed by `texts` of the workload (/srv/x)"), "{error}");
    let error = build("[texts]\n\"/usr/lib\" = \"\"\n").unwrap_err().to_string();
    assert!(
        error.starts_with("/usr/lib/") && error.ends_with("cannot be packed: /usr/lib is a file there"),
        "{error}"
    );
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let build =
        |dir: &Path| GuestImage::build(&WorkDir::open(dir).unwrap(), &workload(SIMPLE), &NoProgress).unwrap();
    let (a, b) = (build(one.path()), build(two.path()));
    assert_eq!(a.manifest, b.manifest);
    assert_eq!(fs::read(&a.initramfs).unwrap(), fs::read(&b.initramfs).unwrap());
    let other = workload(&SIMPLE.replace("true", "false"));
    let c = GuestImage::build(&WorkDir::open(one.path()).unwrap(), &other, &NoProgress).unwrap();
    assert_ne!(a.manifest.id, c.manifest.id);
}

#[test]
fn what_the_host_lacks_is_said_with_who_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let build = |text: &str| GuestImage::build(&work, &workload(text), &NoProgress).unwrap_err().to_string();
    let error = build(&format!("packages = [\"no-such-package\"]\n{SIMPLE}"));
    assert_eq!(
        error,
        "package no-such-package of workload test is not installed; install it: apt-get install no-such-package"
    );
    let error = build(&SIMPLE.replace("\"sh\"", "\"no-such-program\""));
    assert!(
        error.starts_with("no-such-program, needed by measured step, is not on this machine; "),
        "{error}"
    );
    for (file, help) in [
        ("/etc/no-such-file", "correct the path"),
        ("/var/lib/kerntune/no-such-file", "make it: scripts/setup servers"),
    ] {
        let right = format!("{file}, needed by `files` of the workload, is not on this machine; {help}");
        assert_eq!(build(&SIMPLE.replace("/etc/hostname", file)), right);
    }
}

#[test]
fn a_damaged_image_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["initramfs.cpio", "manifest.json"] {
        fs::write(dir.path().join(name), "{\"schema\":").unwrap();
    }
    let error = || GuestImage::open(dir.path()).unwrap_err().to_string();
    assert!(error().contains("no result of this version"), "{}", error());
    kerntune_work::seal(dir.path(), KIND, "aa11", &[]).unwrap();
    assert!(error().contains("manifest.json is damaged"), "{}", error());
    fs::write(dir.path().join("initramfs.cpio"), "{\"sch").unwrap();
    assert!(error().contains("initramfs.cpio is not the file that was written"), "{}", error());
}

#[test]
fn an_image_with_what_not_all_may_read_is_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let open = GuestImage::build(&work, &workload(SIMPLE), &NoProgress).unwrap();
    assert_ne!(mode(&open.initramfs) & 0o004, 0);
    let secret = workload(&SIMPLE.replace("/etc/hostname", "/etc/shadow"));
    let own = GuestImage::build(&work, &secret, &NoProgress).unwrap();
    assert_eq!((mode(&own.dir), mode(&own.initramfs)), (0o700, 0o600));
}

/// Path of a host program in an image.
fn packed_path(word: &str) -> String {
    let path = host::find_program(word).unwrap().canonicalize().unwrap();
    path.strip_prefix("/").unwrap().to_str().unwrap().to_owned()
}

/// Checks whether `/bin/sh` of an image is busybox.
fn sh_is_busybox(files: &HashMap<String, (u32, Vec<u8>)>) -> bool {
    ["bin/sh", "usr/bin/sh"]
        .iter()
        .any(|path| files.get(*path).is_some_and(|(_, to)| to.ends_with(b"busybox")))
}

/// `sh` is this machine's, and so is all that it names; with `busybox` in `binaries`, busybox
/// serves what it has.
#[test]
fn programs_of_shell_strings_are_this_machines() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let script = SIMPLE.replace("true", "python3 --version | grep Python; no-such-tool; kt-mark begin x");
    let files = unpack(&GuestImage::build(&work, &workload(&script), &NoProgress).unwrap());
    for word in ["python3", "grep", "sh"] {
        assert!(files.contains_key(&packed_path(word)), "{word}");
    }
    assert!(files.contains_key("kt/bin/kt-mark") && !sh_is_busybox(&files));
    let script = script.replace("\"bash\"", "\"busybox\"");
    let files = unpack(&GuestImage::build(&work, &workload(&script), &NoProgress).unwrap());
    assert!(files.contains_key(&packed_path("python3")) && sh_is_busybox(&files));
    assert!(!files.contains_key(&packed_path("grep")));
    // Only busybox's own shell finds its applets.
    for command in ["\"bash\", \"-c\", \"grep x\"", "\"timeout\", \"5\", \"grep\""] {
        let other = script.replace("\"rr\"", command);
        let files = unpack(&GuestImage::build(&work, &workload(&other), &NoProgress).unwrap());
        assert!(files.contains_key(&packed_path("grep")), "{command}");
    }
}

#[derive(Default)]
struct NoteLog(std::sync::Mutex<Vec<String>>);

impl Progress for NoteLog {
    fn begin(&self, _what: &str, _total: Option<u64>) {}
    fn at(&self, _done: u64) {}
    fn end(&self) {}
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Mode and content by path.
type PackedFiles = HashMap<String, (u32, Vec<u8>)>;

/// Image of an ad-hoc command, with the notes.
fn ad_hoc(command: &[&str]) -> (PackedFiles, Vec<String>) {
    // Shared, so that init is compiled once.
    static WORK: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let work = WorkDir::open(WORK.get_or_init(|| tempfile::tempdir().unwrap()).path()).unwrap();
    let command: Vec<String> = command.iter().map(|word| word.to_string()).collect();
    let notes = NoteLog::default();
    let workload = Workload::of_command(&command, Path::new("/")).unwrap().workload;
    let image = GuestImage::build(&work, &workload, &notes).unwrap();
    (unpack(&image), notes.0.into_inner().unwrap())
}

#[test]
fn a_command_runs_this_machines_programs() {
    let commands: [(&[&str], &[&str]); 6] = [
        (&["sh", "-c", "grep -c abc /etc/services"], &["sh", "grep"]),
        (&["bash", "-c", "ls | sort"], &["bash", "ls", "sort"]),
        (&["timeout", "10", "sort", "/etc/passwd"], &["sort", "sh"]),
        (&["find", "/etc/hostname", "-exec", "md5sum", "{}", "+"], &["md5sum"]),
        (&["xargs", "-n", "1", "wc"], &["wc"]),
        // Programs that only tar knows it starts.
        (&["tar", "-czf", "/dev/null", "/etc/hostname"], &["gzip", "sh"]),
    ];
    for (command, words) in commands {
        let (files, notes) = ad_hoc(command);
        for word in words {
            assert!(files.contains_key(&packed_path(word)), "{command:?}: {word}");
        }
        assert!(!sh_is_busybox(&files), "{command:?}");
        assert!(!files.keys().any(|path| path.ends_with("/busybox")), "{command:?}");
        assert_eq!(notes, [""; 0], "{command:?}");
    }
}

#[test]
fn a_script_brings_what_it_and_its_scripts_name() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (outer, inner) = (dir.path().join("outer"), dir.path().join("inner"));
    fs::write(&outer, format!("#!/bin/bash\npython3 -V\n{}\n", inner.display())).unwrap();
    fs::write(&inner, "#!/bin/sh\nperl -v\n").unwrap();
    for file in [&outer, &inner] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for command in [&[outer.to_str().unwrap()][..], &["bash", outer.to_str().unwrap()]] {
        let (files, _) = ad_hoc(command);
        for word in ["bash", "python3", "perl", "sh"] {
            assert!(files.contains_key(&packed_path(word)), "{command:?}: {word}");
        }
        assert!(files.contains_key(inner.strip_prefix("/").unwrap().to_str().unwrap()));
    }
}

/// Programs that the machine lacks are served by busybox, with a note.
#[test]
fn a_program_that_busybox_serves_is_named() {
    let lacking = |name: &&String| host::find_program(name).is_none() && !crate::shell::is_builtin(name);
    let Some(name) = host::busybox_applets().iter().find(lacking) else { return };
    let (files, notes) = ad_hoc(&["sh", "-c", name]);
    assert!(files[&format!("kt/bin/{name}")].1.ends_with(b"/busybox"));
    assert_eq!(notes, [format!("`{name}` is busybox's: this machine has no other")]);
}

/// A program that starts no other is alone in the image, except for what is always there.
#[test]
fn a_program_that_starts_no_other_brings_no_utilities() {
    let (files, _) = ad_hoc(&["ls", "/etc/hostname"]);
    assert!(!files.contains_key(&packed_path("grep")));
}

#[test]
fn what_the_guests_memory_does_not_hold_is_refused_before_it_is_packed() {
    let big = tempfile::tempdir_in("/var/tmp").unwrap();
    File::create(big.path().join("big")).unwrap().set_len(40 << 20).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let text = SIMPLE.replace("/etc/hostname", &big.path().display().to_string());
    let error =
        GuestImage::build(&work, &workload(&format!("memory_mb = 64\n{text}")), &NoProgress).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("the guest image of workload test is too large: "), "{error}");
    assert!(error.contains("`memory_mb` is 64; raise it, or pack less"), "{error}");
}

#[test]
fn a_disk_brings_what_sets_it_up_and_the_files_that_go_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let disk = "[disk]\nkind = \"brd\"\nsize_mb = 64\nfilesystem = \"ext4\"\nfiles = [\"/etc/services\"]\n";
    let with = workload(&format!("{SIMPLE}{disk}"));
    let image = GuestImage::build(&work, &with, &NoProgress).unwrap();
    let files = unpack(&image);
    let maker = host::find_program("mkfs.ext4").unwrap().canonicalize().unwrap();
    for path in ["kt/bin/kt-disk", "etc/services", maker.strip_prefix("/").unwrap().to_str().unwrap()] {
        assert_eq!(files[path].0 & 0o170000, 0o100000, "{path}");
    }
    let plan = String::from_utf8(files["kt/plan"].1.clone()).unwrap();
    let setup = plan.lines().find(|line| line.starts_with("setup")).unwrap();
    assert!(setup.starts_with("setup\tkt-disk\tbrd\tsize_mb=64\t"), "{setup}");
    assert!(setup.ends_with("\tfile=/etc/services"), "{setup}");
    // A workload without a disk has none of it.
    let without = GuestImage::build(&work, &workload(SIMPLE), &NoProgress).unwrap();
    assert!(!unpack(&without).contains_key("kt/bin/kt-disk"));
}

#[test]
fn modules_are_in_their_image_and_change_nothing_in_others() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let module = |bytes: &str| GuestModule {
        name: "brd".into(),
        path: "kernel/brd.ko".into(),
        bytes: bytes.into(),
        depends: Vec::new(),
        parameters: String::new(),
    };
    let build = |bytes: &str| {
        let modules = GuestModules { release: "6.12".into(), modules: vec![module(bytes)] };
        GuestImage::with_modules(&work, &workload(SIMPLE), Some(&modules), &NoProgress).unwrap()
    };
    let (one, other) = (build("one"), build("other"));
    assert_ne!(one.manifest.id, other.manifest.id);
    let (with, without) =
        (unpack(&one), unpack(&GuestImage::build(&work, &workload(SIMPLE), &NoProgress).unwrap()));
    let ends = |name: &&str| with.keys().any(|path| path.ends_with(name));
    assert!(
        ["lib/modules/6.12/kernel/brd.ko", "lib/modules/6.12/modules.dep"].iter().all(ends),
        "{:?}",
        with.keys()
    );
    let has = |init: &[u8]| init.windows(11).any(|window| window == b"/kt/modules");
    assert!(has(&with["init"].1) && !has(&without["init"].1));
    assert!(with.contains_key("kt/modules") && !without.contains_key("kt/modules"));
}

#[test]
fn another_seed_is_other_random_numbers_and_the_same_program() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let workload = workload(&SIMPLE.replace("\"rr\"", "\"rr\", \"--seed\", \"{seed}\""));
    let build = |seed| GuestImage::build(&work, &workload.with_seed(seed), &NoProgress).unwrap();
    let (one, two) = (build(SEED), build(2));
    assert_eq!(one.manifest.id, GuestImage::build(&work, &workload, &NoProgress).unwrap().manifest.id);
    assert_ne!(one.manifest.id, two.manifest.id);
    let (one, two) = (unpack(&one), unpack(&two));
    let differ: Vec<_> = one.keys().filter(|name| one[*name] != two[*name]).map(String::as_str).collect();
    assert!(differ.len() == 2 && ["init", "kt/plan"].iter().all(|name| differ.contains(name)), "{differ:?}");
    let (a, b) = (&one["init"].1, &two["init"].1);
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(b).filter(|(a, b)| a != b).count() < RANDOM_BYTES.len());
    assert!(with_seed(b"nothing".to_vec(), 2).unwrap_err().to_string().contains("0 times"));
}
