//! Types of records (`enum perf_event_type`, and `enum perf_user_event_type` of perf).

pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const THROTTLE: u32 = 5;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const AUX: u32 = 11;
pub const LOST_SAMPLES: u32 = 13;
pub const SWITCH: u32 = 14;
pub const SWITCH_CPU_WIDE: u32 = 15;
pub const KSYMBOL: u32 = 17;
pub const CALLCHAIN_DEFERRED: u32 = 22;
/// First type of a record that perf writes itself.
pub const FIRST_OF_PERF: u32 = 64;
pub const HEADER_ATTR: u32 = 64;
pub const HEADER_TRACING_DATA: u32 = 66;
pub const HEADER_BUILD_ID: u32 = 67;
pub const FINISHED_ROUND: u32 = 68;
pub const AUXTRACE: u32 = 71;
pub const EVENT_UPDATE: u32 = 78;
pub const HEADER_FEATURE: u32 = 80;
pub const COMPRESSED: u32 = 81;
pub const COMPRESSED2: u32 = 83;
