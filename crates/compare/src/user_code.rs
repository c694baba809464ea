//! Check that both kernels ran the same user code: a difference there is no gain of a kernel.
//!
//! A kernel changes the cost of a program, but hardly the instructions that it executes. If user
//! instructions differ, a program waited, polled, compiled or collected its garbage at other
//! instants. One run of each kernel repeats to the instruction, so A/A does not show this; runs
//! with several start offsets do.

use serde::{Deserialize, Serialize};

/// Largest difference of user instructions, in per cent, that counts as the same work: a tick that
/// falls into another system call causes about as much.
pub const SAME_WORK_PERCENT: f64 = 0.01;

/// User code of an operation that ran differently on the two kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnequalUserCode {
    /// Operation, or [`TOTAL`](crate::TOTAL).
    pub operation: String,
    /// User instructions per operation on the base kernel.
    pub base: f64,
    /// User instructions per operation on the tuned kernel.
    pub tuned: f64,
    /// 100 · (tuned − base) / base; `None` if the base is 0.
    pub change_percent: Option<f64>,
    /// Interval of the change, from several start offsets or seeds; `None` if the spread is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<[f64; 2]>,
    /// Change of the kernel's own instructions, in per cent of the base kernel's whole path.
    pub kernel_share_percent: Option<f64>,
}
