//! From a recording to an order.

use super::graph::call_graph;
use crate::quality::{self, Quality};
use crate::stored::{open, read_quality, QUALITY};
use crate::{Error, Result};
use kerntune_kernel::{FunctionOrder, Kernel, Symbols};
use kerntune_layout::order::{Algorithm, CallGraph, CdsortConfig, Order, Placement};
use kerntune_profile::Profile;
use kerntune_work::{write_atomic, write_json, IoContext, Key, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The kind of result in the work directory.
const KIND: &str = "orders";
const MANIFEST: &str = "order.json";
const ORDER: &str = "order.txt";
const SCHEMA: &str = "kerntune-order/1";

/// What an order was made of, and its scores (docs/layout.md) before and after. Scores are a model's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderSummary {
    /// The algorithm's name.
    pub algorithm: String,
    /// Functions of the kernel.
    pub functions: u64,
    /// Of them those that were entered: what is ordered.
    pub ordered: u64,
    /// Pairs of call site and function.
    pub arcs: u64,
    /// How often functions were entered.
    pub entries: u64,
    /// Call distance in bytes, summed over all calls.
    pub call_distance: [u128; 2],
    /// The objective of cache-directed sort.
    pub locality: [f64; 2],
    /// 4-KiB pages that hold 99 % of all entries at best.
    pub pages: [u64; 2],
    /// Lines that miss although they were run in the round before, in all rounds of the recording's regions: by the
    /// rule of `order::place_by_colour`, before it placed functions by the sets of a cache, and after. None if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_misses: Option<[f64; 2]>,
    /// Where another kernel of the same source was recorded: functions that ran there and are not in this kernel by the same name,
    /// those of the other architecture or inlined here. They are not among the ordered ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    id: String,
    kernel: String,
    recording: String,
    summary: OrderSummary,
}

/// An order in the work directory.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedOrder {
    /// The result directory, absolute: `order.json` and `order.txt`.
    pub dir: PathBuf,
    /// 16 hex digits over the counts, the kernel and the algorithm.
    pub id: String,
    /// Id of the kernel that was recorded and is to be linked again.
    pub kernel: String,
    /// Id of the recording.
    pub recording: String,
    /// The functions that ran, first to last.
    pub order: FunctionOrder,
    /// What it was made of.
    pub summary: OrderSummary,
}

impl PreparedOrder {
    /// Loads the order in `dir`.
    ///
    /// # Errors
    /// Missing or damaged files, or of another version.
    pub fn load(dir: &Path) -> Result<Self> {
        let (dir, manifest): (_, Manifest) = open(dir, "open order", MANIFEST, SCHEMA)?;
        let text = fs::read_to_string(dir.join(ORDER)).at("read", dir.join(ORDER))?;
        let Manifest { id, kernel, recording, summary, .. } = manifest;
        Ok(Self { dir, id, kernel, recording, order: FunctionOrder::parse(&text)?, summary })
    }

    /// What the gate said of the recording; None in results of before there was one.
    pub fn quality(&self) -> Result<Option<Quality>> {
        read_quality(&self.dir)
    }
}

/// Orders the functions of `kernel` by a recording of it with edges, best of the training run.
///
/// The result is named by what it is made of; what is there already is not made again.
///
/// # Errors
/// A recording that does not pass the gate ([`crate::quality`]) or has no calls; a kernel whose functions cannot be moved.
pub fn prepare_order(
    work: &WorkDir,
    recording: &Profile,
    kernel: &Kernel,
    algorithm: Algorithm,
) -> Result<PreparedOrder> {
    prepare_order_like(work, recording, (kernel, kernel), algorithm)
}

