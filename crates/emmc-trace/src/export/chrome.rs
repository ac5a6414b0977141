//! Chrome's trace event JSON: complete events (`X`), a process for each device, a thread for each lane.
//!
//! Source: the "Trace Event Format" document; times are in microseconds, here with three decimals.

use std::fmt::Write;

use emmc_units::Nanos;

use super::lanes::Lanes;
use super::{Detail, details, device_name, slice_name};
use crate::follow::parts;
use crate::{Names, Request};

#[derive(Debug)]
pub(super) struct Chrome {
    names: Names,
    lanes: Lanes,
    is_first: bool,
}

impl Chrome {
    pub(super) fn new(names: Names, out: &mut Vec<u8>) -> Self {
        out.extend(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        Self { names, lanes: Lanes::default(), is_first: true }
    }

    fn event(&mut self, text: &str, out: &mut Vec<u8>) {
        out.extend(if self.is_first { b"".as_slice() } else { b",\n" });
        self.is_first = false;
        out.extend(text.as_bytes());
    }

    pub(super) fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        let (began, ended) = (request.began(), request.ended());
        let place = self.lanes.place(request.device, began, ended);
        let (pid, tid) = (place.device + 1, place.lane + 1);
        let named = |what: &str, name: &str| {
            format!("{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\"args\":{{\"name\":\"{name}\"}}}}")
        };
        if place.is_first {
            self.event(&named("process_name", &device_name(request.device)), out);
        }
        if place.is_new {
            self.event(&named("thread_name", &format!("requests, lane {tid}")), out);
        }
        let slice = |name: &str, from: Nanos, to: Nanos| {
            let (ts, dur) = (micros(from), micros(Nanos(to.0.saturating_sub(from.0))));
            format!("{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{name}\",\"ts\":{ts},\"dur\":{dur}")
        };
        let mut text = slice(&slice_name(request), began, ended);
        let _ = write!(text, ",\"cat\":\"{}\",\"args\":{{", request.op.name());
        for (number, (key, value)) in details(request, &self.names).into_iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let _ = match value {
                Detail::Number(value) => write!(text, "{comma}\"{key}\":{value}"),
                // A thread chooses its name freely: it is escaped.
                Detail::Text(value) => write!(text, "{comma}\"{key}\":{}", serde_json::Value::from(value)),
            };
        }
        self.event(&(text + "}}"), out);
        for (name, from, to) in parts(request) {
            self.event(&(slice(name, from, to) + ",\"cat\":\"span\"}"), out);
        }
    }

    pub(super) fn end(self, out: &mut Vec<u8>) {
        out.extend(b"\n]}\n");
    }
}

fn micros(time: Nanos) -> String {
    format!("{}.{:03}", time.0 / 1000, time.0 % 1000)
}
