//! Counting arcs: an open-addressing table, since this is done once per call.

use kerntune_trace::How;

/// Caller of what nothing called.
pub(crate) const NO_CALLER: u32 = u32::MAX;
/// Functions must have numbers below this for an arc to fit into 64 bits.
pub(crate) const FUNCTION_LIMIT: usize = 1 << 29;

/// Caller, callee and how, in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArcKey(u64);

/// No arc has all bits set: 7 is no [`How`].
const EMPTY: ArcKey = ArcKey(u64::MAX);

impl ArcKey {
    #[inline]
    pub fn new(caller: u32, callee: u32, how: How) -> Self {
        Self(u64::from(caller) << 32 | u64::from(callee) << 3 | how as u64)
    }

    pub fn caller(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn callee(self) -> u32 {
        self.0 as u32 >> 3
    }

    pub fn how(self) -> How {
        match self.0 & 7 {
            0 => How::Call,
            1 => How::Jump,
            2 => How::Interrupt,
            3 => How::Exception,
            _ => How::Syscall,
        }
    }
}

/// What is counted of an arc.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArcAccount {
    pub key: ArcKey,
    pub calls: u64,
    pub elapsed: u64,
}

const VACANT: ArcAccount = ArcAccount { key: EMPTY, calls: 0, elapsed: 0 };

/// Arcs by key. At most half full, linear probing.
pub(crate) struct ArcTable {
    slots: Vec<ArcAccount>,
    used: usize,
    shift: u32,
}

impl ArcTable {
    pub fn new() -> Self {
        Self::with_bits(12)
    }

    fn with_bits(bits: u32) -> Self {
        Self { slots: vec![VACANT; 1 << bits], used: 0, shift: 64 - bits }
    }

    /// Counts one call.
    #[inline]
    pub fn count(&mut self, key: ArcKey, elapsed: u64) {
        let slot = self.slot(key);
        slot.calls += 1;
        slot.elapsed = slot.elapsed.saturating_add(elapsed);
    }

    #[inline]
    fn slot(&mut self, key: ArcKey) -> &mut ArcAccount {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the golden ratio's 64 bits.
        let mut at = (key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let found = self.slots[at & mask].key;
            if found == key {
                break;
            }
            if found == EMPTY {
                if 2 * self.used >= self.slots.len() {
                    self.grow();
                    return self.slot(key);
                }
                self.used += 1;
                self.slots[at & mask].key = key;
                break;
            }
            at += 1;
        }
        &mut self.slots[at & mask]
    }

    #[cold]
    fn grow(&mut self) {
        let larger = Self::with_bits(65 - self.shift);
        let old = std::mem::replace(self, larger);
        for account in old.slots.into_iter().filter(|account| account.key != EMPTY) {
            *self.slot(account.key) = account;
        }
    }

    /// Takes out what was counted; the table is empty afterwards.
    pub fn drain(&mut self) -> impl Iterator<Item = ArcAccount> + '_ {
        let none = self.used == 0;
        self.used = 0;
        let slots = if none { &mut [] } else { self.slots.as_mut_slice() };
        slots.iter_mut().map(|slot| std::mem::replace(slot, VACANT)).filter(|slot| slot.key != EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn keys_hold_what_went_in() {
        for how in [How::Call, How::Jump, How::Interrupt, How::Exception, How::Syscall] {
            let key = ArcKey::new(NO_CALLER, FUNCTION_LIMIT as u32 - 1, how);
            assert_ne!(key, EMPTY);
            assert_eq!((key.caller(), key.callee(), key.how()), (NO_CALLER, (1 << 29) - 1, how));
        }
    }

    #[test]
    fn the_table_counts_like_a_map_while_it_grows() {
        let mut table = ArcTable::new();
        let mut map = BTreeMap::new();
        for i in 0..30_000u64 {
            let key = ArcKey::new((i % 97) as u32, (i * i % 1009) as u32, How::Call);
            table.count(key, i);
            let entry = map.entry(key).or_insert((0, 0));
            *entry = (entry.0 + 1, entry.1 + i);
        }
        let drained: BTreeMap<_, _> = table.drain().map(|a| (a.key, (a.calls, a.elapsed))).collect();
        assert_eq!(drained, map);
        assert_eq!(table.drain().count(), 0);
    }
}
