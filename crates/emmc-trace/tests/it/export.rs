//! Timelines: every request is a slice with its parts inside, and slices of one lane do not overlap.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use emmc_trace::{Selection, Timeline, TimelineWriter, follow, open, survey};
use serde_json::Value;

use crate::support::{bytes, input};

/// A recording as a timeline, and its requests.
fn timeline(timeline: Timeline) -> (Vec<u8>, u64) {
    let inputs = || vec![input("t.dat", bytes("mmc_dwrite_4096.dat"))];
    let found = survey(open(inputs()).unwrap(), None);
    assert_eq!((found.selection, found.requests, found.other_requests), (Selection::Cards, 8, 124));
    let mut out = Vec::new();
    let mut writer = TimelineWriter::new(timeline, found.notes.names, &mut out);
    follow(open(inputs()).unwrap(), found.selection, |request| writer.request(request, &mut out));
    writer.end(&mut out);
    (out, found.requests)
}

#[test]
fn chrome_has_every_request_once_with_its_spans_inside() {
    let (text, requests) = timeline(Timeline::Chrome);
    let document: Value = serde_json::from_slice(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let slices = |span: bool| {
        let all = events.iter().filter(move |event| event["ph"] == "X" && (event["cat"] == "span") == span);
        let of = |event: &Value| {
            let nanos = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as u64;
            (event["tid"].as_u64().unwrap(), nanos("ts"), nanos("ts") + nanos("dur"))
        };
        all.map(of).collect::<Vec<_>>()
    };
    let (whole, parts) = (slices(false), slices(true));
    assert_eq!((whole.len() as u64, parts.len() as u64), (requests, 5 * requests));
    for (number, (lane, from, to)) in whole.iter().enumerate() {
        let own = &parts[5 * number..5 * number + 5];
        assert!(own.iter().all(|part| part.0 == *lane));
        assert_eq!((own[0].1, own[4].2), (*from, *to));
        assert!(own.windows(2).all(|pair| pair[0].2 == pair[1].1), "a gap between parts: {own:?}");
        let overlaps = |other: &&(u64, u64, u64)| other.0 == *lane && other.1 < *to && *from < other.2;
        assert_eq!(whole.iter().filter(overlaps).count(), 1);
    }
    let named = events.iter().find(|event| event["cat"] == "write").unwrap();
    assert_eq!((named["name"].as_str(), named["args"]["thread"].as_str()), (Some("write 4 KiB"), Some("python3")));
}

/// The fields of a message: number, and a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        all.push(match key & 7 {
            0 => (key >> 3, Field::Number(value)),
            2 => {
                let (own, rest) = bytes.split_at(value as usize);
                bytes = rest;
                (key >> 3, Field::Bytes(own))
            }
            other => panic!("wire type {other}"),
        });
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    *bytes = &bytes[end + 1..];
    value
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn one<'a>(fields: &[(u64, Field<'a>)], number: u64) -> Option<Field<'a>> {
    fields.iter().find(|(field, _)| *field == number).map(|(_, value)| *value)
}

#[test]
fn perfetto_has_the_same_slices() {
    let (out, requests) = timeline(Timeline::Perfetto);
    let (mut depth, mut begun, mut tracks) = (BTreeMap::new(), 0, Vec::new());
    for (field, packet) in fields(&out) {
        let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
        assert_eq!(field, 1);
        let packet = fields(packet);
        if let Some(Field::Bytes(track)) = one(&packet, 60) {
            let track = fields(track);
            tracks.push(one(&track, 1).unwrap());
            continue;
        }
        let Some(Field::Bytes(event)) = one(&packet, 11) else { panic!("neither track nor event") };
        assert!(matches!(one(&packet, 8), Some(Field::Number(at)) if at > 0));
        let event = fields(event);
        let track = one(&event, 11).unwrap();
        assert!(tracks.contains(&track), "a track without a descriptor");
        let Field::Number(track) = track else { panic!("a track is a number") };
        let open: &mut i32 = depth.entry(track).or_default();
        match one(&event, 9) {
            Some(Field::Number(1)) => {
                begun += u64::from(*open == 0);
                *open += 1;
                assert!(matches!(one(&event, 23), Some(Field::Bytes(name)) if !name.is_empty()));
            }
            Some(Field::Number(2)) => *open -= 1,
            other => panic!("type {other:?}"),
        }
        assert!((0..=2).contains(open));
    }
    assert_eq!(begun, requests);
    assert!(depth.values().all(|open| *open == 0));
}

/// Perfetto's own descriptors, of its Python package: every packet decodes, no field is unknown, all requests are
/// there.
/// `EMMCLAB_PYTHON` is a Python that has the package.
#[test]
fn perfettos_descriptors_know_every_packet() {
    let python = std::env::var_os("EMMCLAB_PYTHON").unwrap_or_else(|| "python3".into());
    let there = Command::new(&python).args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no Python with the package perfetto (EMMCLAB_PYTHON names one)");
        return;
    }
    let (out, requests) = timeline(Timeline::Perfetto);
    let packets = fields(&out).len();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decode_timeline.py");
    let mut child =
        Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python");
    child.stdin.take().unwrap().write_all(&out).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((found["packets"].as_u64(), found["requests"].as_u64()), (Some(packets as u64), Some(requests)));
    for span in ["vfs", "block", "issue", "card", "post"] {
        assert_eq!(found["spans"][span].as_u64(), Some(requests), "{span}");
    }
}
