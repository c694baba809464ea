//! Priority queue with changeable keys, for the edges to be merged.

/// Queue of small integers with keys; the largest key comes out first. All operations take
/// logarithmic time.
#[derive(Debug)]
pub(super) struct KeyedQueue<K> {
    /// Binary heap of keys and entries.
    heap: Vec<(K, u32)>,
    /// Heap index of each entry, or [`NOWHERE`].
    place: Vec<u32>,
}

/// Heap index of an entry that is not in the queue.
const NOWHERE: u32 = u32::MAX;

impl<K: Ord + Copy> KeyedQueue<K> {
    /// Creates an empty queue for the entries `0..entries`.
    pub fn new(entries: usize) -> Self {
        Self { heap: Vec::new(), place: vec![NOWHERE; entries] }
    }

    /// Inserts an entry or changes its key.
    pub fn set(&mut self, entry: u32, key: K) {
        let at = match self.place[entry as usize] {
            NOWHERE => {
                self.heap.push((key, entry));
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize].0 = key;
                at as usize
            }
        };
        self.settle(at);
    }

    /// Removes an entry, if present.
    pub fn remove(&mut self, entry: u32) {
        let at = std::mem::replace(&mut self.place[entry as usize], NOWHERE);
        if at != NOWHERE {
            self.heap.swap_remove(at as usize);
            if (at as usize) < self.heap.len() {
                self.settle(at as usize);
            }
        }
    }

    /// Removes and returns the entry with the largest key.
    pub fn pop(&mut self) -> Option<(u32, K)> {
        let (key, entry) = *self.heap.first()?;
        self.remove(entry);
        Some((entry, key))
    }

    /// Restores the heap order for the item at index `at`.
    fn settle(&mut self, mut at: usize) {
        let moved = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].0 >= moved.0 {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        loop {
            let left = 2 * at + 1;
            let right = left + 1;
            if left >= self.heap.len() {
                break;
            }
            let child =
                if right < self.heap.len() && self.heap[right].0 > self.heap[left].0 { right } else { left };
            if self.heap[child].0 <= moved.0 {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, moved);
    }

    fn put(&mut self, at: usize, item: (K, u32)) {
        self.heap[at] = item;
        self.place[item.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares with a map that is searched for its largest key. The entry makes keys unique,
        /// as in the algorithms.
        #[test]
        fn pops_the_greatest(steps in prop::collection::vec((0..3_u8, 0..20_u32, 0..50_u64), 0..200)) {
            let mut queue = KeyedQueue::new(20);
            let mut plain = BTreeMap::new();
            for (what, entry, key) in steps {
                match what {
                    0 => {
                        queue.set(entry, (key, entry));
                        plain.insert(entry, (key, entry));
                    }
                    1 => {
                        queue.remove(entry);
                        plain.remove(&entry);
                    }
                    _ => {
                        let greatest = plain.iter().max_by_key(|(_, key)| **key).map(|(e, k)| (*e, *k));
                        prop_assert_eq!(queue.pop(), greatest);
                        if let Some((entry, _)) = greatest {
                            plain.remove(&entry);
                        }
                    }
                }
            }
        }
    }
}
