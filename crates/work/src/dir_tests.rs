use super::*;

fn work() -> (tempfile::TempDir, WorkDir) {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    (dir, work)
}

fn key(value: &str) -> Key {
    Key::new("thing/1", "c0de").field("value", value)
}

fn put_one(work: &WorkDir, value: &str, text: &str) -> PathBuf {
    let staged = work.stage("things", &key(value)).unwrap();
    fs::write(staged.path().join("file"), text).unwrap();
    fs::create_dir_all(staged.path().join("below")).unwrap();
    fs::write(staged.path().join("below/other"), text).unwrap();
    staged.publish().unwrap()
}

#[test]
fn a_partial_result_is_not_listed_and_survives_for_the_next_try() {
    let (_dir, work) = work();
    let staged = work.stage("things", &key("a")).unwrap();
    fs::write(staged.path().join("half"), "x").unwrap();
    drop(staged);
    assert!(work.list("things").unwrap().is_empty());
    assert!(work.find("things", &key("a").id()).is_none());
    let again = work.stage("things", &key("a")).unwrap();
    assert!(again.path().join("half").exists());
    again.publish().unwrap();
    assert_eq!(work.list("things").unwrap().len(), 1);
}

#[test]
fn a_directory_that_stayed_empty_goes() {
    let (_dir, work) = work();
    let staged = work.stage("things", &key("a")).unwrap();
    let path = staged.path().to_owned();
    assert!(path.is_dir());
    drop(staged);
    assert!(!path.exists());
}

#[test]
fn a_result_of_another_version_or_of_nobody_is_not_seen() {
    let (dir, work) = work();
    let old = dir.path().join("things").join(key("a").id());
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join("file"), "of before there were seals").unwrap();
    assert!(work.find("things", &key("a").id()).is_none());
    assert!(work.list("things").unwrap().is_empty());
    assert_eq!(work.damaged("things").unwrap().len(), 1);
    // Made again, it replaces the old one.
    let made = put_one(&work, "a", "new");
    assert_eq!(fs::read(made.join("file")).unwrap(), b"new");
    assert!(work.damaged("things").unwrap().is_empty());
}

#[test]
fn whatever_changes_in_a_result_is_found() {
    type ResultChange = fn(&Path);
    let changes: [(&str, ResultChange); 7] = [
        ("file is not the file", |p| fs::write(p.join("file"), "forged").unwrap()),
        ("below/other is not the file", |p| fs::write(p.join("below/other"), "").unwrap()),
        ("file is missing", |p| fs::remove_file(p.join("file")).unwrap()),
        ("more was added", |p| fs::write(p.join("more"), "").unwrap()),
        ("symbolic links", |p| std::os::unix::fs::symlink("file", p.join("link")).unwrap()),
        ("BLAKE3SUMS is not the list", |p| fs::write(p.join(SUMS_FILE), "").unwrap()),
        ("BLAKE3SUMS is missing", |p| fs::remove_file(p.join(SUMS_FILE)).unwrap()),
    ];
    for (said, change) in changes {
        let (_dir, work) = work();
        let path = put_one(&work, "a", "text");
        checked(&path, &[]).unwrap();
        change(&path);
        let error = checked(&path, &[]).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
        assert!(work.find_verified("things", &key("a").id()).is_none());
        // The next maker finds nothing, and replaces it.
        assert!(work.stage("things", &key("a")).unwrap().already().is_none());
        put_one(&work, "a", "text");
        assert!(work.find_verified("things", &key("a").id()).is_some());
    }
}

#[test]
fn a_result_under_the_name_of_another_is_not_taken_for_it() {
    let (dir, work) = work();
    let path = put_one(&work, "a", "text");
    let other = dir.path().join("things").join(key("b").id());
    fs::rename(&path, &other).unwrap();
    assert!(work.find("things", &key("b").id()).is_none());
    assert!(work.list("things").unwrap().is_empty());
}

#[test]
fn publishing_over_a_result_leaves_no_moment_without_one() {
    let (dir, work) = work();
    let path = put_one(&work, "a", "one");
    work.add_name("things", &key("a").id(), "mine").unwrap();
    assert_eq!(put_one(&work, "a", "two"), path);
    assert_eq!(fs::read(path.join("file")).unwrap(), b"two");
    assert_eq!(Seal::read(&path).unwrap().names, ["mine"]);
    let left: Vec<_> =
        fs::read_dir(dir.path().join("things")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("removed")), "{left:?}");
}

