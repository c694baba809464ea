//! Number types of quantities that must not be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Declares a quantity that can be added, subtracted and scaled. All arithmetic saturates, so that
/// a forged profile cannot make the program panic.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Quantity 0.
            pub const ZERO: Self = Self(0);

            /// Returns the plain number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::ZERO, Add::add)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity! {
    /// Time of the profiled machine: on the emulator a tick is one executed instruction, elsewhere
    /// a nanosecond of wall-clock time.
    Ticks
}

quantity! {
    /// Number of executed instructions. Each iteration of a `rep` string instruction counts as one.
    Instructions
}

/// Virtual address in the kernel.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

impl Address {
    /// Returns the plain number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Row number of a function in the table of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionIndex(pub u32);

impl Default for FunctionIndex {
    fn default() -> Self {
        Self::NONE
    }
}

impl FunctionIndex {
    /// Marker for a missing function, for example the caller of an entry point.
    pub const NONE: Self = Self(u32::MAX);

    /// Returns the row number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the function, or `None` for [`Self::NONE`].
    pub fn known(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_addresses_are_hexadecimal() {
        assert_eq!([Ticks(2), Ticks(u64::MAX)].into_iter().sum::<Ticks>().get(), u64::MAX);
        assert_eq!(Instructions(3) - Instructions(5), Instructions::ZERO);
        assert_eq!(Address(0xffff_ffff_8100_0000).to_string(), "0xffffffff81000000");
    }
}
