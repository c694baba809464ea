//! Bundle that repeats a proof elsewhere: kernels, profile, workload, results, and a script.

use super::ProveOptions;
use kerntune_command::Failure;
use kerntune_guest::{ImageManifest, SHIPPED};
use kerntune_kernel::Kernel;
use kerntune_tune::package::profile_of;
use kerntune_work::{checked, copy_directory, write_atomic, write_json, IoContext, WorkDir};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directory of results in a bundle.
pub(super) const RESULTS: &str = "results";
/// Directory below [`RESULTS`] with the times of every boot, a file for each kernel.
pub(super) const TIMES: &str = "times";
/// Script that repeats the proof.
const SCRIPT: &str = "repeat.sh";
/// Manifest of the guest image.
const GUEST: &str = "guest.json";

/// Contents of a bundle.
pub(super) struct ProofBundle<'a> {
    pub work: &'a WorkDir,
    pub directory: &'a Path,
    pub kernels: [&'a Kernel; 2],
    /// The workload as given on the command line: a name or a file.
    pub workload: &'a str,
    pub name: &'a str,
    pub machine: &'static str,
    pub image: ImageManifest,
    pub options: &'a ProveOptions,
}

impl ProofBundle<'_> {
    /// Writes everything except the results, which already exist.
    pub fn write(&self, paragraph: &str, tables: &str, timed: bool, exact: bool) -> Result<(), Failure> {
        let [base, tuned] = self.kernels;
        for (kernel, name) in [(base, "base"), (tuned, "tuned")] {
            let to = self.directory.join(name);
            // If the proof is repeated from inside the bundle, the kernel is already there.
            if fs::canonicalize(&to).ok() != fs::canonicalize(&kernel.dir).ok() || !to.is_dir() {
                checked(&kernel.dir, &[])?;
                copy(&kernel.dir, &to)?;
            }
        }
        if let Some(profile) = profile_of(self.work, tuned)? {
            copy(&profile.dir, &self.directory.join("profile"))?;
        }
        let workload = self.directory.join(format!("{}.toml", self.name));
        let text = match SHIPPED.iter().find(|(name, _)| *name == self.workload) {
            Some((_, text)) if !Path::new("workloads").join(format!("{}.toml", self.workload)).is_file() => {
                (*text).to_owned()
            }
            _ => {
                let file = match self.workload.ends_with(".toml") || self.workload.contains('/') {
                    true => PathBuf::from(self.workload),
                    false => Path::new("workloads").join(format!("{}.toml", self.workload)),
                };
                fs::read_to_string(&file).at("read", &file)?
            }
        };
        write_atomic(&workload, text.as_bytes())?;
        write_json(&self.directory.join(RESULTS).join(GUEST), &self.image)?;
        write_atomic(&self.directory.join("README.md"), self.readme(paragraph, tables).as_bytes())?;
        let script = self.directory.join(SCRIPT);
        write_atomic(&script, self.script(timed, exact).as_bytes())?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).at("mark as a program", &script)?;
        Ok(())
    }

    /// Returns the options that choose the machine again.
    fn machine_argument(&self) -> String {
        #[cfg(feature = "deploy")]
        if let Some(on) = self.options.on.to_argument() {
            return on;
        }
        format!("--machine {}", self.machine)
    }

    fn readme(&self, paragraph: &str, tables: &str) -> String {
        let [base, tuned] = self.kernels.map(|kernel| &kernel.manifest);
        let recipe = tuned.recipe.as_deref().unwrap_or("none");
        format!(
            "# {tuned_label} against {base_label}, running {name}\n\n{paragraph}\n\n```text\n{tables}\n```\n\n\
             | | base | tuned |\n|---|---|---|\n| kernel | {base_label} ({base_id}) | {tuned_label} ({tuned_id}) |\n\
             | version | {} | {} |\n| compiler | {} | {} |\n| recipe | none | {recipe} |\n| guest | {image} | {image} |\n\n\
             `./repeat.sh DIR` repeats the proof and writes DIR, a directory like this one. It needs kerntune {version} and the packages \
             whose programs the workload runs. If the guest is the same (`results/guest.json`), figures of the emulator are the same to the \
             instruction. Times are pooled with those here and judged together. The tuned kernel was made from `profile/`.\n",
            base.version,
            tuned.version,
            base.compiler.version,
            tuned.compiler.version,
            name = self.name,
            base_label = base.label,
            tuned_label = tuned.label,
            base_id = base.id,
            tuned_id = tuned.id,
            image = self.image.id,
            version = env!("CARGO_PKG_VERSION"),
        )
    }

    fn script(&self, timed: bool, exact: bool) -> String {
        let [base, tuned] = self.kernels.map(|kernel| &kernel.manifest.label);
        let ProveOptions { until_width, budget, runs, interval, .. } = self.options;
        let machine = self.machine_argument();
        let mut text = format!(
            "#!/bin/bash\n\
             # Repeats what README.md says, with the kernels of this directory: ./repeat.sh DIR\n\
             # KERNTUNE is the program (kerntune in the PATH).\n\
             set -euo pipefail\n\
             here=$(cd \"$(dirname \"$0\")\" && pwd)\n\
             out=${{1:?usage: repeat.sh DIR}}\n\
             kerntune=${{KERNTUNE:-kerntune}}\n\
             status=0\n\
             \"$kerntune\" prove \"$here/base\" \"$here/tuned\" --workload \"$here/{name}.toml\" {machine} \\\n    \
             --until-width {width}% --budget {budget} --runs {runs}{interval}{model} --output \"$out\"\n",
            name = self.name,
            width = until_width * 100.0,
            interval = interval.to_argument(),
            model = self.options.model.to_argument(),
        );
        text += "guest() { sed -n 's/^  \"id\": \"\\(.*\\)\",$/\\1/p' \"$1/results/guest.json\"; }\n\
                 if [[ $(guest \"$here\") != $(guest \"$out\") ]]; then\n    \
                 echo 'repeat: the programs of the guest are not the same here (results/guest.json): exact figures differ, too' >&2\n    \
                 status=1\nfi\n";
        if exact {
            text += "if cmp -s \"$here/results/exact.json\" \"$out/results/exact.json\"; then\n    \
                     echo 'repeat: every exact figure is the same'\n\
                     else\n    echo 'repeat: exact figures differ: results/exact.json of both directories' >&2\n    status=1\nfi\n";
        }
        if timed {
            text += &format!(
                "echo 'repeat: both together:'\n\
                 \"$kerntune\" bench compare \"$here/results/times/{base}.json\" \"$here/results/times/{tuned}.json\" --aa \"$here/results/times/{base}-again.json\" \\\n    \
                 --base \"$out/results/times/{base}.json\" --tuned \"$out/results/times/{tuned}.json\" --aa \"$out/results/times/{base}-again.json\"{interval}\n",
                interval = interval.to_argument(),
            );
        }
        text + "exit \"$status\"\n"
    }
}

/// Copies a result; verifies its files before and after.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let seal = checked(from, &[])?;
    copy_directory(from, to, &seal.loose)?;
    checked(to, &[])?;
    Ok(())
}
