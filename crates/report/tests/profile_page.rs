//! Page of one profile: self-contained, safe with any name, and with complete sums.

use crate::synthetic;
use base64::Engine;
use kerntune_analyze::timeline::{CpuActivity, CpuBin, CpuHolder, CpuSlice, CpuState, TimelineLane};
use kerntune_profile::{Manifest, PathKind, Profile, Tables, Ticks};
use kerntune_report::html::profile::{profile_page, ProfilePage, TraceTimeline};
use serde_json::Value;

fn page(run: &synthetic::SyntheticRun, region: Option<&str>) -> String {
    let timeline = synthetic::timeline(run);
    let written = "kerntune, a test";
    profile_page(&whole(&run.profile, region, Some(&timeline), written)).unwrap()
}

/// Input of a page of one profile without code.
fn whole<'a>(
    profile: &'a Profile,
    region: Option<&'a str>,
    timeline: Option<&'a TraceTimeline<'a>>,
    written: &'a str,
) -> ProfilePage<'a> {
    ProfilePage { profile, region, timeline, against: None, code: None, written }
}

/// Returns the data that the page's scripts read.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"kt-data\">").unwrap();
    let (packed, _) = rest.split_once('<').unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
    serde_json::from_reader(flate2::read::ZlibDecoder::new(bytes.as_slice())).unwrap()
}

