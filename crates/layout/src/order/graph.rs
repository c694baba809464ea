//! Call graph to be ordered, as plain data.

use crate::{Error, Result};

/// Upper bound for the sum of all function sizes, of all function weights, and of all arc weights:
/// 2^60. It keeps sums in this module within 64 bits and products within 128. At one instruction
/// per nanosecond it is reached after 36 years.
pub const MAX_WEIGHT_SUM: u64 = 1 << 60;

/// Function that can be placed; a node of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphFunction {
    /// Size in bytes; 0 if unknown, which counts as one byte.
    pub size: u64,
    /// Execution weight in a unit of the caller's choice (entries, instructions, samples), the same
    /// for all functions.
    pub weight: u64,
    /// Alignment of the first byte, a power of two.
    pub alignment: u64,
}

impl GraphFunction {
    /// Creates a function without alignment.
    pub fn new(size: u64, weight: u64) -> Self {
        Self { size, weight, alignment: 1 }
    }

    /// Sets the alignment of the first byte.
    pub fn aligned(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }
}

/// Calls from one function to another; a directed edge of the graph. Several arcs may connect the
/// same two functions, one per call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphArc {
    /// Index of the calling function.
    pub caller: usize,
    /// Index of the called function.
    pub callee: usize,
    /// Number of calls.
    pub weight: u64,
    /// Byte offset of the call site in the caller; `None` if unknown, which counts as the middle.
    pub call_offset: Option<u64>,
    /// Byte offset of the call's target in the callee.
    pub target_offset: u64,
    /// Number of times that the two functions alternated without a call between them (temporal
    /// ordering of Gloy and Smith); 0 if unknown. [`pettis_hansen`](super::pettis_hansen) adds it
    /// to `weight`, since its edges have no direction. The other algorithms and all scores use only
    /// calls.
    pub temporal_weight: u64,
}

impl GraphArc {
    /// Creates an arc from an unknown call site to the callee's first byte.
    pub fn new(caller: usize, callee: usize, weight: u64) -> Self {
        Self { caller, callee, weight, call_offset: None, target_offset: 0, temporal_weight: 0 }
    }

    /// Sets the byte offset of the call site in the caller.
    pub fn from_offset(self, call_offset: u64) -> Self {
        Self { call_offset: Some(call_offset), ..self }
    }

    /// Returns true for a recursive call, whose cost does not depend on the order.
    pub(super) fn is_recursive(&self) -> bool {
        self.caller == self.callee
    }
}

/// Validated functions and arcs. Functions are identified by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph {
    functions: Vec<GraphFunction>,
    arcs: Vec<GraphArc>,
}

impl CallGraph {
    /// Validates functions and arcs and keeps their order.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`], [`Error::Offset`] (outside of the function) and
    /// [`Error::Alignment`] name the arc or the function. [`Error::TooMuch`] if a sum exceeds
    /// [`MAX_WEIGHT_SUM`] or there are more than 2^32 - 2 functions or arcs.
    pub fn new(functions: Vec<GraphFunction>, arcs: Vec<GraphArc>) -> Result<Self> {
        if functions.len().max(arcs.len()) >= u32::MAX as usize {
            return Err(Error::TooMuch { what: "functions or arcs, number" });
        }
        if let Some((function, found)) =
            functions.iter().enumerate().find(|(_, function)| !function.alignment.is_power_of_two())
        {
            return Err(Error::Alignment { function, alignment: found.alignment });
        }
        for (arc, GraphArc { caller, callee, call_offset, target_offset, .. }) in arcs.iter().enumerate() {
            for (function, offset) in [(*caller, call_offset.unwrap_or(0)), (*callee, *target_offset)] {
                let Some(GraphFunction { size, .. }) = functions.get(function) else {
                    return Err(Error::NoSuchFunction { arc, function, functions: functions.len() });
                };
                if offset > *size {
                    return Err(Error::Offset { arc, function, offset, size: *size });
                }
            }
        }
        // Padding before a function is less than its alignment.
        let room =
            functions.iter().map(|function| u128::from(function.size) + u128::from(function.alignment));
        check_sum("functions, bytes", room)?;
        check_sum("functions, weight", functions.iter().map(|function| function.weight.into()))?;
        let both = |arc: &GraphArc| u128::from(arc.weight) + u128::from(arc.temporal_weight);
        check_sum("arcs, weight", arcs.iter().map(both))?;
        Ok(Self { functions, arcs })
    }

