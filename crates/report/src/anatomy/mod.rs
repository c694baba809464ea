//! Anatomy of one function's calls: figures, tree of calls, work before a boundary, repeated
//! functions; also of two kernels side by side.
//!
//! [`AnatomyQuestion`] resolves the names, [`kerntune_analyze::anatomy::anatomy`] reads the trace,
//! [`document`] makes the report of the result, also beside that of another profile.

mod against;
mod before;
mod data;
mod figures;
mod head;
mod question;
mod repeated;
mod tree;

pub use question::AnatomyQuestion;

use crate::names;
use crate::{health, Error, Result};
use kerntune_analyze::anatomy::{Anatomy, AnatomyNode, NodeFigures};
use kerntune_profile::{FunctionIndex, Profile, Symbol};
use kerntune_table::{printable, Document};
use kerntune_trace::Recording;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-anatomy/2";

/// Description of the JSON form.
const ABOUT: &str = "What the calls of one function do ([anatomy.md](anatomy.md)). Figures are sums over all calls, so that \
     they are exact; divided by `calls_whole`, or before the boundary by `reach`, they are those of one call. `--depth` \
     and `--min-percent` choose lines as in text (`--min-percent` is 0 if not given), `--top` the rows of `repeated` and \
     of `paths`.";

/// Anatomy of an operation with its profile, and options for display.
#[derive(Clone, Copy)]
pub struct AnatomyView<'a> {
    /// Profile of the recording, for names and regions.
    pub profile: &'a Profile,
    /// Recording that the trace belongs to.
    pub recording: &'a Recording,
    /// Result of the analysis.
    pub anatomy: &'a Anatomy,
    /// Function whose calls are examined.
    pub function: FunctionIndex,
    /// Selected region; `None` for all.
    pub region: Option<&'a str>,
    /// Boundary as given; `None` without one.
    pub until: Option<&'a str>,
    /// Levels of the tree to show below the operation; `None` for all.
    pub depth: Option<u32>,
    /// Largest number of rows of a table; `None` for each table's default.
    pub top: Option<usize>,
    /// Smallest share of the operation's time, in per cent, of a line of its own: on average, in
    /// the typical call or in the worst.
    pub min_percent: f64,
}

impl<'a> AnatomyView<'a> {
    /// Checks that at least one call was recorded completely.
    ///
    /// # Errors
    /// [`Error::NoneWhole`]
    pub fn check(&self) -> Result<()> {
        let Anatomy { all, cut, elsewhere, .. } = *self.anatomy;
        match all.ns.count {
            0 => Err(Error::NoneWhole {
                function: self.name(self.function),
                region: self.region.map(Into::into),
                cut,
                elsewhere,
            }),
            _ => Ok(()),
        }
    }

    fn calls(&self) -> u64 {
        self.anatomy.all.ns.count
    }

    fn name(&self, function: FunctionIndex) -> String {
        names::label(&self.profile.tables, function)
    }

    /// Returns an unambiguous name of the operation for the command line.
    fn asked(&self) -> String {
        let tables = &self.profile.tables;
        let name = tables.name(self.function);
        printable(&match (names::function(tables, name), self.symbol(self.function)) {
            (Err(_), Some(symbol)) => format!("{name}@{}", symbol.address),
            _ => name.into(),
        })
    }

    fn symbol(&self, function: FunctionIndex) -> Option<&'a Symbol> {
        self.profile.tables.symbols.get(function.get() as usize)
    }

    /// Returns the unit of times, in words.
    fn unit(&self) -> &'static str {
        if self.profile.manifest.exact {
            "instructions"
        } else {
            "ns"
        }
    }
}

/// Makes the whole report. With the view of another profile, texts have only the comparison.
///
/// # Errors
/// No complete call was recorded in one of them, or [`Error::Sum`].
pub fn document<'a>(shown: &AnatomyView<'a>, other: Option<&AnatomyView<'a>>) -> Result<Document<'a>> {
    shown.check()?;
    let mut document = crate::head::document(SCHEMA, ABOUT, shown.profile, shown.region, None);
    document.names_its_subject = true;
    against::add(&mut document, shown, other)?;
    head::add(&mut document, shown);
    before::add(&mut document, shown);
    tree::add(&mut document, shown);
    repeated::add(&mut document, shown);
    data::add(&mut document, shown);
    health::add(&mut document, shown.profile);
    Ok(document)
}

/// Returns the indices of a node's children.
fn children(nodes: &[AnatomyNode], of: usize) -> impl Iterator<Item = usize> + '_ {
    let end = of + nodes.get(of).map_or(0, |node| node.len as usize);
    let next = move |at: &usize| Some(at + nodes.get(*at)?.len.max(1) as usize);
    std::iter::successors(Some(of + 1), next).take_while(move |at| *at < end)
}

/// Several nodes with their subtrees, folded into one line.
struct NodeFold<'a> {
    nodes: &'a [AnatomyNode],
    roots: &'a [usize],
}

impl NodeFold<'_> {
    fn below(&self) -> impl Iterator<Item = &AnatomyNode> + '_ {
        let subtree = |root: &usize| self.nodes.get(*root..root + self.nodes[*root].len as usize);
        self.roots.iter().flat_map(move |root| subtree(root).unwrap_or_default())
    }

    /// Sums calls and time over all nodes.
    fn part(&self, of: impl Fn(&AnatomyNode) -> NodeFigures) -> NodeFigures {
        let sum = |get: fn(&NodeFigures) -> u64| self.below().map(|node| get(&of(node))).sum::<u64>();
        let self_ticks = sum(|part| part.self_ticks);
        NodeFigures {
            calls: sum(|part| part.calls),
            self_ticks,
            elapsed_ns: self_ticks,
            functions: self.functions(|node| of(node).calls > 0),
        }
    }

    /// Counts the distinct functions.
    fn functions(&self, there: impl Fn(&AnatomyNode) -> bool) -> u64 {
        let mut all: Vec<FunctionIndex> =
            self.below().filter(|node| there(node)).map(|node| node.function).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    }
}

/// Formats a sum per call: whole if it divides evenly, else with at least three digits.
fn per(sum: u64, calls: u64) -> String {
    use kerntune_table::number::{figure, fixed, grouped};
    match sum.checked_rem(calls) {
        None => "-".into(),
        Some(0) => grouped(sum / calls),
        Some(_) => match sum as f64 / calls as f64 {
            mean if mean >= 100.0 => fixed(mean, 1),
            mean => figure(mean),
        },
    }
}
