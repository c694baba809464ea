//! Reader of consecutive little-endian fields, each checked against the end.

/// Rest of a record or section that is not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn words(&mut self, count: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(8)?)
    }

    /// Returns the rest, up to the first NUL.
    pub fn text(&self) -> &'a [u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Reads a `perf_header_string`: a length and a text that ends with a NUL.
    pub fn string(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        Some(String::from_utf8_lossy(Fields(self.take(length)?).text()).into_owned())
    }
}

/// Iterates over little-endian words.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).filter_map(|chunk| Some(u64::from_le_bytes(*chunk.first_chunk()?)))
}
