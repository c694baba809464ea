//! Requests to block devices and network packets: the functions that they pass read them from the kernel's structures.
//!
//! Requests are followed from the machine's start on, so that what was issued before a region is under way in it.
//! Counts are sums by value: memory grows with what is new (a device, a region, a size that was not met), not with
//! requests.

use kerntune_isa::Cpu;
use kerntune_trace::io::{
    IoFile, IoSpec, Operation, PacketLayout, PacketRow, RequestLayout, RequestRow, Requests, Values,
};
use kerntune_trace::VERSION;
use std::collections::{BTreeMap, HashMap};

/// Requests under way and rows for which there is room from the start.
const ROOM: usize = 4096;
/// Requests of one batch at most: a list without end would be read for ever.
const BATCH: usize = 1 << 16;
/// Bytes of a disk's name, and of a network device's.
const DISK_NAME: usize = 32;
const CARD_NAME: usize = 16;
const SECTOR: u64 = 512;

/// A device's name, ended by 0.
type Name = [u8; DISK_NAME];

/// A request that a device has been given.
#[derive(Clone, Copy)]
struct UnderWay {
    device: usize,
    operation: Operation,
    sector: u64,
    bytes: u64,
    since_ns: u64,
    /// The row that it is counted in, with its region; none of what was issued outside of regions.
    row: Option<(usize, u32)>,
}

/// A block device.
struct Device {
    name: Name,
    /// The queue's address.
    queue: u64,
    /// Bytes at which the last read or write ended.
    end: Option<u64>,
    under_way: u64,
}

/// How often each value was met.
#[derive(Default)]
struct Counter(HashMap<u64, u64>);

impl Counter {
    fn add(&mut self, value: u64) {
        *self.0.entry(value).or_default() += 1;
    }

    fn values(self) -> Values {
        self.0.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
    }
}

/// Requests of one region, device and operation.
#[derive(Default)]
struct Sums {
    plain: Requests,
    bytes: Counter,
    seeks: Counter,
    depths: Counter,
    times: Counter,
}

/// What has been counted.
pub struct Io {
    requests: Option<RequestLayout>,
    packets: Option<PacketLayout>,
    under_way: HashMap<u64, UnderWay>,
    devices: Vec<Device>,
    numbers: HashMap<(u32, usize, Operation), usize>,
    rows: Vec<Sums>,
    cards: Vec<Name>,
    packet_numbers: HashMap<(u32, usize, bool), usize>,
    packet_rows: Vec<Counter>,
    /// What could not be read in regions.
    pub(crate) unread: u64,
}

impl Io {
    /// Nothing yet, of a kernel with structures like these.
    pub fn new(spec: IoSpec) -> Self {
        Self {
            requests: spec.requests,
            packets: spec.packets,
            under_way: HashMap::with_capacity(ROOM),
            devices: Vec::with_capacity(16),
            numbers: HashMap::with_capacity(ROOM),
            rows: Vec::with_capacity(ROOM),
            cards: Vec::with_capacity(16),
            packet_numbers: HashMap::with_capacity(ROOM),
            packet_rows: Vec::with_capacity(ROOM),
            unread: 0,
        }
    }

    fn row(&mut self, region: u32, device: usize, operation: Operation) -> usize {
        let next = self.rows.len();
        let row = *self.numbers.entry((region, device, operation)).or_insert(next);
        if row == next {
            self.rows.push(Sums::default());
        }
        row
    }

    /// The device that a queue is of.
    fn device(&mut self, queue: u64, layout: &RequestLayout, cpu: &mut dyn Cpu) -> Option<usize> {
        let disk = word(cpu, queue, layout.disk)?;
        let mut name = [0; DISK_NAME];
        if disk != 0 && !cpu.read(disk.wrapping_add(layout.disk_name.into()), &mut name) {
            return None;
        }
        // What is in the place of one that is gone has another name.
        let known = self.devices.iter().position(|device| device.queue == queue && device.name == name);
        Some(known.unwrap_or_else(|| {
            self.devices.push(Device { name, queue, end: None, under_way: 0 });
            self.devices.len() - 1
        }))
    }

