//! Path lengths of operations: kernel instructions between two marks of a suite, without
//! interrupts.

use kerntune_analyze::events::{replay, EventVisitor, ReplayState, TraceBounds};
use kerntune_analyze::TraceFile;
use kerntune_machine::RunOutcome;
use kerntune_trace::{EnterKind, Event, EventWeights};
use std::collections::BTreeMap;

/// Path lengths in the order of operations, by outer region and row.
pub type PathLengths = BTreeMap<(String, String), Vec<u64>>;

struct PathLengthCollector<'a> {
    names: &'a [String],
    length: u64,
    lengths: PathLengths,
}

impl EventVisitor for PathLengthCollector<'_> {
    type PerFrame = ();

    fn pass(&mut self, machine: &mut ReplayState<()>, ns: u64, _: EventWeights, _: &Event) {
        // Code without a frame is user code.
        let frames = machine.frames();
        if !frames.is_empty() && !frames.iter().any(|frame| frame.how == EnterKind::Interrupt) {
            self.length += ns;
        }
    }

    fn region_begun(&mut self, _: &mut ReplayState<()>, _: u32) {
        self.length = 0;
    }

    fn operation(&mut self, machine: &mut ReplayState<()>) {
        let length = std::mem::take(&mut self.length);
        if let [outer, row] = *machine.regions() {
            let key = (self.names[outer as usize].clone(), self.names[row as usize].clone());
            self.lengths.entry(key).or_default().push(length);
        }
    }
}

/// Returns the path lengths of all recorded operations.
pub fn recorded(outcome: &RunOutcome) -> PathLengths {
    let recording = outcome.recording.as_ref().unwrap();
    let names: Vec<String> = recording.regions.iter().map(|region| region.name.clone()).collect();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut paths = PathLengthCollector { names: &names, length: 0, lengths: PathLengths::new() };
    let mut machine = ReplayState::new(TraceBounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut paths, &reader.read(number).unwrap()).unwrap();
    }
    paths.lengths
}