/// Orders the functions of `kernel` by a recording of another kernel of the same source, for one that no machine records. What
/// `kernel` does not have by the same name is left out and counted ([`OrderSummary::absent`]). Scores are those of the kernel
/// that was recorded.
///
/// # Errors
/// As [`prepare_order`].
pub fn prepare_order_like(
    work: &WorkDir,
    recording: &Profile,
    (ran, kernel): (&Kernel, &Kernel),
    algorithm: Algorithm,
) -> Result<PreparedOrder> {
    let recorded = &recording.manifest;
    let quality = quality::pass(work, recording, ran)?;
    if !kernel.manifest.movable {
        let (kernel, id) = (kernel.manifest.label.clone(), kernel.manifest.id.clone());
        return Err(kerntune_kernel::Error::NotMovable { kernel, id }.into());
    }
    let symbols = Symbols::load(&ran.vmlinux())?;
    let graph = call_graph(&symbols, &recording.tables)?;
    let ordered = graph.functions().iter().filter(|function| function.weight > 0).count() as u64;
    if ordered == 0 {
        let reason = kerntune_convert::autofdo::NoCounts;
        return Err(Error::NoCounts { profile: recorded.id.clone(), reason });
    }
    let mut key = Key::new("order/2", crate::CODE)
        .field("kernel", &ran.manifest.id)
        .field("images", ran.content()?)
        .field("algorithm", algorithm.name())
        .field("counts", format!("{:?}", graph.functions()))
        .field("arcs", format!("{:?}", graph.arcs()));
    let is_another = ran.manifest.id != kernel.manifest.id;
    if is_another {
        key = key.field("for", &kernel.manifest.id).field("its images", kernel.content()?);
    }
    let id = key.id();
    if let Some(done) = work.find(KIND, &id).and_then(|dir| PreparedOrder::load(&dir).ok()) {
        return Ok(done);
    }
    let order = algorithm.order(&graph);
    let used = order.as_slice().iter().filter(|&&at| graph.functions()[at].weight > 0);
    let names =
        used.map(|&at| symbols.functions()[at].name.clone()).filter(|name| FunctionOrder::takes(name));
    let names: Vec<String> = names.collect();
    let mut summary = summarise(&graph, &order, algorithm, names.len() as u64)?;
    let names = if is_another {
        let there = Symbols::load(&kernel.vmlinux())?;
        let there: HashSet<&str> = there.functions().iter().map(|function| function.name.as_str()).collect();
        let (here, absent): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| there.contains(name.as_str()));
        (summary.ordered, summary.absent) = (here.len() as u64, Some(absent.len() as u64));
        FunctionOrder::new(here)?
    } else {
        FunctionOrder::new(names)?
    };
    let (kernel, recording) = (kernel.manifest.id.clone(), recorded.id.clone());
    let prepared = PreparedOrder { dir: PathBuf::new(), id, kernel, recording, order: names, summary };
    store(work, &key, &prepared, Some(&quality))
}

/// Writes an order under the id of its key, unless it is there.
pub(super) fn store(
    work: &WorkDir,
    key: &Key,
    prepared: &PreparedOrder,
    quality: Option<&Quality>,
) -> Result<PreparedOrder> {
    let PreparedOrder { id, kernel, recording, order, summary, .. } = prepared.clone();
    let staged = work.stage(KIND, key)?;
    if let Some(done) = staged.already().and_then(|dir| PreparedOrder::load(&dir).ok()) {
        return Ok(done);
    }
    staged.clear()?;
    write_atomic(&staged.path().join(ORDER), order.text().as_bytes())?;
    if let Some(quality) = quality {
        write_json(&staged.path().join(QUALITY), quality)?;
    }
    let manifest = Manifest { schema: SCHEMA.into(), id, kernel, recording, summary };
    write_json(&staged.path().join(MANIFEST), &manifest)?;
    PreparedOrder::load(&staged.publish()?)
}

fn summarise(graph: &CallGraph, order: &Order, algorithm: Algorithm, ordered: u64) -> Result<OrderSummary> {
    // Functions are numbered by address: the order of the input is that of the image.
    let input = Order::of_input(graph);
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
        absent: None,
    })
}
