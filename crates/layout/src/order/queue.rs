//! A priority queue whose entries can be changed: the edges that wait for being merged.

/// Entries are small integers, each with a key; the greatest key comes out first. All operations cost the
/// logarithm of what is in the queue.
#[derive(Debug)]
pub(super) struct Queue<K> {
    /// A binary heap.
    heap: Vec<(K, u32)>,
    /// Where each entry is in the heap.
    place: Vec<u32>,
}

/// The place of what is not in the queue.
const NOWHERE: u32 = u32::MAX;

impl<K: Ord + Copy> Queue<K> {
    /// An empty queue for the entries `0..entries`.
    pub fn new(entries: usize) -> Self {
        Self { heap: Vec::new(), place: vec![NOWHERE; entries] }
    }

    /// Puts an entry in, or gives it another key.
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

    /// Takes an entry out, if it is in.
    pub fn remove(&mut self, entry: u32) {
        let at = std::mem::replace(&mut self.place[entry as usize], NOWHERE);
        if at != NOWHERE {
            self.heap.swap_remove(at as usize);
            if (at as usize) < self.heap.len() {
                self.settle(at as usize);
            }
        }
    }

    /// Takes the entry with the greatest key out.
    pub fn pop(&mut self) -> Option<(u32, K)> {
        let (key, entry) = *self.heap.first()?;
        self.remove(entry);
        Some((entry, key))
    }

    /// Moves what is at `at` to where it belongs.
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
        /// Against a map that is searched for its greatest key. Keys are made unique by the entry, as
        /// those of the algorithms are.
        #[test]
        fn pops_the_greatest(steps in prop::collection::vec((0..3_u8, 0..20_u32, 0..50_u64), 0..200)) {
            let mut queue = Queue::new(20);
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
