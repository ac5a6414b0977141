use emmc_regs::rpmb::{ConfigByte, SecureWriteProtection};

use super::*;
use crate::device::Area;
use crate::ftl::FtlError;

const KEY: [u8; 32] = *b"It's a nice day for a key to be.";

/// When every write is in flash.
const DONE: Instant = Instant(1000);

/// RPMB of eight sectors in memory, which can be made to fail.
struct Memory {
    bytes: Vec<u8>,
    fails: Option<StorageError>,
    secure_wp: Option<bool>,
}

impl Memory {
    fn new() -> Self {
        Self { bytes: vec![0; 32 * 512], fails: None, secure_wp: None }
    }

    fn half(&self, address: usize) -> &[u8] {
        &self.bytes[address * DATA_BYTES..][..DATA_BYTES]
    }
}

impl RpmbStore for Memory {
    fn sectors(&self) -> u64 {
        (self.bytes.len() / 512) as u64
    }

    fn read(&mut self, lba: u64, out: &mut [u8]) -> Result<(), StorageError> {
        out.copy_from_slice(&self.bytes[lba as usize * 512..][..out.len()]);
        self.fails.map_or(Ok(()), Err)
    }

    fn write(&mut self, lba: u64, data: &[u8]) -> Result<Instant, StorageError> {
        if let Some(error) = self.fails {
            return Err(error);
        }
        self.bytes[lba as usize * 512..][..data.len()].copy_from_slice(data);
        Ok(DONE)
    }

    fn secure_wp(&self) -> Option<bool> {
        self.secure_wp
    }

    fn set_secure_wp(&mut self, is_on: bool) {
        self.secure_wp = Some(is_on);
    }
}

struct Host {
    rpmb: Rpmb,
    memory: Memory,
}

impl Host {
    fn new() -> Self {
        Self { rpmb: Rpmb::default(), memory: Memory::new() }
    }

    fn with_key() -> Self {
        let mut host = Self::new();
        assert_eq!(host.program(&KEY, true), RpmbResult::OK);
        host
    }

    fn send(&mut self, frames: &[Frame], reliable: bool) {
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| *frame.bytes()).collect();
        self.rpmb.receive(&bytes, reliable, true, &mut self.memory).unwrap();
    }

    fn get(&mut self, count: u16) -> Vec<Frame> {
        let bytes = self.rpmb.answer(count, &mut self.memory).unwrap();
        assert_eq!(bytes.len(), usize::from(count) * FRAME_BYTES);
        bytes.chunks_exact(FRAME_BYTES).map(Frame::from_bytes).collect()
    }

    fn result(&mut self) -> Frame {
        self.send(&[Frame::asking(Request::ReadResult)], false);
        self.get(1).remove(0)
    }

    fn program(&mut self, key: &[u8; 32], reliable: bool) -> RpmbResult {
        let mut frame = Frame::asking(Request::ProgramKey);
        frame.sign(key);
        self.send(&[frame], reliable);
        let answer = self.result();
        assert_eq!(answer.request(), 0x0100);
        answer.result()
    }

    fn write_frames(address: u16, counter: u32, fills: &[u8]) -> Vec<Frame> {
        let mut frames: Vec<Frame> = fills
            .iter()
            .map(|fill| {
                let mut frame = Frame::asking(Request::Write);
                frame.set_address(address);
                frame.set_counter(counter);
                frame.set_count(fills.len() as u16);
                frame.set_data(&[*fill; DATA_BYTES]);
                frame
            })
            .collect();
        let proof = mac(&KEY, &frames);
        frames.last_mut().unwrap().sign(&proof);
        frames
    }

    fn write(&mut self, address: u16, counter: u32, fills: &[u8]) -> RpmbResult {
        self.send(&Self::write_frames(address, counter, fills), true);
        let answer = self.result();
        assert_eq!((answer.request(), answer.address()), (0x0300, address));
        assert_eq!(answer.key(), mac(&KEY, std::slice::from_ref(&answer)), "the answer is signed");
        answer.result()
    }

    fn read(&mut self, address: u16, count: u16) -> Vec<Frame> {
        let mut frame = Frame::asking(Request::Read);
        frame.set_address(address);
        frame.set_nonce(&[7; 16]);
        self.send(&[frame], false);
        self.get(count)
    }
}

