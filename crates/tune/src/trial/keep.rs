//! Output of kept changes, as files for a build and a machine.

use super::change::{text, TrialChange};
use crate::Result;
use kerntune_work::{read_file, write_atomic, IoContext};
use std::fs;
use std::path::Path;

/// Writes files into `directory`, which is created: `changes.toml` with the changes as they are, and
/// `fragment.config`, `command-line`, `sysctl.conf`, `environment`, `kcflags`, `recipe`, and
/// `patches/` with their `series`, as far as the changes need them. Older files that are no longer needed are removed.
///
/// # Errors
/// A file that cannot be written, or a patch that cannot be read.
pub fn keep(directory: &Path, changes: &[&TrialChange]) -> Result<()> {
    let patches = directory.join("patches");
    fs::create_dir_all(directory).at("create", directory)?;
    let lines = |of: &dyn Fn(&TrialChange) -> Vec<String>| -> String {
        changes.iter().flat_map(|change| of(change)).map(|line| line + "\n").collect()
    };
    let knobs = |change: &TrialChange| {
        change.sysctl.iter().map(|(knob, value)| format!("{knob} = {value}")).collect()
    };
    let line =
        |change: &TrialChange| Some(change.command_line.trim().to_owned()).filter(|line| !line.is_empty());
    let variables =
        |change: &TrialChange| change.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    for (name, text) in [
        ("fragment.config", lines(&|change| change.config.clone())),
        ("kcflags", lines(&|change| change.kcflags.clone())),
        ("command-line", lines(&|change| line(change).into_iter().collect())),
        ("sysctl.conf", lines(&knobs)),
        ("environment", lines(&variables)),
        ("recipe", lines(&|change| change.recipe.iter().cloned().collect())),
    ] {
        let path = directory.join(name);
        match text.is_empty() {
            false => write_atomic(&path, text.as_bytes())?,
            true => remove(&path)?,
        }
    }
    if let Err(error) = fs::remove_dir_all(&patches) {
        if error.kind() != std::io::ErrorKind::NotFound {
            return Ok(Err(error).at("remove", &patches)?);
        }
    }
    let mut kept: Vec<TrialChange> = changes.iter().map(|change| (*change).clone()).collect();
    let of_source =
        kept.iter_mut().flat_map(|change| change.patches.iter_mut().map(|patch| (&change.name, patch)));
    let mut series = String::new();
    for ((name, patch), number) in of_source.zip(1..) {
        fs::create_dir_all(&patches).at("create", &patches)?;
        let file = format!("{number:04}-{name}.patch");
        let bytes = read_file(&*patch).at("read", &*patch)?;
        write_atomic(&patches.join(&file), &bytes)?;
        *patch = Path::new("patches").join(&file);
        series += &(file + "\n");
    }
    if !series.is_empty() {
        write_atomic(&patches.join("series"), series.as_bytes())?;
    }
    let whole = directory.join("changes.toml");
    match kept.is_empty() {
        true => remove(&whole),
        false => Ok(write_atomic(&whole, text(kept).as_bytes())?),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Ok(Err(error).at("remove", path)?),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::change::parse;

    #[test]
    fn what_is_kept_can_be_given_to_a_build() {
        let dir = tempfile::tempdir().unwrap();
        let patch = dir.path().join("x.patch");
        fs::write(&patch, "--- a\n").unwrap();
        let one = TrialChange {
            name: "one".into(),
            config: vec!["CONFIG_A=y".into()],
            patches: vec![patch],
            ..TrialChange::default()
        };
        let two = TrialChange {
            name: "two".into(),
            command_line: " nohz=off ".into(),
            sysctl: [("vm.swappiness".into(), "0".into())].into(),
            setup: vec![vec!["echo".into(), "a \"b\"".into()]],
            service_arguments: [("redis-server".into(), vec!["--x".into()])].into(),
            wrap_steps: vec!["taskset".into(), "1".into()],
            ..TrialChange::default()
        };
        let out = dir.path().join("out");
        keep(&out, &[&one, &two]).unwrap();
        let read = |name: &str| fs::read_to_string(out.join(name)).ok();
        assert_eq!(read("fragment.config").as_deref(), Some("CONFIG_A=y\n"));
        assert_eq!(read("command-line").as_deref(), Some("nohz=off\n"));
        assert_eq!(read("sysctl.conf").as_deref(), Some("vm.swappiness = 0\n"));
        assert_eq!(read("patches/series").as_deref(), Some("0001-one.patch\n"));
        assert_eq!(read("patches/0001-one.patch").as_deref(), Some("--- a\n"));
        let file = out.join("changes.toml");
        let again = parse(&fs::read_to_string(&file).unwrap(), &file).unwrap();
        let there = TrialChange { patches: vec![out.join("patches/0001-one.patch")], ..one };
        assert_eq!(again, [there, two.clone()]);
        keep(&out, &[&two]).unwrap();
        assert_eq!((read("fragment.config"), read("patches/series")), (None, None));
    }
}
