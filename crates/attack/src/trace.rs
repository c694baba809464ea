//! Traces: the bytes of a chunk, whole files, and McRae's dumps.

use kerntune_analyze::anatomy::{anatomy, AnatomyRequest};
use kerntune_analyze::path::{collect, PathSelection, PathSpan};
use kerntune_analyze::timeline::{stream, StreamSelection, TimelineSink};
use kerntune_analyze::{analyze, Analysis, AnalysisInput, TraceFile};
use kerntune_champsim::{convert, InstructionFilter};
use kerntune_convert::stacks::FigureUnit;
use kerntune_convert::{firefox, perfetto};
use kerntune_mcrae::{
    replay, DumpByteOrder, RecordDecoder as StreamDecoder, RecordReader, StreamFormat, TagDump, TagNames,
};
use kerntune_profile::{Address, FunctionIndex, Symbol, Tables};
use kerntune_trace::stream::{pack, StreamReader};
use kerntune_trace::{
    counts::ExecutionCounts, encode, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, EventDecoder,
    ModeCounters, OpenStack, RecordedRegion, RecordedThread, Recording, RecordingHealth, TagLayout,
    TraceFileWriter, TraceHeader, VERSION,
};
use std::ops::ControlFlow;

const FUNCTIONS: u32 = 12;
const THREADS: u32 = 4;

/// Maps numbers to existing ones, so that most inputs get past the checks of numbers.
fn tame(event: Event) -> Event {
    match event {
        Event::Enter { function, how } => Event::Enter { function: function % FUNCTIONS, how },
        Event::Switch { thread } => Event::Switch { thread: thread % THREADS },
        Event::RegionBegin { .. } | Event::RegionEnd { .. } => Event::Operation,
        Event::Point { .. } => Event::Point { point: 0 },
        Event::Idle { ns } => Event::Idle { ns: ns % 1_000_000 },
        other => other,
    }
}

/// The records of an instruction stream, and the same bytes as the whole file.
pub fn instructions(bytes: &[u8]) {
    let packed = pack(bytes).expect("memory");
    for file in [&packed[..], bytes] {
        if let Ok(stream) = StreamReader::new(file) {
            let _ = convert(stream, InstructionFilter::All, &mut Vec::new());
        }
    }
}

fn trace(pieces: &[&[u8]], wide: bool) -> (Vec<u8>, Recording) {
    let mut writer = TraceFileWriter::new(Vec::new(), TraceHeader { wide }).expect("memory");
    let (mut now, mut total) = (0u64, 0u64);
    for (sequence, piece) in pieces.iter().enumerate() {
        let mut raw = Vec::new();
        let frames =
            piece.iter().take(3).map(|byte| (u32::from(*byte) % FUNCTIONS, EnterKind::Call)).collect();
        let thread = u32::from(piece.first().copied().unwrap_or(0)) % THREADS;
        let stacks = vec![OpenStack { thread, running: true, frames }];
        ChunkState {
            user: false,
            regions: if sequence > 0 { vec![0] } else { vec![] },
            stacks,
            ..ChunkState::default()
        }
        .write(&mut raw);
        let state = raw.len();
        let begin = now;
        let mut events = 0;
        if sequence == 0 {
            put(&mut raw, wide, 0, Event::RegionBegin { region: 0 });
            events += 1;
        }
        let mut decoder = EventDecoder::with_width(piece, wide);
        while let Ok(Some((delta, event))) = decoder.next() {
            let (delta, event) = (delta % 100_000, tame(event));
            now += delta;
            if let Event::Idle { ns } = event {
                now += ns;
            }
            put(&mut raw, wide, delta, event);
            events += 1;
        }
        if events == 0 {
            put(&mut raw, wide, 0, Event::Operation);
            events = 1;
        }
        total += u64::from(events);
        let header = ChunkHeader {
            vcpu: 0,
            sequence: sequence as u32,
            events,
            begin,
            end: now,
            state: state as u32,
            payload: (raw.len() - state) as u32,
            compressed: 0,
        };
        writer.chunk(header, &raw).expect("memory");
    }
    let (bytes, chunks) = writer.finish().expect("memory");
    let thread = |pid| RecordedThread { task: 1 + u64::from(pid), pid, tgid: pid, comm: format!("t{pid}") };
    let region = RecordedRegion {
        name: "all".into(),
        begin_ns: 0,
        elapsed_ns: now,
        idle_ns: 0,
        operations: 0,
        depth: 0,
        closed: false,
        kernel: ModeCounters::default(),
        user: ModeCounters::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: wide },
        kernel_functions: FUNCTIONS - 4,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region],
        threads: (0..THREADS).map(thread).collect(),
        chunks,
        events: total,
        health: RecordingHealth::default(),
        notes: Vec::new(),
    };
    (bytes, recording)
}

