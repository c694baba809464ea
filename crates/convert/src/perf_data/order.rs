//! Records in the order of their times. Buffers of different CPUs are written one after the other,
//! and perf marks the end of each round: no record is older than the newest of the round before.

/// Maximum size of the waiting records, in bytes. A round has what fits into the kernel's buffers.
const MAX_WAITING: usize = 64 << 20;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    time: u64,
    kind: u32,
    misc: u16,
    length: u16,
    begin: u32,
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
pub(super) struct TimeOrder {
    waiting: Vec<Waiting>,
    bytes: Vec<u8>,
    /// Newest time so far, and that at the end of the round before.
    newest: u64,
    limit: u64,
    spare: Vec<u8>,
}

/// A record in order: type, flags, body.
pub(super) type OrderedRecord<'a> = (u32, u16, &'a [u8]);

impl TimeOrder {
    /// Adds a record.
    pub fn push(&mut self, time: u64, kind: u32, misc: u16, body: &[u8]) {
        let (length, begin) = (body.len() as u16, self.bytes.len() as u32);
        self.waiting.push(Waiting { time, kind, misc, length, begin });
        self.bytes.extend_from_slice(body);
        self.newest = self.newest.max(time);
    }

    /// Returns true if half of the records must go, because there is no room for more.
    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.waiting.len() * size_of::<Waiting>() > MAX_WAITING
    }

    /// Ends a round: passes on all records that are not newer than the round before.
    pub fn round<E>(&mut self, to: impl FnMut(OrderedRecord<'_>) -> Result<(), E>) -> Result<(), E> {
        let limit = std::mem::replace(&mut self.limit, self.newest);
        self.pass_on(|waiting| waiting.time <= limit, to)
    }

    /// Passes on the older half of the records.
    pub fn half<E>(&mut self, to: impl FnMut(OrderedRecord<'_>) -> Result<(), E>) -> Result<(), E> {
        let (mut left, half) = (self.waiting.len(), self.waiting.len() / 2);
        self.pass_on(
            |_| {
                left -= 1;
                left >= half
            },
            to,
        )
    }

    /// Passes on all records.
    pub fn all<E>(&mut self, to: impl FnMut(OrderedRecord<'_>) -> Result<(), E>) -> Result<(), E> {
        self.pass_on(|_| true, to)
    }

    fn pass_on<E>(
        &mut self,
        mut is_due: impl FnMut(&Waiting) -> bool,
        mut to: impl FnMut(OrderedRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Records of one time keep their order.
        self.waiting.sort_by_key(|waiting| waiting.time);
        let due = self.waiting.iter().take_while(|waiting| is_due(waiting)).count();
        for waiting in &self.waiting[..due] {
            let begin = waiting.begin as usize;
            to((waiting.kind, waiting.misc, &self.bytes[begin..begin + usize::from(waiting.length)]))?;
        }
        self.waiting.drain(..due);
        self.spare.clear();
        for waiting in &mut self.waiting {
            let begin = waiting.begin as usize;
            waiting.begin = self.spare.len() as u32;
            self.spare.extend_from_slice(&self.bytes[begin..begin + usize::from(waiting.length)]);
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(order: &mut TimeOrder, how: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let take = |(_, _, body): OrderedRecord<'_>| -> Result<(), ()> {
            out.extend_from_slice(body);
            Ok(())
        };
        match how {
            "round" => order.round(take),
            "half" => order.half(take),
            _ => order.all(take),
        }
        .unwrap();
        out
    }

    #[test]
    fn records_come_in_the_order_of_time_a_round_late() {
        let mut order = TimeOrder::default();
        for (time, name) in [(5, b"e"), (7, b"g"), (2, b"b"), (5, b"f")] {
            order.push(time, 1, 0, name);
        }
        assert_eq!(drained(&mut order, "round"), b"", "older ones may follow");
        for (time, name) in [(6, b"x"), (9, b"z")] {
            order.push(time, 1, 0, name);
        }
        assert_eq!(drained(&mut order, "round"), b"befxg");
        assert_eq!(drained(&mut order, "all"), b"z");
        for time in [4, 1, 3, 2] {
            order.push(time, 1, 0, &[b'0' + time as u8]);
        }
        assert_eq!(drained(&mut order, "half"), b"12");
        assert_eq!(drained(&mut order, "all"), b"34");
    }
}