    /// A device is given a request. `region` is the innermost that is open.
    pub(crate) fn issue(
        &mut self,
        request: u64,
        now: u64,
        region: Option<u32>,
        cpu: &mut dyn Cpu,
    ) -> Option<()> {
        let layout = self.requests?;
        let queue = word(cpu, request, layout.queue)?;
        let operation = Operation::of(half(cpu, request, layout.flags)?);
        let bytes = u64::from(half(cpu, request, layout.bytes)?);
        let sector = word(cpu, request, layout.sector)?;
        let device = self.device(queue, &layout, cpu)?;
        if let Some(known) = self.under_way.get_mut(&request) {
            let same = (known.device, known.operation, known.sector, known.bytes)
                == (device, operation, sector, bytes);
            if same {
                // The driver had no room for it and gave it back.
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
        of.under_way += 1;
        let depth = of.under_way;
        let before = match operation.moves() && bytes > 0 {
            true => {
                let from = sector.wrapping_mul(SECTOR);
                of.end.replace(from.wrapping_add(bytes)).map(|end| end.abs_diff(from))
            }
            false => None,
        };
        self.under_way.insert(request, UnderWay { device, operation, sector, bytes, since_ns: now, row });
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

    /// Takes a request off its device: merged into another one, or ended in a way that is not seen.
    pub(crate) fn forget(&mut self, request: u64) {
        let Some(gone) = self.under_way.remove(&request) else { return };
        let of = &mut self.devices[gone.device];
        of.under_way = of.under_way.saturating_sub(1);
        if let Some((row, _)) = gone.row {
            self.rows[row].plain.unfinished += 1;
        }
    }

    /// A device has done a request. One that it was not given is the second end of one that needed a flush.
    pub(crate) fn complete(&mut self, request: u64, now: u64, region: Option<u32>) {
        let Some(done) = self.under_way.remove(&request) else { return };
        let of = &mut self.devices[done.device];
        of.under_way = of.under_way.saturating_sub(1);
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

    /// The same of all of a batch.
    pub(crate) fn complete_batch(
        &mut self,
        batch: u64,
        now: u64,
        region: Option<u32>,
        cpu: &mut dyn Cpu,
    ) -> Option<()> {
        let layout = self.requests?;
        let mut request = word(cpu, batch, layout.batch)?;
        for _ in 0..BATCH {
            if request == 0 {
                break;
            }
            let next = word(cpu, request, layout.next)?;
            self.complete(request, now, region);
            request = next;
        }
        Some(())
    }

    /// A packet passes.
    pub(crate) fn packet(&mut self, packet: u64, sent: bool, region: u32, cpu: &mut dyn Cpu) -> Option<()> {
        let layout = self.packets?;
        let bytes = u64::from(half(cpu, packet, layout.bytes)?);
        let device = word(cpu, packet, layout.device)?;
        let mut name = [0; DISK_NAME];
        if device != 0 && !cpu.read(device.wrapping_add(layout.device_name.into()), &mut name[..CARD_NAME]) {
            return None;
        }
        let card = self.cards.iter().position(|card| *card == name).unwrap_or_else(|| {
            self.cards.push(name);
            self.cards.len() - 1
        });
        let next = self.packet_rows.len();
        let row = *self.packet_numbers.entry((region, card, sent)).or_insert(next);
        if row == next {
            self.packet_rows.push(Counter::default());
        }
        self.packet_rows[row].add(bytes);
        Some(())
    }

    /// The file's contents.
    pub fn finish(&mut self) -> IoFile {
        let open: Vec<u64> = self.under_way.keys().copied().collect();
        open.into_iter().for_each(|request| self.forget(request));
        let mut rows: Vec<Option<Sums>> = std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        let mut requests: Vec<RequestRow> = std::mem::take(&mut self.numbers)
            .into_iter()
            .filter_map(|((region, device, operation), row)| {
                let Sums { plain, bytes, seeks, depths, times } = rows.get_mut(row)?.take()?;
                let [bytes, seeks, depths, times] = [bytes, seeks, depths, times].map(Counter::values);
                let requests = Requests { bytes, seeks, depths, times, ..plain };
                Some(RequestRow {
                    region,
                    device: text(&self.devices.get(device)?.name),
                    operation,
                    requests,
                })
            })
            .collect();
        requests.sort_by(|a, b| (a.region, &a.device, a.operation).cmp(&(b.region, &b.device, b.operation)));
        let mut counts: Vec<Option<Counter>> =
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

/// 8 bytes of the guest's memory.
pub(crate) fn word(cpu: &mut dyn Cpu, address: u64, offset: u32) -> Option<u64> {
    let mut bytes = [0; 8];
    cpu.read(address.wrapping_add(offset.into()), &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// 4 bytes of the guest's memory.
fn half(cpu: &mut dyn Cpu, address: u64, offset: u32) -> Option<u32> {
    let mut bytes = [0; 4];
    cpu.read(address.wrapping_add(offset.into()), &mut bytes).then(|| u32::from_le_bytes(bytes))
}

fn text(name: &Name) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(DISK_NAME);
    String::from_utf8_lossy(&name[..end]).into_owned()
}
