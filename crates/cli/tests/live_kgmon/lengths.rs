//! The path of each operation: kernel instructions between two of a suite's marks, without those of interrupts.

use kerntune_analyze::events::{replay, Bounds, Machine, Visitor};
use kerntune_analyze::TraceFile;
use kerntune_machine::Outcome;
use kerntune_trace::{Event, How, Weights};
use std::collections::BTreeMap;

/// Lengths in the order of the operations, by outer region and row.
pub type Lengths = BTreeMap<(String, String), Vec<u64>>;

struct Paths<'a> {
    names: &'a [String],
    /// Open regions, outermost first.
    open: Vec<u32>,
    length: u64,
    lengths: Lengths,
}

impl Visitor for Paths<'_> {
    type Frame = ();

    fn pass(&mut self, machine: &mut Machine<()>, ns: u64, _: Weights, _: &Event) {
        // Without a frame it is user code.
        let frames = machine.frames();
        if !frames.is_empty() && !frames.iter().any(|frame| frame.how == How::Interrupt) {
            self.length += ns;
        }
    }

    fn region_begun(&mut self, _: &mut Machine<()>, region: u32) {
        self.open.push(region);
        self.length = 0;
    }

    fn region_ended(&mut self, _: &mut Machine<()>, region: u32) {
        self.open.retain(|open| *open != region);
    }

    fn operation(&mut self, _: &mut Machine<()>) {
        let length = std::mem::take(&mut self.length);
        if let [outer, row] = self.open[..] {
            let key = (self.names[outer as usize].clone(), self.names[row as usize].clone());
            self.lengths.entry(key).or_default().push(length);
        }
    }
}

/// Of all operations that the recorder saw.
pub fn recorded(outcome: &Outcome) -> Lengths {
    let recording = outcome.recording.as_ref().unwrap();
    let names: Vec<String> = recording.regions.iter().map(|region| region.name.clone()).collect();
    let file = std::fs::File::open(outcome.trace()).unwrap();
    let trace = TraceFile::open(&file, recording).unwrap();
    let mut paths = Paths { names: &names, open: Vec::new(), length: 0, lengths: Lengths::new() };
    let mut machine = Machine::new(Bounds::of(recording));
    let mut reader = trace.reader().unwrap();
    for number in 0..trace.chunks() {
        replay(&mut machine, &mut paths, &reader.read(number).unwrap()).unwrap();
    }
    paths.lengths
}
