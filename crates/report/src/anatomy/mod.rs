//! What the calls of one function do: figures, the tree of calls, what is done before a boundary, what is done more than
//! once; and two kernels side by side.
//!
//! [`Question`] finds what was named, [`kerntune_analyze::anatomy::anatomy`] reads the trace, [`text`] and [`json`] write what
//! it found, [`text_against`] that of two profiles.

mod against;
mod before;
mod data;
mod head;
mod json;
mod question;
mod repeated;
mod tree;

pub use against::text_against;
pub use json::{json, SCHEMA};
pub use question::Question;

use crate::names;
use crate::style::printable;
use crate::{health, Error, Result, Style};
use kerntune_analyze::anatomy::{Anatomy, Node, Part};
use kerntune_profile::{FunctionIndex, Profile};
use kerntune_trace::Recording;

/// What was found, and how it is to be shown.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The recording of the trace.
    pub recording: &'a Recording,
    /// What its trace came to.
    pub anatomy: &'a Anatomy,
    /// The operation.
    pub function: FunctionIndex,
    /// The regions that were asked for; all if none.
    pub region: Option<&'a str>,
    /// The boundary that was asked for.
    pub until: Option<&'a str>,
    /// Levels of the tree below the operation; all if none.
    pub depth: Option<u32>,
    /// Rows of a table; as many as suit it if none.
    pub top: Option<usize>,
    /// Least share of the operation's time, in per cent, that something must have to be a line of its own: on average, in
    /// the typical call or in the worst.
    pub min_percent: f64,
}

impl Shown<'_> {
    /// Refuses an operation of which no call was seen whole.
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

    /// What the operation can be asked for with.
    fn asked(&self) -> String {
        let tables = &self.profile.tables;
        let name = tables.name(self.function);
        let symbol = tables.symbols.get(self.function.get() as usize);
        printable(&match (names::function(tables, name), symbol) {
            (Err(_), Some(symbol)) => format!("{name}@{}", symbol.address),
            _ => name.into(),
        })
    }

    fn file(&self, function: FunctionIndex) -> Option<&str> {
        let symbol = self.profile.tables.symbols.get(function.get() as usize)?;
        symbol.file.as_deref()
    }

    /// What times are counts of.
    fn unit(&self) -> &'static str {
        if self.profile.manifest.exact {
            "instructions"
        } else {
            "ns"
        }
    }
}

/// Everything as text.
///
/// # Errors
/// No call was seen whole.
pub fn text(shown: &Shown, style: Style) -> Result<String> {
    shown.check()?;
    let mut out = head::text(shown, style);
    out += &before::text(shown, style);
    out += &tree::text(shown, style);
    out += &repeated::text(shown, style);
    out += &data::text(shown, style);
    out += &health::text(shown.profile, style);
    Ok(out)
}

/// The places of a node's children.
fn children(nodes: &[Node], of: usize) -> impl Iterator<Item = usize> + '_ {
    let end = of + nodes.get(of).map_or(0, |node| node.len as usize);
    let next = move |at: &usize| Some(at + nodes.get(*at)?.len.max(1) as usize);
    std::iter::successors(Some(of + 1), next).take_while(move |at| *at < end)
}

/// Nodes that are one line, with all that is below them.
struct Fold<'a> {
    nodes: &'a [Node],
    roots: &'a [usize],
}

impl Fold<'_> {
    fn below(&self) -> impl Iterator<Item = &Node> + '_ {
        let subtree = |root: &usize| self.nodes.get(*root..root + self.nodes[*root].len as usize);
        self.roots.iter().flat_map(move |root| subtree(root).unwrap_or_default())
    }

    /// All of it: calls at every node, and the time of them all.
    fn part(&self, of: impl Fn(&Node) -> Part) -> Part {
        let sum = |get: fn(&Part) -> u64| self.below().map(|node| get(&of(node))).sum::<u64>();
        let net_ns = sum(|part| part.net_ns);
        Part {
            calls: sum(|part| part.calls),
            net_ns,
            elapsed_ns: net_ns,
            functions: self.functions(|node| of(node).calls > 0),
        }
    }

    /// How many different functions there are.
    fn functions(&self, there: impl Fn(&Node) -> bool) -> u64 {
        let mut all: Vec<FunctionIndex> =
            self.below().filter(|node| there(node)).map(|node| node.function).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    }
}

/// A sum over so many calls, for each of them: whole if it is, else with at least three digits.
fn per(sum: u64, calls: u64) -> String {
    use kerntune_compare::number::{figure, fixed, grouped};
    match sum.checked_rem(calls) {
        None => "-".into(),
        Some(0) => grouped(sum / calls),
        Some(_) => match sum as f64 / calls as f64 {
            mean if mean >= 100.0 => fixed(mean, 1),
            mean => figure(mean),
        },
    }
}