#[test]
fn only_plain_names_are_removed_and_an_interrupted_removal_blocks_nothing() {
    let (dir, work) = work();
    fs::create_dir_all(dir.path().join("elsewhere")).unwrap();
    for bad in ["../elsewhere", "..", ".", "", "a/b", "/etc", ".hidden"] {
        assert!(matches!(work.remove("things", bad), Err(Error::BadId { .. })), "{bad}");
    }
    assert!(dir.path().join("elsewhere").is_dir());
    put_one(&work, "a", "text");
    // The remains of a killed removal.
    fs::create_dir(dir.path().join("things").join(format!("{REMOVED}{}.1-0", key("a").id()))).unwrap();
    assert!(work.remove("things", &key("a").id()).unwrap());
    assert!(!work.remove("things", &key("a").id()).unwrap());
    put_one(&work, "a", "text");
    assert_eq!(work.list("things").unwrap().len(), 1);
}

#[test]
fn a_result_made_of_links_to_another_leaves_that_one_alone() {
    let (_dir, work) = work();
    let first = put_one(&work, "a", "text");
    let staged = work.stage("things", &key("b")).unwrap();
    for name in ["file", RESULT_FILE, SUMS_FILE] {
        fs::hard_link(first.join(name), staged.path().join(name)).unwrap();
    }
    fs::write(staged.path().join("more"), "text").unwrap();
    let second = staged.publish().unwrap();
    checked(&first, &[]).unwrap();
    checked(&second, &[]).unwrap();
}

/// The linked files are sealed with the original's hashes, so damage of the original is found in
/// both.
#[test]
fn links_to_a_sealed_result_are_vouched_for_by_that() {
    let (_dir, work) = work();
    let linked = |value: &str| {
        let original = put_one(&work, &format!("original of {value}"), value);
        let mut staged = work.stage("things", &key(value)).unwrap();
        fs::hard_link(original.join("file"), staged.path().join("file")).unwrap();
        fs::create_dir(staged.path().join("below")).unwrap();
        fs::write(staged.path().join("below/other"), "its own").unwrap();
        fs::write(staged.path().join("more"), "its own").unwrap();
        staged.links_to(&original);
        (original, staged)
    };
    let (original, staged) = linked("a");
    let path = staged.publish().unwrap();
    let sums = checked(&path, &[]).unwrap().sums(&path).unwrap();
    let hashed = ["file", "below/other", "more"].map(|name| crate::hash_file(&path.join(name)).unwrap());
    assert_eq!(
        sums.into_values().collect::<Vec<_>>(),
        [&hashed[1], &hashed[0], &hashed[2]].map(String::clone)
    );
    checked(&original, &[]).unwrap();

    let (original, staged) = linked("b");
    fs::write(original.join("file"), "forged").unwrap();
    let path = staged.publish().unwrap();
    for path in [original, path] {
        let error = checked(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("file is not the file that was written"), "{error}");
    }
}

#[test]
fn what_is_loose_may_change() {
    let (_dir, work) = work();
    let mut staged = work.stage("things", &key("a")).unwrap();
    fs::create_dir(staged.path().join("build")).unwrap();
    fs::write(staged.path().join("file"), "text").unwrap();
    staged.loose("build");
    let path = staged.publish().unwrap();
    fs::write(path.join("build/object"), "x").unwrap();
    checked(&path, &[]).unwrap();
    fs::remove_dir_all(path.join("build")).unwrap();
    checked(&path, &["file"]).unwrap();
}

#[test]
fn b3sums_lines_are_those_of_the_tool() {
    // `printf text | b3sum`
    let (_dir, work) = work();
    let path = put_one(&work, "a", "text");
    let sums = fs::read_to_string(path.join(SUMS_FILE)).unwrap();
    let hash = blake3::hash(b"text").to_hex();
    assert_eq!(sums, format!("{hash}  below/other\n{hash}  file\n"));
}

#[test]
fn names_that_are_not_plain_text_are_not_sealed() {
    use std::os::unix::ffi::OsStringExt;
    for name in [b"a\xff".to_vec(), b"a\nb".to_vec()] {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage("examples", &Key::new("example/1", "")).unwrap();
        fs::write(staged.path().join(std::ffi::OsString::from_vec(name)), "x").unwrap();
        let error = staged.publish().unwrap_err().to_string();
        assert!(error.contains("is not plain text"), "{error}");
    }
}

