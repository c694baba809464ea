//! git in untrusted trees: programs that a tree's configuration or attributes name are not run.
//!
//! Hooks, filters, text conversions, file monitors and transports are programs of the tree's
//! author. Settings of the user still apply if they run nothing for a tree: ownership of trees,
//! proxies, credentials.

use crate::{find_program, Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// Overrides of a tree's settings.
const SETTINGS: [(&str, &str); 11] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.attributesFile", "/dev/null"),
    ("core.autocrlf", "false"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
];

/// Environment variables of another git process that would affect a tree.
const FOREIGN: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_EXTERNAL_DIFF",
    "GIT_NAMESPACE",
    "GIT_CONFIG_PARAMETERS",
];

/// Settings of a filter that name a program, with harmless values.
const OF_FILTERS: [(&str, &str); 4] = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];

/// Prefix and suffix of local settings that name programs which a fetch runs.
const OF_FETCH: [(&str, &str); 8] = [
    ("core.sshcommand", ""),
    ("core.gitproxy", ""),
    ("core.askpass", ""),
    ("core.alternaterefscommand", ""),
    ("credential.", "helper"),
    ("remote.", ".uploadpack"),
    ("remote.", ".vcs"),
    ("protocol.", ".allow"),
];

/// Returns `git -C TREE`, to which the caller adds a command. It asks no questions, fetches no
/// missing objects, and runs no program that the tree names. For diffs the caller adds
/// `--no-ext-diff --no-textconv`, since git has no setting for these.
///
/// # Errors
/// git is missing.
pub fn git(tree: &Path) -> Result<Command> {
    let mut settings: Vec<(String, String)> =
        SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    for key in keys(tree)? {
        let driver = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'));
        let Some((driver, _)) = driver else { continue };
        settings.extend(
            OF_FILTERS.iter().map(|(last, value)| (format!("filter.{driver}.{last}"), (*value).to_owned())),
        );
    }
    settings.sort();
    settings.dedup();
    let mut command = bare(tree);
    // Passed by the environment, since a driver's name may contain `=`.
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (at, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    Ok(command)
}

/// Returns [`git`] for a repository of our own: configuration of the user and the system is ignored
/// as well.
///
/// # Errors
/// git is missing.
pub fn git_of_ours(tree: &Path) -> Result<Command> {
    let mut command = git(tree)?;
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1");
    Ok(command)
}

/// Returns the names of a tree's own settings by which a fetch would run a program.
///
/// # Errors
/// git is missing.
pub fn programs_of_fetch(tree: &Path) -> Result<Vec<String>> {
    let said = output_of(bare(tree).args([
        "config",
        "--list",
        "--null",
        "--name-only",
        "--show-scope",
        "--includes",
    ]))?;
    let mut words = said.split('\0');
    let mut found = Vec::new();
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        let names_one = |(start, end): &(&str, &str)| key.starts_with(start) && key.ends_with(end);
        if ["local", "worktree"].contains(&scope) && OF_FETCH.iter().any(names_one) {
            found.push(key.to_owned());
        }
    }
    found.dedup();
    Ok(found)
}

/// Lists the names of all settings that apply in a tree.
fn keys(tree: &Path) -> Result<Vec<String>> {
    let said = output_of(bare(tree).args(["config", "--list", "--null", "--name-only", "--includes"]))?;
    Ok(said.split('\0').map(str::to_owned).collect())
}

/// Returns git with a safe environment.
fn bare(tree: &Path) -> Command {
    let mut command = Command::new(find_program("git", &[]).unwrap_or_else(|| "git".into()));
    command.arg("-C").arg(tree).stdin(Stdio::null());
    FOREIGN.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_ALLOW_PROTOCOL", "https:http:git:ssh:file")
        .env_remove("GIT_CONFIG_COUNT");
    command
}

fn output_of(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command.output().map_err(|source| Error::Spawn { program, source })?;
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run(command: &mut Command) -> String {
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Each way in which a tree names a program would create a file; none does.
    #[test]
    fn a_tree_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let ran = dir.path().join("ran");
        run(git(&tree).unwrap().args(["init", "--quiet"]));
        fs::write(tree.join(".gitattributes"), "*.c filter=x=y diff=z\n").unwrap();
        fs::write(tree.join("a.c"), "one\n").unwrap();
        run(git(&tree).unwrap().args(["add", "--all"]));
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        run(git(&tree).unwrap().args(identity).args(["commit", "--quiet", "-m", "one"]));
        let touch = format!("touch {}; cat", ran.display());
        let mut config = fs::read_to_string(tree.join(".git/config")).unwrap();
        config.push_str(&format!(
            "[core]\n\tfsmonitor = {touch}\n\tpager = {touch}\n\tsshCommand = {touch}\n\
             [filter \"x=y\"]\n\tclean = {touch}\n\tsmudge = {touch}\n\tprocess = {touch}\n\trequired = true\n\
             [diff]\n\texternal = {touch}\n[diff \"z\"]\n\tcommand = {touch}\n\ttextconv = {touch}\n\
             [remote \"origin\"]\n\turl = ext::sh -c touch% {}\n\tuploadpack = {touch}\n[protocol \"ext\"]\n\tallow = always\n",
            ran.display()
        ));
        fs::write(tree.join(".git/config"), config).unwrap();
        for hook in ["post-checkout", "pre-commit", "post-index-change"] {
            use std::os::unix::fs::PermissionsExt;
            let path = tree.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(tree.join("a.c"), "two\n").unwrap();
        let diff =
            run(git(&tree).unwrap().args(["diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"]));
        assert!(diff.contains("+two"), "{diff}");
        run(git(&tree).unwrap().args(["ls-files", "--others"]));
        run(git(&tree).unwrap().args(["log", "-1", "--format=%cI %s"]));
        run(git(&tree).unwrap().args(["cat-file", "blob", "HEAD:a.c"]));
        run(git(&tree).unwrap().args(["archive", "HEAD"]));
        run(git(&tree).unwrap().args(["checkout", "--quiet", "--force", "HEAD"]));
        assert!(!git(&tree).unwrap().args(["fetch", "origin"]).output().unwrap().status.success());
        assert!(!ran.exists());
        let found = programs_of_fetch(&tree).unwrap();
        assert_eq!(found, ["core.sshcommand", "remote.origin.uploadpack", "protocol.ext.allow"]);
    }
}
