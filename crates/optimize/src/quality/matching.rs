//! Matching of functions between two kernels.

use super::shape::CodeShape;
use super::LinkedCode;
use kerntune_profile::source_name;

/// Similarity of a function to its namesake, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FunctionLikeness {
    /// Same instructions, except for addresses, offsets and constants.
    Instructions,
    /// Same basic blocks with other instructions.
    Flow,
    /// Same name only.
    Name,
}

/// A function and its counterpart of the same name in the other kernel.
#[derive(Debug, Clone)]
pub(super) struct NamesakePair {
    /// Similarity of the two.
    pub likeness: FunctionLikeness,
    /// Number of the counterpart.
    pub other: usize,
    /// Shapes of the function and of its counterpart.
    shapes: [CodeShape; 2],
}

impl NamesakePair {
    /// Finds the counterpart in `to` of function `at` of `from`; `None` without one of that name.
    /// Among several namesakes it takes the most similar one, then that of the same file, then that
    /// with the same suffix (`.isra.0`), then the one at the same position among the namesakes.
    pub fn of(from: &LinkedCode, at: usize, to: &LinkedCode) -> Option<Self> {
        let function = from.symbols().functions().get(at)?;
        let shape = from.shape(at)?;
        let (name, cold) = source_name(&function.name);
        let place = from.namesakes(name, cold).iter().position(|namesake| *namesake == at)?;
        let candidates = to.namesakes(name, cold).iter().zip(0usize..).filter_map(|(&other, number)| {
            let there = to.shape(other)?;
            let likeness = if shape.same_instructions(&there) {
                FunctionLikeness::Instructions
            } else if shape.same_flow(&there) {
                FunctionLikeness::Flow
            } else {
                FunctionLikeness::Name
            };
            let namesake = &to.symbols().functions()[other];
            let elsewhere = namesake.file != function.file;
            let renamed = namesake.name != function.name;
            Some(((likeness, elsewhere, renamed, number.abs_diff(place)), other, there))
        });
        let ((likeness, ..), other, there) = candidates.min_by_key(|(rank, ..)| *rank)?;
        Some(Self { likeness, other, shapes: [shape, there] })
    }

    /// Returns the address of the corresponding instruction; `None` if there is none, and for
    /// functions that share only the name.
    ///
    /// Code that the kernel patches at run time has instructions where its image has none. An
    /// address inside an instruction that is equally long in both kernels is mapped to the same
    /// offset.
    pub fn counterpart(&self, address: u64) -> Option<u64> {
        let [here, there] = &self.shapes;
        let at = here.at(address)?;
        let step = here.steps[at];
        let target = there.steps.get(self.number(at)?)?;
        let inside = address - step.address;
        (inside == 0 || step.length == target.length).then_some(target.address + inside)
    }

    /// Returns the number of the instruction that corresponds to number `at`. In blocks with
    /// different instructions the first and the last ones correspond, and those in between by their
    /// relative position.
    fn number(&self, at: usize) -> Option<usize> {
        let [here, there] = &self.shapes;
        match self.likeness {
            FunctionLikeness::Instructions => Some(at),
            FunctionLikeness::Flow => {
                let block = here.blocks.partition_point(|first| *first <= at).checked_sub(1)?;
                let bounds = |shape: &CodeShape| {
                    let first = *shape.blocks.get(block)?;
                    let end = shape.blocks.get(block + 1).copied().unwrap_or(shape.steps.len());
                    Some((first, end.checked_sub(first)?.checked_sub(1)?))
                };
                let ((first, last), (other_first, other_last)) = (bounds(here)?, bounds(there)?);
                let inside = at - first;
                let scaled = if inside == last { other_last } else { inside * other_last / last.max(1) };
                Some(other_first + scaled)
            }
            FunctionLikeness::Name => None,
        }
    }

    /// Returns the number of instructions from `start` to `last` in the other function, and the
    /// bytes to the end of the latter. `None` if `last` is before `start` or one of them is
    /// outside.
    pub fn extent(&self, start: u64, last: u64) -> Option<(u64, u64)> {
        let there = &self.shapes[1];
        let (first, end) = (there.at(start)?, there.at(last)?);
        let step = there.steps[end];
        let instructions = end.checked_sub(first)? as u64 + 1;
        let bytes = (step.address + step.length).checked_sub(start).filter(|_| start <= last)?;
        Some((instructions, bytes))
    }
}
