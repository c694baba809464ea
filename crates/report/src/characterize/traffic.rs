//! Requests to block devices and network packets of a workload.

use super::event::CharacterInput;
use crate::io;
use crate::traffic::{all_packets, all_requests, packets, requests, BlockRequests, PacketSizes};
use serde::Serialize;

/// Requests to block devices, with rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DiskFigures {
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    pub all: BlockRequests,
    pub rows: Vec<BlockRequests>,
    /// Remarks on requests that are not in the figures.
    pub notes: Vec<String>,
}

/// Numbers and sizes of network packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct NetworkFigures {
    /// By direction, over all devices.
    pub all: Vec<PacketSizes>,
    pub rows: Vec<PacketSizes>,
}

/// Collects requests; `None` if they were not recorded.
pub(crate) fn disk(of: &CharacterInput) -> Option<DiskFigures> {
    if !of.profile.manifest.capture.requests {
        return None;
    }
    let rows = requests(of.profile, of.scope);
    let all = all_requests(&rows);
    let count = all.requests as f64;
    Some(DiskFigures {
        per_operation: of.rates.per_operation(count),
        per_second: of.rates.per_second(count),
        notes: io::notes(&all),
        all,
        rows,
    })
}

/// Collects packets; `None` if they were not recorded.
pub(crate) fn network(of: &CharacterInput) -> Option<NetworkFigures> {
    if !of.profile.manifest.capture.packets {
        return None;
    }
    let rows = packets(of.profile, of.scope);
    Some(NetworkFigures { all: all_packets(&rows), rows })
}
