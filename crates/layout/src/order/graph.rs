//! The call graph that is ordered, as plain data.

use crate::{Error, Result};

/// Most that the sizes of all functions, their weights, or the weights of all arcs may add up to: 2^60.
/// Below it no sum in this module overflows 64 bits and no product 128. At one instruction per nanosecond
/// it is 36 years.
pub const MOST: u64 = 1 << 60;

/// A function that can be placed: a node of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Bytes; 0 if unknown, which takes a place of one byte.
    pub size: u64,
    /// How much it ran, in a unit of the caller's choice (entries, instructions, samples), the same for all.
    pub weight: u64,
    /// Its first byte lies at a multiple of this many bytes; a power of two.
    pub alignment: u64,
}

impl Function {
    /// A function that may begin anywhere.
    pub fn new(size: u64, weight: u64) -> Self {
        Self { size, weight, alignment: 1 }
    }

    /// The same function with its first byte at a multiple of `alignment` bytes.
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }
}

/// Who calls whom, and how often: a directed edge of the graph. Several arcs may join the same two
/// functions, one for each call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Index of the function that calls.
    pub caller: usize,
    /// Index of the function that is called.
    pub callee: usize,
    /// How often.
    pub weight: u64,
    /// The call site, bytes from the caller's first; `None` if unknown, and then the middle is taken.
    pub call_offset: Option<u64>,
    /// Where the call arrives, bytes from the callee's first.
    pub target_offset: u64,
    /// How often the two took turns without one calling the other (Gloy and Smith's temporal ordering); 0
    /// if unknown. [`pettis_hansen`](super::pettis_hansen) adds it to `weight`, as its edges have no
    /// direction; the other algorithms and all scores look at calls alone.
    pub temporal_weight: u64,
}

impl Arc {
    /// An arc of which the call site is not known, to the callee's first byte.
    pub fn new(caller: usize, callee: usize, weight: u64) -> Self {
        Self { caller, callee, weight, call_offset: None, target_offset: 0, temporal_weight: 0 }
    }

    /// The same arc from a known call site, bytes from the caller's first.
    pub fn from_offset(self, call_offset: u64) -> Self {
        Self { call_offset: Some(call_offset), ..self }
    }

    /// Whether the function calls itself: no order can change what that costs.
    pub(super) fn is_recursive(&self) -> bool {
        self.caller == self.callee
    }
}

/// Functions and arcs that have been checked. Functions are known by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph {
    functions: Vec<Function>,
    arcs: Vec<Arc>,
}

impl CallGraph {
    /// Takes functions and arcs, and keeps their order.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`], [`Error::Offset`] (outside of the function) and [`Error::Alignment`] with
    /// the arc or the function; [`Error::TooMuch`] if a sum is above [`MOST`] or there are more than 2^32 - 2
    /// functions or arcs.
    pub fn new(functions: Vec<Function>, arcs: Vec<Arc>) -> Result<Self> {
        if functions.len().max(arcs.len()) >= u32::MAX as usize {
            return Err(Error::TooMuch { what: "functions or arcs, number" });
        }
        if let Some((function, found)) =
            functions.iter().enumerate().find(|(_, function)| !function.alignment.is_power_of_two())
        {
            return Err(Error::Alignment { function, alignment: found.alignment });
        }
        for (arc, Arc { caller, callee, call_offset, target_offset, .. }) in arcs.iter().enumerate() {
            for (function, offset) in [(*caller, call_offset.unwrap_or(0)), (*callee, *target_offset)] {
                let Some(Function { size, .. }) = functions.get(function) else {
                    return Err(Error::NoSuchFunction { arc, function, functions: functions.len() });
                };
                if offset > *size {
                    return Err(Error::Offset { arc, function, offset, size: *size });
                }
            }
        }
        // The padding before a function may cost its alignment at most.
        let room =
            functions.iter().map(|function| u128::from(function.size) + u128::from(function.alignment));
        check_sum("functions, bytes", room)?;
        check_sum("functions, weight", functions.iter().map(|function| function.weight.into()))?;
        let both = |arc: &Arc| u128::from(arc.weight) + u128::from(arc.temporal_weight);
        check_sum("arcs, weight", arcs.iter().map(both))?;
        Ok(Self { functions, arcs })
    }

    /// The functions, in input order.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The arcs, in input order.
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Bytes that each function takes in a row of others: its size, at least one byte, rounded up to its
    /// alignment. What the algorithms take for its size.
    pub(super) fn spaces(&self) -> Vec<u64> {
        let space = |function: &Function| function.size.max(1).next_multiple_of(function.alignment);
        self.functions.iter().map(space).collect()
    }

    /// The call site of an arc of this graph, bytes from the caller's first.
    pub(super) fn call_offset(&self, arc: &Arc) -> u64 {
        // The middle, rounded up, is what lld takes for a call site that it does not know.
        arc.call_offset.unwrap_or_else(|| self.functions[arc.caller].size.div_ceil(2))
    }

    /// Which functions ran, or are an end of an arc that was taken. The others are not ordered.
    pub(super) fn hot(&self) -> Vec<bool> {
        let mut hot: Vec<bool> = self.functions.iter().map(|function| function.weight > 0).collect();
        for arc in self.arcs.iter().filter(|arc| arc.weight > 0 || arc.temporal_weight > 0) {
            hot[arc.caller] = true;
            hot[arc.callee] = true;
        }
        hot
    }
}

/// Refuses what adds up to more than [`MOST`].
fn check_sum(what: &'static str, values: impl Iterator<Item = u128>) -> Result<()> {
    // 2^32 values of at most 2^65 fit.
    match values.sum::<u128>() <= u128::from(MOST) {
        true => Ok(()),
        false => Err(Error::TooMuch { what }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(functions: Vec<Function>, arcs: Vec<Arc>) -> String {
        CallGraph::new(functions, arcs).expect_err("refused").to_string()
    }

    #[test]
    fn what_makes_no_graph_is_refused_with_the_place() {
        let two = || vec![Function::new(10, 1), Function::new(20, 1)];
        let text = refused(two(), vec![Arc::new(0, 1, 1), Arc::new(0, 2, 1)]);
        assert!(text.contains("arc 1") && text.contains("function 2"), "{text}");
        let text = refused(two(), vec![Arc::new(0, 1, 1).from_offset(11)]);
        assert!(text.contains("arc 0") && text.contains("11") && text.contains("10 bytes"), "{text}");
        let text = refused(vec![Function::new(10, 1).aligned(24)], vec![]);
        assert!(text.contains("function 0") && text.contains("24"), "{text}");
        let text = refused(two(), vec![Arc::new(0, 1, MOST), Arc::new(1, 0, 1)]);
        assert!(text.contains("arcs, weight"), "{text}");
        assert!(refused(vec![Function::new(u64::MAX, 1)], vec![]).contains("functions, bytes"));
        assert!(
            refused(vec![Function::new(1, MOST), Function::new(1, 1)], vec![]).contains("functions, weight")
        );
        assert!(CallGraph::new(vec![Function::new(MOST - 1, MOST)], vec![Arc::new(0, 0, MOST)]).is_ok());
    }

    #[test]
    fn a_function_takes_its_size_rounded_up_to_its_alignment() {
        let functions = vec![Function::new(0, 1), Function::new(17, 1).aligned(16), Function::new(17, 1)];
        let graph = CallGraph::new(functions, vec![Arc::new(2, 1, 1)]).expect("a graph");
        assert_eq!(graph.spaces(), [1, 32, 17]);
        assert_eq!(graph.call_offset(&graph.arcs()[0]), 9);
    }
}
