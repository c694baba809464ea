//! Packages that this machine's apt lists have, for advice.

use kerntune_work::find_program;
use std::process::Command;

/// Number of versions that advice names.
const NAMED: usize = 6;

/// Returns the advice that installs packages: a command, or which of them the apt lists lack and
/// what they have instead.
///
/// A package counts as lacking if the lists have others whose names differ in the version alone.
pub fn install_advice(packages: &[String]) -> String {
    install_advice_by(packages, &names)
}

fn install_advice_by(packages: &[String], names: &dyn Fn(&str) -> Vec<String>) -> String {
    let lacking: Vec<(&String, Vec<String>)> = packages
        .iter()
        .filter_map(|package| {
            let others = versions(package, names)?;
            (!others.is_empty() && !others.contains(package)).then_some((package, others))
        })
        .collect();
    let Some((_, first)) = lacking.first() else {
        return format!("run `apt-get install {}`", packages.join(" "));
    };
    let absent: Vec<&str> = lacking.iter().map(|(package, _)| package.as_str()).collect();
    format!(
        "this machine's apt lists have no {}; they have {}",
        absent.join(", "),
        first.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")
    )
}

/// Returns the packages that differ from one in the version at the end of the name alone, newest
/// first; `None` if its name ends with no version.
fn versions(package: &str, names: &dyn Fn(&str) -> Vec<String>) -> Option<Vec<String>> {
    let (family, version) = package.rsplit_once('-')?;
    numbers(version)?;
    let begin = format!("{family}-");
    let mut all: Vec<(Vec<u32>, String)> = names(&begin)
        .into_iter()
        .filter_map(|name| Some((numbers(name.strip_prefix(&begin)?)?, name)))
        .collect();
    all.sort();
    all.dedup();
    Some(all.into_iter().rev().map(|(_, name)| name).collect())
}

/// Parses `6.12` and `22`.
fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

/// Lists the packages whose names begin so; none where there is no apt.
fn names(begin: &str) -> Vec<String> {
    let Some(apt) = find_program("apt-cache", &[]) else { return Vec::new() };
    let listed = Command::new(apt).args(["pkgnames", begin]).env("LC_ALL", "C").output();
    let listed = listed.ok().filter(|listed| listed.status.success());
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(begin: &str) -> Vec<String> {
        let known =
            ["clang-9", "clang-22", "clang-19", "clang-tidy-22", "linux-source-6.1", "linux-source-6.12"];
        known.iter().filter(|name| name.starts_with(begin)).map(ToString::to_string).collect()
    }

    #[test]
    fn only_packages_that_exist_are_named() {
        let advice = |packages: &[&str]| {
            install_advice_by(&packages.iter().map(ToString::to_string).collect::<Vec<_>>(), &lists)
        };
        assert_eq!(advice(&["clang-19", "make"]), "run `apt-get install clang-19 make`");
        assert_eq!(
            advice(&["clang-23"]),
            "this machine's apt lists have no clang-23; they have clang-22, clang-19, clang-9"
        );
        assert_eq!(
            advice(&["linux-source-6.18"]),
            "this machine's apt lists have no linux-source-6.18; they have linux-source-6.12, linux-source-6.1"
        );
        // Lists that were never fetched say nothing.
        assert_eq!(advice(&["gcc-99"]), "run `apt-get install gcc-99`");
        assert_eq!(advice(&["libssl-dev"]), "run `apt-get install libssl-dev`");
    }
}
