//! `kerntune kernel bisect`: a kernel in which one object was compiled wrongly.

use crate::support::{self, json, work_dir};
use kerntune_kernel::{find, Kernel, ObjectMixer};
use kerntune_work::{NoProgress, WorkDir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A flag that gives different, but correct code.
const DIFFERENT: &str = "-fno-tree-vrp";
/// A flag that gives functions with another calling convention than their callers expect; the
/// compiler does not warn.
const WRONG: &str = "-mabi=ms";
const CULPRIT: &str = "fs/namei.o";
/// Objects that are compiled again, including the culprit.
const OBJECTS: [&str; 12] = [
    "fs/attr.o",
    "fs/dcache.o",
    "fs/exec.o",
    "fs/file.o",
    "fs/inode.o",
    CULPRIT,
    "fs/open.o",
    "fs/pipe.o",
    "fs/read_write.o",
    "kernel/exit.o",
    "kernel/signal.o",
    "mm/mmap.o",
];

/// A kernel made by the test, and removed when dropped.
struct TemporaryKernel<'a>(&'a WorkDir, Kernel);

impl Drop for TemporaryKernel<'_> {
    fn drop(&mut self) {
        let _ = kerntune_kernel::remove(self.0, &self.1.manifest.id);
    }
}

#[test]
fn the_one_object_that_was_compiled_wrongly_is_found() {
    let work = WorkDir::open(work_dir()).unwrap();
    // The kernel that the tuned one was linked from, which has object files.
    let tuned = json(["tune", "--workload", "rr", "--recipe", "gcc-pgo+layout", "--json"]);
    let tuned = json(["kernel", "show", tuned["tuned"]["id"].as_str().unwrap(), "--json"]);
    let good = find(&work, tuned["base_id"].as_str().unwrap()).unwrap();
    let bad = broken(&work, &good);
    let label = bad.1.manifest.label.as_str();

    let found = json(["kernel", "bisect", label, "--json"]);
    assert_eq!(found["schema"], "kerntune-bisect/1");
    assert_eq!(found["good"], good.manifest.id);
    assert_eq!(found["objects"], OBJECTS.len());
    assert_eq!(found["failure"]["kind"], "does-not-boot", "{found}");
    let culprits = found["culprits"].as_array().unwrap();
    assert_eq!(culprits.len(), 1, "{found}");
    assert_eq!(culprits[0]["objects"], serde_json::json!([CULPRIT]));
    assert_eq!(found["excluded"][0]["path"], CULPRIT);
    // None, all, four halvings, the culprit alone, and all but the culprit.
    assert!(found["mixes"].as_u64().unwrap() <= 8, "{found}");

    // The object files of the good kernel are unchanged and in place.
    let mixer = ObjectMixer::open(&work, &good, &bad.1).unwrap();
    assert_eq!(mixer.objects().len(), OBJECTS.len());
    drop(mixer);
    assert_eq!(json(["kernel", "bisect", label, "--json"]), found, "found again");
    let text = support::run(["kernel", "bisect", label]);
    for line in ["culprit: fs/namei.o: the kernel does not boot", "[[exclude]]", "path = \"fs/namei.o\""] {
        assert!(text.contains(line), "{text}");
    }
    // A working kernel cannot be bisected.
    let sound = json(["kernel", "bisect", &good.manifest.id, "--json"]);
    assert_eq!((&sound["failure"], &sound["excluded"]), (&Value::Null, &serde_json::json!([])));
}

/// Links `good` with some objects compiled differently and one compiled wrongly, and registers the
/// result.
fn broken<'a>(work: &'a WorkDir, good: &Kernel) -> TemporaryKernel<'a> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let id = format!("{:016x}", now as u64);
    let directory = work.root().join("kernels").join(&id);
    // Another test may have moved the objects away, at most for the time of a build.
    let is_home = || {
        std::thread::sleep(Duration::from_secs(1));
        good.build_dir().is_some()
    };
    assert!(
        good.build_dir().is_some() || (0..1800).any(|_| is_home()),
        "the objects of {} are gone",
        good.manifest.label
    );
    let home = &good.dir;
    let copied =
        Command::new("cp").args(["-a", "--reflink=auto"]).arg(home).arg(&directory).status().unwrap();
    assert!(copied.success());
    let manifest = directory.join("kernel.json");
    let mut told: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    told["id"] = id.as_str().into();
    told["label"] = format!("broken-{id}").into();
    told["aliases"] = Value::Array(Vec::new());
    told["base_id"] = good.manifest.id.as_str().into();
    fs::write(&manifest, told.to_string()).unwrap();
    let links = source_beside(work, good, &directory);
    for object in OBJECTS {
        compile(&directory.join("build"), object, if object == CULPRIT { WRONG } else { DIFFERENT });
    }
    links.iter().for_each(|link| fs::remove_file(link).unwrap());
    let kept = directory.join("objects.b3");
    let names: String = fs::read_to_string(&kept).unwrap();
    let again = names.lines().map(|line| {
        let (_, name) = line.split_once("  ").unwrap();
        format!("{}  {name}\n", kerntune_work::hash_file(&directory.join("build").join(name)).unwrap())
    });
    let again: String = again.collect();
    fs::write(&kept, again).unwrap();
    let seal = || kerntune_work::seal(&directory, "kernels", &id, &["build"]).unwrap();
    seal();
    let bad = TemporaryKernel(work, Kernel::load(&directory).unwrap());
    let image = tempfile::tempdir().unwrap();
    let mut mixer = ObjectMixer::open(work, good, &bad.1).unwrap();
    assert_eq!(mixer.objects().iter().collect::<std::collections::BTreeSet<_>>().len(), OBJECTS.len());
    let all: Vec<usize> = (0..OBJECTS.len()).collect();
    mixer.link(&all, image.path(), "broken", &NoProgress).unwrap();
    for name in ["bzImage", "vmlinux", "System.map"] {
        fs::copy(image.path().join(name), directory.join(name)).unwrap();
    }
    seal();
    bad
}

/// Makes links to the source beside the build directory, where Kbuild's recorded commands expect
/// it.
fn source_beside(work: &WorkDir, kernel: &Kernel, directory: &Path) -> Vec<PathBuf> {
    let source = work.root().join("sources").join(&kernel.manifest.source.hash);
    let link = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let link = directory.join(entry.file_name());
        std::os::unix::fs::symlink(entry.path(), &link).ok().map(|()| link)
    };
    fs::read_dir(&source).unwrap().filter_map(link).collect()
}

/// Compiles an object with Kbuild's recorded command and one more flag.
fn compile(build: &Path, object: &str, flag: &str) {
    let path = Path::new(object);
    let noted = path.with_file_name(format!(".{}.cmd", path.file_name().unwrap().to_str().unwrap()));
    let text = fs::read_to_string(build.join(noted)).unwrap();
    let (_, command) = text.lines().next().unwrap().split_once(" := ").unwrap();
    let command = command.replacen(" -c -o ", &format!(" {flag} -c -o "), 1).replace("$(pound)", "#");
    // The wrapper of ccache, which is not on the path here.
    let command = command.replace(" kerntune-cc ", " ");
    assert!(command.contains(flag), "{command}");
    let made = Command::new("sh").args(["-c", &command]).current_dir(build).output().unwrap();
    assert!(made.status.success(), "{object}: {}", String::from_utf8_lossy(&made.stderr));
}
