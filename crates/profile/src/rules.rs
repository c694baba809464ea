//! Rules of columns: the rows to which a column may refer, and its value in a sum of tables.
//!
//! The declaration of the tables names a rule for each column. From the rules follow the check of
//! references and the merge: rows with equal keys are added, and a sum is sorted by key.

use crate::parquet_file::ColumnValue;
use crate::FunctionIndex;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hasher;
use std::sync::Arc;

/// Weight of one profile of a merge, and the numbers in the sum of what it numbers, by its own.
#[derive(Default)]
pub(crate) struct MergePart {
    pub weight: u64,
    pub functions: Arc<[FunctionIndex]>,
    pub regions: Vec<u32>,
    pub threads: HashMap<u32, u32>,
    pub paths: Vec<u32>,
}

impl MergePart {
    /// Returns the number of a function in the sum; [`FunctionIndex::NONE`] stays.
    pub fn function(&self, own: FunctionIndex) -> FunctionIndex {
        self.functions.get(own.0 as usize).copied().unwrap_or(own)
    }

    /// Returns the number of a region in the sum.
    pub fn region(&self, own: u32) -> u32 {
        self.regions.get(own as usize).copied().unwrap_or(own)
    }

    /// Returns the number of a path in the sum; [`crate::PathNode::ROOT`] stays.
    pub fn path(&self, own: u32) -> u32 {
        self.paths.get(own as usize).copied().unwrap_or(own)
    }
}

/// Row under a check of references, and the lengths of the tables to which rows refer.
#[derive(Clone, Copy)]
pub(crate) struct CheckedRow<'a> {
    pub at: usize,
    pub row: &'a dyn Debug,
    pub symbols: usize,
    pub regions: usize,
}

impl CheckedRow<'_> {
    fn refers_to_nothing(&self) -> String {
        format!("{:?} refers to nothing", self.row)
    }
}

/// Rule of a column with values of type `T`. Without methods of its own, a rule keeps the value of
/// the first row and allows any.
pub(crate) trait ColumnRule<T: Ord> {
    /// Rank of a column of the key. Rows are sorted first by columns of rank 0, then 1, then 2.
    const RANK: Option<u8> = None;

    /// Converts a value of a part to its value in the sum.
    fn convert(_value: &mut T, _part: &MergePart) {}

    /// Adds the value of a row with the same key.
    fn add(_sum: &mut T, _more: &T) {}

    /// Describes a reference to a missing row.
    fn problem(_value: &T, _row: CheckedRow) -> Option<String> {
        None
    }
}

/// Row of a table. [`crate::Tables`] implements it by the columns' rules.
pub(crate) trait TableRow: Clone + Debug {
    /// Compares the keys.
    fn order(&self, other: &Self) -> Ordering;
    /// Hashes the key.
    fn hash_key(&self, state: &mut impl Hasher);
    /// Converts a row of a part to a row of the sum.
    fn convert(&mut self, part: &MergePart);
    /// Adds a row with the same key.
    fn add(&mut self, other: &Self);
    /// Describes the first reference to a missing row.
    fn problem(&self, row: CheckedRow) -> Option<String>;
}

/// Part of the key.
pub(crate) enum Key {}

impl<T: Ord> ColumnRule<T> for Key {
    const RANK: Option<u8> = Some(1);
}

/// Part of the key that sorts rows after all other parts.
pub(crate) enum MinorKey {}

impl<T: Ord> ColumnRule<T> for MinorKey {
    const RANK: Option<u8> = Some(2);
}

/// Value of the first row.
pub(crate) enum First {}

impl<T: Ord> ColumnRule<T> for First {}

/// Value that a method of the row adds.
pub(crate) enum Special {}

impl<T: Ord> ColumnRule<T> for Special {}

/// Sum, each row times the weight of its part; saturates.
pub(crate) enum Sum {}

impl<T: Ord + ColumnValue<Stored = u64>> ColumnRule<T> for Sum {
    fn convert(value: &mut T, part: &MergePart) {
        set(value, value.store().saturating_mul(part.weight));
    }

    fn add(sum: &mut T, more: &T) {
        set(sum, sum.store().saturating_add(more.store()));
    }
}

