use super::*;
use crate::SHIPPED;
use kerntune_work::{Job, WorkDir};
use std::path::Path;
use std::process::Command as Process;

fn suite(name: &str) -> Suite {
    Suite::of(Workload::find(name, &[]).unwrap()).unwrap()
}

fn words(command: &CommandLine) -> String {
    command.join(" ")
}

/// A rows file that differs from the program would promise rows that do not exist.
#[test]
fn rows_files_are_what_the_programs_list() {
    let dir = tempfile::tempdir().unwrap();
    let work = WorkDir::open(dir.path()).unwrap();
    let mut compared = 0;
    for (name, rows) in programs::names().filter_map(|name| Some((name, programs::named(name)?.rows?))) {
        let mut command = Process::new(crate::compile(&work, name).unwrap().unwrap());
        command.arg("--list");
        let (end, output) = Job::new(command).output().unwrap();
        assert!(end.success(), "{name}: {output}");
        assert_eq!(output, rows, "{name} --list > embedded/guest/{name}.rows");
        compared += 1;
    }
    assert!(compared >= 7);
}

/// The tables of Speer, Kumar and Partridge, and the rows of McKusick's tests.
#[test]
fn the_suites_have_the_rows_of_their_papers() {
    for (name, rows, first, last) in [
        ("kbx", 26, "getpid", "unix_socket_8192"),
        ("osbench", 19, "cwcor_1K", "select_15_15"),
        ("netperf", 20, "tcp_rr_1", "veth_udp_rr_16"),
        ("mckusick", 39, "syscall", "aggregate"),
        ("rr", 11, "tcp_rr", "getpid"),
        ("batched", 15, "nop", "mix"),
        ("ipc", 4, "semop_rr", "pipe_rr"),
        ("tunings", 11, "shared_small", "group_bound"),
        ("tunings-disk", 5, "pread_raw", "transaction"),
        ("shuffle", 3, "map", "merge"),
        ("nfs", 11, "stat", "read_cached_4k"),
        ("numa", 11, "fault_local", "migrate_page"),
        ("operations", 6, "direct_read", "futex_wake"),
        ("redis", 2, "redis_set", "redis_get"),
    ] {
        let suite = suite(name);
        let names: Vec<&str> = suite.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), rows, "{names:?}");
        assert_eq!((names[0], names[rows - 1]), (first, last));
    }
    assert!(Suite::of(Workload::find("tagged", &[]).unwrap()).is_none());
}

#[test]
fn units_say_what_is_good() {
    let read = suite("osbench").row("read").unwrap().unit.clone();
    assert_eq!(
        (read.name(), read.better(), read.value(1_000, 4_096_000)),
        ("MB/s", MetricDirection::Higher, Some(4_000.0))
    );
    let netperf = suite("netperf").row("veth_udp_rr_4").unwrap().clone();
    assert_eq!(
        (netperf.unit.name(), netperf.unit.value(400, 4_000_000)),
        ("transactions/s", Some(100_000.0))
    );
    assert_eq!(netperf.needs, ["CONFIG_NET_NS", "CONFIG_VETH"]);
    let getpid = suite("rr").row("getpid").unwrap().clone();
    assert_eq!((getpid.unit.name(), getpid.unit.value(40, 4_000)), ("ns/op", Some(100.0)));
    let redis = suite("redis").row("redis_get").unwrap().unit.clone();
    assert_eq!((redis.better(), redis.value(1, 1)), (MetricDirection::Higher, None));
    for (name, _) in SHIPPED {
        for row in Suite::of(Workload::find(name, &[]).unwrap()).iter().flat_map(|suite| &suite.rows) {
            assert!(row.unit.name().contains('/') && !row.unit.name().contains(':'), "{name} {row:?}");
            assert!(row.needs.iter().all(|need| need.starts_with("CONFIG_")), "{name} {row:?}");
        }
    }
}

