//! The plan that init reads: one directive per line, fields separated by tabs.
//!
//! The format has two versions. In the second, `\\`, `\t` and `\n` in a field stand for a
//! backslash, a tab and a line end, so that an argument cannot become a field or a directive. Plans
//! that the first version can express use it, with an init that knows no other.

use crate::process_attributes::{ProcessAttributes, ResourceLimit};
use crate::tree::TreeNode;
use crate::workload::{with_seed, CommandLine, ReadinessProbe, LIMIT_SECONDS};
use crate::Workload;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Init's instructions, as text.
///
/// `embedded/guest/init/plan.c` parses it; `embedded/guest/README.md` lists the directives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitPlan {
    text: String,
    version: u8,
}

/// File in the guest with a command's standard input.
pub(crate) const INPUT: &str = "/kt/input";

/// Member of the result stream with the status of a command that ended with another than 0, in
/// decimal digits as a shell has it.
pub const EXIT_STATUS: &str = "exit-status";

/// File in the guest that lists the files without contents.
pub(crate) const STUBS: &str = "/kt/stubs";

/// Returns the content of [`STUBS`]: on each line size, `watched` or `free`, and path, separated by
/// tabs; `None` if there is no such file. `embedded/guest/init/command.c` reads it.
pub(crate) fn stubs(nodes: &BTreeMap<PathBuf, TreeNode>) -> Option<String> {
    let lines: Vec<String> = nodes
        .iter()
        .filter_map(|(path, node)| match node {
            TreeNode::Stub { size, is_watched } => {
                let watched = if *is_watched { "watched" } else { "free" };
                Some(format!("{size}\t{watched}\t{}\n", escaped(path.to_str()?)))
            }
            _ => None,
        })
        .collect();
    (!lines.is_empty()).then(|| lines.concat())
}

/// Directives, each a list of fields.
struct PlanDirectives {
    lines: Vec<Vec<String>>,
    version: u8,
    /// Replacement for `{seed}` in commands.
    seed: u32,
}

impl InitPlan {
    /// Creates the plan of a workload: a common part, then a section for each run.
    pub fn of(workload: &Workload) -> Self {
        Self::of_image(workload, &BTreeMap::new(), None)
    }

    /// Like [`InitPlan::of`], with environment variables that the image needs, and the day on which
    /// the clock begins at the earliest, counted from 1970-01-01. The workload's own variables take
    /// precedence.
    pub(crate) fn of_image(
        workload: &Workload,
        image: &BTreeMap<String, String>,
        first_day: Option<u32>,
    ) -> Self {
        let mut plan = PlanDirectives { lines: Vec::new(), version: 1, seed: workload.seed };
        if let Some(day) = first_day {
            plan.second(["clock", &day.to_string()]);
        }
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
                ReadinessProbe::Tcp(port) => plan.line(["ready", name, "tcp", &port.to_string(), &within]),
                ReadinessProbe::Unix(path) => plan.line(["ready", name, "unix", path, &within]),
                ReadinessProbe::File(path) => plan.line(["ready", name, "file", path, &within]),
                ReadinessProbe::Command(command) => {
                    plan.command(&["ready", name, "command", &within], command)
                }
            }
        }
        // These apply to the command, not to what runs before it.
        if let Some(context) = &workload.context {
            if let Some(directory) = context.directory.as_deref().and_then(Path::to_str) {
                plan.second(["directory", directory]);
            }
            if context.input.is_some() {
                plan.second(["input", INPUT]);
            }
            if let Some(ProcessAttributes { user, limits, umask }) = &context.process {
                let ids: Vec<String> = user.ids().map(|id| id.to_string()).collect();
                plan.second(["user"].into_iter().chain(ids.iter().map(String::as_str)));
                for ResourceLimit { resource, soft, hard } in limits {
                    let numbers = [resource.to_string(), soft.to_string(), hard.to_string()];
                    plan.second(["resource"].into_iter().chain(numbers.iter().map(String::as_str)));
                }
                plan.second(["umask", &format!("{umask:o}")]);
            }
            plan.second(["status", "any"]);
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
        plan.plan()
    }

    /// Returns the content of the plan's file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Checks whether the plan needs the init that reads the second version.
    pub(crate) fn is_escaped(&self) -> bool {
        self.version > 1
    }
}

