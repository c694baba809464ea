//! Names files and dumps of McRae's profiler, and the analysis of what they come to.
#![no_main]

use kerntune_analyze::{analyze, Input};
use kerntune_convert::mcrae::{replay, Dump, Names, Order};
use kerntune_profile::{Address, FunctionIndex, Symbol};
use std::ops::ControlFlow;

/// Names for those inputs that have none of their own.
const NAMES: &str = "a/2\nb/4\nc/6\nswtch/8!\nother/10!\np/12=\n";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // A names file, a NUL, a dump; or a dump.
    let (text, rest) =
        bytes.iter().position(|&byte| byte == 0).map_or((&[][..], bytes), |at| bytes.split_at(at));
    let text = std::str::from_utf8(text).unwrap_or_default();
    let names = Names::parse([("names", text)]).unwrap_or_default();
    let names = match names.all() {
        [] => Names::parse([("names", NAMES)]).unwrap_or_default(),
        _ => names,
    };
    for order in [Order::Little, Order::Big] {
        let Ok(dump) = Dump::read(rest, order) else { continue };
        let Ok(imported) = replay(&names, &dump, Vec::new()) else { continue };
        let mut symbols: Vec<Symbol> = Vec::new();
        for (name, tag) in imported.functions.into_iter().chain([("[unknown code]".into(), 0)]) {
            let function = FunctionIndex(symbols.len() as u32);
            symbols.push(Symbol {
                function,
                name,
                address: Address(tag.into()),
                size: 2,
                file: None,
                module: None,
            });
        }
        let points: Vec<_> = imported.points.into_iter().map(|name| (name, FunctionIndex::NONE)).collect();
        let trace = imported.trace.as_slice();
        let input =
            Input { points: &points, threads: 1, ..Input::new(&trace, &imported.recording, &symbols) };
        let analysis = analyze(&input, &mut |_| ControlFlow::Continue(())).expect("what we write is read");
        for what in ["stack_mismatches", "running_mismatches", "clock_mismatches", "region_mismatch_ns"] {
            assert_eq!(analysis.health.get(what).copied().unwrap_or(0), 0, "{what}");
        }
        assert_eq!(analysis.health.get("unmatched_exits").copied().unwrap_or(0), 0);
    }
});
