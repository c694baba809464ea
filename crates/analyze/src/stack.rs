//! Open calls.

use crate::accounts::NO_CALLER;
use crate::books::Books;
use crate::known::Known;
use crate::tree::Place;
use kerntune_trace::How;

/// An open call as one chunk sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub function: u32,
    pub how: How,
    /// It was open where the chunk begins: its times here are the chunk's part of it.
    pub carried: bool,
    /// It was open when its time went to the books: that it was made is counted.
    pub counted: bool,
    /// Where it is counted, as long as [`Stack::region`] is the current one.
    pub place: Place,
    /// Net time that is in no account yet.
    pub net: u64,
    /// Net time that is.
    pub credited: u64,
    /// Elapsed time of callees that ended.
    pub callees: u64,
    /// Virtual time at which it began; of no meaning if it was carried.
    pub begin: u64,
}

impl Frame {
    pub const fn new(function: u32, how: How, place: Place, begin: u64) -> Self {
        let (carried, counted) = (false, false);
        Self { function, how, carried, counted, place, net: 0, credited: 0, callees: 0, begin }
    }
}

/// The end of a frame that was carried: the region in which it ended, and its times in this chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub region: u32,
    pub net: u64,
    pub callees: u64,
}

/// Stands for no region: [`Frame::place`] is of no meaning.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A thread's open frames.
#[derive(Debug)]
pub(crate) struct Stack {
    pub frames: Vec<Frame>,
    /// How many of them an interrupt entered.
    pub interrupts: u32,
    /// The region in whose tree [`Frame::place`] and `root` are.
    pub region: u32,
    pub root: u32,
    /// Whether it ran in this chunk.
    pub ran: bool,
    /// The carried frames that ended, in order.
    pub ended: Vec<Ended>,
}

impl Stack {
    pub const fn new() -> Self {
        Self { frames: Vec::new(), interrupts: 0, region: NOWHERE, root: 0, ran: false, ended: Vec::new() }
    }

    /// Makes it what a chunk says it is.
    pub fn reset(&mut self, said: &[(u32, How)]) {
        self.frames.clear();
        self.ended.clear();
        (self.interrupts, self.region, self.ran) = (0, NOWHERE, false);
        for &(function, how) in said {
            self.interrupts += u32::from(how == How::Interrupt);
            let frame = Frame::new(function, how, Place::NOWHERE, 0);
            self.frames.push(Frame { carried: true, counted: true, ..frame });
        }
    }

    /// Finds the frames' places in the tree of `region`.
    pub fn resolve(&mut self, books: &mut Books, known: &Known, thread: usize, region: u32) {
        self.region = region;
        self.root = books.tree.root(region, known.root_of[thread]);
        let frames = self.frames.iter_mut().map(|frame| (frame.function, frame.how, &mut frame.place));
        places(frames, books, known, self.root, region);
    }
}

/// Finds the places of frames, given from the outermost, below a root.
pub(crate) fn places<'a>(
    frames: impl Iterator<Item = (u32, How, &'a mut Place)>,
    books: &mut Books,
    known: &Known,
    root: u32,
    region: u32,
) {
    let (mut node, mut caller) = (root, NO_CALLER);
    for (function, how, place) in frames {
        if how == How::Interrupt {
            (node, caller) = (books.tree.root(region, known.interrupt_root), NO_CALLER);
        }
        *place = books.tree.enter(&mut books.accounts, node, caller, function, how);
        (node, caller) = (place.node, function);
    }
}
