//! Perfetto's protobuf: a stream of `TracePacket`, each a track's descriptor or the begin or end of a slice.
//!
//! Only eight messages are written, with two wire types, so that they are written here and not by a library.
//! Source: protos/perfetto/trace/trace_packet.proto, track_event/track_event.proto, track_event/track_descriptor.proto
//! and track_event/debug_annotation.proto of Perfetto; the numbers below are their fields.

use emmc_units::Nanos;

use super::lanes::Lanes;
use super::{Detail, details, device_name, slice_name};
use crate::follow::parts;
use crate::{Names, Request};

/// `Trace.packet`.
const PACKET: u32 = 1;
mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    /// `SEQ_INCREMENTAL_STATE_CLEARED`: the first packet of a sequence.
    pub(super) const STATE_CLEARED: u64 = 1;
}
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PARENT: u32 = 5;
}
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK: u32 = 11;
    pub(super) const CATEGORY: u32 = 22;
    pub(super) const NAME: u32 = 23;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
}
mod annotation {
    pub(super) const NUMBER: u32 = 3;
    pub(super) const TEXT: u32 = 6;
    pub(super) const NAME: u32 = 10;
}

#[derive(Debug)]
pub(super) struct Perfetto {
    names: Names,
    lanes: Lanes,
    is_first: bool,
}

impl Perfetto {
    pub(super) fn new(names: Names) -> Self {
        Self { names, lanes: Lanes::default(), is_first: true }
    }

    pub(super) fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        let (began, ended) = (request.began(), request.ended());
        let place = self.lanes.place(request.device, began, ended);
        let parent = u64::from(place.device + 1) << 32;
        let lane = parent + u64::from(place.lane) + 1;
        if place.is_first {
            self.descriptor(parent, None, &device_name(request.device), out);
        }
        if place.is_new {
            self.descriptor(lane, Some(parent), &format!("requests, lane {}", place.lane + 1), out);
        }
        let mut slice = begin(lane, request.op.name(), &slice_name(request));
        for (key, value) in details(request, &self.names) {
            let mut entry = Message::default();
            entry.text(annotation::NAME, key);
            match value {
                Detail::Number(value) => entry.number(annotation::NUMBER, value),
                Detail::Text(value) => entry.text(annotation::TEXT, &value),
            }
            slice.message(event::ANNOTATION, &entry);
        }
        self.event(began, &slice, out);
        for (name, from, to) in parts(request) {
            self.event(from, &begin(lane, "span", name), out);
            self.event(to, &end(lane), out);
        }
        self.event(ended, &end(lane), out);
    }

    fn descriptor(&mut self, uuid: u64, parent: Option<u64>, name: &str, out: &mut Vec<u8>) {
        let mut found = Message::default();
        found.number(track::UUID, uuid);
        found.text(track::NAME, name);
        if let Some(parent) = parent {
            found.number(track::PARENT, parent);
        }
        let mut packet = Message::default();
        packet.message(packet::TRACK_DESCRIPTOR, &found);
        self.packet(packet, out);
    }

    fn event(&mut self, at: Nanos, event: &Message, out: &mut Vec<u8>) {
        let mut packet = Message::default();
        packet.number(packet::TIMESTAMP, at.0);
        packet.message(packet::TRACK_EVENT, event);
        self.packet(packet, out);
    }

    fn packet(&mut self, mut packet: Message, out: &mut Vec<u8>) {
        packet.number(packet::SEQUENCE, 1);
        if self.is_first {
            packet.number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
            self.is_first = false;
        }
        let mut whole = Message::default();
        whole.message(PACKET, &packet);
        out.append(&mut whole.0);
    }
}

fn begin(lane: u64, category: &str, name: &str) -> Message {
    let mut slice = Message::default();
    slice.number(event::TYPE, event::BEGIN);
    slice.number(event::TRACK, lane);
    slice.text(event::CATEGORY, category);
    slice.text(event::NAME, name);
    slice
}

fn end(lane: u64) -> Message {
    let mut slice = Message::default();
    slice.number(event::TYPE, event::END);
    slice.number(event::TRACK, lane);
    slice
}

/// The bytes of a message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }
}