#[test]
fn the_key_is_programmed_once() {
    let mut host = Host::new();
    assert_eq!(host.program(&KEY, false), RpmbResult::GENERAL_FAILURE, "without reliable write");
    assert!(!host.rpmb.has_key());
    assert_eq!(host.program(&KEY, true), RpmbResult::OK);
    assert_eq!(host.program(&[0; 32], true), RpmbResult::WRITE_FAILURE);
    assert_eq!(host.write(0, 0, &[1]), RpmbResult::OK, "the first key is still the key");
}

#[test]
fn without_a_key_every_request_fails() {
    let mut host = Host::new();
    host.send(&[Frame::asking(Request::ReadCounter)], false);
    assert_eq!(host.get(1)[0].result(), RpmbResult::NO_KEY);
    assert_eq!(host.read(0, 1)[0].result(), RpmbResult::NO_KEY);
    host.send(&[Frame::asking(Request::ReadConfig)], false);
    assert_eq!(host.get(1)[0].result(), RpmbResult::NO_KEY);
    host.send(&[config_frame(1, 0, 1)], true);
    assert_eq!(host.result().result(), RpmbResult::NO_KEY);
    host.send(&Host::write_frames(0, 0, &[1]), true);
    assert_eq!(host.result().result(), RpmbResult::NO_KEY);
    assert_eq!(host.memory.half(0), [0; DATA_BYTES]);
}

#[test]
fn writes_increment_the_counter_and_reads_are_authenticated() {
    let mut host = Host::with_key();
    assert_eq!(host.write(3, 0, &[0x33]), RpmbResult::OK);
    assert_eq!(host.write(4, 1, &[0x44, 0x55]), RpmbResult::OK);
    assert_eq!(host.write(7, 2, &[0x77, 0x88]), RpmbResult::OK);
    for (address, fill) in [(2, 0), (3, 0x33), (4, 0x44), (5, 0x55), (6, 0), (7, 0x77), (8, 0x88)] {
        assert_eq!(host.memory.half(address), [fill; DATA_BYTES], "{address}");
    }
    let mut counter = Frame::asking(Request::ReadCounter);
    counter.set_nonce(&[9; 16]);
    host.send(&[counter], false);
    let answer = host.get(1).remove(0);
    assert_eq!((answer.request(), answer.counter(), answer.nonce()), (0x0200, 3, [9; 16]));
    assert_eq!(answer.key(), mac(&KEY, std::slice::from_ref(&answer)));
    let read = host.read(3, 3);
    let fills: Vec<u8> = read.iter().map(|frame| frame.data()[0]).collect();
    assert_eq!(fills, [0x33, 0x44, 0x55]);
    assert!(read.iter().all(|frame| (frame.nonce(), frame.address(), frame.count()) == ([7; 16], 3, 3)));
    assert_eq!(read[2].key(), mac(&KEY, &read));
    assert_eq!(read[0].key(), [0; 32]);
}

#[test]
fn every_error_has_its_result_and_changes_nothing() {
    let mut host = Host::with_key();
    assert_eq!(host.write(0, 1, &[1]), RpmbResult::COUNTER_FAILURE);
    assert_eq!(host.write(64, 0, &[1]), RpmbResult::ADDRESS_FAILURE);
    assert_eq!(host.write(63, 0, &[1, 2]), RpmbResult::ADDRESS_FAILURE);
    assert_eq!(host.write(0, 0, &[1, 2, 3]), RpmbResult::GENERAL_FAILURE, "three frames are no size");
    let mut forged = Host::write_frames(0, 0, &[1]);
    forged[0].set_data(&[2; DATA_BYTES]);
    host.send(&forged, true);
    assert_eq!(host.result().result(), RpmbResult::AUTHENTICATION_FAILURE);
    host.send(&Host::write_frames(0, 0, &[1]), false);
    assert_eq!(host.result().result(), RpmbResult::GENERAL_FAILURE, "not reliable");
    assert_eq!(host.read(64, 1)[0].result(), RpmbResult::ADDRESS_FAILURE);
    host.memory.fails = Some(FtlError::Uncorrectable { unit: 0 }.into());
    assert_eq!(host.read(0, 1)[0].result(), RpmbResult::READ_FAILURE);
    host.memory.fails = Some(FtlError::WornOut.into());
    assert_eq!(host.write(0, 0, &[1, 1]), RpmbResult::WRITE_FAILURE);
    assert_eq!((host.rpmb.counter(), host.memory.half(0)), (0, &[0; DATA_BYTES][..]));
    host.memory.fails = None;
    assert_eq!(host.write(0, 0, &[1]), RpmbResult::OK);
    assert_eq!(host.write(0, 0, &[2]), RpmbResult::COUNTER_FAILURE, "replayed");
}

