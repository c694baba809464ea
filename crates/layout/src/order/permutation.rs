//! An order of functions.

use super::graph::CallGraph;
use crate::{Error, Result};

/// Functions by index, first to last; each once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order(Vec<usize>);

impl Order {
    /// Takes an order from elsewhere.
    ///
    /// # Errors
    /// [`Error::NoOrder`] with the first index that is too great or comes again.
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

    /// The order in which the graph has its functions: what a linker does without advice.
    pub fn of_input(graph: &CallGraph) -> Self {
        Self((0..graph.functions().len()).collect())
    }

    /// The chains one after the other, and after them what is in none of them, in input order.
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

    /// The indices, first to last.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// The indices, first to last.
    pub fn into_vec(self) -> Vec<usize> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_each_function_once() {
        assert!(Order::new(vec![2, 0, 1]).is_ok());
        assert!(Order::new(vec![]).is_ok());
        for bad in [vec![0, 0], vec![0, 2]] {
            let text = Order::new(bad.clone()).expect_err("refused").to_string();
            assert!(text.contains(&format!("function {}", bad[1])), "{text}");
        }
    }
}
