//! Rows of the tables about requests to block devices and network packets.

use crate::AnalysisInput;
use kerntune_profile::{Distribution, IoRequests, PacketStats, Tables};
use kerntune_trace::io::{RequestStats, ValueCounts};

/// Adds the rows; a recording without either has none.
pub(crate) fn add(tables: &mut Tables, input: &AnalysisInput<'_>) {
    let Some(file) = input.io else { return };
    let inside = tables.regions.len() as u32;
    let mut spread =
        |region, subject: &str, device: &str, operation: &str, figure: &str, values: &ValueCounts| {
            tables.distributions.extend(values.iter().map(|&(value, count)| Distribution {
                region,
                subject: subject.into(),
                device: device.into(),
                operation: operation.into(),
                figure: figure.into(),
                value,
                count,
            }));
        };
    for row in file.requests.iter().filter(|row| row.region < inside) {
        let RequestStats {
            count,
            again,
            completed,
            completed_later,
            unfinished,
            issued_before,
            sequential,
            bytes,
            seeks,
            depths,
            times,
        } = &row.requests;
        let operation = row.operation.name();
        tables.io_requests.push(IoRequests {
            region: row.region,
            device: row.device.clone(),
            operation: operation.into(),
            requests: *count,
            again: *again,
            completed: *completed,
            completed_later: *completed_later,
            unfinished: *unfinished,
            issued_before: *issued_before,
            sequential: *sequential,
        });
        for (figure, values) in [("bytes", bytes), ("seek", seeks), ("depth", depths), ("time_ns", times)] {
            spread(row.region, "request", &row.device, operation, figure, values);
        }
    }
    for row in file.packets.iter().filter(|row| row.region < inside) {
        let direction = if row.sent { "sent" } else { "received" };
        let sum = |of: fn(u64, u64) -> u64| {
            row.bytes.iter().fold(0u64, |sum, &(value, count)| sum.saturating_add(of(value, count)))
        };
        tables.packets.push(PacketStats {
            region: row.region,
            device: row.device.clone(),
            direction: direction.into(),
            packets: sum(|_, count| count),
            bytes: sum(u64::saturating_mul),
        });
        spread(row.region, "packet", &row.device, direction, "bytes", &row.bytes);
    }
}
