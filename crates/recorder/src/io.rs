//! Requests to block devices and network packets, read from the kernel's structures at the
//! functions that handle them.
//!
//! Requests are followed from power-on, so that a region knows those still in flight when it
//! begins. Values are counted in sums. Memory grows with new values (a device, a region, a size),
//! not with requests.

use kerntune_isa::StoppedCpu;
use kerntune_trace::io::{
    IoFile, IoOperation, IoSpec, PacketLayout, PacketRow, RequestLayout, RequestRow, RequestStats,
    ValueCounts,
};
use kerntune_trace::VERSION;
use std::collections::{BTreeMap, HashMap};

/// Initial capacity for pending requests and rows.
const INITIAL_CAPACITY: usize = 4096;
/// Upper bound for the requests of a batch, in case of a corrupt list.
const MAX_BATCH: usize = 1 << 16;
/// Sizes of a disk's name and of a network device's name, in bytes.
const DISK_NAME_BYTES: usize = 32;
const CARD_NAME_BYTES: usize = 16;
const SECTOR: u64 = 512;

/// NUL-terminated name of a device.
type DeviceName = [u8; DISK_NAME_BYTES];

/// Request that was issued to a device and has not completed.
#[derive(Clone, Copy)]
struct PendingRequest {
    device: usize,
    operation: IoOperation,
    sector: u64,
    bytes: u64,
    since_ns: u64,
    /// Row that counts the request, with its region; `None` if issued outside of regions.
    row: Option<(usize, u32)>,
}

/// Block device.
struct BlockDevice {
    name: DeviceName,
    /// Address of its request queue.
    queue: u64,
    /// End of the last read or write, as byte offset on the device.
    end: Option<u64>,
    pending: u64,
}

/// Occurrences of each value.
#[derive(Default)]
struct ValueCounter(HashMap<u64, u64>);

impl ValueCounter {
    fn add(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    fn values(self) -> ValueCounts {
        self.0.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
    }
}

/// Sums over the requests of one region, device and operation.
#[derive(Default)]
struct RequestSums {
    plain: RequestStats,
    bytes: ValueCounter,
    seeks: ValueCounter,
    depths: ValueCounter,
    times: ValueCounter,
}

/// Pending requests and counts of requests and packets.
pub struct IoTracker {
    requests: Option<RequestLayout>,
    packets: Option<PacketLayout>,
    pending: HashMap<u64, PendingRequest>,
    devices: Vec<BlockDevice>,
    numbers: HashMap<(u32, usize, IoOperation), usize>,
    rows: Vec<RequestSums>,
    cards: Vec<DeviceName>,
    packet_numbers: HashMap<(u32, usize, bool), usize>,
    packet_rows: Vec<ValueCounter>,
    /// Number of requests and packets in regions that could not be read.
    pub(crate) unread: u64,
}

impl IoTracker {
    /// Creates an empty tracker for a kernel with these structure layouts.
    pub fn new(spec: IoSpec) -> Self {
        Self {
            requests: spec.requests,
            packets: spec.packets,
            pending: HashMap::with_capacity(INITIAL_CAPACITY),
            devices: Vec::with_capacity(16),
            numbers: HashMap::with_capacity(INITIAL_CAPACITY),
            rows: Vec::with_capacity(INITIAL_CAPACITY),
            cards: Vec::with_capacity(16),
            packet_numbers: HashMap::with_capacity(INITIAL_CAPACITY),
            packet_rows: Vec::with_capacity(INITIAL_CAPACITY),
            unread: 0,
        }
    }

    fn row(&mut self, region: u32, device: usize, operation: IoOperation) -> usize {
        let next = self.rows.len();
        let row = *self.numbers.entry((region, device, operation)).or_insert(next);
        if row == next {
            self.rows.push(RequestSums::default());
        }
        row
    }

