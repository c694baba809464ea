//! Function order: from a call graph with counts to the order in which a linker places functions.
//!
//! Start from [`CallGraph`] (plain data: sizes, weights, arcs), call [`Algorithm::order`], and judge
//! any order, also a foreign one, on a [`Placement`]. Orders of different algorithms are compared by the
//! same score, never by the number that an algorithm maximised on its way. `docs/layout.md` says
//! which algorithm does what.
//!
//! Everything is deterministic: ties are broken by the index of a function or an arc in the input.
//!
//! ```
//! use kerntune_layout::order::{Algorithm, Arc, CallGraph, Function, Order, Placement};
//! // Three functions of 64 bytes: 0 calls 2 often and 1 never runs.
//! let functions = vec![Function::new(64, 10), Function::new(64, 0), Function::new(64, 1000)];
//! let graph = CallGraph::new(functions, vec![Arc::new(0, 2, 1000)])?;
//! let order = Algorithm::PettisHansen.order(&graph);
//! assert_eq!(order.as_slice(), [0, 2, 1]);
//! let input = Order::of_input(&graph);
//! let before = Placement::new(&graph, &input)?;
//! let after = Placement::new(&graph, &order)?;
//! assert_eq!((before.call_distance(), after.call_distance()), (96_000, 32_000));
//! # Ok::<(), kerntune_layout::Error>(())
//! ```

mod c3;
mod cache_colouring;
mod cache_model;
mod cdsort;
mod density;
mod footprint;
mod graph;
mod permutation;
mod pettis_hansen;
mod placement;
mod queue;
mod score;

pub use c3::{c3, C3Config};
pub use cache_colouring::{place_by_colour, At, ColouredPlacement, Loop, LoopBlock, TRIES};
pub use cdsort::{cdsort, CdsortConfig};
pub use footprint::Footprint;
pub use graph::{Arc, CallGraph, Function, MOST};
pub use permutation::Order;
pub use pettis_hansen::pettis_hansen;
pub use placement::Placement;
pub use score::CacheLocality;

/// The algorithms that there are, with the parameters that their authors chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// [`pettis_hansen`]: the order of the second optimisation of HP's kernel.
    PettisHansen,
    /// [`c3`], also known as hfsort.
    C3,
    /// [`cdsort`], the cache-directed sort of LLVM.
    Cdsort,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PettisHansen, Self::C3, Self::Cdsort];

    /// The word for it in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::PettisHansen => "pettis-hansen",
            Self::C3 => "c3",
            Self::Cdsort => "cdsort",
        }
    }

    /// The algorithm of that [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Orders the functions of `graph`. What never ran comes last, in input order.
    pub fn order(self, graph: &CallGraph) -> Order {
        match self {
            Self::PettisHansen => pettis_hansen(graph),
            Self::C3 => c3(graph, &C3Config::default()),
            Self::Cdsort => cdsort(graph, &CdsortConfig::default()),
        }
    }
}
