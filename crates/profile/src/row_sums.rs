//! Sum of one table of many profiles.

use crate::rules::{MergePart, TableRow};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hasher};

/// Rows with distinct keys, in the order in which the keys first appeared.
pub(crate) struct RowSums<R> {
    rows: Vec<R>,
    /// Places of rows by the hash of their key; of keys with one hash, the later ones have the next
    /// free number.
    places: FxHashMap<u64, usize>,
    /// Seeded, so that nobody can make a profile whose keys all have one hash.
    hasher: RandomState,
    /// Place after the last row to which something was added.
    next: usize,
}

impl<R> Default for RowSums<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), places: FxHashMap::default(), hasher: RandomState::new(), next: 0 }
    }
}

impl<R: TableRow> RowSums<R> {
    /// Adds the rows of a part.
    pub fn add(&mut self, rows: Vec<R>, part: &MergePart) {
        self.next = 0;
        for mut row in rows {
            row.convert(part);
            let place = self.place(&row);
            match self.rows.get_mut(place) {
                Some(sum) => sum.add(&row),
                None => self.rows.push(row),
            }
            self.next = place + 1;
        }
    }

    /// Returns the place of the row with this key: after the last row if there is none yet.
    fn place(&mut self, row: &R) -> usize {
        let has_key = |place: usize| self.rows.get(place).is_some_and(|sum| sum.order(row).is_eq());
        // Most profiles have most rows in the same order.
        if has_key(self.next) {
            return self.next;
        }
        let mut hasher = self.hasher.build_hasher();
        row.hash_key(&mut hasher);
        let mut hash = hasher.finish();
        loop {
            match self.places.entry(hash) {
                Entry::Vacant(free) => return *free.insert(self.rows.len()),
                Entry::Occupied(place) if has_key(*place.get()) => return *place.get(),
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
            }
        }
    }

    /// Returns the rows in the order in which their keys first appeared.
    pub fn into_rows(self) -> Vec<R> {
        self.rows
    }

    /// Returns the rows sorted by key.
    pub fn into_sorted(self) -> Vec<R> {
        let mut rows = self.rows;
        let mut places: Vec<usize> = (0..rows.len()).collect();
        sort_by(&mut places, &|a, b| rows[a].order(&rows[b]));
        // `places[i]` says which row belongs at `i`. Each cycle of them is followed once.
        for start in 0..places.len() {
            let mut at = start;
            loop {
                let from = std::mem::replace(&mut places[at], at);
                if from == start {
                    break;
                }
                rows.swap(at, from);
                at = from;
            }
        }
        rows
    }
}

/// Sorts places of rows. One function for all tables: the compiler would make a sort for each.
fn sort_by(places: &mut [usize], order: &dyn Fn(usize, usize) -> Ordering) {
    places.sort_unstable_by(|a, b| order(*a, *b));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Edge, EdgeKind};
    use std::sync::Arc;

    fn edge(source: u64, count: u64) -> Edge {
        Edge { source: Address(source), target: Address(1), count, kind: EdgeKind::Call }
    }

    fn part(weight: u64) -> MergePart {
        MergePart { weight, functions: Arc::default(), ..MergePart::default() }
    }

    #[test]
    fn rows_of_one_key_become_one_in_any_order() {
        let mut sums = RowSums::default();
        sums.add(vec![edge(7, 1), edge(3, 2), edge(7, 10)], &part(1));
        sums.add(vec![edge(3, 1), edge(5, 1), edge(7, 1)], &part(100));
        assert_eq!(sums.into_sorted(), [edge(3, 102), edge(5, 100), edge(7, 111)]);
    }

    #[test]
    fn rows_are_sorted_whatever_their_order_was() {
        for sources in [
            [0, 1, 2, 3, 4, 5],
            [5, 4, 3, 2, 1, 0],
            [1, 2, 3, 4, 5, 0],
            [5, 0, 1, 2, 3, 4],
            [2, 5, 0, 4, 1, 3],
        ] {
            let mut sums = RowSums::default();
            sums.add(sources.iter().map(|source| edge(*source, source + 10)).collect(), &part(1));
            let sorted: Vec<Edge> = (0..6).map(|source| edge(source, source + 10)).collect();
            assert_eq!(sums.into_sorted(), sorted, "{sources:?}");
        }
    }

    #[test]
    fn keys_of_one_hash_stay_apart() {
        let mut sums = RowSums::default();
        for source in 0..100 {
            sums.add(vec![edge(source, 1)], &part(1));
        }
        // As if all keys had the hash of the first.
        let mut hasher = sums.hasher.build_hasher();
        edge(0, 0).hash_key(&mut hasher);
        let hash = hasher.finish();
        sums.places = (0..100).map(|place| (hash.wrapping_add(place), place as usize)).collect();
        sums.next = 50;
        assert_eq!(sums.place(&edge(0, 1)), 0);
        assert_eq!(sums.place(&edge(50, 1)), 50);
        sums.places.insert(hash, 99);
        sums.places.insert(hash.wrapping_add(99), 0);
        assert_eq!(sums.place(&edge(0, 1)), 0, "after 99 others");
    }
}
