//! Advice on a synthetic machine's profile: each kind of condition, decisions under missing data,
//! and the proposed changes.

use crate::synthetic;
use kerntune_profile::{
    CounterTotal, HostState, Manifest, Profile, SamplingSummary, Tables, ThreadKind, ThreadStats, Ticks,
};
use kerntune_report::advise::{advise, built_in, Advice, AdviceRule, RecordedConfig};
use kerntune_report::characterize::CharacterSubject;
use kerntune_report::Style;
use serde_json::Value;

const HEAD: &str = "about = \"Do it\"\nwhy = \"w\"\nrisk = \"r\"\nsource = \"s\"\n";
const CONFIG: &str = "#\n# Linux\n#\nCONFIG_HZ=250\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_NAME=\"x\"\n";

fn profile() -> Profile {
    let mut profile = synthetic::run(200).profile;
    profile.manifest.exact = true;
    let (region, self_ticks) = (profile.tables.functions[0].region, profile.tables.functions[0].self_ticks);
    profile.tables.threads.push(ThreadStats {
        region,
        thread: 0,
        kind: ThreadKind::Thread,
        pid: 1,
        tgid: 1,
        comm: "client".into(),
        self_ticks,
        user_ticks: Ticks(0),
        switches_in: 1,
    });
    profile
}

fn rule(name: &str, conditions: &[&str], rest: &str) -> AdviceRule {
    let when: String = conditions.iter().map(|text| format!("[[when]]\n{text}\n")).collect();
    let guard = if rest.contains("mitigations") { "hardening = true\n" } else { "" };
    AdviceRule::parse(name, &format!("{HEAD}{guard}{when}{rest}")).unwrap()
}

fn of(profile: &Profile, region: Option<&str>, config: Option<&str>, rules: &[AdviceRule]) -> Advice {
    let config = config.map_or(RecordedConfig::Missing, RecordedConfig::Known);
    advise(&CharacterSubject { profile, region, costs: None }, config, rules).unwrap()
}

