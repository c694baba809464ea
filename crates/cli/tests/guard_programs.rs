//! `kerntune guard check --program`: planted regressions of a program, and changes that are none.

use crate::support::{base_kernel, checkout, fails, json, kerntune, run, said};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const WORKLOAD: &str = "[copies]\n\"/opt/words\" = \"words\"\n[[measured.step]]\nregion = \"words\"\n\
    operations = 200\ncommand = [\"/opt/words\", \"200\"]\n";

struct ProgramFixture {
    dir: tempfile::TempDir,
    source: String,
}

impl ProgramFixture {
    /// Builds the program, and records its figures.
    fn recorded() -> Self {
        let source = fs::read_to_string(checkout().join("crates/cli/tests/guard_programs/words.c")).unwrap();
        let fixture = Self { dir: tempfile::tempdir().unwrap(), source };
        fs::write(fixture.path("guard.toml"), "[[workload]]\nname = \"words.toml\"\n").unwrap();
        fs::write(fixture.path("words.toml"), WORKLOAD).unwrap();
        fixture.build(&fixture.source);
        run(fixture.words("record", &["--kernel", &base_kernel()]));
        fixture
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn words<'a>(&self, command: &'a str, words: &[&'a str]) -> Vec<String> {
        let file = self.path("guard.toml");
        let all = [&["guard", command, "--program", "--file", &file], words].concat();
        all.into_iter().map(String::from).collect()
    }

    fn build(&self, source: &str) {
        fs::write(self.path("words.c"), source).unwrap();
        let gcc = ["-O2", "-g", "-o", "words", "words.c"];
        let status = Command::new("gcc").current_dir(self.dir.path()).args(gcc).status().unwrap();
        assert!(status.success(), "{source}");
    }

    fn build_with(&self, from: &str, to: &str) {
        let changed = self.source.replacen(from, to, 1);
        assert_ne!(changed, self.source, "{from}");
        self.build(&changed);
    }

    fn check(&self, words: &[&str], status: i32) -> Value {
        let mut command = kerntune(self.words("check", &[words, &["--json"]].concat()));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn row(check: &Value) -> &Value {
    &check["cells"][0]["rows"][0]
}

/// Returns the figures that grew.
fn grew(check: &Value) -> Vec<&str> {
    let figures = row(check)["figures"].as_array().unwrap();
    figures.iter().filter(|of| of["grew"] == true).map(|of| of["metric"].as_str().unwrap()).collect()
}

/// Returns the largest change of a figure.
fn first<'c>(check: &'c Value, metric: &str) -> &'c Value {
    let changes = row(check)["changes"].as_array().unwrap();
    changes.iter().find(|change| change["metric"] == metric).unwrap_or_else(|| panic!("{metric}: {check:#}"))
}

#[test]
fn planted_regressions_of_a_program_are_found_and_named() {
    let program = ProgramFixture::recorded();
    assert_eq!(grew(&program.check(&[], 0)), [""; 0]);

    // A tenth of a per cent more user code.
    program.build_with(
        "return sum;",
        "for (int i = 0; i < 9; i++)\n\t\t__asm__ volatile(\"nop\");\n\treturn sum;",
    );
    let check = program.check(&[], 1);
    assert_eq!(grew(&check), ["user"], "{check:#}");
    let user = row(&check)["figures"].as_array().unwrap().iter().find(|of| of["metric"] == "user").unwrap();
    let change = user["change_percent"].as_f64().unwrap();
    assert!((0.02..0.2).contains(&change), "{change}");
    let parse = first(&check, "user");
    assert_eq!((&parse["name"], &parse["place"]["file"]), (&"parse".into(), &"words.c".into()));
    let line = parse["place"]["line"].as_u64().unwrap() as usize;
    let text = fs::read_to_string(program.path("words.c")).unwrap();
    // Code begins at the brace below the name.
    assert_eq!(text.lines().nth(line - 1), Some("{"));
    assert!(text.lines().nth(line - 2).unwrap().contains("parse("), "line {line}");

    // A system call more.
    program.build_with("\t\texit(1);", "\t\texit(1);\n\tlseek(fd, 0, SEEK_CUR);");
    let check = program.check(&[], 1);
    assert!(grew(&check).contains(&"system-calls"), "{check:#}");
    let call = first(&check, "system-calls");
    assert_eq!(
        (&call["name"], &call["caller"], &call["values"]),
        (&"lseek".into(), &"answer".into(), &serde_json::json!([0.0, 1.0]))
    );

    // A page more of memory, and every format for CI systems.
    program.build_with("memory[0] = 1;", "memory[0] = memory[8192] = 1;");
    let files = ["a.xml", "a.sarif", "a.json", "a.md"].map(|name| program.path(name));
    let [junit, sarif, quality, summary] = &files;
    let formats = ["--junit", junit, "--sarif", sarif, "--code-quality", quality, "--summary", summary];
    let check = program.check(&formats, 1);
    assert!(grew(&check).contains(&"memory-faults"), "{check:#}");
    let fault = first(&check, "memory-faults");
    assert_eq!((&fault["name"], &fault["caller"]), (&"memory".into(), &"scratch".into()));
    let [junit, sarif, quality, summary] = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    assert!(junit.contains("<failure message=\"memory faults: "), "{junit}");
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "words.c", "{sarif:#}");
    assert!(quality.contains("\"path\": \"words.c\"") && summary.contains("memory by scratch +1.000"));
    let output = kerntune(program.words("check", &["--annotations"])).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("::error file=words.c,line="), "{log}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("GREW") && text.contains("words.c:"), "{text}");
}