fn put(raw: &mut Vec<u8>, wide: bool, delta: u64, event: Event) {
    match wide {
        true => encode::wide_event(raw, delta, kerntune_trace::EventWeights::NONE, event),
        false => encode::event(raw, delta, event),
    }
}

/// Compares self time of a region's functions, user and unattributed time with its threads' time.
fn adds_up(analysis: &Analysis) {
    let tables = &analysis.tables;
    let functions: u64 = tables.functions.iter().map(|row| row.self_ticks.get()).sum();
    let regions: u64 = tables.regions.iter().map(|row| row.unattributed_ticks.get()).sum();
    let paths: u64 = tables.paths.iter().map(|row| row.self_ticks.get()).sum();
    let threads: u64 = tables.threads.iter().map(|row| row.self_ticks.get()).sum();
    assert_eq!(paths, threads);
    assert!(functions + regions <= threads);
}

/// A whole trace of any events, cut into chunks anywhere, some of them damaged. The analysis
/// returns a result or an error; the result is the same with one thread and three, and its times
/// add up.
pub fn whole(bytes: &[u8]) {
    let [flags, damage, rest @ ..] = bytes else { return };
    let wide = flags & 1 == 1;
    let pieces: Vec<&[u8]> = rest.chunks((rest.len() / (1 + usize::from(flags >> 1) % 5)).max(1)).collect();
    let (mut trace, recording) = trace(&pieces, wide);
    let chunks = trace.len() - 16;
    if *damage != 0 && chunks > 0 {
        let at = 16 + usize::from(*damage) * 31 % chunks;
        trace[at] ^= 1 << (damage % 8);
    }
    let symbol =
        |number| Symbol { function: FunctionIndex(number), name: format!("f{number}"), ..Symbol::default() };
    let symbols: Vec<Symbol> = (0..FUNCTIONS).map(symbol).collect();
    let source = trace.as_slice();
    let go = &mut |_| ControlFlow::Continue(());
    for partial in [false, true] {
        let points = [("p".to_string(), FunctionIndex(1))];
        let input = AnalysisInput {
            partial,
            threads: 1,
            points: &points,
            ..AnalysisInput::new(&source, &recording, &symbols)
        };
        let one = analyze(&input, go);
        let three = analyze(&AnalysisInput { threads: 3, ..input }, go);
        match (one, three) {
            (Ok(one), Ok(three)) => {
                adds_up(&one);
                assert_eq!(one, three);
            }
            (Err(_), Err(_)) => {}
            (one, three) => panic!("{:?} against {:?}", one.err(), three.err()),
        }
    }
    if let Ok(trace) = TraceFile::open(&source, &recording) {
        let end = recording.chunks.last().map_or(0, |chunk| chunk.end_ns);
        let _ = collect(
            &trace,
            FUNCTIONS as usize,
            &PathSelection {
                span: PathSpan::Window { begin_ns: 0, end_ns: end },
                ..PathSelection::default()
            },
        );
        let until: Vec<bool> = (0..FUNCTIONS).map(|function| function == 2).collect();
        for partial in [false, true] {
            let (function, functions) = (FunctionIndex(1), FUNCTIONS as usize);
            let request = AnatomyRequest { function, functions, regions: &[true], until: &until, partial };
            if let Ok(found) = anatomy(&trace, &request, go) {
                let net: u64 = found.nodes.iter().map(|node| node.all.whole.self_ticks).sum();
                assert_eq!(net, found.all.ns.sum);
            }
        }
        exported(&trace, symbols);
    }
}

/// Exports of a trace return an error or the whole trace, and their samples add up.
fn exported(trace: &TraceFile<'_>, symbols: Vec<Symbol>) {
    let tables = Tables { symbols, ..Tables::default() };
    let go = &mut |_| ControlFlow::Continue(());
    for part in
        [StreamSelection::ALL, StreamSelection { from: 7, to: 5000, regions: Some(vec![true]), events: 100 }]
    {
        let mut calls = perfetto::PerfettoTimeline::new(std::io::sink(), "t", &tables, trace.recording);
        let _ = stream(trace, &part, &mut calls, go);
        calls.finish().expect("a sink takes all");
        let unit = FigureUnit::Instructions;
        let about =
            firefox::FirefoxMetadata { title: "t", creator: "t", unit, recorded_ms: 0.0, left_out: None };
        let mut samples = firefox::FirefoxTimeline::new(&about, &tables, trace.recording, 2_000);
        if let Ok(told) = stream(trace, &part, &mut samples, go) {
            assert!(samples.is_full() || samples.total == told.busy);
        }
        samples.finish(&about).expect("JSON takes all");
    }
}

