//! Which function of one kernel is which of another.

use super::shape::Shape;
use super::Image;
use kerntune_profile::source_name;

/// How much of a function is the same in the other kernel, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// The same instructions, but for addresses, offsets and constants.
    Instructions,
    /// The same basic blocks, with other instructions in them.
    Flow,
    /// The name alone.
    Name,
}

/// A function and its namesake.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// How alike they are.
    pub likeness: Likeness,
    /// The shapes: that of the one, and of the other.
    shapes: [Shape; 2],
}

impl Pair {
    /// The function of `to` that function `at` of `from` is; None if it has none of that name. `at` may be one of
    /// several namesakes: meant is the one most alike, then that of the same file, then that with the same suffix
    /// (`.isra.0`), then the one as far down the list of namesakes.
    pub fn of(from: &Image, at: usize, to: &Image) -> Option<Self> {
        let function = from.symbols().functions().get(at)?;
        let shape = from.shape(at)?;
        let (name, cold) = source_name(&function.name);
        let place = from.namesakes(name, cold).iter().position(|namesake| *namesake == at)?;
        let candidates = to.namesakes(name, cold).iter().zip(0usize..).filter_map(|(&other, number)| {
            let there = to.shape(other)?;
            let likeness = if shape.same_instructions(&there) {
                Likeness::Instructions
            } else if shape.same_flow(&there) {
                Likeness::Flow
            } else {
                Likeness::Name
            };
            let namesake = &to.symbols().functions()[other];
            let elsewhere = namesake.file != function.file;
            let renamed = namesake.name != function.name;
            Some(((likeness, elsewhere, renamed, number.abs_diff(place)), there))
        });
        let ((likeness, ..), there) = candidates.min_by_key(|(rank, _)| *rank)?;
        Some(Self { likeness, shapes: [shape, there] })
    }

    /// Where the instruction at `address` is in the other function; None if nothing there stands for it, and in
    /// functions that share a name alone.
    ///
    /// Code that the kernel patches while it runs has instructions where its image has none: inside of an instruction that
    /// is as long in both, the place is the same.
    pub fn carry(&self, address: u64) -> Option<u64> {
        let [here, there] = &self.shapes;
        let at = here.at(address)?;
        let step = here.steps[at];
        let target = there.steps.get(self.number(at)?)?;
        let inside = address - step.address;
        (inside == 0 || step.length == target.length).then_some(target.address + inside)
    }

    /// The number in the other function of instruction `at` of the one. In blocks of other instructions the first is the
    /// first, the last the last, and what is between is where it is by its share of the block.
    fn number(&self, at: usize) -> Option<usize> {
        let [here, there] = &self.shapes;
        match self.likeness {
            Likeness::Instructions => Some(at),
            Likeness::Flow => {
                let block = here.blocks.partition_point(|first| *first <= at).checked_sub(1)?;
                let bounds = |shape: &Shape| {
                    let first = *shape.blocks.get(block)?;
                    let end = shape.blocks.get(block + 1).copied().unwrap_or(shape.steps.len());
                    Some((first, end.checked_sub(first)?.checked_sub(1)?))
                };
                let ((first, last), (other_first, other_last)) = (bounds(here)?, bounds(there)?);
                let inside = at - first;
                let scaled = if inside == last { other_last } else { inside * other_last / last.max(1) };
                Some(other_first + scaled)
            }
            Likeness::Name => None,
        }
    }

    /// Instructions from the one at `start` to the one at `last` in the other function, and bytes to the end of the latter.
    /// None if `last` is before `start` or either is none of its instructions.
    pub fn extent(&self, start: u64, last: u64) -> Option<(u64, u64)> {
        let there = &self.shapes[1];
        let (first, end) = (there.at(start)?, there.at(last)?);
        let step = there.steps[end];
        let instructions = end.checked_sub(first)? as u64 + 1;
        let bytes = (step.address + step.length).checked_sub(start).filter(|_| start <= last)?;
        Some((instructions, bytes))
    }
}
