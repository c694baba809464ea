//! Whether both kernels ran the same programs' code: what is not theirs cannot be a kernel's gain.
//!
//! A kernel changes what a program costs, hardly what it executes. Where user instructions differ, a program waited, polled, compiled or
//! collected its garbage at other instants. One run of each kernel repeats to the instruction, so A/A does not show that; runs
//! that begin at several moments do.

use serde::{Deserialize, Serialize};

/// User instructions that differ by no more than this part, per cent, are the same work: a tick that falls into another system call.
pub const SAME_WORK_PERCENT: f64 = 0.01;

/// User code of an operation that ran differently on the two kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnequalUserCode {
    /// The operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// User instructions of the base kernel's runs, per operation.
    pub base: f64,
    /// The same of the tuned kernel's.
    pub tuned: f64,
    /// 100 · (tuned − base) / base; none where the base has none.
    pub change_percent: Option<f64>,
    /// Between what the change lies, of runs at several moments or with several seeds. None: its own spread is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    /// What the kernel's own instructions changed, in per cent of the whole path of the base.
    pub kernel_share_percent: Option<f64>,
}
