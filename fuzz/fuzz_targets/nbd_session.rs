#![no_main]
//! A whole NBD connection: any bytes, or any requests after a valid negotiation. Reads return what was written before;
//! every request has one reply, in any order; refused requests change nothing.

use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_serve::block::{Block, BlockError, Export, Mapped, Request as Asked};
use emmc_serve::nbd::wire::{self, Command, Request};
use emmc_serve::nbd::{option, session};
use emmc_units::Instant;
use libfuzzer_sys::fuzz_target;

const SIZE: usize = 64 << 10;
const UNIT: usize = 4096;

/// An area in memory; what reads as zeros is not mapped.
struct Memory(Mutex<Vec<u8>>);

impl Block for Memory {
    fn exports(&self) -> Vec<Export> {
        let export = |name: &str, erased_byte| Export {
            name: name.into(),
            area: Area::User,
            size_bytes: SIZE as u64,
            preferred_bytes: UNIT as u32,
            erased_byte,
            read_only: false,
        };
        vec![export("user", 0), export("boot0", 0xff)]
    }

    fn submit(&self, _area: Area, request: Asked<'_>) -> Result<Instant, BlockError> {
        let mut bytes = self.0.lock().unwrap();
        let range = |offset: u64, length: u64| {
            assert!(offset % 512 == 0 && length % 512 == 0 && offset + length <= SIZE as u64, "{offset} {length}");
            offset as usize..(offset + length) as usize
        };
        match request {
            Asked::Read { offset, into } => into.copy_from_slice(&bytes[range(offset, into.len() as u64)]),
            Asked::Write { offset, data, .. } => bytes[range(offset, data.len() as u64)].copy_from_slice(data),
            Asked::Zero { offset, bytes: length, .. } | Asked::Trim { offset, bytes: length } => {
                bytes[range(offset, length)].fill(0);
            }
            Asked::Flush => {}
        }
        Ok(Instant::START)
    }

    fn mapped(&self, _area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        let bytes = self.0.lock().unwrap();
        let step = |at: u64| Mapped { range: at..at + 512, mapped: bytes[at as usize..][..512] != [0; 512] };
        Ok(range.step_by(512).map(step).collect())
    }

