use super::*;
use crate::lacking_options;
use proptest::prelude::*;

fn problems(text: &str) -> Vec<String> {
    read_host_needs(text, Path::new("x.toml")).1.iter().map(Problem::to_string).collect()
}

const RUNS: &str = "[[training.step]]\ncommand = [\"rr\"]\n[[measured.step]]\ncommand = [\"rr\"]\n";

#[test]
fn a_minimal_file_is_enough() {
    let read = read(RUNS, Path::new("/x/mine.toml")).map_err(|p| format!("{p:?}")).unwrap();
    assert_eq!(read.workload.name, "mine");
    assert_eq!(read.workload.memory_mb, 1024);
    assert_eq!(read.workload.measured.steps[0].region, None);
}

#[test]
fn every_problem_is_found_with_its_place() {
    let text = "\
nme = \"x\"
packages = [\"redis-server\", 5, \"redis-server\"]
memory_mb = \"much\"
files = [\"etc/hosts\", \"/run/x\"]
programs = [\"rrr\"]
[[service]]
name = \"a b\"
comand = [\"redis-server\"]
[[service]]
name = \"two\"
command = [\"redis-server\"]
ready = { tcp = 70000, file = \"/x\" }
[[service]]
name = \"two\"
command = []
ready = { tcp = 6379, within_second = 3 }
[measured]
[[measured.step]]
region = \"total\"
operations = 0
command = [\"rr\", \"a\\u0000b\"]
metrics = [{ name = \"m\", regex = \"(a)(b)\", unit = \"s\", better = \"more\" }]
[[measured.step]]
region = \"\"
command = \"rr\"
";
    assert_eq!(
        problems(text),
        [
            "1:1: nme: is not a known key (did you mean `name`?)",
            "2:29: packages: must hold only strings, not an integer (put it in quotes)",
            "2:32: packages: \"redis-server\" is there twice",
            "3:13: memory_mb: must be a whole number, not a string",
            "4:10: files: \"etc/hosts\" is not an absolute path (start with / and use no ..)",
            "4:23: files: \"/run/x\" cannot be seen in the guest, where /run is its own \
             (keep it in another directory)",
            "5:13: programs: kerntune has no guest program \"rrr\" \
             (it has rr, paths, selftest, kt-mark, smp, kt-disk, kgmon, tagged, kbx, mckusick, netperf, remote, osbench, ipc, tunings, shuffle, nfs, numa, operations, batched; host programs go into `binaries`)",
            "6:1: service[0].command: is missing",
            "6:1: service[0].ready: is missing: how is the service seen to be ready? \
             (for example: ready = { tcp = 6379, within_seconds = 10 }; or unix = \"/path\", \
             file = \"/path\", command = [\"program\", \"argument\"])",
            "7:8: service[0].name: \"a b\" is not a name for a service \
             (letters, digits, `-`, `_`, `.` and `:`, at most 63 bytes)",
            "8:1: service[0].comand: is not a known key (did you mean `command`?)",
            "12:9: service[1].ready: needs exactly one of tcp, unix, file, command; 2 are given \
             (for example: ready = { tcp = 6379, within_seconds = 10 }; or unix = \"/path\", \
             file = \"/path\", command = [\"program\", \"argument\"])",
            "12:9: service[1].ready.within_seconds: is missing",
            "12:17: service[1].ready.tcp: 70000 is not between 1 and 65535",
            "14:8: service[2].name: there is another service \"two\"",
            "15:11: service[2].command: is empty: it names no program",
            "16:9: service[2].ready.within_seconds: is missing",
            "16:23: service[2].ready.within_second: is not a known key (did you mean `within_seconds`?)",
            "19:10: measured.step[0].region: \"total\" is the name of the sum over all regions",
            "20:14: measured.step[0].operations: a region without operations has no path length \
             (say how many the program does, or leave the key out if it marks each one)",
            "21:18: measured.step[0].command: holds a NUL, which no argument can",
            "22:34: measured.step[0].metrics[0].regex: has 2 groups; exactly one must hold the number \
             (use (?:…) for groups that hold nothing)",
            "22:65: measured.step[0].metrics[0].better: is \"higher\" or \"lower\", not \"more\"",
            "24:10: measured.step[1].region: \"\" is not a name for a region \
             (letters, digits, `-`, `_`, `.` and `:`, at most 63 bytes)",
            "25:11: measured.step[1].command: must be a list of strings, not a string",
        ]
    );
}

#[test]
fn texts_have_paths_that_the_guest_sees() {
    let text =
        format!("{RUNS}[texts]\n\"srv/x\" = \"\"\n\"/run/x\" = \"\"\n\"/srv/x\" = 1\n\"/srv/y\" = \"y\"\n");
    let found = problems(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("texts.\"srv/x\": \"srv/x\" is not an absolute path"), "{found:?}");
    assert!(found[1].contains("texts.\"/run/x\": \"/run/x\" cannot be seen in the guest"), "{found:?}");
    assert!(found[2].contains("must be a string, not an integer"), "{found:?}");
    let (own, twice) = ("\"/\" = \"\"\n\"/init\" = \"\"\n", "\"/srv/x\" = \"\"\n\"/srv//x\" = \"\"\n");
    let found = problems(&format!("{RUNS}[texts]\n{own}{twice}\"/srv/x/y\" = \"\"\n\"/srv\" = \"\"\n"));
    let words = [
        "\"/\" is a directory of the guest",
        "where /init is its own",
        "/srv/x has a text or a copy already",
        "\"/srv/x/y\" is below /srv/x, which is a file here",
        "\"/srv\" is a file here, and /srv/x is below it",
    ];
    assert_eq!(found.len(), words.len(), "{found:?}");
    for word in words {
        assert!(found.iter().any(|problem| problem.contains(word)), "{word}: {found:?}");
    }
}

#[test]
fn options_of_the_kernel_are_lines_of_its_configuration() {
    let lines = r#"["CONFIG_NFSD=y", "CONFIG_HZ=1000", "CONFIG_X=0xff", "CONFIG_CMDLINE=\"a b\"", "NFSD=y", "CONFIG_NFSD=n",
        "CONFIG_A", "CONFIG_=y", "CONFIG_A B=y", "CONFIG_B=maybe", "CONFIG_HZ=1000"]"#;
    let found = problems(&format!("kernel_config = {lines}\nnodes = 9\n{RUNS}"));
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(found[0].contains("\"NFSD=y\" is not a line of a kernel's configuration (such as"), "{found:?}");
    assert!(found[1].contains("CONFIG_NFSD is there twice"), "{found:?}");
    assert!(found[7].contains("nodes: 9 is not between 1 and 8"), "{found:?}");
    let lacks = |config| lacking_options(&["CONFIG_NFSD=y".into(), "CONFIG_HZ=1000".into()], config).len();
    assert_eq!(lacks("CONFIG_NFSD=m\nCONFIG_HZ=1000\n"), 0);
    assert_eq!(lacks("# CONFIG_NFSD is not set\nCONFIG_HZ=250\n"), 2);
}

#[test]
fn patterns_are_regular_expressions_that_can_fail() {
    let text = RUNS.to_owned() + "fail = [\"(\", \"x*\"]\nexpect = [\"requests: 0\", 5]\n";
    let found = problems(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("5:9: measured.step[0].fail: is not a regular expression: "), "{found:?}");
    assert_eq!(found[1], "5:14: measured.step[0].fail: matches the empty text");
    assert!(found[2].starts_with("6:26: measured.step[0].expect: must hold only strings"), "{found:?}");
}

#[test]
fn a_syntax_error_is_the_only_problem() {
    let found = problems("[measured\nx = 1\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("1:10: "), "{found:?}");
}

#[test]
fn a_run_without_steps_and_a_region_that_is_too_long() {
    let found = problems("[training]\nwarmup = [\"rr\"]\n[[measured.step]]\ncommand = [\"rr\"]\n");
    assert_eq!(
        found,
        [
            "1:1: training: has no steps (add [[training.step]] with a command)",
            "2:11: training.warmup: must hold commands, each a list of strings, not a string \
             (for example [[\"program\", \"argument\"]])",
        ]
    );
    let found = problems(&RUNS.replacen("command", &format!("region = \"{}\"\ncommand", "r".repeat(64)), 1));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("2:10: training.step[0].region: "), "{found:?}");
}

#[test]
fn regions_are_unique_within_a_run_and_operations_need_one() {
    let step = "[[measured.step]]\nregion = \"r\"\ncommand = [\"rr\"]\n";
    let found =
        problems(&format!("{RUNS}{step}{step}[[measured.step]]\noperations = 4\ncommand = [\"rr\"]\n"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("another step of this run has the region \"r\""));
    assert!(found[1].contains("is given without a region"));
}

proptest! {
    #[test]
    fn any_text_gives_problems_or_a_workload_but_no_panic(text in "\\PC*") {
        let _ = read_host_needs(&text, Path::new("x.toml"));
    }

    #[test]
    fn any_damage_to_a_good_file_is_survived(at in 0usize..2000, insert in "[\\[\\]{}=\"a-z0-9\\n,.]{0,6}", drop in 0usize..30) {
        let good = include_str!("../../fixtures/every-key.toml");
        let at = at % good.len();
        let text = format!("{}{insert}{}", &good[..at], good.get(at + drop..).unwrap_or(""));
        let (_, problems) = read_host_needs(&text, Path::new("x.toml"));
        for problem in problems {
            prop_assert!(problem.line >= 1 && problem.line <= text.matches('\n').count() + 1);
        }
    }
}
