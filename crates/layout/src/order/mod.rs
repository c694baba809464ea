//! Function order: computes the order in which a linker should place functions, from a call graph
//! with counts.
//!
//! Start from [`CallGraph`] (plain data: sizes, weights, arcs), call [`OrderAlgorithm::order`], and
//! score any order, also one from elsewhere, with a [`Placement`]. Compare orders of different
//! algorithms by the same score, never by the value that an algorithm maximized internally.
//! `docs/layout.md` describes the algorithms.
//!
//! All results are deterministic: ties are broken by the index of a function or an arc in the
//! input.
//!
//! ```
//! use kerntune_layout::order::{CallGraph, GraphArc, GraphFunction, OrderAlgorithm, Placement, PlacementOrder};
//! // Three functions of 64 bytes: 0 calls 2 often and 1 never runs.
//! let functions = vec![GraphFunction::new(64, 10), GraphFunction::new(64, 0), GraphFunction::new(64, 1000)];
//! let graph = CallGraph::new(functions, vec![GraphArc::new(0, 2, 1000)])?;
//! let order = OrderAlgorithm::PettisHansen.order(&graph);
//! assert_eq!(order.as_slice(), [0, 2, 1]);
//! let input = PlacementOrder::of_input(&graph);
//! let before = Placement::new(&graph, &input)?;
//! let after = Placement::new(&graph, &order)?;
//! assert_eq!((before.call_distance(), after.call_distance()), (96_000, 32_000));
//! # Ok::<(), kerntune_layout::Error>(())
//! ```

mod c3;
mod cache_coloring;
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
pub use cache_coloring::{
    place_by_color, BlockPosition, ColoredPlacement, HotLoop, LoopBlock, COLORING_TRIALS,
};
pub use cdsort::{cdsort, CdsortConfig};
pub use footprint::HotFootprint;
pub use graph::{CallGraph, GraphArc, GraphFunction, MAX_WEIGHT_SUM};
pub use permutation::PlacementOrder;
pub use pettis_hansen::pettis_hansen;
pub use placement::Placement;
pub use score::CacheLocality;

/// Algorithm for function order, with the parameters of its authors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderAlgorithm {
    /// [`pettis_hansen`], the order of the second optimization of HP's kernel.
    PettisHansen,
    /// [`c3`], also known as hfsort.
    C3,
    /// [`cdsort`], the cache-directed sort of LLVM.
    Cdsort,
}

impl OrderAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::PettisHansen, Self::C3, Self::Cdsort];

    /// Returns the name used in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::PettisHansen => "pettis-hansen",
            Self::C3 => "c3",
            Self::Cdsort => "cdsort",
        }
    }

    /// Returns the algorithm with this [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Orders the functions of `graph`. Functions that never ran come last, in input order.
    pub fn order(self, graph: &CallGraph) -> PlacementOrder {
        match self {
            Self::PettisHansen => pettis_hansen(graph),
            Self::C3 => c3(graph, &C3Config::default()),
            Self::Cdsort => cdsort(graph, &CdsortConfig::default()),
        }
    }
}
