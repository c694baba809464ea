//! Preparation of an order from a recording.

use super::graph::{call_graph, call_graph_by_name};
use super::modules::{module_graphs, ModuleGraph, OrderedModule};
use crate::call_counts::CallCounts;
use crate::quality;
use crate::stored::{store, PreparedResult};
use crate::{Error, Result};
use kerntune_kernel::{FunctionOrder, Kernel, Symbols};
use kerntune_layout::order::{
    CallGraph, CdsortConfig, GraphArc, GraphFunction, OrderAlgorithm, Placement, PlacementOrder,
};
use kerntune_profile::{CountKind, Profile};
use kerntune_work::{write_atomic, ContentHash, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const ORDER: &str = "order.txt";

/// Sizes of an order's input, and its scores (docs/layout.md) before and after. Scores come from
/// models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderSummary {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Functions of the kernel.
    pub functions: u64,
    /// Functions that were entered, and are ordered.
    pub ordered: u64,
    /// Pairs of call site and function.
    pub arcs: u64,
    /// Number of function entries.
    pub entries: u64,
    /// Call distance in bytes, summed over all calls; before and after.
    pub call_distance: [u128; 2],
    /// Objective of cache-directed sort, before and after.
    pub locality: [f64; 2],
    /// Fewest 4-KiB pages that hold 99 % of all entries, before and after.
    pub pages: [u64; 2],
    /// Predicted misses of lines that ran in the previous round, over all rounds of the recording's
    /// regions, before and after cache coloring (`order::place_by_color`). `None` without coloring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_misses: Option<[f64; 2]>,
    /// Kind of counts if the profile has no blocks: `call counts by caller` or `sampled call chains`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// Functions that ran on the recorded kernel and that this kernel lacks: functions of the other
    /// architecture, or inlined here. They are not among the ordered ones. `None` unless another
    /// kernel of the same source was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<u64>,
    /// Modules with ordered functions, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<OrderedModule>,
}

/// Order in the work directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreparedOrder {
    /// Absolute result directory: `order.json` and `order.txt`.
    #[serde(skip)]
    pub dir: PathBuf,
    /// 16 hex digits: hash of the counts, the kernel and the algorithm.
    pub id: String,
    /// Id of the kernel that was recorded and is to be linked again.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// Functions that ran, first to last.
    #[serde(skip)]
    pub order: FunctionOrder,
    /// Sizes of the order's input, and its scores.
    pub summary: OrderSummary,
}

impl PreparedResult for PreparedOrder {
    const KIND: &'static str = "orders";
    const MANIFEST: &'static str = "order.json";
    const SCHEMA: &'static str = "kerntune-order/1";
    const OPEN: &'static str = "open order";

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn in_dir(self, dir: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(dir.join(ORDER)).at("read", dir.join(ORDER))?;
        Ok(Self { dir, order: FunctionOrder::parse(&text)?, ..self })
    }
}

impl PreparedOrder {
    /// Writes the order, its only file besides the manifest, into `dir`.
    pub(super) fn write(self, dir: &Path) -> Result<Self> {
        write_atomic(&dir.join(ORDER), self.order.text().as_bytes())?;
        Ok(self)
    }
}

/// Orders the functions of `kernel` and of its modules by a recording of it with edges, ideally of the training run.
/// A profile with counted calls or sampled call chains may be of another kernel: its functions are
/// found by name ([`crate::quality`] says how many).
///
/// The result is named by its inputs; an existing result is reused.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]) or has no calls; a kernel whose
/// functions cannot be moved.
pub fn prepare_order(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    algorithm: OrderAlgorithm,
) -> Result<PreparedOrder> {
    prepare_order_like(work, recording, (kernel, kernel), algorithm)
}

/// Orders the functions of `kernel` by a recording of another kernel of the same source, for
/// kernels that no machine can record. Functions that `kernel` lacks by name are left out and
/// counted ([`OrderSummary::absent`]). Scores are those of the recorded kernel.
///
/// # Errors
/// As [`prepare_order`].
pub fn prepare_order_like(
    work: &WorkDir,
    recording: &Profile,
    (ran, kernel): (&Kernel, &Kernel),
    algorithm: OrderAlgorithm,
) -> Result<PreparedOrder> {
    if !kernel.manifest.movable {
        // A recording that does not fit is refused first.
        quality::pass_order(work, recording, ran)?;
        let (kernel, id) = (kernel.manifest.label.clone(), kernel.manifest.id.clone());
        return Err(kerntune_kernel::Error::NotMovable { kernel, id }.into());
    }
    order_by_name(work, recording, (ran, kernel), algorithm)
}

/// Orders the functions of `kernel` for a build of the user's own, which finds them by name: unlike
/// with [`prepare_order`], those of `kernel` itself need not be movable.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]) or has no calls.
pub fn prepare_order_for_own_build(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    algorithm: OrderAlgorithm,
) -> Result<PreparedOrder> {
    order_by_name(work, recording, (kernel, kernel), algorithm)
}