    fn due(&self, _at: Instant) -> Option<Wall> {
        None
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The negotiation, with or without structured replies.
fn agreement(structured: bool) -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    let mut option = |number: u32, data: &[u8]| {
        bytes.extend(option::OPTION_MAGIC.to_be_bytes());
        bytes.extend(number.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    };
    if structured {
        option(8, b"");
        option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
    }
    option(7, b"\0\0\0\0\0\0");
    bytes
}

/// Requests of six bytes each: most are good ones, on or across the edges of units and of the area.
fn requests(data: &[u8]) -> Vec<(Request, Vec<u8>)> {
    let request = |(cookie, bytes): (u64, &[u8])| {
        let length = match bytes[1] & 7 {
            0..=4 => 512 * u32::from(bytes[2] % 24),
            5 => u32::from(bytes[2]),
            6 => 32 << 20,
            _ => u32::MAX - u32::from(bytes[2]),
        };
        let offset = if bytes[3] == 0xff { u64::MAX - 511 } else { 512 * (u64::from(bytes[3]) & 0x8f) };
        let command = Command::from_number(u16::from(bytes[0] % 10));
        // A write that says it has 4 GiB would have to be sent.
        let length = if command == Command::Write { length.min(SIZE as u32 + 512) } else { length };
        let flags = if bytes[4] & 1 == 0 { 0 } else { u16::from(bytes[4] >> 3) };
        let payload = if command == Command::Write { vec![bytes[5]; length as usize] } else { Vec::new() };
        (Request { flags, command, cookie, offset, length }, payload)
    };
    (0..).zip(data.chunks_exact(6)).take(64).map(request).collect()
}

/// The rest of the server's output, parsed by hand.
struct Replies<'a>(&'a [u8]);

impl<'a> Replies<'a> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes);
        self.0 = rest;
        taken
    }

    /// The cookie of the next reply: both kinds of replies have it behind eight bytes.
    fn cookie(&self) -> u64 {
        number(&self.0[8..16])
    }

    /// The reply to a request: its error and data read. The parts of a structured reply are not mixed with others.
    fn reply(&mut self, request: &Request, structured: bool) -> (u64, Vec<u8>) {
        let mut data =
            vec![0xee; if request.command == Command::Read { request.length.min(1 << 20) } else { 0 } as usize];
        let mut covered = 0;
        loop {
            let magic = number(self.take(4)) as u32;
            if magic == wire::SIMPLE_REPLY_MAGIC {
                let error = number(self.take(4));
                assert_eq!(number(self.take(8)), request.cookie);
                assert!(!structured || error == 0 && request.command != Command::Read);
                if error == 0 && request.command == Command::Read {
                    data.copy_from_slice(self.take(request.length as usize));
                }
                return (error, data);
            }
            assert!(structured && magic == wire::CHUNK_MAGIC);
            let (flags, kind) = (number(self.take(2)), number(self.take(2)));
            assert_eq!(number(self.take(8)), request.cookie);
            let length = number(self.take(4)) as usize;
            let payload = self.take(length);
            if kind == 0x8001 {
                assert_eq!((flags, length - 6), (1, number(&payload[4..6]) as usize));
                return (number(&payload[..4]), data);
            }
            if kind == 5 {
                let told: u64 = payload[4..].chunks(8).map(|extent| number(&extent[..4])).sum();
                assert!(flags == 1 && told > 0 && told <= u64::from(request.length));
                return (0, data);
            }
            let at = (number(&payload[..8]) - request.offset) as usize;
            let hole = [0; SIZE];
            let bytes = if kind == 1 { &payload[8..] } else { &hole[..number(&payload[8..]) as usize] };
            data[at..at + bytes.len()].copy_from_slice(bytes);
            covered += bytes.len();
            if flags == 1 {
                assert_eq!(covered, data.len());
                return (0, data);
            }
        }
    }
}

fn good_client(structured: bool, data: &[u8]) {
    let requests = requests(data);
    let mut input = agreement(structured);
    let memory = Memory(Mutex::new(vec![0; SIZE]));
    let mut greeting = Vec::new();
    session(&memory, &input[..], &mut greeting).expect("an agreement");
    for (request, payload) in &requests {
        input.extend(request.encode());
        input.extend(payload);
    }
    let mut output = Vec::new();
    session(&memory, &input[..], &mut output).expect("whole requests");
    let mut replies = Replies(&output[greeting.len()..]);
    let asked = requests.iter().take_while(|(request, _)| request.command != Command::Disconnect).count();
    let mut answers = vec![None; asked];
    // Long replies are handed to another thread, and short ones overtake them.
    for _ in 0..asked {
        let cookie = replies.cookie() as usize;
        let answer = replies.reply(&requests[..asked][cookie].0, structured);
        assert!(answers[cookie].replace(answer).is_none(), "two replies to request {cookie}");
    }
    // They are carried out in order all the same.
    let mut shadow = vec![0u8; SIZE];
    for ((request, payload), answer) in requests.iter().zip(answers) {
        let (error, read) = answer.expect("each has a reply");
        if error != 0 {
            continue;
        }
        let range = request.offset as usize..request.offset as usize + request.length as usize;
        match request.command {
            Command::Read => assert_eq!(read, shadow[range]),
            Command::Write => shadow[range].copy_from_slice(payload),
            Command::Trim | Command::WriteZeroes => shadow[range].fill(0),
            Command::Flush | Command::BlockStatus => {}
            other => panic!("{other:?} was not refused"),
        }
    }
    assert!(replies.0.is_empty(), "more replies than requests");
    assert!(*memory.0.lock().unwrap() == shadow);
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    let memory = Memory(Mutex::new(vec![0; SIZE]));
    match kind % 4 {
        0 => good_client(false, data),
        1 => good_client(true, data),
        2 => drop(session(&memory, data, Vec::new())),
        _ => drop(session(&memory, &[&agreement(true), data].concat()[..], Vec::new())),
    }
});
