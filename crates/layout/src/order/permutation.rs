//! Order of functions.

use super::graph::CallGraph;
use crate::{Error, Result};

/// Function indices from first to last, each exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlacementOrder(Vec<usize>);

impl PlacementOrder {
    /// Checks an order from elsewhere.
    ///
    /// # Errors
    /// [`Error::NoOrder`] with the first index that is out of range or repeated.
    pub fn new(indices: Vec<usize>) -> Result<Self> {
        let mut seen = vec![false; indices.len()];
        for &function in &indices {
            match seen.get_mut(function) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(Error::NoOrder { function, functions: indices.len() }),
            }
        }
        Ok(Self(indices))
    }

    /// Returns the input order of the graph, which a linker uses without further instructions.
    pub fn of_input(graph: &CallGraph) -> Self {
        Self((0..graph.functions().len()).collect())
    }

    /// Concatenates the chains and appends all other functions in input order.
    pub(super) fn of_chains(chains: impl IntoIterator<Item = Vec<u32>>, functions: usize) -> Self {
        let mut order = Vec::with_capacity(functions);
        let mut placed = vec![false; functions];
        for function in chains.into_iter().flatten() {
            let function = function as usize;
            debug_assert!(!placed[function], "function {function} is in two chains");
            placed[function] = true;
            order.push(function);
        }
        order.extend((0..functions).filter(|&function| !placed[function]));
        Self(order)
    }

    /// Returns the indices from first to last.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Returns the indices from first to last.
    pub fn into_vec(self) -> Vec<usize> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_each_function_once() {
        assert!(PlacementOrder::new(vec![2, 0, 1]).is_ok());
        assert!(PlacementOrder::new(vec![]).is_ok());
        for bad in [vec![0, 0], vec![0, 2]] {
            let text = PlacementOrder::new(bad.clone()).expect_err("refused").to_string();
            assert!(text.contains(&format!("function {}", bad[1])), "{text}");
        }
    }
}
