//! Where a value comes from.

use serde::{Deserialize, Serialize};

/// Numbers of the build, its boot, its run and its iteration; they need not begin at 0 nor be without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Of the kernel: the same source compiled again, with another layout.
    pub build: u32,
    /// Of that build.
    pub boot: u32,
    /// Of the benchmark program in that boot.
    pub run: u32,
    /// In that run.
    pub iteration: u32,
}

/// What may vary, slowest first. The order is that of nesting: `Build < Boot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Kernels compiled anew.
    Build,
    /// Boots of one build.
    Boot,
    /// Runs of the program in one boot.
    Run,
    /// Repetitions within one run.
    Iteration,
}

impl Level {
    /// All, slowest first.
    pub const ALL: [Level; 4] = [Level::Build, Level::Boot, Level::Run, Level::Iteration];

    /// The next one down.
    pub fn below(self) -> Option<Level> {
        Level::ALL.get(self as usize + 1).copied()
    }

    /// `boots`.
    pub fn plural(self) -> &'static str {
        match self {
            Level::Build => "builds",
            Level::Boot => "boots",
            Level::Run => "runs",
            Level::Iteration => "iterations",
        }
    }

    /// `3 boots`, `1 boot`.
    pub fn count(self, count: usize) -> String {
        let word = self.plural();
        format!("{count} {}", if count == 1 { &word[..word.len() - 1] } else { word })
    }
}

impl Place {
    /// What names the unit of `level` that the value belongs to: the numbers down to that level.
    pub(crate) fn unit(&self, level: Level) -> [u32; 4] {
        let mut unit = [self.build, self.boot, self.run, self.iteration];
        unit[level as usize + 1..].fill(0);
        unit
    }
}
