//! `kerntune guard` on Linux: three planted regressions, another layout, invalid files.

use crate::support::{base_kernel, fails, json, kerntune, planted_kernel, run, said};
use serde_json::Value;
use std::fs;

const GUARD: &str = "[[workload]]\nname = \"osbench\"\nrows = [\"cwcor_64K\", \"select_15_15\", \"getpid\", \"open_close\"]\n\
    [[workload]]\nname = \"kbx\"\nrows = [\"ioctl_tcgeta\", \"umask\", \"pipe_20\"]\n";

struct GuardFixture {
    dir: tempfile::TempDir,
}

impl GuardFixture {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("guard.toml"), text).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn words<'a>(&self, command: &'a str, words: &[&'a str]) -> Vec<String> {
        let file = self.path("guard.toml");
        [&["guard", command], words, &["--file", &file]].concat().into_iter().map(String::from).collect()
    }
}

fn row<'a>(check: &'a Value, name: &str) -> &'a Value {
    let cells = check["cells"].as_array().unwrap().iter();
    let mut rows = cells.flat_map(|cell| cell["rows"].as_array().unwrap());
    rows.find(|row| row["row"] == name).unwrap_or_else(|| panic!("{name}: {check:#}"))
}

/// Joins the names along a path.
fn path(of: &Value) -> String {
    of.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>().join(">")
}

/// Checks that the explanation sums to the change.
fn whole(explained: &Value) {
    let pair = |of: &Value| of[1].as_i64().unwrap() - of[0].as_i64().unwrap();
    let functions: i64 =
        explained["functions"].as_array().unwrap().iter().map(|row| pair(&row["instructions"])).sum();
    let parts = functions + explained["more_change"].as_i64().unwrap() + pair(&explained["elsewhere"]);
    assert_eq!((parts, &explained["rest"]), (pair(&explained["own"]), &Value::from(0)), "{explained:#}");
}

#[test]
fn planted_regressions_are_found_with_function_path_and_line() {
    let guard = GuardFixture::new(GUARD);
    let (base, planted) = (base_kernel(), planted_kernel());
    run(guard.words("record", &["--kernel", &base]));
    let figures = fs::read_to_string(guard.path("guard-baseline.json")).unwrap();
    assert!(figures.contains("\"kerntune-guard/1\"") && figures.contains(&base), "{figures}");

    // The same kernel has no findings.
    let same = json(guard.words("check", &["--kernel", &base, "--json"]));
    assert_eq!(same["findings"], 0);

    let junit = guard.path("guard.xml");
    let output = kerntune(guard.words("check", &["--kernel", &planted, "--junit", &junit, "--json"]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["schema"], &found["findings"]),
        (&"kerntune-guard-check/1".into(), &3.into()),
        "{found:#}"
    );

    // A path that is 0.1 % longer.
    let select = row(&found, "select_15_15");
    assert_eq!(select["verdict"], "longer");
    let change = select["change_percent"].as_f64().unwrap();
    assert!((0.08..0.12).contains(&change), "{change}");
    whole(&select["explained"]);
    let first = &select["explained"]["functions"][0];
    assert_eq!(first["function"], "core_sys_select", "{first:#}");
    assert!(path(&first["path"]).ends_with(">core_sys_select"), "{first:#}");
    assert_eq!(
        (&first["source"]["file"], &first["source"]["added"][0]["text"]),
        (&"fs/select.c".into(), &"asm volatile(\"nop; nop\");".into())
    );
    let operations = select["explained"]["operations"][0].as_i64().unwrap();
    let each = first["path_change"].as_i64().unwrap() / operations;
    assert!((2..=4).contains(&each), "two instructions, and what the compiler moves for them: {each}");

    // A slow path that is taken twice as often.
    let pages = row(&found, "cwcor_64K");
    assert_eq!(pages["verdict"], "longer");
    whole(&pages["explained"]);
    let functions = pages["explained"]["functions"].as_array().unwrap();
    let slow = functions
        .iter()
        .find(|row| row["function"] == "folio_batch_move_lru")
        .unwrap_or_else(|| panic!("{pages:#}"));
    let calls = [0, 1].map(|side| slow["calls"][side].as_f64().unwrap());
    assert!((1.8..2.2).contains(&(calls[1] / calls[0])), "{slow:#}");
    assert!(path(&slow["path"]).ends_with(">folio_batch_move_lru"), "{slow:#}");
    assert!(slow["what"].as_str().unwrap().contains("times as often"), "{slow:#}");

    // A longer part that is compensated elsewhere.
    let ioctl = row(&found, "ioctl_tcgeta");
    assert_eq!(ioctl["verdict"], "made-up", "{ioctl:#}");
    assert!(ioctl["change_percent"].as_f64().unwrap() <= 0.0, "{ioctl:#}");
    whole(&ioctl["explained"]);
    let place = &ioctl["explained"]["made_up"][0];
    assert!(path(&place["within"]).ends_with("__x64_sys_ioctl"), "{place:#}");
    assert_eq!(
        (&place["longer"][0][0], &place["shorter"][0][0]),
        (&"__x64_sys_ioctl".into(), &"tty_ioctl".into()),
        "{place:#}"
    );

    // No other row has a finding.
    for name in ["getpid", "open_close", "umask", "pipe_20"] {
        let row = row(&found, name);
        assert_eq!(row["verdict"], "same", "{row:#}");
        assert!(row["change_percent"].as_f64().unwrap().abs() <= 0.01, "{row:#}");
    }
    let xml = fs::read_to_string(junit).unwrap();
    assert_eq!((xml.matches("<failure").count(), xml.matches("<testcase").count()), (3, 9), "{xml}");
    assert!(xml.contains("fs/select.c:") && xml.contains("core_sys_select"), "{xml}");

    let text = kerntune(guard.words("check", &["--kernel", &planted])).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for words in [
        "LONGER",
        "MADE UP FOR",
        "rest 0",
        "+ asm volatile(\"nop; nop\");",
        "3 of 7 rows and sums are findings",
    ] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
}