/// Least value.
pub(crate) enum Min {}

impl<T: Ord + Copy> ColumnRule<T> for Min {
    fn add(sum: &mut T, more: &T) {
        *sum = (*sum).min(*more);
    }
}

/// Greatest value.
pub(crate) enum Max {}

impl<T: Ord + Copy> ColumnRule<T> for Max {
    fn add(sum: &mut T, more: &T) {
        *sum = (*sum).max(*more);
    }
}

/// Row of the regions; part of the key.
pub(crate) enum Region {}

impl ColumnRule<u32> for Region {
    const RANK: Option<u8> = Some(1);

    fn convert(value: &mut u32, part: &MergePart) {
        *value = part.region(*value);
    }

    fn problem(value: &u32, row: CheckedRow) -> Option<String> {
        (*value as usize >= row.regions).then(|| row.refers_to_nothing())
    }
}

/// Row of the symbols; part of the key.
pub(crate) enum Function {}

impl ColumnRule<FunctionIndex> for Function {
    const RANK: Option<u8> = Some(1);

    fn convert(value: &mut FunctionIndex, part: &MergePart) {
        *value = part.function(*value);
    }

    fn problem(value: &FunctionIndex, row: CheckedRow) -> Option<String> {
        (value.0 as usize >= row.symbols).then(|| row.refers_to_nothing())
    }
}

/// Row of the symbols or [`FunctionIndex::NONE`]; part of the key.
pub(crate) enum FunctionOrNone {}

impl ColumnRule<FunctionIndex> for FunctionOrNone {
    const RANK: Option<u8> = Some(1);

    fn convert(value: &mut FunctionIndex, part: &MergePart) {
        Function::convert(value, part);
    }

    fn problem(value: &FunctionIndex, row: CheckedRow) -> Option<String> {
        value.known().and_then(|function| Function::problem(&function, row))
    }
}

/// Number of a thread; part of the key.
pub(crate) enum Thread {}

impl ColumnRule<u32> for Thread {
    const RANK: Option<u8> = Some(1);

    fn convert(value: &mut u32, part: &MergePart) {
        *value = part.threads.get(value).copied().unwrap_or(*value);
    }
}

/// Row number of a symbol.
pub(crate) enum SymbolNumber {}

impl ColumnRule<FunctionIndex> for SymbolNumber {
    const RANK: Option<u8> = Some(0);

    fn convert(value: &mut FunctionIndex, part: &MergePart) {
        Function::convert(value, part);
    }

    fn problem(value: &FunctionIndex, row: CheckedRow) -> Option<String> {
        (value.0 as usize != row.at).then(|| format!("row {at} is not function {at}", at = row.at))
    }
}

/// Row number of a region.
pub(crate) enum RegionNumber {}

impl ColumnRule<u32> for RegionNumber {
    const RANK: Option<u8> = Some(0);

    fn convert(value: &mut u32, part: &MergePart) {
        Region::convert(value, part);
    }

    fn problem(value: &u32, row: CheckedRow) -> Option<String> {
        (*value as usize != row.at).then(|| format!("row {at} is not region {at}", at = row.at))
    }
}

/// Row number of a path.
pub(crate) enum PathNumber {}

impl ColumnRule<u32> for PathNumber {
    const RANK: Option<u8> = Some(0);

    fn convert(value: &mut u32, part: &MergePart) {
        *value = part.path(*value);
    }

    fn problem(value: &u32, row: CheckedRow) -> Option<String> {
        (*value as usize != row.at).then(|| row.refers_to_nothing())
    }
}

/// Earlier row of the same table, or `u32::MAX` for a root. Follows from the row number.
pub(crate) enum Parent {}

impl ColumnRule<u32> for Parent {
    fn convert(value: &mut u32, part: &MergePart) {
        *value = part.path(*value);
    }

    fn problem(value: &u32, row: CheckedRow) -> Option<String> {
        (*value != u32::MAX && *value as usize >= row.at).then(|| row.refers_to_nothing())
    }
}

fn set<T: ColumnValue<Stored = u64>>(value: &mut T, number: u64) {
    if let Some(new) = T::restore(number) {
        *value = new;
    }
}