/// Returns the list in which each rule ended up, and the reason given.
fn said(profile: &Profile, config: Option<&str>, conditions: &[&str]) -> (&'static str, String) {
    let advice = of(profile, None, config, &[rule("x", conditions, "")]);
    let json: Value = serde_json::from_str(&advice.json().unwrap()).unwrap();
    let one = |field: &str| json[field].as_array().unwrap().first().cloned();
    if let Some(applied) = one("applies") {
        return ("applies", applied["evidence"].to_string());
    }
    match (one("does_not_apply"), one("not_known")) {
        (Some(passed), None) => ("does not", passed["because"].as_str().unwrap().into()),
        (None, Some(passed)) => ("not known", passed["because"].as_str().unwrap().into()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_condition_holds_and_fails() {
    let profile = profile();
    for (condition, state, words) in [
        ("functions = [\"tcp_*\"]\npercent = 0.1", "applies", "% of the busy time"),
        ("functions = [\"tcp_*\"]\npercent = 99.9", "does not", "99.9 % asked for"),
        ("functions = [\"tcp_*\"]\ncalls_per_second = 1", "applies", "calls, "),
        ("functions = [\"tcp_*\"]\ncalls_per_second = 1e15", "does not", "calls a second asked for"),
        ("functions = [\"no_such_*\"]\ncalls_per_second = 0", "does not", "no function no_such_* ran"),
        ("functions = [\"no_such_*\"]\nnever = true", "applies", "none of no_such_* ran"),
        ("functions = [\"tcp_recv*\"]\nnever = true", "does not", "tcp_recvmsg ran"),
        (
            "config = [\"CONFIG_A=y\", \"CONFIG_B=n\", \"CONFIG_C=n\", \"CONFIG_HZ=250\"]",
            "applies",
            "CONFIG_HZ=250",
        ),
        ("config = [\"CONFIG_A=y\", \"CONFIG_B=y\"]", "does not", "CONFIG_B=n"),
        ("threads = [\"other\", \"cli*\"]\npercent = 0.1", "applies", "other, cli* executes"),
        ("threads = [\"cli*\"]\npercent = 99.9", "does not", "99.9 % asked for"),
        ("threads = [\"apache2\"]\npercent = 0", "does not", "no thread apache2 ran"),
        ("fact = \"kernel-percent\"\nat_least = 1", "applies", "is kernel code"),
        ("fact = \"kernel-percent\"\nat_least = 1\nat_most = 2", "does not", "at most 2"),
        ("fact = \"cpus\"\nat_least = 2", "does not", "1.00 CPUs"),
    ] {
        let (found, text) = said(&profile, Some(CONFIG), &[condition]);
        assert!(found == state && text.contains(words), "{condition}: {found}: {text}");
    }
}

#[test]
fn a_condition_is_of_one_thing() {
    for when in [
        "threads = [\"\"]\npercent = 1",
        "threads = [\"a\"]\nnever = true",
        "threads = [\"a\"]\nfunctions = [\"a\"]\npercent = 1",
        "threads = [\"a\"]\nat_least = 1",
        "functions = [\"\"]\npercent = 1",
    ] {
        let error = AdviceRule::parse("x", &format!("{HEAD}[[when]]\n{when}\n")).unwrap_err().to_string();
        assert!(error.contains("number 1"), "{when}: {error}");
    }
}

#[test]
fn what_is_not_known_is_said_unless_something_else_decides() {
    let profile = profile();
    let config = "config = [\"CONFIG_A=y\"]";
    assert_eq!(said(&profile, None, &[config]).0, "not known");
    // Whatever the configuration is, this rule does not apply.
    let (found, text) = said(&profile, None, &[config, "fact = \"cpus\"\nat_least = 2"]);
    assert!(found == "does not" && text.contains("CPUs"), "{found} {text}");
    assert_eq!(said(&profile, None, &[config, "fact = \"cpus\"\nat_least = 1"]).0, "not known");
    assert_eq!(said(&profile, None, &["fact = \"migrations-per-second\"\nat_least = 1"]).0, "not known");
    // If only some functions were traced, a missing one may have run.
    let mut some = profile.clone();
    some.tables.symbols.last_mut().unwrap().name = "[not traced]".into();
    assert_eq!(said(&some, None, &["functions = [\"no_such_*\"]\nnever = true"]).0, "not known");
    assert_eq!(said(&some, None, &["functions = [\"no_such_*\"]\npercent = 1"]).0, "not known");
    assert_eq!(said(&some, None, &["functions = [\"tcp_*\"]\npercent = 0.1"]).0, "applies");
    // In an empty profile no rule applies.
    let manifest =
        Manifest { capture: Default::default(), ..Manifest::new("p", Default::default(), "w", "emulator") };
    let mut empty = Profile { manifest, tables: Tables::default() };
    empty.manifest.capture.functions = false;
    let advice = of(&empty, None, None, &built_in());
    let json: Value = serde_json::from_str(&advice.json().unwrap()).unwrap();
    assert_eq!(
        (advice.proposals(true), advice.changes(true), json["applies"].as_array().unwrap().len()),
        (0, None, 0)
    );
}

#[test]
fn changes_are_proposed_but_for_what_protects() {
    let profile = profile();
    let always = "fact = \"cpus\"\nat_least = 1";
    let at_stake = "functions = [\"tcp_*\"]\npercent = 0.1";
    let rules = [
        rule("a-guard", &[always, at_stake], "[change]\ncommand_line = \"mitigations=off\"\n"),
        rule("b-note", &[always], ""),
        rule("c-knob", &[always], "[change]\nsysctl = { \"net.a\" = \"0\", \"net.b\" = \"1\" }\n"),
        rule("d-option", &[always, at_stake], "[change]\nconfig = [\"CONFIG_A=n\"]\n"),
    ];
    let advice = of(&profile, Some("tcp_rr"), Some(CONFIG), &rules);
    assert_eq!(advice.proposals(true), 2);
    let changes: toml::Table = advice.changes(true).unwrap().parse().unwrap();
    let changes = changes["change"].as_array().unwrap();
    let names: Vec<_> = changes.iter().map(|change| change["name"].as_str().unwrap()).collect();
    // Greatest share of busy time first.
    assert_eq!(names, ["d-option", "c-knob"]);
    assert_eq!(changes[1]["sysctl"]["net.b"].as_str(), Some("1"));
    let text = advice.text(Style::PLAIN, false);
    for words in [
        "4 of 4 rules apply to made-up, region tcp_rr",
        "2 can be tried as changes",
        "a-guard (protects)  Do it",
        "measure  command_line: mitigations=off",
        "change   sysctl: net.a=0, net.b=1",
        "change   config: CONFIG_A=n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        text.rfind("a-guard").unwrap() > text.rfind("b-note").unwrap(),
        "what protects comes last: {text}"
    );
    let wanted = CharacterSubject { profile: &profile, region: Some("nothing"), costs: None };
    let error = advise(&wanted, RecordedConfig::Missing, &rules);
    assert!(error.unwrap_err().to_string().contains("no region \"nothing\""));
}

#[test]
fn a_damaged_kernel_is_no_kernel_that_is_not_at_hand() {
    let profile = profile();
    let rules = [
        rule("asks", &["config = [\"CONFIG_A=y\"]"], ""),
        rule("other", &["fact = \"kernel-percent\"\nat_least = 1"], ""),
    ];
    let wanted = CharacterSubject { profile: &profile, region: None, costs: None };
    let damaged = advise(&wanted, RecordedConfig::Damaged, &rules).unwrap();
    assert_eq!(damaged.unevaluated(), ["asks"]);
    let text = damaged.text(Style::PLAIN, true);
    assert!(text.contains("1 of 2 rules apply") && text.contains("the recorded kernel is damaged"), "{text}");
    let missing = advise(&wanted, RecordedConfig::Missing, &rules).unwrap();
    assert!(missing.unevaluated().is_empty() && missing.text(Style::PLAIN, true).contains("is not at hand"));
}

#[test]
fn what_brings_next_to_nothing_is_only_named() {
    let mut profile = profile();
    let rule = |name: &str, percent: &str| {
        let when = format!("[[when]]\nfunctions = [\"tcp_*\"]\npercent = {percent}\n");
        AdviceRule::parse(name, &format!("{HEAD}{when}[change]\nset = [\"CONFIG_X=y\"]\n")).unwrap()
    };
    let text_of = |profile: &Profile, all: bool| {
        let subject = CharacterSubject { profile, region: None, costs: None };
        let advice = advise(&subject, RecordedConfig::Missing, &[rule("tiny", "0.0")]).unwrap();
        (advice.text(Style::PLAIN, all), advice.proposals(all), advice.changes(all).is_some())
    };
    let (text, proposals, has_changes) = text_of(&profile, false);
    assert!(text.contains("\ntiny  ") && proposals == 1 && has_changes, "{text}");
    // A thousand times as much else to do.
    for region in &mut profile.tables.regions {
        region.busy_ticks = Ticks(region.busy_ticks.get() * 1_000);
    }
    let (text, proposals, has_changes) = text_of(&profile, false);
    assert!(text.contains("At stake below 0.1 % (--all): tiny\n") && !text.contains("\ntiny  "), "{text}");
    assert!(text.contains("1 of 1 rules apply") && proposals == 0 && !has_changes, "{text}");
    let (text, proposals, has_changes) = text_of(&profile, true);
    assert!(text.contains("\ntiny  ") && proposals == 1 && has_changes, "{text}");
}

/// Returns a profile like one of the running kernel: so many samples, no counts of calls, and the
/// kernel's own counters.
fn sampled(samples: u64, filter: Option<&str>) -> Profile {
    let mut profile = profile();
    let busy = profile.tables.regions.iter().map(|row| row.busy_ticks.get()).max().unwrap();
    profile.manifest.exact = false;
    profile.manifest.machine = "host".into();
    profile.manifest.sampled = Some(SamplingSummary {
        source: "perf: cpu-clock".into(),
        samples,
        sample_ns: Ticks(busy / samples),
        cpus: 2,
        wall_ns: Ticks(2_000_000_000),
        period: "every 1000000 ns".into(),
        bias: None,
        filter: filter.map(str::to_string),
        calls: None,
        bound_bytes: 0,
    });
    let row = |kind: &str, name: &str, count, source: &str| CounterTotal {
        kind: kind.into(),
        name: name.into(),
        count,
        source: source.into(),
    };
    profile.manifest.counted = vec![
        row("fault", "page faults", 4_000, "/proc/vmstat"),
        row("interrupt", "LOC Local timer interrupts", 500, "/proc/interrupts"),
        row("interrupt", "36 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0", 3_000, "/proc/interrupts"),
        row("migration", "migrations from CPU to CPU", 0, "perf: cpu-migrations"),
    ];
    profile.tables.functions.iter_mut().for_each(|row| row.calls = 0);
    profile.tables.arcs.iter_mut().for_each(|row| row.calls = 0);
    profile.tables.paths.iter_mut().for_each(|row| row.calls = 0);
    profile
}

#[test]
fn samples_and_the_kernels_own_counters_decide() {
    let profile = sampled(4_000, None);
    for (condition, state, words) in [
        ("functions = [\"no_such_*\"]\npercent = 0.5", "does not", "samples is in no_such_*"),
        ("functions = [\"no_such_*\"]\npercent = 0.01", "not known", "too few to rule out"),
        ("functions = [\"no_such_*\"]\ncalls_per_second = 1000", "does not", "less than 0.0"),
        ("functions = [\"tcp_*\"]\ncalls_per_second = 1000", "applies", "of the busy time, sampled"),
        ("functions = [\"no_such_*\"]\nnever = true", "not known", "samples do not say"),
        ("threads = [\"nginx\"]\npercent = 1", "does not", "no thread nginx was sampled"),
        ("fact = \"page-faults-per-second\"\nat_least = 1000", "applies", "2,000 page faults a second"),
        ("fact = \"timer-interrupts-per-second\"\nat_least = 300", "does not", "250 interrupts of the timer"),
        (
            "fact = \"device-interrupts-per-second\"\nat_least = 1500",
            "applies",
            "1,500 interrupts of devices",
        ),
        ("fact = \"migrations-per-second\"\nat_least = 1", "does not", "0 migrations"),
    ] {
        let (found, text) = said(&profile, None, &[condition]);
        assert!(found == state && text.contains(words), "{condition}: {found}: {text}");
    }
    let few = sampled(500, None);
    let never = "functions = [\"no_such_*\"]\ncalls_per_second = 1000";
    assert_eq!(said(&few, None, &[never]).0, "not known");
}

#[test]
fn what_the_machine_counts_only_refutes_what_a_part_of_it_did() {
    let profile = sampled(4_000, Some("process 7"));
    let faults = |at_least: u32| {
        said(&profile, None, &[&format!("fact = \"page-faults-per-second\"\nat_least = {at_least}")])
    };
    let (found, text) = faults(1_000);
    assert!(found == "not known" && text.contains("on the whole machine"), "{found}: {text}");
    assert_eq!(faults(5_000).0, "does not");
    let few = "fact = \"page-faults-per-second\"\nat_most = 100";
    assert_eq!(said(&profile, None, &[few]).0, "not known");
    // perf follows the process.
    assert_eq!(said(&profile, None, &["fact = \"migrations-per-second\"\nat_most = 1"]).0, "applies");
}

#[test]
fn what_is_in_force_is_not_proposed() {
    let mut profile = sampled(4_000, None);
    let always = "fact = \"migrations-per-second\"\nat_most = 1";
    let rules = [
        rule("knob", &[always], "[change]\nsysctl = { \"net.ipv4.tcp_sack\" = \"0\" }\n"),
        rule("pages", &[always], "[change]\ncommand_line = \"transparent_hugepage=madvise\"\n"),
        rule("words", &[always], "[change]\ncommand_line = \"audit=0 psi=0\"\n"),
    ];
    assert_eq!(of(&profile, None, None, &rules).proposals(true), 3);
    let mut host = HostState { config_looked: vec!["/proc/config.gz".into()], ..HostState::default() };
    for (name, value) in [
        ("sysctl net.ipv4.tcp_sack", "0"),
        ("transparent_hugepage", "madvise"),
        ("command_line", "quiet audit=0"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    profile.manifest.host = Some(host);
    let advice = of(&profile, None, None, &rules);
    assert_eq!(advice.proposals(true), 1);
    let text = advice.text(Style::PLAIN, true);
    assert!(text.contains("in force already: net.ipv4.tcp_sack is 0"), "{text}");
    assert!(text.contains("in force already: transparent_hugepage=madvise is set"), "{text}");
    let missing = said(&profile, None, &["config = [\"CONFIG_A=y\"]"]);
    assert_eq!(missing, ("not known", "the kernel's configuration was in none of /proc/config.gz".into()));
}
