//! Requests for viewers of timelines: Chrome's JSON and Perfetto's protobuf.
//!
//! Every request is one slice with its parts inside it, on a lane of its device on which no other request overlaps it.
//! Absent on purpose: events that belong to no request.

mod chrome;
mod lanes;
mod perfetto;

use crate::Names;
use crate::correlate::MMC_MAJOR;
use crate::request::Request;

/// Which viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeline {
    /// Chrome's trace event JSON; Perfetto's UI opens it too.
    Chrome,
    /// Perfetto's own protobuf.
    Perfetto,
}

/// A writer of a timeline. It appends to a buffer that the caller writes away.
#[derive(Debug)]
pub struct TimelineWriter(Writer);

#[derive(Debug)]
enum Writer {
    Chrome(chrome::Chrome),
    Perfetto(perfetto::Perfetto),
}

impl TimelineWriter {
    /// A writer, and the beginning of its file.
    pub fn new(timeline: Timeline, names: Names, out: &mut Vec<u8>) -> Self {
        Self(match timeline {
            Timeline::Chrome => Writer::Chrome(chrome::Chrome::new(names, out)),
            Timeline::Perfetto => Writer::Perfetto(perfetto::Perfetto::new(names)),
        })
    }

    /// Appends a request.
    pub fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        match &mut self.0 {
            Writer::Chrome(writer) => writer.request(request, out),
            Writer::Perfetto(writer) => writer.request(request, out),
        }
    }

    /// Appends the end of the file.
    pub fn end(self, out: &mut Vec<u8>) {
        if let Writer::Chrome(writer) = self.0 {
            writer.end(out);
        }
    }
}

/// `write 4 KiB`, as a slice is called.
fn slice_name(request: &Request) -> String {
    match request.sectors {
        0 => request.op.name().into(),
        sectors => format!("{} {}", request.op.name(), emmc_units::Bytes(u64::from(sectors) * 512)),
    }
}

fn device_name(device: u32) -> String {
    let kind = if device >> 20 == MMC_MAJOR { "eMMC or SD" } else { "block device" };
    format!("{kind} {}:{}", device >> 20, device & 0xf_ffff)
}

/// What a slice says of its request beside its name and times.
fn details(request: &Request, names: &Names) -> [(&'static str, Detail); 8] {
    [
        ("sector", Detail::Number(request.sector)),
        ("bytes", Detail::Number(u64::from(request.sectors) * 512)),
        ("mode", Detail::Text(request.mode.name().into())),
        ("thread", Detail::Text(names.get(request.pid).unwrap_or_else(|| "?".into()))),
        ("pid", Detail::Number(request.pid.into())),
        ("waited_ns", Detail::Number(request.waited.0)),
        ("requeues", Detail::Number(request.requeues.into())),
        ("error", Detail::Number(request.error)),
    ]
}

enum Detail {
    Number(u64),
    Text(String),
}
