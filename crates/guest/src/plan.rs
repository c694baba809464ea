//! The plan that init reads: one directive per line, fields separated by tabs.

use crate::workload::{with_seed, Command, Probe, LIMIT_SECONDS};
use crate::Workload;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// What init is told to do, as text.
///
/// `guest/init/plan.c` reads it; `guest/README.md` lists the directives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    text: String,
    /// What `{seed}` in a command is.
    seed: u32,
}

impl Plan {
    /// The plan of a workload: common part, then a section for each run.
    pub fn of(workload: &Workload) -> Self {
        Self::with_env(workload, &BTreeMap::new())
    }

    /// As [`Plan::of`], with environment that the image itself needs; the workload's own wins.
    pub(crate) fn with_env(workload: &Workload, image: &BTreeMap<String, String>) -> Self {
        let mut plan = Self { text: "kerntune-plan\t1\n".into(), seed: workload.seed };
        let mut env = image.clone();
        env.extend(workload.env.clone());
        for (key, value) in &env {
            plan.line(["env", &format!("{key}={value}")]);
        }
        plan.line(["limit", &LIMIT_SECONDS.to_string()]);
        if let Some(disk) = &workload.disk {
            plan.command(&["setup"], &disk.command());
        }
        for command in &workload.setup {
            plan.command(&["setup"], command);
        }
        for service in &workload.services {
            plan.command(&["service", &service.name], &service.command);
            let within = service.ready.within_seconds.to_string();
            let name = service.name.as_str();
            match &service.ready.probe {
                Probe::Tcp(port) => plan.line(["ready", name, "tcp", &port.to_string(), &within]),
                Probe::Unix(path) => plan.line(["ready", name, "unix", path, &within]),
                Probe::File(path) => plan.line(["ready", name, "file", path, &within]),
                Probe::Command(command) => plan.command(&["ready", name, "command", &within], command),
            }
        }
        for (name, run) in workload.runs() {
            plan.line(["run", name]);
            let mut limit = LIMIT_SECONDS;
            for command in &run.warmup {
                plan.command(&["warmup"], command);
            }
            for step in &run.steps {
                let wanted = step.limit_seconds.unwrap_or(LIMIT_SECONDS);
                if wanted != limit {
                    limit = wanted;
                    plan.line(["limit", &limit.to_string()]);
                }
                let region = step.region.as_deref().unwrap_or("-");
                let operations = step.operations.unwrap_or(0).to_string();
                plan.command(&["step", region, &operations], &step.command);
            }
        }
        plan
    }

    /// The file's contents.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn line<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) {
        let fields: Vec<&str> = fields.into_iter().collect();
        let _ = writeln!(self.text, "{}", fields.join("\t"));
    }

    fn command(&mut self, head: &[&str], command: &Command) {
        let command = with_seed(command, self.seed);
        self.line(head.iter().copied().chain(command.iter().map(String::as_str)));
    }
}

/// The member of the result stream that holds what step `n` (from 1) of a run printed.
pub fn step_log(run: &str, n: usize, command: &[String]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program: Vec<u8> = program.unwrap_or_default().as_encoded_bytes().iter().copied().take(100).collect();
    format!("{run}-{n}-{}.log", String::from_utf8_lossy(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rewrite with `KERNTUNE_BLESS=1 cargo test -p kerntune-guest plan`.
    #[test]
    fn the_plan_of_every_directive_is_as_it_was() {
        let text = include_str!("../fixtures/every-key.toml");
        let plan = Plan::of(&Workload::parse(text, Path::new("every-key.toml")).unwrap());
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/every-key.plan");
        if std::env::var_os("KERNTUNE_BLESS").is_some() {
            std::fs::write(&golden, plan.text()).unwrap();
        }
        assert_eq!(plan.text(), std::fs::read_to_string(golden).unwrap());
    }

    #[test]
    fn a_command_has_the_seed_where_it_asks_for_it() {
        let text = "[[measured.step]]\ncommand = [\"rr\", \"--seed\", \"{seed}\", \"{other}\"]\n";
        let workload = Workload::parse(text, Path::new("mine.toml")).unwrap();
        assert!(workload.takes_seed("measured") && !workload.takes_seed("training"));
        assert!(Plan::of(&workload).text().ends_with("rr\t--seed\t1\t{other}\n"));
        assert!(Plan::of(&workload.with_seed(7)).text().ends_with("rr\t--seed\t7\t{other}\n"));
    }

    #[test]
    fn logs_are_named_as_init_names_them() {
        assert_eq!(
            step_log("measured", 2, &["/usr/bin/redis-benchmark".into()]),
            "measured-2-redis-benchmark.log"
        );
        assert_eq!(step_log("training", 1, &["rr".into(), "--seed".into()]), "training-1-rr.log");
    }
}
