//! Writer of packets.

use super::proto::{
    Interned, InternedData, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use prost::encoding::{encode_key, encode_varint, WireType};
use prost::Message;
use std::collections::HashSet;
use std::io::{self, Write};

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
/// The only sequence of packets; interned names are valid within it.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// Writer of packets. It keeps the first error and writes nothing after it.
pub(super) struct PacketWriter<W: Write> {
    out: W,
    buffer: Vec<u8>,
    packets: u64,
    failure: Option<io::Error>,
    known: HashSet<u64>,
}

impl<W: Write> PacketWriter<W> {
    /// Writes the names of the categories; a category's number is its position plus 1.
    pub fn new(out: W, categories: &[&str]) -> Self {
        let mut writer = Self { out, buffer: Vec::new(), packets: 0, failure: None, known: HashSet::new() };
        let names = (1..).zip(categories).map(|(iid, name)| Interned { iid, name: (*name).to_owned() });
        writer.packet(&TracePacket {
            sequence_flags: STATE_CLEARED | NEEDS_STATE,
            interned_data: Some(InternedData { event_categories: names.collect(), event_names: Vec::new() }),
            ..TracePacket::default()
        });
        writer
    }

    /// Checks whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Writes the rest. Returns the number of packets.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.packets),
        }
    }

    fn packet(&mut self, packet: &TracePacket) {
        if self.failure.is_some() {
            return;
        }
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet.clone() };
        self.buffer.clear();
        // The field `packet` of a Trace.
        encode_key(1, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(packet.encoded_len() as u64, &mut self.buffer);
        let encoded = packet.encode(&mut self.buffer).map_err(io::Error::other);
        if let Err(error) = encoded.and_then(|()| self.out.write_all(&self.buffer)) {
            self.failure = Some(error);
        }
        self.packets += 1;
    }

    fn descriptor(&mut self, track: TrackDescriptor) {
        self.packet(&TracePacket { track_descriptor: Some(track), ..TracePacket::default() });
    }

    /// Writes a track with a name.
    pub fn track(&mut self, uuid: u64, parent_uuid: Option<u64>, name: &str) {
        self.descriptor(TrackDescriptor {
            uuid,
            parent_uuid,
            name: Some(name.into()),
            ..TrackDescriptor::default()
        });
    }

    /// Writes the track of a process.
    pub fn process(&mut self, uuid: u64, pid: u32, name: &str) {
        let process = ProcessDescriptor { pid: i32::try_from(pid).ok(), process_name: name.into() };
        self.descriptor(TrackDescriptor { uuid, process: Some(process), ..TrackDescriptor::default() });
    }

    /// Writes the track of a thread.
    pub fn thread(&mut self, uuid: u64, pid: u32, tid: u32, name: &str) {
        let number = |number: u32| i32::try_from(number).ok();
        let thread = ThreadDescriptor { pid: number(pid), tid: number(tid), thread_name: name.into() };
        self.descriptor(TrackDescriptor { uuid, thread: Some(thread), ..TrackDescriptor::default() });
    }

    /// Checks whether a number has a name.
    pub fn knows(&self, iid: u64) -> bool {
        self.known.contains(&iid)
    }

    /// Assigns a number to a name.
    pub fn name(&mut self, iid: u64, name: &str) {
        self.known.insert(iid);
        let event_names = vec![Interned { iid, name: name.into() }];
        self.packet(&TracePacket {
            sequence_flags: NEEDS_STATE,
            interned_data: Some(InternedData { event_names, event_categories: Vec::new() }),
            ..TracePacket::default()
        });
    }

    fn event(&mut self, at: u64, event: TrackEvent) {
        self.packet(&TracePacket {
            timestamp: Some(at),
            sequence_flags: NEEDS_STATE,
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    /// Begins a slice; `category` is an index in the list of categories.
    pub fn begin(&mut self, at: u64, track_uuid: u64, name_iid: u64, category: u64) {
        let category_iids = vec![category + 1];
        self.event(at, TrackEvent { category_iids, r#type: SLICE_BEGIN, name_iid, track_uuid });
    }

    /// Ends the innermost slice of a track.
    pub fn end(&mut self, at: u64, track_uuid: u64) {
        self.event(at, TrackEvent { r#type: SLICE_END, track_uuid, ..TrackEvent::default() });
    }
}
