//! Pseudo-random numbers of models and algorithms, the same sequence in every run.

/// xorshift64 (G. Marsaglia, Journal of Statistical Software 2003). The value is the seed, not 0.
#[derive(Debug, Clone)]
pub(crate) struct XorShift64(pub u64);

impl XorShift64 {
    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// Returns a number of at least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}