impl PlanDirectives {
    fn line<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) {
        let fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
        if fields.iter().any(|field| field.contains(['\t', '\n'])) {
            self.version = 2;
        }
        self.lines.push(fields);
    }

    /// Adds a line that only the second version has.
    fn second<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) {
        self.line(fields);
        self.version = 2;
    }

    fn command(&mut self, head: &[&str], command: &CommandLine) {
        let command = with_seed(command, self.seed);
        self.line(head.iter().copied().chain(command.iter().map(String::as_str)));
    }

    fn plan(self) -> InitPlan {
        let mut text = format!("kerntune-plan\t{}\n", self.version);
        for fields in &self.lines {
            let line = match self.version {
                1 => fields.join("\t"),
                _ => fields.iter().map(|field| escaped(field)).collect::<Vec<_>>().join("\t"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        InitPlan { text, version: self.version }
    }
}

/// Escapes a field for the second version; `command_unescape` of `embedded/guest/init/command.c` is the
/// inverse.
fn escaped(field: &str) -> String {
    field.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

/// Name of the member of the result stream with the output of step `n` (from 1) of a run.
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
        let plan = InitPlan::of(&Workload::parse(text, Path::new("every-key.toml")).unwrap());
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
        assert!(InitPlan::of(&workload).text().ends_with("rr\t--seed\t1\t{other}\n"));
        assert!(InitPlan::of(&workload.with_seed(7)).text().ends_with("rr\t--seed\t7\t{other}\n"));
    }

    /// init's own parser returns what was written, for any bytes.
    #[test]
    fn arguments_of_any_bytes_come_back_from_inits_reader() {
        let arguments = [
            "sh",
            "-c",
            "true;\tcat x\nstep\tinjected\t7\tsh\n",
            "\\",
            "\\t",
            "\\\\n\n",
            "",
            "\t",
            "#",
            "a\\",
            "ü\r\u{1b}",
        ];
        let command: Vec<String> = arguments.iter().map(|word| word.to_string()).collect();
        let mut workload = Workload::of_command(&command, Path::new("/")).unwrap().workload;
        workload.env.insert("TEXT".into(), "one\ntwo\\".into());
        let plan = InitPlan::of(&workload);
        assert!(plan.is_escaped() && plan.text().starts_with("kerntune-plan\t2\n"));
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        put("plan", plan.text());
        put("init.h", include_str!("../../../embedded/guest/init/init.h"));
        put("command.h", include_str!("../../../embedded/guest/init/command.h"));
        put("command.c", include_str!("../../../embedded/guest/init/command.c"));
        put("plan.c", include_str!("../../../embedded/guest/init/plan.c"));
        put("main.c", READER);
        let program = dir.path().join("reader");
        let sources = ["main.c", "plan.c", "command.c"].map(|name| dir.path().join(name));
        let compiled =
            std::process::Command::new("gcc").args(sources).arg("-o").arg(&program).status().unwrap();
        assert!(compiled.success());
        let read = |plan: &str| {
            let output = std::process::Command::new(&program).arg(dir.path().join(plan)).output().unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        let (good, output) = read("plan");
        assert!(good, "{output}");
        let directives: Vec<Vec<&str>> =
            output.split_terminator('\u{2}').map(|one| one.split_terminator('\0').collect()).collect();
        assert_eq!(directives.len(), 5, "{directives:?}");
        assert_eq!(directives[0], ["TEXT=one\ntwo\\"]);
        assert_eq!(directives[2], ["any"]);
        assert_eq!(directives[4][..2], ["command", "1"]);
        assert_eq!(directives[4][2..], arguments);
        put("other", "kerntune-plan\t2\nenv\tA=\\x\n");
        assert_eq!(read("other").1, "plan line 2: field 1 has a backslash before nothing known");
    }

    /// Prints each directive's words, each ended by a NUL, and the directive by the byte 2.
    const READER: &str = r#"
        #include "init.h"
        #include <stdarg.h>
        #include <stdio.h>
        bool fail(const char *format, ...)
        {
            va_list list;
            va_start(list, format);
            vprintf(format, list);
            va_end(list);
            return false;
        }
        ssize_t read_text(const char *path, char *text, size_t size)
        {
            FILE *file = fopen(path, "r");
            size_t got = fread(text, 1, size - 1, file);
            text[got] = '\0';
            return (ssize_t)got;
        }
        int main(int argc, char **argv)
        {
            struct plan plan = { 0 };
            if (argc != 2 || !plan_read(argv[1], &plan))
                return 1;
            for (int i = 0; i < plan.count; i++) {
                for (int j = 0; j < plan.directive[i].count; j++) {
                    fputs(plan.directive[i].word[j], stdout);
                    putchar(0);
                }
                putchar(2);
            }
            return 0;
        }
    "#;

    #[test]
    fn logs_are_named_as_init_names_them() {
        assert_eq!(
            step_log("measured", 2, &["/usr/bin/redis-benchmark".into()]),
            "measured-2-redis-benchmark.log"
        );
        assert_eq!(step_log("training", 1, &["rr".into(), "--seed".into()]), "training-1-rr.log");
    }
}