#[test]
fn what_the_host_cannot_run_is_said() {
    for name in ["kbx", "osbench", "netperf", "mckusick", "rr", "batched"] {
        assert!(suite(name).guest_only().is_none() && suite(name).is_bare(), "{name}");
    }
    for name in ["apache", "mariadb", "memcached", "nginx", "postgresql", "redis"] {
        assert!(suite(name).guest_only().is_none() && !suite(name).is_bare(), "{name}");
    }
    assert!(suite("paths").guest_only().unwrap().contains("network cards"));
    assert!(suite("numa").guest_only().unwrap().contains("`nodes`"));
    assert!(suite("nfs").guest_only().unwrap().contains("`kernel_config`"));
    let mut told = suite("redis").workload;
    told.append = "quiet".into();
    assert!(Suite::of(told).unwrap().guest_only().unwrap().contains("append"));
    assert_eq!(suite("netperf").checks(), [vec!["netperf".to_string(), "--check".into()]]);
    assert!(suite("redis").checks().is_empty());
}

#[test]
fn a_restricted_workload_runs_its_rows_and_no_more() {
    let kbx = suite("kbx");
    let all: Vec<&SuiteRow> = kbx.rows.iter().collect();
    assert_eq!(kbx.restricted(&all, 1.0), kbx.workload);
    let two = [kbx.row("umask").unwrap(), kbx.row("sbrk").unwrap()];
    let steps = kbx.restricted(&two, 0.5).measured.steps;
    assert_eq!(words(&steps[0].command), "kbx --seed {seed} --only umask,sbrk --scale 0.5");

    // The sum needs all rows.
    let mckusick = suite("mckusick");
    let sum = [mckusick.row(AGGREGATE).unwrap()];
    assert_eq!(mckusick.restricted(&sum, 1.0), mckusick.workload);
    // A program that cannot choose runs all rows.
    let paths = suite("paths");
    assert_eq!(paths.restricted(&[&paths.rows[1]], 1.0), paths.workload);
    assert!(kbx.is_scalable() && !paths.is_scalable());
    assert!(suite("batched").is_batched() && !kbx.is_batched());
    // Steps of other rows are left out.
    let redis = suite("redis");
    let steps = redis.restricted(&[redis.row("redis_get").unwrap()], 1.0).measured.steps;
    assert_eq!((steps.len(), steps[0].region.as_deref()), (1, Some("redis_get")));
}

#[test]
fn a_step_that_asks_for_some_rows_has_no_others() {
    let text = "[training]\n[[training.step]]\ncommand = [\"rr\"]\n[measured]\n[[measured.step]]\n\
                command = [\"rr\", \"--only\", \"getpid,stat\"]\n[[measured.step]]\ncommand = [\"kbx\", \"--only\", \"getpid\"]\n";
    let suite = Suite::of(Workload::parse(text, Path::new("x.toml")).unwrap()).unwrap();
    let names: Vec<&str> = suite.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["stat", "getpid"]);
    let steps = suite.restricted(&[suite.row("stat").unwrap()], 1.0).measured.steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(words(&steps[0].command), "rr --only stat");
}

/// Foreign programs must be contained where they share the machine with others.
#[test]
fn one_foreign_command_makes_a_workload_foreign() {
    let step = "command = [\"kbx\"]\n";
    let is_bare = |head: &str, tail: &str| {
        let text =
            format!("{head}[training]\n[[training.step]]\n{step}[measured]\n[[measured.step]]\n{step}{tail}");
        Suite::of(Workload::parse(&text, Path::new("x.toml")).unwrap()).unwrap().is_bare()
    };
    let marked = "operations = 1\nmetrics = [{ name = \"n\", regex = '(\\d)', unit = \"x/s\", better = \"higher\" }]\n";
    assert!(is_bare("", ""));
    assert!(!is_bare("setup = [[\"sh\", \"-c\", \"true\"]]\n", ""));
    assert!(!is_bare("", &format!("[[measured.step]]\nregion = \"r\"\ncommand = [\"sh\"]\n{marked}")));
    assert!(!is_bare("", &format!("[[measured.step]]\nregion = \"r\"\ncommand = [\"/opt/kbx\"]\n{marked}")));
}

#[test]
fn rows_need_the_drivers_of_the_workloads_disk() {
    let text =
        "[disk]\nkind = \"brd\"\nsize_mb = 64\nfilesystem = \"ext4\"\n[[measured.step]]\nregion = \"all\"\n\
                operations = 1\ncommand = [\"true\"]\n";
    let suite = Suite::of(Workload::parse(text, Path::new("x.toml")).unwrap()).unwrap();
    assert_eq!(suite.rows[0].needs, ["CONFIG_BLK_DEV_RAM", "CONFIG_EXT4_FS"]);
    assert!(suite.guest_only().unwrap().contains("a disk of its own"));
}