fn column(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn groups(data: &Value) -> &Vec<Value> {
    data["groups"].as_array().unwrap()
}

#[test]
fn the_page_is_complete_in_itself() {
    let html = page(&synthetic::run(50), None);
    // The name of an XML namespace is no address that is loaded.
    let rest = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "<link", "@import", "url(", "fetch(", "XMLHttp", "import("] {
        assert!(!rest.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'"));
    // Vendored code says whose it is.
    assert!(html.contains("//! fzstd"));
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    assert_eq!(html.matches("<body").count(), 1);
    assert_eq!(html.matches("</body>").count(), 1);
    // Each element that scripts look for exists exactly once.
    let mut names: Vec<&str> = html
        .match_indices("byId(\"")
        .map(|(at, found)| {
            let rest = &html[at + found.len()..];
            &rest[..rest.find('"').unwrap()]
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 20);
    for name in names {
        assert_eq!(html.matches(&format!(" id=\"{name}\"")).count(), 1, "{name}");
    }
    // Without scripts the functions are readable.
    let (_, without) = html.split_once("<noscript>").unwrap();
    assert!(without.split_once("</noscript>").unwrap().0.contains("<code>tcp_v4_rcv</code>"));
}

#[test]
fn each_of_several_cpus_has_a_lane() {
    let run = synthetic::run(50);
    assert!(data(&page(&run, None))["time"]["cpus"].is_null(), "a single one has none");

    // The CPU of the trace, and one that is halted all the time.
    let mut timeline = synthetic::timeline(&run);
    let asleep =
        CpuState { doing: CpuActivity::Halted, holder: CpuHolder { lane: TimelineLane::Idle, user: false } };
    let executes = |holder: CpuHolder| CpuState { doing: CpuActivity::Executes, holder };
    let overview = &mut timeline.overview;
    for bin in &overview.bins {
        let state = if bin.holder.lane == TimelineLane::Idle { asleep } else { executes(bin.holder) };
        for (cpu, state) in [(0, state), (1, asleep)] {
            overview.cpu_bins.push(CpuBin { bin: bin.bin, cpu, state, ns: bin.ns });
        }
    }
    let spans = &overview.spans;
    let halted = spans.iter().map(|span| CpuSlice { begin: span.begin, end: span.end, state: asleep });
    overview.cpu_slices = vec![Vec::new(), halted.collect()];
    let sum = |wanted: &dyn Fn(CpuHolder) -> bool| -> i64 {
        overview.bins.iter().filter(|bin| wanted(bin.holder)).map(|bin| bin.ns as i64).sum()
    };
    let idle_task = |holder: CpuHolder| matches!(holder.lane, TimelineLane::Thread(at) if run.recording.threads[at as usize].pid == 0);
    let interrupt = |holder: CpuHolder| holder.lane == TimelineLane::Interrupt;
    let idle = |holder: CpuHolder| holder.lane == TimelineLane::Idle;
    let thread = |holder: CpuHolder| !idle_task(holder) && !interrupt(holder) && !idle(holder);
    // As scripts/core/codes.js numbers them: kernel, user, interrupt, idle task, halted, waits.
    let expected = [
        sum(&|holder| thread(holder) && !holder.user),
        sum(&|holder| thread(holder) && holder.user),
        sum(&interrupt),
        sum(&idle_task),
        sum(&idle),
        0,
    ];
    let all = sum(&|_| true);
    let page = whole(&run.profile, None, Some(&timeline), "a test");
    let html = profile_page(&page).unwrap();
    let lanes = &data(&html)["time"]["cpus"];
    let kinds = |lane: &Value| {
        let mut sums = [0; 6];
        let (kinds, times) = (column(&lane["bins"]["k"]), column(&lane["bins"]["n"]));
        kinds.into_iter().zip(times).for_each(|(kind, ns)| sums[kind as usize] += ns);
        sums
    };
    assert_eq!(kinds(&lanes[0]), expected);
    assert!(expected[..5].iter().all(|&ns| ns > 0), "{expected:?}");
    assert_eq!(kinds(&lanes[1]), [0, 0, 0, 0, all, 0]);
    assert_eq!(column(&lanes[1]["slices"]["n"]).iter().sum::<i64>(), all);
    assert_eq!(lanes.as_array().unwrap().len(), 2);
}

#[test]
fn elements_are_closed_in_order() {
    let html = page(&synthetic::run(20), None);
    let empty = ["meta", "input", "!DOCTYPE"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = html.as_str();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap();
        let name: String =
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "/!".contains(*c)).collect();
        rest = &rest[end + 1..];
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed)),
            None if empty.contains(&name.as_str()) => {}
            None => {
                if name == "script" || name == "style" {
                    rest = &rest[rest.find("</").unwrap()..];
                }
                open.push(name);
            }
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn names_stay_names() {
    let nasty = "</script><img src=x onerror=alert(1)>&\"'`<!--";
    let mut run = synthetic::run(30);
    for symbol in &mut run.profile.tables.symbols {
        symbol.name = format!("{nasty}{}", symbol.function.get());
        symbol.file = Some(nasty.into());
        symbol.module = Some(nasty.into());
    }
    for path in run.profile.tables.paths.iter_mut().filter(|path| path.kind == PathKind::Thread) {
        path.comm = nasty.into();
    }
    run.recording.threads.iter_mut().for_each(|thread| thread.comm = nasty.into());
    run.profile.tables.regions.iter_mut().for_each(|region| region.name = nasty.into());
    let manifest = &mut run.profile.manifest;
    for text in [&mut manifest.id, &mut manifest.workload, &mut manifest.kernel.label, &mut manifest.recorded]
    {
        *text = nasty.into();
    }
    let html = page(&run, None);
    assert!(!html.contains("<img") && !html.contains("<!--"));
    assert_eq!(html.matches("</script>").count(), 4);
    let data = data(&html);
    assert!(data["names"][0].as_str().unwrap().starts_with(nasty));
    assert_eq!(data["time"]["lanes"][0]["name"], nasty);
}

#[test]
fn what_is_too_small_is_added_up_and_not_lost() {
    let mut run = synthetic::run(200);
    synthetic::grow(&mut run.profile, 60_000);
    let tables = &run.profile.tables;
    let html = page(&run, None);
    let data = data(&html);
    assert_eq!(groups(&data).len(), 3);
    let (mut kept, mut smaller) = (0, 0);
    for (region, group) in groups(&data).iter().enumerate() {
        let rows = || tables.paths.iter().filter(|row| row.region as usize == region);
        let weights = [
            rows().map(|row| row.self_ticks.get()).sum::<u64>(),
            rows().map(|row| row.taken_branches).sum(),
            rows().map(|row| row.l1i_misses).sum(),
            rows().map(|row| row.itlb_misses).sum(),
        ];
        let tree = &group["tree"];
        for (at, weight) in weights.into_iter().enumerate() {
            assert_eq!(
                column(&tree["w"][at]).iter().sum::<i64>(),
                weight as i64,
                "weight {at} of region {region}"
            );
        }
        let depths = column(&tree["d"]);
        assert!(depths.windows(2).all(|pair| pair[1] <= pair[0] + 1), "preorder");
        for (code, calls) in column(&tree["f"]).into_iter().zip(column(&tree["c"])) {
            if code == -6 {
                smaller += calls;
            } else {
                kept += 1;
            }
        }
    }
    // Rows of the table may merge: same parent, function and entry kind.
    assert!(kept + smaller <= tables.paths.len() as i64);
    assert!(smaller > 20_000 && kept > 236, "{kept} kept, {smaller} not");
    assert!(html.contains("1/20,000"));
}

#[test]
fn regions_of_one_name_are_one_view_and_nested_ones_count_in_both() {
    let mut run = synthetic::run(30);
    // The second is inside the first; the third is another of the first's name.
    let regions = &mut run.profile.tables.regions;
    regions[1].depth = 1;
    regions[2].name = regions[0].name.clone();
    let all = data(&page(&run, None));
    let views: Vec<(Value, Vec<i64>)> = all["views"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| (view["name"].clone(), column(&view["groups"])))
        .collect();
    // Everything is inside tcp_rr, so that the first two are the same groups.
    assert_eq!(views.len(), 3);
    assert_eq!(views[1], ("tcp_rr".into(), views[0].1.clone()));
    assert_eq!((&views[2].0, views[2].1.len()), (&"open".into(), 1));

    let one = data(&page(&run, Some("open")));
    assert_eq!(groups(&one).len(), 1);
    assert_eq!(one["views"].as_array().unwrap().len(), 1);
    assert!(!one["names"].as_array().unwrap().contains(&"tcp_sendmsg".into()) || one["time"] != Value::Null);
    let error = profile_page(&whole(&run.profile, Some("udp"), None, ""));
    assert!(error.unwrap_err().to_string().contains("no region \"udp\""));
}

#[test]
fn the_timeline_has_all_time_and_the_calls_of_its_windows() {
    let run = synthetic::run(100);
    let time = &data(&page(&run, None))["time"];
    let elapsed = run.profile.manifest.elapsed_ticks.get() as i64;
    assert_eq!(column(&time["bins"]["n"]).iter().sum::<i64>(), elapsed);
    assert_eq!(time["spans"].as_array().unwrap().len(), 3);
    assert_eq!(time["places"][0][0], "first operations of tcp_rr");
    // Every event is on the page.
    let events = column(&time["chunks"]["n"]).iter().sum::<i64>();
    assert_eq!(events as u64, run.recording.events);
    assert!(column(&time["chunks"]["o"]).iter().all(|&offset| offset >= 0));
    assert_eq!(time["threads"].as_array().unwrap().len(), run.recording.threads.len());
}

#[test]
fn a_profile_without_paths_or_trace_still_has_a_page() {
    let manifest = Manifest::new("p", Default::default(), "nothing", "host");
    let mut profile = Profile { manifest, tables: Tables::default() };
    profile.manifest.elapsed_ticks = Ticks(5);
    let html = profile_page(&whole(&profile, None, None, "")).unwrap();
    assert!(html.contains("Timeline: none"));
    assert_eq!(data(&html)["time"], Value::Null);
}
