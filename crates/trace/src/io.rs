//! Requests to block devices and network packets.
//!
//! [`IoSpec`] tells the recorder where the kernel keeps its structures. [`IoFile`] is what the
//! recorder writes to `io.json`.

use crate::check_version;
use serde::{Deserialize, Deserializer, Serialize};

/// Layouts of the kernel's requests and packets; `None` for those that are not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoSpec {
    /// Layout of requests to block devices.
    pub requests: Option<RequestLayout>,
    /// Layout of network packets.
    pub packets: Option<PacketLayout>,
}

/// Byte offsets in the kernel's structures for a request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLayout {
    /// Offset of `q` in `struct request`.
    pub queue: u32,
    /// Offset of `cmd_flags` in `struct request`: 4 bytes, the operation in the lowest.
    pub flags: u32,
    /// Offset of `__data_len` in `struct request`, 4 bytes.
    pub bytes: u32,
    /// Offset of `__sector` in `struct request`, in units of 512 bytes.
    pub sector: u32,
    /// Offset of `rq_next` in `struct request`.
    pub next: u32,
    /// Offset of the first request in `struct io_comp_batch`.
    pub batch: u32,
    /// Offset of `disk` in `struct request_queue`.
    pub disk: u32,
    /// Offset of `disk_name` in `struct gendisk`, 32 bytes.
    pub disk_name: u32,
}

/// Byte offsets in the kernel's structures for a network packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLayout {
    /// Offset of `len` in `struct sk_buff`, 4 bytes.
    pub bytes: u32,
    /// Offset of `dev` in `struct sk_buff`.
    pub device: u32,
    /// Offset of `name` in `struct net_device`, 16 bytes.
    pub device_name: u32,
}

/// Operation of a block request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoOperation {
    /// `REQ_OP_READ`.
    Read,
    /// `REQ_OP_WRITE` or `REQ_OP_ZONE_APPEND`.
    Write,
    /// `REQ_OP_FLUSH`: makes earlier writes durable.
    Flush,
    /// `REQ_OP_DISCARD` or `REQ_OP_SECURE_ERASE`: releases data that is no longer needed.
    Discard,
    /// `REQ_OP_WRITE_ZEROES`.
    WriteZeroes,
    /// Any other operation, such as commands of drivers and zones.
    Other,
}

impl IoOperation {
    /// Returns the operation in the lowest byte of `cmd_flags` (include/linux/blk_types.h), whose
    /// codes are stable since 4.10.
    pub fn from_flags(flags: u32) -> Self {
        match flags & 0xff {
            0 => Self::Read,
            1 | 7 => Self::Write,
            2 => Self::Flush,
            3 | 5 => Self::Discard,
            9 => Self::WriteZeroes,
            _ => Self::Other,
        }
    }

    /// Returns the name that tables print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write zeroes",
            Self::Other => "other",
        }
    }

    /// Returns true if the operation transfers data to or from a place on the device.
    pub fn moves(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Occurrences of each value, as pairs of value and count in ascending order of values.
pub type ValueCounts = Vec<(u64, u64)>;

/// Statistics of the requests of one kind to one device, issued in one region. Nested regions are
/// not included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestStats {
    /// Number of requests issued.
    pub count: u64,
    /// Number of times that the driver handed a request back and got it again.
    pub again: u64,
    /// Requests of `count` that completed in this region.
    pub completed: u64,
    /// Requests of `count` that completed later, in another region or outside of all.
    pub completed_later: u64,
    /// Requests of `count` whose completion was not seen: still in flight at the end of the run, or
    /// merged into others.
    pub unfinished: u64,
    /// Requests that completed in this region but were issued earlier or in another region. They
    /// are not part of `count`.
    pub issued_before: u64,
    /// Reads and writes that begin where the device's previous one (of either kind) ended.
    pub sequential: u64,
    /// Data sizes in bytes. Requests without data are left out.
    pub bytes: ValueCounts,
    /// Distances of reads and writes that are not sequential: bytes from the end of the device's
    /// previous one, in either direction.
    pub seeks: ValueCounts,
    /// Queue depths: requests in flight at the device when one is issued, including that one.
    pub depths: ValueCounts,
    /// Times from issue to completion in virtual nanoseconds, in whatever region the completion
    /// fell.
    pub times: ValueCounts,
}

/// Requests of one region, device and operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// Innermost open region, as an index into [`crate::Recording::regions`].
    pub region: u32,
    /// Name of the device, such as `vda`; empty for a queue without a disk.
    pub device: String,
    /// Operation of these requests.
    pub operation: IoOperation,
    /// Statistics of these requests.
    pub requests: RequestStats,
}

/// Packets of one region, device and direction. Nested regions are not included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// Innermost open region, see [`RequestRow::region`].
    pub region: u32,
    /// Name of the device, such as `lo`; empty for a packet without one.
    pub device: String,
    /// True for sent packets, false for received ones.
    pub sent: bool,
    /// Sizes in bytes, as the kernel holds the packets at this point.
    pub bytes: ValueCounts,
}

/// Contents of `io.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoFile {
    /// Format version: [`crate::VERSION`]; other versions are rejected.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// True if requests were recorded.
    pub sees_requests: bool,
    /// True if packets were recorded.
    pub sees_packets: bool,
    /// Number of requests and packets in regions whose structures could not be read. They are
    /// missing from the rows.
    pub unread: u64,
    /// Rows by region, device and operation.
    pub requests: Vec<RequestRow>,
    /// Rows by region, device and direction.
    pub packets: Vec<PacketRow>,
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    check_version("file of requests and packets", u32::deserialize(deserializer)?)
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_kernels() {
        // See `enum req_op` in include/linux/blk_types.h. Flags above the lowest byte do not
        // matter.
        let of = |flags| IoOperation::from_flags(flags).name();
        assert_eq!([0x4_2800, 0x8801, 2, 3].map(of), ["read", "write", "flush", "discard"]);
        assert_eq!([5, 7, 9, 34].map(of), ["discard", "write", "write zeroes", "other"]);
    }
}
