//! Tests of the reader.

use super::*;

#[test]
fn samples_headers_and_the_kernels_place_are_read() {
    let text = "\
# os release : 6.12.117
# nrcpus online : 4
# event : name = cycles:k
 swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff9a000000(0x1000000) @ 0xffffffff9a000000]: x [kernel.kallsyms]_text
 rr 12 [002] 1.5: PERF_RECORD_MMAP2 12/12: [0x400000(0x1000) @ 0 fe:01 5 6]: r-xp /bin/rr
 [002]  ffffffff9a000190  0x30/0x60/P/-/-/7  0x10/0x20/M/-/-/0
 [000]
        ffffffff9a000190
 0x30/0x60/P/-/-/0 0x50/0x40/P/-/-/0
 0 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0 0x0/0x8/P/-/-/0

";
    let stacks = BranchStacks::read(text.as_bytes()).unwrap();
    let [part] = &stacks.parts[..] else { panic!("{stacks:?}") };
    assert_eq!((part.release.as_deref(), part.cpus_online), (Some("6.12.117"), Some(4)));
    assert_eq!(part.kernel_at, Some(0xffff_ffff_9a00_0000));
    assert_eq!((stacks.samples, stacks.silent_cpus()), (3, Some(2)));
    assert_eq!((stacks.sample_lines, stacks.strange.lines), (3, 0));
    assert_eq!(part.cpus, BTreeMap::from([(0, 1), (2, 1)]));
    let branches = [((0x0, 0x8), 1), ((0x10, 0x20), 2), ((0x30, 0x60), 3), ((0x50, 0x40), 1)];
    assert_eq!(part.branches, BTreeMap::from(branches));
    // There is no straight code from 0x40 back to 0x30.
    assert_eq!(part.runs, BTreeMap::from([((0x8, 0x10), 1), ((0x20, 0x30), 2)]));
}

#[test]
fn what_is_not_understood_is_counted_and_the_first_is_named() {
    // The second entry of line 2 is damaged, line 3 is cut off in an address, line 5 is not from
    // perf, line 6 counts no sample.
    let text = "\
 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0
 0x30/0x60/P/-/-/0 0xzz/0x50/P/-/-/0 0x10/0x20/P/-/-/0
 0x30/0x6

once upon a \u{1b}[31mtime
7
8
 0x30/0x60/P/-/-/0
";
    let stacks = BranchStacks::read(text.as_bytes()).unwrap();
    assert_eq!((stacks.samples, stacks.sample_lines, stacks.strange.lines), (9, 2, 4));
    let first = (2, " 0x30/0x60/P/-/-/0 0xzz/0x50/P/-/-/0 0x10/0x20/P/-/-/0".trim().to_string());
    assert_eq!(stacks.strange.first, Some(first));
    assert_eq!(stacks.parts[0].runs, BTreeMap::from([((0x20, 0x30), 1)]));
    assert!((stacks.unparsed_share() - 4.0 / 6.0).abs() < 1e-9);
    let alone = BranchStacks::read(&b"\x1b[31mred\n"[..]).unwrap();
    assert_eq!(alone.strange.first, Some((1, "[31mred".into())));
}

#[test]
fn counts_that_overflow_are_refused() {
    let refused = |text: &str| BranchStacks::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        refused("\n18446744073709551616\n 0x30/0x60/P/-/-/0\n"),
        "line 2: the counts overflow 64 bits: 18446744073709551616"
    );
    let twice = "18446744073709551615\n 0x30/0x60/P/-/-/0\n".repeat(2);
    assert!(refused(&twice).starts_with("line 4: the counts overflow 64 bits: 0x30/0x60"));
    assert!(refused(&"x".repeat(1 << 21)).starts_with("line 1 is longer than 1048576 bytes"));
}

#[test]
fn text_without_branches_has_no_samples() {
    let stacks =
        BranchStacks::read(&b"swapper 0 [000] 1.0: cycles: ffffffff81000000 x\n\xff/\n"[..]).unwrap();
    assert_eq!((stacks.samples, stacks.silent_cpus(), stacks.strange.lines), (0, None, 1));
    assert!(stacks.parts.is_empty());
}

