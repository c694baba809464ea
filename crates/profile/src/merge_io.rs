//! Sums of the tables of block requests and network packets.

use crate::{Distribution, IoRequests, PacketStats, Tables};
use std::collections::BTreeMap;

/// Region, device, and operation or direction.
type TrafficKey = (u32, String, String);

/// Sums over all parts, by the key that a row has in every part.
#[derive(Default)]
pub(crate) struct IoSum {
    requests: BTreeMap<TrafficKey, [u64; 7]>,
    packets: BTreeMap<TrafficKey, [u64; 2]>,
    values: BTreeMap<(TrafficKey, String, String, u64), u64>,
}

impl IoSum {
    /// Adds a part times its weight, with new numbers of regions.
    pub fn add(&mut self, part: &Tables, weight: u64, region: impl Fn(u32) -> u32) {
        fn add(sums: &mut [u64], more: &[u64], weight: u64) {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum = sum.saturating_add(more.saturating_mul(weight));
            }
        }
        for row in &part.io_requests {
            let of = (region(row.region), row.device.clone(), row.operation.clone());
            let counts = [
                row.requests,
                row.again,
                row.completed,
                row.completed_later,
                row.unfinished,
                row.issued_before,
                row.sequential,
            ];
            add(self.requests.entry(of).or_default(), &counts, weight);
        }
        for row in &part.packets {
            let of = (region(row.region), row.device.clone(), row.direction.clone());
            add(self.packets.entry(of).or_default(), &[row.packets, row.bytes], weight);
        }
        for row in &part.distributions {
            let of = (region(row.region), row.device.clone(), row.operation.clone());
            let key = (of, row.subject.clone(), row.figure.clone(), row.value);
            let sum = self.values.entry(key).or_default();
            *sum = sum.saturating_add(row.count.saturating_mul(weight));
        }
    }

    /// Moves the sums into the tables.
    pub fn finish(self, tables: &mut Tables) {
        let Self { requests, packets, values } = self;
        tables.io_requests = requests
            .into_iter()
            .map(|((region, device, operation), counts)| {
                let [requests, again, completed, completed_later, unfinished, issued_before, sequential] =
                    counts;
                IoRequests {
                    region,
                    device,
                    operation,
                    requests,
                    again,
                    completed,
                    completed_later,
                    unfinished,
                    issued_before,
                    sequential,
                }
            })
            .collect();
        tables.packets = packets
            .into_iter()
            .map(|((region, device, direction), [packets, bytes])| PacketStats {
                region,
                device,
                direction,
                packets,
                bytes,
            })
            .collect();
        tables.distributions = values
            .into_iter()
            .map(|(((region, device, operation), subject, figure, value), count)| Distribution {
                region,
                subject,
                device,
                operation,
                figure,
                value,
                count,
            })
            .collect();
    }
}
