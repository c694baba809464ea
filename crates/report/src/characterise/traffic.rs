//! Requests to block devices and network packets, as a workload has them.

use super::event::Of;
use crate::traffic::{all_packets, all_requests, packets, requests, Spread};
use crate::{io, packets as of_packets};
use serde::Serialize;

/// Requests to block devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Disk {
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    pub all: io::Row,
    pub rows: Vec<io::Row>,
    /// What is not in the figures.
    pub notes: Vec<String>,
}

/// Network packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Network {
    /// By direction, of all devices.
    pub all: Vec<of_packets::Row>,
    pub rows: Vec<of_packets::Row>,
}

/// None where requests were not seen.
pub(crate) fn disk(of: &Of) -> Option<Disk> {
    if !of.profile.manifest.capture.requests {
        return None;
    }
    let rows = requests(of.profile, of.scope);
    let all = all_requests(&rows);
    let count = all.requests as f64;
    Some(Disk {
        per_operation: of.rates.per_operation(count),
        per_second: of.rates.per_second(count),
        notes: io::notes(&all),
        all: io::Row::of(&all, Spread::summary),
        rows: rows.iter().map(|row| io::Row::of(row, Spread::summary)).collect(),
    })
}

/// None where packets were not seen.
pub(crate) fn network(of: &Of) -> Option<Network> {
    if !of.profile.manifest.capture.packets {
        return None;
    }
    let rows = packets(of.profile, of.scope);
    let row = |row| of_packets::Row::of(row, Spread::summary);
    Some(Network { all: all_packets(&rows).iter().map(row).collect(), rows: rows.iter().map(row).collect() })
}