#[test]
fn a_count_is_a_line_of_digits_before_a_stack_of_our_own() {
    let read = |text: &str| BranchStacks::read(text.as_bytes()).unwrap();
    let own = "PERF_RECORD_MMAP -1/0: [0x0(0x9) @ 0x0]: x [kernel.kallsyms]_text\n3\n 0 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0\n";
    let stacks = read(own);
    assert_eq!((stacks.samples, stacks.parts[0].runs[&(0x20, 0x30)], stacks.strange.lines), (3, 3, 0));
    // Process numbers: in perf's text, with the blank that perf writes after them, and without
    // either.
    for of_perf in [
        "# os release : 6.12.117\n1234567\n     99 0x30/0x60/P/-/-/0\n",
        "rr 1 PERF_RECORD_MMAP -1/0: [0x0(0x9) @ 0x0]: x [kernel.kallsyms]_text\n1234567\n 99 0x30/0x60/P/-/-/0\n",
        "1234567 \n     99 0x30/0x60/P/-/-/0\n",
        "1234567 \r\n 0x30/0x60/P/-/-/0\r\n",
        // A header decides, whatever a record looks like.
        "# os release : 6.12.117\nPERF_RECORD_MMAP -1/0: [0x0(0x9) @ 0x0]: x [kernel.kallsyms]_text\n1234567\n 99 0x30/0x60/P/-/-/0\n",
    ] {
        let stacks = read(of_perf);
        assert_eq!((stacks.samples, stacks.strange.lines), (1, 0), "{of_perf}");
    }
    let stacks = read("1234567\n     99 0x30/0x60/P/-/-/0\n");
    assert_eq!((stacks.samples, stacks.strange.first), (1, Some((1, "1234567".into()))));
}

#[test]
fn branches_that_were_not_taken_are_passed_over() {
    let text = "\
 0x50/0x60/P/-/-/0/COND/NON_SPEC_CORRECT_PATH 0x11/0x12/P/-/-/0/COND/SPEC_WRONG_PATH 0x40/0x48/MN/-/-/0 0x30/0x40/P/-/-/0//SPEC_CORRECT_PATH
 0x50/0x60/P/-/-/0/COND/SPEC_WRONG_PATH
";
    let stacks = BranchStacks::read(text.as_bytes()).unwrap();
    assert_eq!((stacks.samples, stacks.speculated, stacks.strange.lines), (2, 3, 0));
    assert_eq!(stacks.parts[0].branches, BTreeMap::from([((0x30, 0x40), 1), ((0x50, 0x60), 1)]));
    assert_eq!(stacks.parts[0].runs, BTreeMap::from([((0x40, 0x50), 1)]));
}

#[test]
fn another_header_or_place_begins_another_part() {
    let map = |at: &str| {
        format!(" rr 0 [000] 0.0: PERF_RECORD_MMAP -1/0: [0x0(0x9) @ {at}]: x [kernel.kallsyms]_text\n")
    };
    let header = |release: &str| format!("# hostname : box\n# os release : {release}\n# nrcpus online : 2\n");
    let sample = " [001] 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0\n";
    let parts = |text: String| {
        let stacks = BranchStacks::read(text.as_bytes()).unwrap();
        let silent = stacks.silent_cpus();
        let part =
            |part: &BootSamples| (part.release.clone().unwrap_or_default(), part.kernel_at, part.samples);
        (stacks.parts.iter().map(part).collect::<Vec<_>>(), silent)
    };
    let (one, two) =
        (|samples| ("6.1".to_string(), Some(0x10), samples), |release: &str| (release.into(), Some(0x20), 1));
    let both = format!("{}{}{sample}{}{}{sample}", header("6.1"), map("0x10"), header("6.2"), map("0x20"));
    assert_eq!(parts(both), (vec![one(1), two("6.2")], Some(2)));
    let places = format!("{}{}{sample}{}{sample}", header("6.1"), map("0x10"), map("0x20"));
    assert_eq!(parts(places), (vec![one(1), two("6.1")], Some(2)));
    // A header before another one belongs to a kernel too, even without a sample.
    let headers = format!("{}{}{}{sample}", header("6.0"), header("6.1"), map("0x10"));
    assert_eq!(parts(headers).0, [("6.0".into(), None, 0), one(1)]);
    // Two files of one boot: a CPU is missing only if neither has it.
    let sample_of_0 = " [000] 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0\n";
    let one_boot =
        format!("{}{}{sample}{}{}{sample_of_0}", header("6.1"), map("0x10"), header("6.1"), map("0x10"));
    assert_eq!(parts(one_boot), (vec![one(2)], Some(0)));
    // The same address again is the same boot.
    let again = format!("{}{}{sample}{}{sample}", header("6.1"), map("0x10"), map("0x10"));
    assert_eq!(parts(again).0, [one(2)]);
}

#[test]
fn what_else_looks_like_a_cpu_or_an_address() {
    let text =
        " worker [7] 1000 [002] 1.0: cycles: ffffffff81000000 x ([kernel.kallsyms]) 0x30/0x60/P/-/-/0\n";
    let stacks = BranchStacks::read(text.as_bytes()).unwrap();
    assert_eq!((&stacks.parts[0].cpus, stacks.longest), (&BTreeMap::from([(2, 1)]), 1));
    let error = BranchStacks::read(&b" buildid:3b31:0x30/buildid:3b31:0x60/P/-/-/0\n"[..]).unwrap_err();
    assert!(error.to_string().starts_with("line 1: its addresses have a build id before them"), "{error}");
}
