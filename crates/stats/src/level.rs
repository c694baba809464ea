//! Position of a value in the hierarchy of builds, boots, runs and iterations.

use serde::{Deserialize, Serialize};

/// Position of a value: numbers of build, boot, run and iteration. They need not begin at 0 and may
/// have gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValuePosition {
    /// Build of the kernel: the same source compiled again, with another layout.
    pub build: u32,
    /// Boot of that build.
    pub boot: u32,
    /// Run of the benchmark program in that boot.
    pub run: u32,
    /// Iteration within that run.
    pub iteration: u32,
}

/// Level at which measurements vary, slowest first. The order is that of nesting: `Build < Boot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariationLevel {
    /// Kernels compiled anew.
    Build,
    /// Boots of one build.
    Boot,
    /// Runs of the program in one boot.
    Run,
    /// Repetitions within one run.
    Iteration,
}

impl VariationLevel {
    /// All levels, slowest first.
    pub const ALL: [VariationLevel; 4] =
        [VariationLevel::Build, VariationLevel::Boot, VariationLevel::Run, VariationLevel::Iteration];

    /// Returns the next faster level; `None` for iterations.
    pub fn below(self) -> Option<VariationLevel> {
        VariationLevel::ALL.get(self as usize + 1).copied()
    }

    /// Returns the plural, such as `boots`.
    pub fn plural(self) -> &'static str {
        match self {
            VariationLevel::Build => "builds",
            VariationLevel::Boot => "boots",
            VariationLevel::Run => "runs",
            VariationLevel::Iteration => "iterations",
        }
    }

    /// Formats a count of units: `3 boots`, `1 boot`.
    pub fn count(self, count: usize) -> String {
        let word = self.plural();
        format!("{count} {}", if count == 1 { &word[..word.len() - 1] } else { word })
    }
}

impl ValuePosition {
    /// Returns the identity of the unit of `level` that the value belongs to: the numbers down to
    /// that level, then zeros.
    pub(crate) fn unit(&self, level: VariationLevel) -> [u32; 4] {
        let mut unit = [self.build, self.boot, self.run, self.iteration];
        unit[level as usize + 1..].fill(0);
        unit
    }
}