    /// Returns the index of the device with this request queue, which may be a new one.
    fn device(&mut self, queue: u64, layout: &RequestLayout, cpu: &mut dyn StoppedCpu) -> Option<usize> {
        let disk = read_u64(cpu, queue, layout.disk)?;
        let mut name = [0; DISK_NAME_BYTES];
        if disk != 0 && !cpu.read(disk.wrapping_add(layout.disk_name.into()), &mut name) {
            return None;
        }
        // A new device in the memory of a removed one has another name.
        let known = self.devices.iter().position(|device| device.queue == queue && device.name == name);
        Some(known.unwrap_or_else(|| {
            self.devices.push(BlockDevice { name, queue, end: None, pending: 0 });
            self.devices.len() - 1
        }))
    }

    /// Handles the issue of a request. `region` is the innermost open one.
    pub(crate) fn issue(
        &mut self,
        request: u64,
        now: u64,
        region: Option<u32>,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<()> {
        let layout = self.requests?;
        let queue = read_u64(cpu, request, layout.queue)?;
        let operation = IoOperation::from_flags(read_u32(cpu, request, layout.flags)?);
        let bytes = u64::from(read_u32(cpu, request, layout.bytes)?);
        let sector = read_u64(cpu, request, layout.sector)?;
        let device = self.device(queue, &layout, cpu)?;
        if let Some(known) = self.pending.get_mut(&request) {
            let same = (known.device, known.operation, known.sector, known.bytes)
                == (device, operation, sector, bytes);
            if same {
                // The driver had no room and gave the request back.
                known.since_ns = now;
                if let Some((row, _)) = known.row {
                    self.rows[row].plain.again += 1;
                }
                return Some(());
            }
            self.forget(request);
        }
        let row = region.map(|region| (self.row(region, device, operation), region));
        let of = &mut self.devices[device];
        of.pending += 1;
        let depth = of.pending;
        let before = match operation.moves() && bytes > 0 {
            true => {
                let from = sector.wrapping_mul(SECTOR);
                of.end.replace(from.wrapping_add(bytes)).map(|end| end.abs_diff(from))
            }
            false => None,
        };
        self.pending.insert(request, PendingRequest { device, operation, sector, bytes, since_ns: now, row });
        let Some((row, _)) = row else { return Some(()) };
        let sums = &mut self.rows[row];
        sums.plain.count += 1;
        sums.depths.add(depth);
        if bytes > 0 {
            sums.bytes.add(bytes);
        }
        match before {
            Some(0) => sums.plain.sequential += 1,
            Some(distance) => sums.seeks.add(distance),
            None => {}
        }
        Some(())
    }

    /// Removes a pending request that was merged into another one or ended unseen.
    pub(crate) fn forget(&mut self, request: u64) {
        let Some(gone) = self.pending.remove(&request) else { return };
        let of = &mut self.devices[gone.device];
        of.pending = of.pending.saturating_sub(1);
        if let Some((row, _)) = gone.row {
            self.rows[row].plain.unfinished += 1;
        }
    }

    /// Handles the completion of a request. An unknown one is the second completion of a request
    /// that needed a flush.
    pub(crate) fn complete(&mut self, request: u64, now: u64, region: Option<u32>) {
        let Some(done) = self.pending.remove(&request) else { return };
        let of = &mut self.devices[done.device];
        of.pending = of.pending.saturating_sub(1);
        if let Some((row, issued)) = done.row {
            let sums = &mut self.rows[row];
            sums.times.add(now.saturating_sub(done.since_ns));
            match region == Some(issued) {
                true => sums.plain.completed += 1,
                false => sums.plain.completed_later += 1,
            }
        }
        if let Some(region) = region.filter(|region| done.row.is_none_or(|(_, issued)| issued != *region)) {
            let row = self.row(region, done.device, done.operation);
            self.rows[row].plain.issued_before += 1;
        }
    }

    /// Handles the completion of all requests of a batch.
    pub(crate) fn complete_batch(
        &mut self,
        batch: u64,
        now: u64,
        region: Option<u32>,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<()> {
        let layout = self.requests?;
        let mut request = read_u64(cpu, batch, layout.batch)?;
        for _ in 0..MAX_BATCH {
            if request == 0 {
                break;
            }
            let next = read_u64(cpu, request, layout.next)?;
            self.complete(request, now, region);
            request = next;
        }
        Some(())
    }

    /// Counts a packet.
    pub(crate) fn packet(
        &mut self,
        packet: u64,
        sent: bool,
        region: u32,
        cpu: &mut dyn StoppedCpu,
    ) -> Option<()> {
        let layout = self.packets?;
        let bytes = u64::from(read_u32(cpu, packet, layout.bytes)?);
        let device = read_u64(cpu, packet, layout.device)?;
        let mut name = [0; DISK_NAME_BYTES];
        if device != 0
            && !cpu.read(device.wrapping_add(layout.device_name.into()), &mut name[..CARD_NAME_BYTES])
        {
            return None;
        }
        let card = self.cards.iter().position(|card| *card == name).unwrap_or_else(|| {
            self.cards.push(name);
            self.cards.len() - 1
        });
        let next = self.packet_rows.len();
        let row = *self.packet_numbers.entry((region, card, sent)).or_insert(next);
        if row == next {
            self.packet_rows.push(ValueCounter::default());
        }
        self.packet_rows[row].add(bytes);
        Some(())
    }

    /// Builds the contents of `io.json`.
    pub fn finish(&mut self) -> IoFile {
        let open: Vec<u64> = self.pending.keys().copied().collect();
        open.into_iter().for_each(|request| self.forget(request));
        let mut rows: Vec<Option<RequestSums>> =
            std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        let mut requests: Vec<RequestRow> = std::mem::take(&mut self.numbers)
            .into_iter()
            .filter_map(|((region, device, operation), row)| {
                let RequestSums { plain, bytes, seeks, depths, times } = rows.get_mut(row)?.take()?;
                let [bytes, seeks, depths, times] = [bytes, seeks, depths, times].map(ValueCounter::values);
                let requests = RequestStats { bytes, seeks, depths, times, ..plain };
                Some(RequestRow {
                    region,
                    device: text(&self.devices.get(device)?.name),
                    operation,
                    requests,
                })
            })
            .collect();
        requests.sort_by(|a, b| (a.region, &a.device, a.operation).cmp(&(b.region, &b.device, b.operation)));
        let mut counts: Vec<Option<ValueCounter>> =
            std::mem::take(&mut self.packet_rows).into_iter().map(Some).collect();
        let mut packets: Vec<PacketRow> = std::mem::take(&mut self.packet_numbers)
            .into_iter()
            .filter_map(|((region, card, sent), row)| {
                let bytes = counts.get_mut(row)?.take()?.values();
                Some(PacketRow { region, device: text(self.cards.get(card)?), sent, bytes })
            })
            .collect();
        packets.sort_by(|a, b| (a.region, &a.device, a.sent).cmp(&(b.region, &b.device, b.sent)));
        IoFile {
            version: VERSION,
            sees_requests: self.requests.is_some(),
            sees_packets: self.packets.is_some(),
            unread: self.unread,
            requests,
            packets,
        }
    }
}

/// Reads 8 bytes of guest memory.
pub(crate) fn read_u64(cpu: &mut dyn StoppedCpu, address: u64, offset: u32) -> Option<u64> {
    let mut bytes = [0; 8];
    cpu.read(address.wrapping_add(offset.into()), &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// Reads 4 bytes of guest memory.
pub(crate) fn read_u32(cpu: &mut dyn StoppedCpu, address: u64, offset: u32) -> Option<u32> {
    let mut bytes = [0; 4];
    cpu.read(address.wrapping_add(offset.into()), &mut bytes).then(|| u32::from_le_bytes(bytes))
}

fn text(name: &DeviceName) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(DISK_NAME_BYTES);
    String::from_utf8_lossy(&name[..end]).into_owned()
}