/// All readers of the bytes inside a chunk.
pub fn chunk(bytes: &[u8]) {
    let _ = TraceHeader::parse(bytes);
    let _ = ChunkHeader::parse(bytes);
    let _ = ExecutionCounts::parse(bytes);
    if let Ok(state) = ChunkState::parse(bytes) {
        let mut again = Vec::new();
        state.write(&mut again);
        assert_eq!(ChunkState::parse(&again), Ok(state));
    }
    for wide in [false, true] {
        let mut decoder = EventDecoder::with_width(bytes, wide);
        while let Ok(Some(_)) = decoder.next() {}
    }
}

/// Names for inputs without a names file.
const NAMES: &str = "a/2\nb/4\nc/6\nswtch/8!\nother/10!\np/12=\n";

/// McRae's layout, one with widths of parts of bytes, and the widest with the longest ticks.
fn layouts() -> [TagLayout; 3] {
    let layout = |tag, clock, tick| TagLayout::new(tag, clock, tick).expect("a layout");
    [TagLayout::MCRAE, layout(20, 33, 83_333), layout(64, 64, 1_000_000_000_000)]
}

/// Tags as they arrive, in each form: pieces give the same result as the whole.
pub fn mcrae_stream(bytes: &[u8]) {
    let forms = [
        StreamFormat::Records(DumpByteOrder::Little),
        StreamFormat::Records(DumpByteOrder::Big),
        StreamFormat::Text,
        StreamFormat::Uart,
    ];
    for (form, layout) in forms.into_iter().flat_map(|form| layouts().map(|layout| (form, layout))) {
        let whole = |pieces: &[&[u8]]| {
            let (mut decoder, mut out) = (StreamDecoder::new(form, layout), Vec::new());
            pieces.iter().try_for_each(|piece| decoder.push(piece, 5, &mut out))?;
            let rest = decoder.finish(&mut out)?;
            Ok::<_, kerntune_mcrae::DumpError>((out, rest))
        };
        let (a, b) = bytes.split_at(bytes.len() / 3);
        let once = whole(&[bytes]);
        assert_eq!(once, whole(&[a, b]));
        assert!(once.is_err() || once.is_ok_and(|(out, _)| out.len() <= bytes.len()));
        let _ = RecordReader::new(bytes, form, layout).take_while(Result::is_ok).count();
    }
}

/// Names files and dumps of McRae's profiler, and the analysis of the imported trace.
pub fn mcrae(bytes: &[u8]) {
    // A names file, a NUL, a dump; or a dump.
    let (text, rest) =
        bytes.iter().position(|&byte| byte == 0).map_or((&[][..], bytes), |at| bytes.split_at(at));
    let text = std::str::from_utf8(text).unwrap_or_default();
    let names = TagNames::parse([("names", text)]).unwrap_or_default();
    let names = match names.all() {
        [] => TagNames::parse([("names", NAMES)]).unwrap_or_default(),
        _ => names,
    };
    let orders = [DumpByteOrder::Little, DumpByteOrder::Big];
    for (order, layout) in orders.into_iter().flat_map(|order| layouts().map(|layout| (order, layout))) {
        let Ok(dump) = TagDump::read(rest, order, layout) else { continue };
        let Ok(imported) = replay(&names, &dump, Vec::new()) else { continue };
        let mut symbols: Vec<Symbol> = Vec::new();
        for (name, tag) in imported.functions.into_iter().chain([("[unknown code]".into(), 0)]) {
            let function = FunctionIndex(symbols.len() as u32);
            symbols.push(Symbol { function, name, address: Address(tag), size: 2, file: None, module: None });
        }
        let points: Vec<_> = imported.points.into_iter().map(|name| (name, FunctionIndex::NONE)).collect();
        let trace = imported.trace.as_slice();
        let input = AnalysisInput {
            points: &points,
            threads: 1,
            ..AnalysisInput::new(&trace, &imported.recording, &symbols)
        };
        let analysis = analyze(&input, &mut |_| ControlFlow::Continue(())).expect("what we write is read");
        for what in ["stack_mismatches", "running_mismatches", "clock_mismatches", "region_mismatch_ns"] {
            assert_eq!(analysis.health.get(what).copied().unwrap_or(0), 0, "{what}");
        }
        assert_eq!(analysis.health.get("unmatched_exits").copied().unwrap_or(0), 0);
    }
}
