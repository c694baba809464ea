use super::*;
use crate::StandardInput;
use std::path::PathBuf;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn in_root(command: &[String]) -> AdHocWorkload {
    Workload::of_command(command, Path::new("/")).unwrap()
}

/// A directory outside those that the guest has for itself.
fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ad-hoc").tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
}

fn packed(workload: &Workload, dir: &Path) -> Vec<String> {
    workload.files.iter().map(|path| path.strip_prefix(dir).unwrap().display().to_string()).collect()
}

#[test]
fn what_the_arguments_name_is_packed() {
    let temporary = directory();
    let dir = temporary.path();
    std::fs::create_dir_all(dir.join("sub/empty")).unwrap();
    std::fs::write(dir.join("sub/file"), "1234").unwrap();
    std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
    std::os::unix::fs::symlink("/", dir.join("all")).unwrap();
    std::os::unix::fs::symlink("sub", dir.join("again")).unwrap();
    let line =
        format!("ls -lR --color=never {0} if={0}/sub/file /proc/self /tmp /nothing/there", dir.display());
    let AdHocWorkload { workload, notes } = in_root(&words(&line));
    assert_eq!(packed(&workload, dir), ["again", "sub/empty", "sub/file", "sub/file"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("3 files and links are packed; 2 are not"), "{notes:?}");
    assert_eq!(workload.measured.steps[0].operations, Some(1));
    assert_eq!((workload.memory_mb, workload.cpus), (1024, 1));
}

#[test]
fn paths_are_packed_whatever_their_characters() {
    let temporary = directory();
    let dir = temporary.path();
    for name in ["my file", "a=b", "x:y", "it's", "1.txt", "2.txt", "*"] {
        std::fs::write(dir.join(name), "").unwrap();
    }
    let at = dir.display();
    let of = |command: &[String]| {
        let AdHocWorkload { workload, notes } = in_root(command);
        assert_eq!(notes, [""; 0], "{command:?}");
        packed(&workload, dir)
    };
    for name in ["my file", "a=b", "x:y", "it's", "*"] {
        assert_eq!(of(&["cat".into(), format!("{at}/{name}")]), [name]);
    }
    assert_eq!(of(&["tar".into(), format!("-C{at}/1.txt")]), ["1.txt"]);
    assert_eq!(of(&["x".into(), format!("--path={at}/1.txt:{at}/2.txt")]), ["1.txt", "2.txt"]);
    let sh = |script: String| of(&["sh".into(), "-c".into(), script]);
    assert_eq!(sh(format!("cat {at}/*.txt | wc -l")), ["1.txt", "2.txt"]);
    assert_eq!(sh(format!("cat '{at}/my file' \"{at}/it's\" {at}/\\* | wc")), ["my file", "it's", "*"]);
    assert_eq!(sh(format!("bash -c 'wc <{at}/1.txt' >{at}/new")), ["1.txt"]);
}

#[test]
fn relative_names_are_of_the_commands_directory() {
    let temporary = directory();
    let dir = temporary.path();
    std::fs::create_dir(dir.join("sub")).unwrap();
    for name in ["prog", "sub/p2", "data.txt", "other.txt"] {
        std::fs::write(dir.join(name), "#!/bin/sh\nwc data.txt\n").unwrap();
    }
    let of = |line: &str| {
        let AdHocWorkload { workload, notes } = Workload::of_command(&words(line), dir).unwrap();
        assert_eq!(notes, [""; 0], "{line}");
        let context = workload.context.clone().unwrap();
        assert_eq!(context.directory.is_some(), !workload.files.is_empty(), "{line}");
        packed(&workload, dir)
    };
    assert_eq!(of("./prog"), ["prog", "data.txt"]);
    assert_eq!(of("sub/p2"), ["sub/p2", "data.txt"]);
    assert_eq!(of("sub/../prog x"), ["prog", "data.txt"]);
    assert_eq!(of("cat data.txt sub"), ["data.txt", "sub/p2"]);
    assert_eq!(of("bash prog"), ["prog", "data.txt"]);
    assert_eq!(of("ls -l"), [""; 0]);
    let script: Vec<String> = ["sh", "-c", "cat *.txt"].map(str::to_owned).into();
    let workload = Workload::of_command(&script, dir).unwrap().workload;
    assert_eq!(packed(&workload, dir), ["data.txt", "other.txt"]);
}

#[test]
fn what_the_guest_will_not_have_is_said() {
    let notes = |line: &str| in_root(&words(line)).notes;
    assert!(notes("echo hello /tmp/made s/a/b/ /x/ >/dev/null").is_empty());
    assert_eq!(
        notes("cat /etc/no-such-file"),
        ["`/etc/no-such-file` is not on this machine: the guest will not have it"]
    );
    let script = |text: &str| in_root(&["sh".to_owned(), "-c".into(), text.into()]);
    let AdHocWorkload { workload, notes } = script("cat '/etc/hostname' </etc/hosts >/var/tmp/new | wc");
    assert_eq!(workload.files, [PathBuf::from("/etc/hostname"), "/etc/hosts".into()]);
    assert_eq!(notes, [""; 0]);
    let AdHocWorkload { notes, .. } = script("cat /etc/no-such*");
    assert_eq!(notes, ["`/etc/no-such*` matches no file of this machine: the guest will have none"]);
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let workload = in_root(&["cat".to_owned(), file.path().display().to_string()]).workload;
    assert_eq!(workload.files, [file.path()]);
}

#[test]
fn too_much_is_refused() {
    let mut packed = ArgumentFiles::new("tar".into(), Path::new("/"));
    packed.add(1 << 30).unwrap();
    let error = packed.add(1 << 30).unwrap_err().to_string();
    assert!(error.contains("tar is too large") && error.contains("1536 MiB"), "{error}");
    assert_eq!(memory_mb(1 << 30), 2560);
}

#[test]
fn a_guest_has_room_for_the_input_and_for_added_files() {
    let temporary = directory();
    let (dir, size) = (temporary.path(), 700 << 20);
    std::fs::create_dir(dir.join("sub")).unwrap();
    std::fs::File::create(dir.join("sub/large")).unwrap().set_len(size).unwrap();
    let found = DiscoveredFiles::parse("exit 0\n").unwrap();
    let system = CommandSystem::of_this_machine(dir).unwrap();
    let mut workload = Workload::of_discovered(&words("true"), system, found).unwrap().workload;
    workload.make_room().unwrap();
    assert_eq!(workload.memory_mb, MEMORY_MB);
    workload.files.push(dir.join("sub"));
    workload.make_room().unwrap();
    assert_eq!(workload.memory_mb, 1400 + 512);
    let bytes = vec![0; 100 << 20];
    workload.context.as_mut().unwrap().input = Some(StandardInput { bytes, is_private: false });
    workload.make_room().unwrap();
    assert_eq!(workload.memory_mb, 1600 + 512);
    workload.files.extend([dir.join("sub"), dir.join("sub")]);
    assert!(workload.make_room().unwrap_err().to_string().contains("2200 MiB"));
}

#[test]
fn a_command_is_filed_under_its_own_words() {
    let name = |words: &[&str]| name_of(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
    assert_eq!(name(&["sh", "-c", "ls\n\u{1b}[2J"]), "sh -c ls  [2J");
    assert_eq!(name(&["echo", &"ü".repeat(99)]), format!("echo {}…", "ü".repeat(55)));
}

#[test]
fn files_and_the_directory_are_added_to_what_the_arguments_name() {
    let temporary = directory();
    let dir = temporary.path();
    std::fs::create_dir_all(dir.join("sub/empty")).unwrap();
    for name in ["sub/file", "data.txt"] {
        std::fs::write(dir.join(name), "1234").unwrap();
    }
    let of = |line: &str, start: &Path, files: &[PathBuf]| {
        let AdHocWorkload { workload, notes } =
            Workload::of_command_with(&words(line), start, files, true).unwrap();
        assert_eq!(notes, [""; 0], "{line}");
        assert_eq!(workload.context.as_ref().unwrap().directory.as_deref(), Some(start));
        workload
    };
    let workload = of("wc data.txt", dir, &[dir.join("sub")]);
    assert_eq!(packed(&workload, dir), ["data.txt", "sub/empty", "sub/file", ""]);
    assert!(of("true", Path::new("/tmp"), &[]).files.is_empty(), "the guest has its own");
}