/// Neither counter nor data is new without the other, wherever the cut was.
#[test]
fn an_interrupted_write_is_completed_at_power_up() {
    for lost_in_the_call in [false, true] {
        let mut host = Host::with_key();
        assert_eq!(host.write(0, 0, &[3, 3]), RpmbResult::OK);
        host.rpmb.power_off(DONE);
        host.rpmb.complete(&mut host.memory).unwrap();
        assert_eq!((host.rpmb.counter(), host.memory.half(0)), (1, &[3; DATA_BYTES][..]), "it was in flash");
        host.memory.fails = lost_in_the_call.then_some(FtlError::PowerLost.into());
        let frames: Vec<u8> = Host::write_frames(0, 1, &[4, 4]).iter().flat_map(|frame| *frame.bytes()).collect();
        assert_eq!(host.rpmb.receive(&frames, true, true, &mut host.memory).is_err(), lost_in_the_call);
        host.rpmb.power_off(Instant(DONE.0 - 1));
        // What the flash has of it is undone; another cut comes, and the state is saved and restored.
        host.memory.bytes.fill(3);
        assert_eq!(host.rpmb.counter(), 1);
        host.memory.fails = Some(FtlError::PowerLost.into());
        assert!(host.rpmb.complete(&mut host.memory).unwrap_err().is_power_loss());
        let saved = (host.rpmb.persistent(), host.rpmb.counter());
        host.rpmb.restore(saved.0, saved.1);
        host.memory.fails = None;
        host.rpmb.complete(&mut host.memory).unwrap();
        assert_eq!((host.rpmb.counter(), host.memory.half(0)), (2, &[4; DATA_BYTES][..]));
        assert_eq!(host.write(0, 2, &[5]), RpmbResult::OK);
    }
}

#[test]
fn a_write_of_half_a_sector_leaves_the_other_half() {
    let mut host = Host::with_key();
    assert_eq!(host.write(0, 0, &[1, 2]), RpmbResult::OK);
    assert_eq!(host.write(0, 1, &[3]), RpmbResult::OK);
    assert_eq!((host.memory.half(0), host.memory.half(1)), (&[3; DATA_BYTES][..], &[2; DATA_BYTES][..]));
    assert_eq!(host.write(1, 2, &[4]), RpmbResult::OK);
    assert_eq!((host.memory.half(0), host.memory.half(1)), (&[3; DATA_BYTES][..], &[4; DATA_BYTES][..]));
}

#[test]
fn thirty_two_frames_need_support() {
    let mut host = Host::with_key();
    assert_eq!(host.write(0, 0, &[5; 32]), RpmbResult::OK);
    let frames = Host::write_frames(32, 1, &[6; 32]);
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| *frame.bytes()).collect();
    host.rpmb.receive(&bytes, true, false, &mut host.memory).unwrap();
    assert_eq!(host.result().result(), RpmbResult::GENERAL_FAILURE);
    assert_eq!(host.memory.half(32), [0; DATA_BYTES]);
}

#[test]
fn an_expired_counter_refuses_all_writes() {
    let mut host = Host::with_key();
    host.rpmb.counter = u32::MAX - 1;
    assert_eq!(host.write(0, u32::MAX - 1, &[1]), RpmbResult::OK.with_expired_counter());
    assert_eq!(host.write(0, u32::MAX, &[2]), RpmbResult::WRITE_FAILURE.with_expired_counter());
    assert_eq!(host.read(0, 1)[0].result(), RpmbResult::OK.with_expired_counter());
    assert_eq!(host.memory.half(0)[0], 1);
}

#[test]
fn a_power_loss_clears_the_result() {
    let mut host = Host::with_key();
    host.memory.fails = Some(FtlError::PowerLost.into());
    let bytes = *Host::write_frames(0, 0, &[1])[0].bytes();
    assert!(host.rpmb.receive(&bytes, true, true, &mut host.memory).is_err());
    host.memory.fails = None;
    host.rpmb.power_off(DONE);
    host.rpmb.complete(&mut host.memory).unwrap();
    host.rpmb.forget();
    assert_eq!(host.result().result(), RpmbResult::GENERAL_FAILURE, "nothing is known of it");
    assert_eq!(host.write(0, 0, &[1]), RpmbResult::OK, "the counter stands: power was lost before the write");
    let out = StorageError::OutOfRange { area: Area::Rpmb, lba: 0, sectors: 1, size: 0 };
    assert!(!out.is_power_loss());
}