#[test]
fn a_list_of_files_elsewhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let staged = work.stage("examples", &Key::new("example/1", "")).unwrap();
    fs::write(staged.path().join("file"), "x").unwrap();
    let path = staged.publish().unwrap();
    let seal = Seal::read(&path).unwrap();
    for line in ["../../etc/hostname", "/etc/hostname", "a/../../b"] {
        let text = format!("{}  {line}\n", blake3::hash(b"x").to_hex());
        fs::write(path.join(SUMS_FILE), &text).unwrap();
        let sums = blake3::hash(text.as_bytes()).to_hex().to_string();
        let mut forged = seal.clone();
        forged.sums = sums;
        assert!(forged.sums(&path).is_err() && forged.check(&path).is_err(), "{line}");
    }
}

#[test]
fn a_partial_directory_that_is_a_link_is_not_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path().join("work")).unwrap();
    let key = Key::new("test/1", "").field("x", "y");
    let victim = dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let partial = work.kind_dir("things").unwrap().join(format!("{}.partial", key.id()));
    std::os::unix::fs::symlink(&victim, &partial).unwrap();
    let staged = work.stage("things", &key).unwrap();
    fs::write(staged.path().join("file"), "text").unwrap();
    let whole = staged.publish().unwrap();
    assert!(whole.join("file").is_file() && fs::symlink_metadata(&whole).unwrap().is_dir());
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn reading_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("none");
    let work = WorkDir::open_for_reading(&at).unwrap();
    assert!(work.kinds().unwrap().is_empty() && work.list("things").unwrap().is_empty());
    assert!(crate::survey(&work, true, &mut |_| {}).unwrap().found.is_empty());
    assert!(work.find("things", "0123456789abcdef").is_none() && !at.exists());
    // A result that is made after all is found.
    put_one(&work, "a", "text");
    assert_eq!(WorkDir::open_for_reading(&at).unwrap().list("things").unwrap().len(), 1);
    fs::write(dir.path().join("file"), "").unwrap();
    for wrong in ["file", "file/below"] {
        let error = WorkDir::open_for_reading(dir.path().join(wrong)).unwrap_err().to_string();
        assert!(error.starts_with("cannot open work directory "), "{error}");
    }
}

#[test]
fn the_owner_of_a_directory_is_named() {
    let denied =
        || Error::Io { action: "open lock", path: "l".into(), source: ErrorKind::PermissionDenied.into() };
    let (init, own) = (Path::new("/proc/1/none"), tempfile::tempdir().unwrap());
    let (theirs, ours) = (owned_by_another(denied(), init), owned_by_another(denied(), own.path()));
    assert!(matches!(ours, Error::Io { .. }));
    if !rustix::process::geteuid().is_root() {
        assert!(
            theirs.to_string().starts_with("cannot write in /proc/1, which belongs to root: "),
            "{theirs}"
        );
    }
    assert_eq!((user_name(0), user_name(4_194_305)), ("root".into(), "user 4194305".into()));
}

#[test]
fn a_dry_run_finds_results_and_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    let dry = WorkDir::open_for_dry_run(&root).unwrap();
    assert!(matches!(dry.stage("things", &key("a")), Err(Error::DryRun { .. })));
    dry.kind_dir("things").unwrap();
    assert!(!root.exists());
    assert!(dry.take_missing() && !dry.take_missing());

    let made = put_one(&WorkDir::open(&root).unwrap(), "a", "text");
    let entries = || fs::read_dir(root.join("things")).unwrap().count();
    let before = entries();
    let dry = WorkDir::open_for_dry_run(&root).unwrap();
    let staged = dry.stage("things", &key("a")).unwrap();
    assert_eq!((staged.already(), dry.take_missing()), (Some(made), false));
    // What is to be made again although it is there is missing, too.
    assert!(staged.clear().is_err() && dry.take_missing());
    assert!(fs::write(staged.path().join("file"), "").is_err() && dry.take_missing());
    drop(staged);
    dry.add_name("things", &key("a").id(), "name").unwrap();
    assert!(dry.stage("things", &key("b")).is_err());
    assert_eq!(entries(), before);
}