#[test]
fn comments_and_unrelated_functions_raise_nothing() {
    let program = ProgramFixture::recorded();
    let many = |count: usize| -> String {
        (0..count).map(|i| format!("int f{i}(int x)\n{{\n\treturn x * {i} + x / (x + {i});\n}}\n")).collect()
    };
    let behind = |text: &str| format!("{}{text}", program.source);
    let before = |text: &str| program.source.replacen("#define", &format!("{text}\n#define"), 1);
    let changes = [
        before("/* A comment.\n * Of several lines. */"),
        behind("/* A comment behind all. */\n"),
        program.source.replace("sum += word;", "sum += word; // of a line"),
        behind("int unused(int a)\n{\n\treturn a * 3 + 1;\n}\n"),
        before("int unused_before(int a)\n{\n\treturn a ^ a << 3;\n}\n"),
        behind(&many(40)),
        behind(&many(400)),
        behind("const char table[5000] = \"abc\";\nconst char *entry(int i)\n{\n\treturn table + i;\n}\n"),
        behind("char pool[20000];\nchar *take(int i)\n{\n\treturn pool + i;\n}\n"),
        behind("int other(const char *text)\n{\n\treturn puts(text) + printf(\"%d\", 3);\n}\n"),
    ];
    for source in changes {
        program.build(&source);
        let check = program.check(&[], 0);
        assert_eq!(check["findings"], 0, "{source}\n{check:#}");
    }
}

#[test]
fn figures_of_anything_else_than_another_program_are_refused() {
    let program = ProgramFixture::recorded();
    let refuse =
        |status: i32, words: &[&str]| fails(&mut kerntune(program.words("check", &[])), status, words);
    let baseline = program.path("guard-baseline.json");
    let figures = fs::read_to_string(&baseline).unwrap();

    // The same program with other figures.
    let mut changed: Value = serde_json::from_str(&figures).unwrap();
    changed["cells"][0]["rows"][0]["user_instructions"] = 1.into();
    fs::write(&baseline, changed.to_string()).unwrap();
    refuse(7, &["the file was changed"]);

    // Another file of the guest, and another workload.
    changed = serde_json::from_str(&figures).unwrap();
    changed["cells"][0]["inputs"]["files"]["/etc/hosts"] = "0".into();
    fs::write(&baseline, changed.to_string()).unwrap();
    refuse(7, &["/etc/hosts changed in the guest, beside the program", "guard record --program"]);
    fs::write(&baseline, &figures).unwrap();
    fs::write(program.path("words.toml"), WORKLOAD.replace("200", "100")).unwrap();
    refuse(7, &["words.toml changed"]);
    fs::write(program.path("words.toml"), WORKLOAD).unwrap();

    // Figures of kernels, and of no kernel that is here.
    fs::write(&baseline, "{\"schema\": \"kerntune-guard/1\", \"cells\": []}").unwrap();
    refuse(2, &["kerntune-guard/1", "kerntune-guard-program/1"]);
    fs::write(&baseline, "{\"schema\": \"kerntune-guard-program/1\", \"cells\": []}").unwrap();
    refuse(2, &["guard-baseline.json has no figures of one kernel"]);
    fs::write(&baseline, &figures).unwrap();

    // Programs that cannot be guarded.
    let guard = |program_key: &str| {
        let text = format!("[[workload]]\nname = \"words.toml\"\n{program_key}");
        fs::write(program.path("guard.toml"), text).unwrap();
    };
    guard("program = [\"absent\"]\n");
    refuse(2, &["no file absent"]);
    guard("program = [\"\"]\n");
    refuse(2, &["guard.toml:3:12: workload[0].program: \"\" is no file"]);
    guard("");
    let shell = WORKLOAD.replace("[\"/opt/words\", \"200\"]", "[\"sh\", \"-c\", \"/opt/words 200\"]");
    fs::write(program.path("words.toml"), shell).unwrap();
    refuse(2, &["starts its work with sh", "program = [\"NAME\"]"]);
    fs::write(program.path("words.toml"), WORKLOAD).unwrap();
    fs::remove_file(program.path("words")).unwrap();
    refuse(3, &["words", "build it first"]);

    let base = base_kernel();
    for other in [&["--against", &base][..], &["--commit", "HEAD"], &["--strict"]] {
        fails(&mut kerntune(program.words("check", other)), 2, &["--program"]);
    }
}

/// The same program gives the same figures from another directory.
#[test]
fn the_directory_of_the_program_decides_nothing() {
    let program = ProgramFixture::recorded();
    let other = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let from = Path::new(&program.path(name)).to_owned();
        fs::copy(from, other.path().join(name)).unwrap();
    };
    for name in ["guard.toml", "words.toml", "words", "guard-baseline.json"] {
        copy(name);
    }
    let file = other.path().join("guard.toml").display().to_string();
    let found = json(["guard", "check", "--program", "--json", "--file", &file]);
    assert_eq!(found["findings"], 0, "{found:#}");
    let change = |of: &Value| of["change_percent"].as_f64().unwrap();
    assert!(row(&found)["figures"].as_array().unwrap().iter().all(|of| change(of) == 0.0), "{found:#}");
}