#[test]
fn a_result_is_read_once_and_unknown_requests_fail() {
    let mut host = Host::with_key();
    host.send(&[Frame::asking(Request::ReadCounter)], false);
    assert_eq!(host.get(1)[0].request(), 0x0200);
    assert_eq!((host.get(1)[0].request(), host.get(1)[0].result()), (0, RpmbResult::GENERAL_FAILURE));
    for request in [0, 8, 0x100] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[510..].copy_from_slice(&u16::to_be_bytes(request));
        host.send(&[Frame::from_bytes(&bytes)], true);
        assert_eq!(host.get(1)[0].result(), RpmbResult::GENERAL_FAILURE, "{request}");
    }
}

fn config_frame(byte: u16, counter: u32, value: u8) -> Frame {
    let mut frame = Frame::asking(Request::WriteConfig);
    frame.set_address(byte);
    frame.set_counter(counter);
    frame.set_count(1);
    let mut data = ConfigByte::data(false);
    data[DATA_BYTES - 1] = value;
    frame.set_data(&data);
    frame.sign(&mac(&KEY, std::slice::from_ref(&frame)));
    frame
}

#[test]
fn secure_write_protection_is_switched_by_the_holder_of_the_key() {
    let mut host = Host::with_key();
    let write = |host: &mut Host, frame: Frame, reliable| {
        host.send(&[frame], reliable);
        let answer = host.result();
        assert_eq!(answer.request(), 0x0600);
        assert_eq!(answer.key(), mac(&KEY, std::slice::from_ref(&answer)), "the answer is signed");
        answer.result()
    };
    let read = |host: &mut Host| {
        let mut frame = Frame::asking(Request::ReadConfig);
        frame.set_nonce(&[5; 16]);
        host.send(&[frame], false);
        host.get(1).remove(0)
    };
    assert_eq!(write(&mut host, config_frame(1, 0, 1), true), RpmbResult::GENERAL_FAILURE, "the card does not have it");
    assert_eq!(read(&mut host).result(), RpmbResult::GENERAL_FAILURE);
    host.memory.secure_wp = Some(false);
    let mut forged = config_frame(1, 0, 1);
    forged.sign(&[0; 32]);
    for (frame, reliable, expected) in [
        (config_frame(1, 0, 1), false, RpmbResult::GENERAL_FAILURE),
        (config_frame(1, 0, 2), true, RpmbResult::GENERAL_FAILURE),
        (config_frame(3, 0, 1), true, RpmbResult::ADDRESS_FAILURE),
        (config_frame(1, 1, 1), true, RpmbResult::COUNTER_FAILURE),
        (forged, true, RpmbResult::AUTHENTICATION_FAILURE),
    ] {
        assert_eq!(write(&mut host, frame, reliable), expected);
    }
    assert_eq!((host.rpmb.counter(), host.memory.secure_wp), (0, Some(false)));
    assert_eq!(write(&mut host, config_frame(1, 0, 1), true), RpmbResult::OK);
    assert_eq!(write(&mut host, config_frame(2, 1, 1), true), RpmbResult::OK);
    assert_eq!(write(&mut host, config_frame(2, 1, 0), true), RpmbResult::COUNTER_FAILURE, "replayed");
    let answer = read(&mut host);
    assert_eq!((answer.request(), answer.nonce()), (0x0700, [5; 16]));
    assert_eq!(answer.key(), mac(&KEY, std::slice::from_ref(&answer)));
    let state = SecureWriteProtection { is_on: true, allows_changes: true };
    assert_eq!((host.rpmb.counter(), SecureWriteProtection::from_data(answer.data())), (2, state));
    host.rpmb.forget();
    let state = SecureWriteProtection { allows_changes: false, ..state };
    assert_eq!(SecureWriteProtection::from_data(read(&mut host).data()), state);
    host.rpmb.counter = u32::MAX;
    let last = write(&mut host, config_frame(1, u32::MAX, 0), true);
    assert_eq!(last, RpmbResult::WRITE_FAILURE.with_expired_counter());
}