/// A kernel with its functions in another order does the same work, so no row is longer.
#[test]
fn another_layout_raises_nothing() {
    let guard = GuardFixture::new(
        "[[workload]]\nname = \"rr\"\nrows = [\"stat\", \"pipe_rr\", \"tcp_rr\", \"creat_close\"]\n",
    );
    let tuned = json(["tune", "--workload", "rr", "--recipe", "gcc-pgo+layout", "--json"]);
    let ordered = tuned["tuned"]["id"].as_str().unwrap().to_owned();
    let kernel = json(["kernel", "show", &ordered, "--json"]);
    let movable = kernel["base_id"].as_str().unwrap().to_owned();
    let found = json(guard.words("check", &["--kernel", &ordered, "--against", &movable, "--json"]));
    assert_eq!(found["findings"], 0, "{found:#}");
    for name in ["stat", "pipe_rr", "tcp_rr", "creat_close"] {
        let change = row(&found, name)["change_percent"].as_f64().unwrap();
        assert!(change.abs() <= 0.01, "{name}: {change}");
    }
}

/// Figures of another workload are not used, and the output explains it.
#[test]
fn a_file_of_another_workload_is_named_and_strict_fails() {
    let base = base_kernel();
    let guard = GuardFixture::new("[[workload]]\nname = \"my.toml\"\n");
    let mine = |operations: u32| {
        let step = format!(
            "[[measured.step]]\ncommand = [\"true\"]\nregion = \"mine\"\noperations = {operations}\n"
        );
        fs::write(guard.path("my.toml"), step).unwrap();
    };
    mine(1);
    run(guard.words("record", &["--kernel", &base]));
    let used = json(guard.words("check", &["--kernel", &base, "--strict", "--json"]));
    assert_eq!((&used["findings"], &used["cells"][0]["remeasured"]), (&0.into(), &Value::Null), "{used:#}");
    mine(2);
    let said = "guard-baseline.json was made with another guest (my.toml changed): measured its kernel base";
    let text = kerntune(guard.words("check", &["--kernel", &base])).output().unwrap();
    assert_eq!(text.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&text.stdout).contains(&format!("note        {said}")),
        "{}",
        self::said(&text)
    );
    let found = json(guard.words("check", &["--kernel", &base, "--json"]));
    assert!(found["cells"][0]["remeasured"].as_str().unwrap().starts_with(said), "{found:#}");
    fails(
        &mut kerntune(guard.words("check", &["--kernel", &base, "--strict"])),
        7,
        &[said, "--strict", "kerntune guard record"],
    );
    fails(
        &mut kerntune(guard.words("check", &["--kernel", &base, "--strict", "--against", &base])),
        2,
        &["--against", "--strict"],
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let base = base_kernel();
    let guard = GuardFixture::new("[[workload]]\nname = \"rr\"\nrows = [\"tcp\"]\n[tolerance]\npath = -1\n");
    fails(
        &mut kerntune(guard.words("check", &["--kernel", &base])),
        2,
        &["guard.toml:3:9: workload[0].rows: \"tcp\" is no row", "5:8: tolerance.path"],
    );
    fails(&mut kerntune(guard.words("validate", &[])), 1, &["guard.toml:3:9"]);
    let guard = GuardFixture::new("[[workload]]\nname = \"rr\"\nrows = [\"stat\"]\n");
    run(guard.words("validate", &[]));
    fails(&mut kerntune(guard.words("check", &["--kernel", &base])), 2, &["guard-baseline.json"]);
    fails(&mut kerntune(guard.words("check", &["--commit", "HEAD", "--against", &base])), 2, &["--git DIR"]);
    fails(&mut kerntune(guard.words("history", &[])), 2, &["--kernel", "--commits"]);
    fs::write(guard.path("guard-baseline.json"), "{\"schema\": \"kerntune-guard/0\"}").unwrap();
    fails(
        &mut kerntune(guard.words("check", &["--kernel", &base])),
        2,
        &["kerntune-guard/0", "kerntune-guard/1"],
    );
    let none = ["guard", "check", "--file", "none/guard.toml"];
    fails(&mut kerntune(none), 2, &["none/guard.toml"]);
}