fn order_by_name(
    work: &WorkDir,
    recording: &Profile,
    (ran, kernel): (&Kernel, &Kernel),
    algorithm: OrderAlgorithm,
) -> Result<PreparedOrder> {
    let recorded = &recording.manifest;
    let quality = quality::pass_order(work, recording, ran)?;
    let symbols = Symbols::load(&ran.vmlinux())?;
    let calls = match recording.count_kinds().contains(&CountKind::Blocks) {
        true => None,
        false => CallCounts::best(recording),
    };
    let graph = match &calls {
        Some(counts) => {
            let same_kernel = recorded.kernel.id == ran.manifest.id;
            call_graph_by_name(&symbols, (&recording.tables.symbols, same_kernel), counts)?
        }
        None => call_graph(&symbols, &recording.tables)?,
    };
    let ordered = graph.functions().iter().filter(|function| function.weight > 0).count() as u64;
    if ordered == 0 {
        let reason = kerntune_convert::autofdo::NoCounts;
        return Err(Error::NoCounts { profile: recorded.id.clone(), reason });
    }
    let mut key = Key::new("order/2", crate::CODE)
        .field("kernel", &ran.manifest.id)
        .field("images", ran.content()?)
        .field("algorithm", algorithm.name())
        .field("graph", graph_hash(&graph));
    if let Some(counts) = &calls {
        key = key.field("counts", counts.kind.to_string());
    }
    let modules = module_graphs(kernel, &recording.tables, calls.as_ref())?;
    for ModuleGraph { module, graph, .. } in &modules {
        key = key.field("module", module).field("its graph", graph_hash(graph));
    }
    let is_another = ran.manifest.id != kernel.manifest.id;
    if is_another {
        key = key.field("for", &kernel.manifest.id).field("its images", kernel.content()?);
    }
    store(work, &key, Some(&quality), |dir| {
        let order = algorithm.order(&graph);
        let used = order.as_slice().iter().filter(|&&at| graph.functions()[at].weight > 0);
        let names = used.map(|&at| symbols.functions()[at].name.clone());
        let names: Vec<String> = names.filter(|name| FunctionOrder::takes(name)).collect();
        let mut summary = summarize(&graph, &order, algorithm, names.len() as u64)?;
        summary.counts = calls.as_ref().map(|counts| counts.kind.to_string());
        let names = if is_another {
            let there = Symbols::load(&kernel.vmlinux())?;
            let there: HashSet<&str> =
                there.functions().iter().map(|function| function.name.as_str()).collect();
            let (here, absent): (Vec<String>, Vec<String>) =
                names.into_iter().partition(|name| there.contains(name.as_str()));
            (summary.ordered, summary.absent) = (here.len() as u64, Some(absent.len() as u64));
            here
        } else {
            names
        };
        let (kernel, recording) = (kernel.manifest.id.clone(), recorded.id.clone());
        let in_modules: Vec<(String, Vec<String>)> =
            modules.iter().map(|module| (module.module.clone(), module.order(algorithm))).collect();
        summary.modules = modules.iter().zip(&in_modules).map(summarize_module).collect();
        let (id, order) = (key.id(), FunctionOrder::new(names)?.with_modules(in_modules)?);
        PreparedOrder { dir: dir.into(), id, kernel, recording, order, summary }.write(dir)
    })
}

/// Hashes every field of a graph's functions and arcs.
fn graph_hash(graph: &CallGraph) -> String {
    let functions = graph.functions().iter().map(|function| {
        let GraphFunction { size, weight, alignment } = function;
        format!("{size} {weight} {alignment}")
    });
    let arcs = graph.arcs().iter().map(|arc| {
        let GraphArc { caller, callee, weight, call_offset, target_offset, temporal_weight } = arc;
        let call_offset = call_offset.map_or_else(|| "unknown".to_owned(), |offset| offset.to_string());
        format!("{caller} {callee} {weight} {call_offset} {target_offset} {temporal_weight}")
    });
    ContentHash::new("call-graph/1").list("functions", functions).list("arcs", arcs).finish()
}

fn summarize_module((module, (_, names)): (&ModuleGraph, &(String, Vec<String>))) -> OrderedModule {
    OrderedModule {
        module: module.module.clone(),
        ordered: names.len() as u64,
        entries: module.graph.functions().iter().map(|function| function.weight).sum(),
    }
}

fn summarize(
    graph: &CallGraph,
    order: &PlacementOrder,
    algorithm: OrderAlgorithm,
    ordered: u64,
) -> Result<OrderSummary> {
    // Functions are numbered by address: the order of the input is that of the image.
    let input = PlacementOrder::of_input(graph);
    let before = Placement::new(graph, &input)?;
    let after = Placement::new(graph, order)?;
    let both = [&before, &after];
    Ok(OrderSummary {
        algorithm: algorithm.name().into(),
        functions: graph.functions().len() as u64,
        ordered,
        arcs: graph.arcs().len() as u64,
        entries: graph.functions().iter().map(|function| function.weight).sum(),
        call_distance: both.map(|placement| placement.call_distance()),
        locality: both.map(|placement| placement.cache_locality(&CdsortConfig::default()).total),
        pages: both.map(|placement| placement.footprint(99).small_pages),
        set_misses: None,
        counts: None,
        absent: None,
        modules: Vec::new(),
    })
}
