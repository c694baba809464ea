use super::*;
use crate::{
    upwards, Address, FunctionIndex, FunctionStats, Instructions, KernelId, Manifest, PathKind, PathNode,
    RegionStats, Symbol, Tables, Ticks,
};
use proptest::prelude::*;

/// Function as `name@file`, with calls and self time; total time is twice that.
type Function = (&'static str, u64, u64);

fn region(at: u32, name: &str, depth: u32, busy: u64, idle: u64, user: u64) -> RegionStats {
    RegionStats {
        region: at,
        name: name.into(),
        elapsed_ticks: Ticks(busy + idle),
        busy_ticks: Ticks(busy),
        idle_ticks: Ticks(idle),
        user_ticks: Ticks(user),
        operations: 10,
        depth,
        kernel_instructions: Instructions(busy - user),
        user_instructions: Instructions(user),
        ..RegionStats::default()
    }
}

fn profile(functions: &[Function], idle: u64, user: u64) -> Profile {
    let mut tables = Tables::default();
    for (at, (name, calls, net)) in functions.iter().enumerate() {
        let (name, file) = name.split_once('@').map_or((*name, None), |(name, file)| (name, Some(file)));
        let function = FunctionIndex(at as u32);
        tables.symbols.push(Symbol {
            function,
            name: name.into(),
            address: Address(at as u64),
            size: 1,
            file: file.map(Into::into),
            module: None,
        });
        tables.functions.push(FunctionStats {
            region: 0,
            function,
            calls: *calls,
            ended: *calls,
            self_ticks: Ticks(*net),
            ended_self_ticks: Ticks(*net),
            total_ticks: Ticks(2 * net),
            max_ticks: Ticks(*net),
            min_ticks: Ticks(1),
            slowest_ticks: Ticks(*net),
            slowest_at_ticks: Ticks(0),
        });
    }
    let busy = functions.iter().map(|(_, _, net)| net).sum::<u64>() + user;
    tables.regions.push(region(0, "r", 0, busy, idle, user));
    Profile { manifest: Manifest::new("p", KernelId::default(), "w", "emulator"), tables }
}

/// Adds rows by name from the root: a function by its number, with calls and self time.
fn add_paths(profile: &mut Profile, paths: &[(u32, PathKind, u32, u64, u64)]) {
    for (at, &(parent, kind, function, calls, net)) in paths.iter().enumerate() {
        profile.tables.paths.push(PathNode {
            path: at as u32,
            parent,
            kind,
            comm: if kind == PathKind::Thread { "rr".into() } else { String::new() },
            function: FunctionIndex(function),
            calls,
            self_ticks: Ticks(net),
            ..PathNode::default()
        });
    }
}

/// Formats rows as `name file: self -> self (change)`.
fn shown(difference: &ProfileDifference) -> Vec<String> {
    assert!(difference.sums()[0]);
    let line = |row: &FunctionDifference| {
        let file = row.file.as_deref().unwrap_or("-");
        format!("{} {file}: {} -> {}", row.name, row.self_ticks(0), row.self_ticks(1))
    };
    difference.functions.iter().map(line).collect()
}

#[test]
fn functions_are_told_apart_by_file_where_both_have_it() {
    let base = profile(&[("show@fs/a.c", 1, 10), ("show@net/b.c", 1, 20), ("one@mm/x.c", 1, 5)], 0, 0);
    let other = profile(&[("show@net/b.c", 1, 21), ("show@fs/a.c", 1, 9), ("one@mm/moved.c", 1, 7)], 3, 1);
    let difference = difference(&base, &other);
    assert_eq!(
        shown(&difference),
        ["one mm/moved.c: 5 -> 7", "show fs/a.c: 10 -> 9", "show net/b.c: 20 -> 21"]
    );
    // 35 ns, then 37 in functions, 1 of user and 3 of idle time.
    assert_eq!((difference.change(), difference.function_rest), (6, [0, 0]));
}

#[test]
fn functions_of_one_name_are_one_row_where_a_file_is_not_known() {
    let base = profile(&[("show@a.c", 1, 10), ("show@b.c", 1, 20)], 0, 0);
    let other = profile(&[("show@fs/a.c", 1, 9), ("show@net/b.c", 1, 21)], 0, 0);
    assert_eq!(shown(&difference(&base, &other)), ["show net/b.c: 30 -> 30"]);
}

#[test]
fn one_of_several_moved_to_another_file() {
    let base = profile(&[("show@fs/a.c", 1, 10), ("show@fs/old.c", 1, 20)], 0, 0);
    let other = profile(&[("show@fs/a.c", 1, 9), ("show@fs/new.c", 1, 21)], 0, 0);
    assert_eq!(shown(&difference(&base, &other)), ["show fs/a.c: 10 -> 9", "show fs/new.c: 20 -> 21"]);
}

#[test]
fn what_the_compiler_made_of_a_function_is_one_row_with_a_note() {
    let base = profile(&[("foo.constprop.0", 4, 10), ("bar", 2, 7), ("bar.part.0", 1, 2)], 0, 0);
    let other = profile(&[("foo", 4, 8), ("bar", 2, 6), ("bar.part.0", 1, 3), ("new.isra.0", 1, 1)], 0, 0);
    let difference = difference(&base, &other);
    assert_eq!(
        shown(&difference),
        ["bar -: 7 -> 6", "bar.part.0 -: 2 -> 3", "foo -: 10 -> 8", "new.isra.0 -: 0 -> 1"]
    );
    let symbols: Vec<_> = difference.functions.iter().map(|row| row.symbols.concat().join(" ")).collect();
    assert_eq!(symbols, ["", "", "foo.constprop.0 foo", ""]);
}

#[test]
fn entries_of_a_cold_part_are_no_calls() {
    let base = profile(&[("foo", 4, 10)], 0, 0);
    let other = profile(&[("foo", 4, 8), ("foo.cold", 3, 5)], 0, 0);
    let difference = difference(&base, &other);
    assert_eq!(shown(&difference), ["foo -: 10 -> 13"]);
    assert_eq!(difference.functions[0].calls_change(), 0);
}

#[test]
fn paths_by_hand() {
    use PathKind::{Function, Interrupt, Thread, User};
    const ROOT: u32 = PathNode::ROOT;
    const NONE: u32 = u32::MAX;
    let mut base = profile(&[("read", 2, 10), ("copy", 3, 6), ("irq", 1, 4)], 5, 8);
    add_paths(
        &mut base,
        &[
            (ROOT, Thread, NONE, 0, 0),
            (0, Function, 0, 2, 10),
            (1, Function, 1, 3, 6),
            (0, User, NONE, 0, 8),
            (ROOT, Interrupt, NONE, 0, 0),
            (4, Function, 2, 1, 4),
        ],
    );
    // Another order of symbols; read calls a piece of itself; copy is also called by irq.
    let mut other = profile(&[("irq", 1, 5), ("copy", 3, 5), ("read", 2, 7), ("read.part.0", 2, 2)], 5, 8);
    add_paths(
        &mut other,
        &[
            (ROOT, Interrupt, NONE, 0, 0),
            (0, Function, 0, 1, 5),
            (1, Function, 1, 1, 2),
            (ROOT, Thread, NONE, 0, 0),
            (3, Function, 2, 2, 7),
            (4, Function, 3, 2, 2),
            (5, Function, 1, 2, 3),
            (3, User, NONE, 0, 8),
        ],
    );
    let difference = difference(&base, &other);
    assert_eq!(difference.sums(), [true, true]);
    assert_eq!((difference.path_rest, difference.change()), ([0, 0], -1));
    let name = |frame: &RowFrame| match frame {
        PathFrame::Function(row) => difference.functions[*row].name.clone(),
        other => format!("{other:?}"),
    };
    let mut lines = Vec::new();
    for (at, row) in difference.paths.iter().enumerate() {
        assert!(row.parent.is_none_or(|parent| parent < at));
        let mut path: Vec<String> = upwards(&difference.paths, at).map(|path| name(&path.frame)).collect();
        path.reverse();
        let figures = row.figures.map(|f| format!("{}/{}/{}", f.calls, f.self_ticks, f.total_ticks));
        lines.push(format!("{}: {}", path.join(" "), figures.join(" ")));
    }
    assert_eq!(
        lines,
        [
            "Thread(\"rr\"): 0/0/24 0/0/20",
            "Thread(\"rr\") read: 2/10/16 2/9/12",
            "Thread(\"rr\") read copy: 3/6/6 2/3/3",
            "Thread(\"rr\") User: 0/8/8 0/8/8",
            "Interrupt: 0/0/4 0/0/7",
            "Interrupt irq: 1/4/4 1/5/7",
            "Interrupt irq copy: 0/0/0 1/2/2",
        ]
    );
}

#[test]
fn a_region_and_those_within_it() {
    let mut base = profile(&[("a", 1, 10), ("b", 1, 20)], 0, 0);
    base.tables.regions[0].name = "outer".into();
    base.tables.regions.push(region(1, "inner", 1, 20, 4, 0));
    base.tables.regions.push(region(2, "next", 0, 3, 0, 3));
    base.tables.functions[1].region = 1;
    let scope = |name| RegionScope::named(&base.tables, name);
    let inner = scope("inner").unwrap();
    assert!(scope("none").is_none() && !inner.contains(0) && inner.contains(1) && !inner.contains(9));
    let difference = difference_within([&base, &base], [&inner, &scope("outer").unwrap()]);
    assert_eq!(shown(&difference), ["a -: 0 -> 10", "b -: 20 -> 20"]);
    assert_eq!(
        difference.totals.map(|whole| (whole.elapsed_ticks.0, whole.operations)),
        [(24, 10), (30, 10)]
    );
    // Idle time of the outer region is made up here: 4 ns of the inner one are not in it.
    assert_eq!(difference.change(), 6);
}

#[test]
fn what_is_in_no_function_is_said() {
    let mut base = profile(&[("a", 1, 10)], 0, 0);
    base.tables.regions[0].busy_ticks = Ticks(17);
    base.tables.regions[0].elapsed_ticks = Ticks(17);
    let difference = difference(&base, &profile(&[("a", 1, 10)], 0, 0));
    assert_eq!((difference.function_rest, difference.change()), ([7, 0], -7));
    assert_eq!(difference.sums(), [true, true]);
}

const NAMES: [&str; 9] = [
    "foo",
    "foo.constprop.0",
    "foo.cold",
    "foo@fs/a.c",
    "foo.part.0@fs/a.c",
    "foo@net/b.c",
    "bar@mm/c.c",
    "bar.isra.1",
    "bar@c.c",
];

fn any_profile() -> impl Strategy<Value = Profile> {
    let functions = proptest::collection::vec((0..NAMES.len(), 0..9u64, 0..1_000u64), 0..9);
    let paths =
        proptest::collection::vec((any::<u32>(), 0..6usize, any::<u32>(), 0..9u64, 0..1_000u64), 0..40);
    (functions, paths, 0..99u64, 0..99u64).prop_map(|(functions, paths, idle, user)| {
        let functions: Vec<Function> = functions.into_iter().map(|(n, c, t)| (NAMES[n], c, t)).collect();
        let mut profile = profile(&functions, idle, user);
        let many = functions.len().max(1) as u32;
        let kind = |at: usize| PathKind::ALL[at];
        let rows: Vec<_> = paths
            .into_iter()
            .enumerate()
            .map(|(at, (parent, k, f, calls, net))| {
                let parent = if at == 0 || parent % 4 == 0 { PathNode::ROOT } else { parent % at as u32 };
                (parent, kind(k), f % many, calls, net)
            })
            .collect();
        add_paths(&mut profile, &rows);
        profile
    })
}

proptest! {
    #[test]
    fn parts_always_sum_to_the_whole(base in any_profile(), other in any_profile()) {
        let difference = difference(&base, &other);
        prop_assert_eq!(difference.sums(), [true, true]);
        let net = |side: usize| difference.functions.iter().map(|row| row.self_ticks(side)).sum::<i128>();
        let calls = |side: usize| difference.paths.iter().map(|row| row.figures[side].self_ticks).sum::<i128>();
        for (side, profile) in [&base, &other].into_iter().enumerate() {
            let tables = &profile.tables;
            prop_assert_eq!(net(side), tables.functions.iter().map(|r| i128::from(r.self_ticks.0)).sum::<i128>());
            prop_assert_eq!(calls(side), tables.paths.iter().map(|r| i128::from(r.self_ticks.0)).sum::<i128>());
            // Elapsed times of the roots are everything.
            let roots = difference.paths.iter().filter(|row| row.parent.is_none());
            prop_assert_eq!(roots.map(|row| row.figures[side].total_ticks).sum::<i128>(), calls(side));
        }
    }

    #[test]
    fn a_profile_does_not_differ_from_itself(profile in any_profile()) {
        let difference = difference(&profile, &profile);
        prop_assert_eq!(difference.change(), 0);
        prop_assert!(difference.functions.iter().all(|row| row.self_change() == 0 && row.calls_change() == 0));
        prop_assert!(difference.paths.iter().all(|row| row.figures[0] == row.figures[1]));
        prop_assert!(difference.functions.iter().all(|row| row.symbols.iter().all(Vec::is_empty)));
    }
}
