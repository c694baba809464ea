//! Requests to block devices and network packets: what the recorder is told of the kernel's structures, and `io.json`, which
//! it writes.

use crate::{Error, VERSION};
use serde::{Deserialize, Deserializer, Serialize};

/// What the recorder is told of requests and packets; `None` of what is not to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoSpec {
    /// Where the kernel keeps what is known of a request.
    pub requests: Option<RequestLayout>,
    /// Where the kernel keeps what is known of a packet.
    pub packets: Option<PacketLayout>,
}

/// Byte offsets of what is known of a request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLayout {
    /// `q` in `struct request`.
    pub queue: u32,
    /// `cmd_flags` in `struct request`, 4 bytes, of which the lowest is the operation.
    pub flags: u32,
    /// `__data_len` in `struct request`, 4 bytes.
    pub bytes: u32,
    /// `__sector` in `struct request`: units of 512 bytes.
    pub sector: u32,
    /// `rq_next` in `struct request`.
    pub next: u32,
    /// The first request in `struct io_comp_batch`.
    pub batch: u32,
    /// `disk` in `struct request_queue`.
    pub disk: u32,
    /// `disk_name` in `struct gendisk`, 32 bytes.
    pub disk_name: u32,
}

/// Byte offsets of what is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLayout {
    /// `len` in `struct sk_buff`, 4 bytes.
    pub bytes: u32,
    /// `dev` in `struct sk_buff`.
    pub device: u32,
    /// `name` in `struct net_device`, 16 bytes.
    pub device_name: u32,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `REQ_OP_READ`.
    Read,
    /// `REQ_OP_WRITE`, `REQ_OP_ZONE_APPEND`.
    Write,
    /// `REQ_OP_FLUSH`: what was written is to be kept.
    Flush,
    /// `REQ_OP_DISCARD`, `REQ_OP_SECURE_ERASE`: what is there is not needed any more.
    Discard,
    /// `REQ_OP_WRITE_ZEROES`.
    WriteZeroes,
    /// Commands of drivers, of zones.
    Other,
}

impl Operation {
    /// By the lowest byte of `cmd_flags` (include/linux/blk_types.h), which means the same since 4.10.
    pub fn of(flags: u32) -> Self {
        match flags & 0xff {
            0 => Self::Read,
            1 | 7 => Self::Write,
            2 => Self::Flush,
            3 | 5 => Self::Discard,
            9 => Self::WriteZeroes,
            _ => Self::Other,
        }
    }

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write zeroes",
            Self::Other => "other",
        }
    }

    /// Whether data goes to or comes from a place of the device.
    pub fn moves(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// How often each value was met, in order of values.
pub type Values = Vec<(u64, u64)>;

/// Requests of one kind to one device that were issued in a region, without those in regions in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// Of these, how often the driver gave one back and was given it again.
    pub again: u64,
    /// Of these, which completed in this region.
    pub completed: u64,
    /// Of these, which completed later: in another region or in none.
    pub completed_later: u64,
    /// Of these, of which no completion was seen: under way when the run was over, or merged into others.
    pub unfinished: u64,
    /// Requests that completed in this region and were issued before it, or in another one. Not part of `count`.
    pub issued_before: u64,
    /// Reads and writes that begin where the device's last one, of either kind, ended.
    pub sequential: u64,
    /// Bytes of data; nothing of requests without.
    pub bytes: Values,
    /// Of reads and writes that are not sequential: bytes from the end of the device's last one, forward or back.
    pub seeks: Values,
    /// Requests of the device that are under way when one is issued, itself included.
    pub depths: Values,
    /// Virtual nanoseconds from issue to completion, wherever that was.
    pub times: Values,
}

/// Requests by region, device and operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// Index into [`crate::Recording::regions`], the innermost that was open.
    pub region: u32,
    /// The device's name, `vda`; nothing of a queue without a disk.
    pub device: String,
    /// What they ask for.
    pub operation: Operation,
    /// What was counted.
    pub requests: Requests,
}

/// Packets of one direction at one device in a region, without those in regions in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// As [`RequestRow::region`].
    pub region: u32,
    /// The device's name, `lo`; nothing of a packet without one.
    pub device: String,
    /// Whether they were sent, and not received.
    pub sent: bool,
    /// Bytes of a packet as the kernel holds it there.
    pub bytes: Values,
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoFile {
    /// [`VERSION`]; a file of another one is refused.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// Whether requests were seen.
    pub sees_requests: bool,
    /// Whether packets were seen.
    pub sees_packets: bool,
    /// Requests and packets in regions whose structure could not be read: nothing is known of them.
    pub unread: u64,
    /// By region, device and operation.
    pub requests: Vec<RequestRow>,
    /// By region, device and direction.
    pub packets: Vec<PacketRow>,
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        found => {
            Err(serde::de::Error::custom(Error::Version { what: "file of requests and packets", found }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_kernels() {
        // include/linux/blk_types.h, enum req_op; flags above the lowest byte say nothing.
        let of = |flags| Operation::of(flags).word();
        assert_eq!([0x4_2800, 0x8801, 2, 3].map(of), ["read", "write", "flush", "discard"]);
        assert_eq!([5, 7, 9, 34].map(of), ["discard", "write", "write zeroes", "other"]);
    }
}
