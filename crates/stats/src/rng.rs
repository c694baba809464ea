//! Reproducible random numbers: the same seed gives the same numbers on every machine.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), for seeds and for tests. The value is the seed.
#[derive(Debug, Clone)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number less than `limit`; 0 if that is 0. Slightly biased.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit.max(1)
    }

    /// Returns an index of a list with `length` elements, like [`SplitMix64::below`].
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

/// xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
/// 47(4), 2021), seeded with SplitMix64 as its authors advise.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator from any seed, 0 included.
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64(seed);
        Self { state: std::array::from_fn(|_| seeds.bits()) }
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform number in 0 .. `below`, which must not be 0. The bias, below `below` /
    /// 2^64, is negligible here.
    pub fn index(&mut self, below: usize) -> usize {
        ((u128::from(self.bits()) * below as u128) >> 64) as usize
    }

    /// Returns a uniform number in (0, 1), ends excluded.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First numbers of the authors' C code (<https://prng.di.unimi.it/xoshiro256plusplus.c>) from
    /// the state 1, 2, 3, 4.
    #[test]
    fn it_is_xoshiro256_plus_plus() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(expected.map(|_| rng.bits()), expected);
    }

    #[test]
    fn indices_and_uniforms_stay_inside_and_reach_everything() {
        let mut rng = Rng::new(0);
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[rng.index(7)] += 1;
            let uniform = rng.uniform();
            assert!(uniform > 0.0 && uniform < 1.0);
        }
        assert!(seen.iter().all(|&count| (900..1_100).contains(&count)), "{seen:?}");
    }
}