    /// Returns the functions in input order.
    pub fn functions(&self) -> &[GraphFunction] {
        &self.functions
    }

    /// Returns the arcs in input order.
    pub fn arcs(&self) -> &[GraphArc] {
        &self.arcs
    }

    /// Returns the space that each function occupies: its size, at least one byte, rounded up to
    /// its alignment. The algorithms use it as size.
    pub(super) fn spaces(&self) -> Vec<u64> {
        let space = |function: &GraphFunction| function.size.max(1).next_multiple_of(function.alignment);
        self.functions.iter().map(space).collect()
    }

    /// Returns the byte offset of an arc's call site in the caller.
    pub(super) fn call_offset(&self, arc: &GraphArc) -> u64 {
        // lld also uses the middle, rounded up, for an unknown call site.
        arc.call_offset.unwrap_or_else(|| self.functions[arc.caller].size.div_ceil(2))
    }

    /// Marks the functions that ran or that an executed arc connects. The others are not ordered.
    pub(super) fn hot(&self) -> Vec<bool> {
        let mut hot: Vec<bool> = self.functions.iter().map(|function| function.weight > 0).collect();
        for arc in self.arcs.iter().filter(|arc| arc.weight > 0 || arc.temporal_weight > 0) {
            hot[arc.caller] = true;
            hot[arc.callee] = true;
        }
        hot
    }
}

/// Returns an error if the sum exceeds [`MAX_WEIGHT_SUM`].
fn check_sum(what: &'static str, values: impl Iterator<Item = u128>) -> Result<()> {
    // 2^32 values of at most 2^65 cannot overflow.
    match values.sum::<u128>() <= u128::from(MAX_WEIGHT_SUM) {
        true => Ok(()),
        false => Err(Error::TooMuch { what }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(functions: Vec<GraphFunction>, arcs: Vec<GraphArc>) -> String {
        CallGraph::new(functions, arcs).expect_err("refused").to_string()
    }

    #[test]
    fn what_makes_no_graph_is_refused_with_the_place() {
        let two = || vec![GraphFunction::new(10, 1), GraphFunction::new(20, 1)];
        let text = refused(two(), vec![GraphArc::new(0, 1, 1), GraphArc::new(0, 2, 1)]);
        assert!(text.contains("arc 1") && text.contains("function 2"), "{text}");
        let text = refused(two(), vec![GraphArc::new(0, 1, 1).from_offset(11)]);
        assert!(text.contains("arc 0") && text.contains("11") && text.contains("10 bytes"), "{text}");
        let text = refused(vec![GraphFunction::new(10, 1).aligned(24)], vec![]);
        assert!(text.contains("function 0") && text.contains("24"), "{text}");
        let text = refused(two(), vec![GraphArc::new(0, 1, MAX_WEIGHT_SUM), GraphArc::new(1, 0, 1)]);
        assert!(text.contains("arcs, weight"), "{text}");
        assert!(refused(vec![GraphFunction::new(u64::MAX, 1)], vec![]).contains("functions, bytes"));
        assert!(refused(vec![GraphFunction::new(1, MAX_WEIGHT_SUM), GraphFunction::new(1, 1)], vec![])
            .contains("functions, weight"));
        assert!(CallGraph::new(
            vec![GraphFunction::new(MAX_WEIGHT_SUM - 1, MAX_WEIGHT_SUM)],
            vec![GraphArc::new(0, 0, MAX_WEIGHT_SUM)]
        )
        .is_ok());
    }

    #[test]
    fn a_function_takes_its_size_rounded_up_to_its_alignment() {
        let functions =
            vec![GraphFunction::new(0, 1), GraphFunction::new(17, 1).aligned(16), GraphFunction::new(17, 1)];
        let graph = CallGraph::new(functions, vec![GraphArc::new(2, 1, 1)]).expect("a graph");
        assert_eq!(graph.spaces(), [1, 32, 17]);
        assert_eq!(graph.call_offset(&graph.arcs()[0]), 9);
    }
}
