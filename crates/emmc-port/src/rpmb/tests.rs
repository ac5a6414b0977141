use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::rpmb::{FRAME_BYTES, RpmbResult};

use super::*;

const NONCE: [u8; 16] = *b"a number once.  ";

fn key() -> RpmbKey {
    RpmbKey::from_file(b"AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH").unwrap()
}

fn permanent() -> Consent {
    Consent::permanent("1", 1).unwrap()
}

/// What happens to replies on their way.
type Change = Box<dyn FnMut(&mut Vec<Frame>)>;

/// A card that answers every request as the standard says.
struct Fake {
    counter: u32,
    result: RpmbResult,
    changed: Change,
    requests: Vec<Request>,
}

impl Fake {
    fn new() -> Self {
        Self { counter: 7, result: RpmbResult::OK, changed: Box::new(|_| {}), requests: Vec::new() }
    }

    fn changed(changed: impl FnMut(&mut Vec<Frame>) + 'static) -> Self {
        Self { changed: Box::new(changed), ..Self::new() }
    }
}

impl RpmbPort for Fake {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        self.requests.push(command.request());
        let asked = &command.frames()[0];
        if command.request() == Request::Write && self.result == RpmbResult::OK {
            self.counter += 1;
        }
        let mut frames: Vec<Frame> = (0..command.answer_frames())
            .map(|index| {
                let mut frame = Frame::default();
                frame.set_response(command.request() as u16, self.result);
                frame.set_nonce(&asked.nonce());
                frame.set_counter(self.counter);
                frame.set_address(asked.address());
                frame.set_count(command.answer_frames());
                frame.set_data(&[index as u8; DATA_BYTES]);
                frame
            })
            .collect();
        sign(&mut frames);
        (self.changed)(&mut frames);
        Ok(frames)
    }
}

fn sign(frames: &mut [Frame]) {
    let proof = mac(key().bytes(), frames);
    if let Some(last) = frames.last_mut() {
        last.sign(&proof);
    }
}

fn flipped(frame: &Frame, byte: usize, bit: u8) -> Frame {
    let mut bytes = *frame.bytes();
    bytes[byte] ^= 1 << bit;
    Frame::from_bytes(&bytes)
}

/// All four requests, and what each came to.
fn all(port: &mut Fake) -> [Option<RpmbError>; 4] {
    let before = port.counter;
    [
        counter(port, Some(&key()), NONCE).err(),
        read(port, Some(&key()), [3, 2], NONCE).err(),
        write(port, &key(), before, (3, &[1; 512]), Consent::CONTENT_LOST).err(),
        program_key(port, &key(), permanent()).err(),
    ]
}

#[test]
fn good_replies_are_believed() {
    let mut port = Fake::new();
    assert_eq!(counter(&mut port, Some(&key()), NONCE), Ok(7));
    let data = read(&mut port, Some(&key()), [3, 2], NONCE).unwrap();
    assert_eq!((&data[..256], &data[256..]), (&[0; 256][..], &[1; 256][..]));
    assert_eq!(write(&mut port, &key(), 7, (3, &[1; 512]), Consent::CONTENT_LOST), Ok(8));
    assert_eq!(program_key(&mut port, &key(), permanent()), Ok(()));
    assert_eq!(port.requests, [Request::ReadCounter, Request::Read, Request::Write, Request::ProgramKey]);
}

#[test]
fn every_result_code_is_one_clear_error() {
    for code in (1..=0x0f).chain(0x81..=0x8f).chain([0x0100, 0xffff]) {
        let result = RpmbResult(code);
        let mut port = Fake { result, ..Fake::new() };
        for error in all(&mut port) {
            let error = error.expect("an error");
            assert_eq!(error, RpmbError::Result(result));
            assert!(!error.is_unknown());
            let text = error.to_string();
            assert!(text.contains(&format!("(result {code:#06x})")) && !text.contains('\n'), "{text}");
        }
    }
    // A counter that has expired is no error of what was done.
    let mut port = Fake { result: RpmbResult::OK.with_expired_counter(), ..Fake::new() };
    assert_eq!(counter(&mut port, Some(&key()), NONCE), Ok(7));
}

#[test]
fn every_flipped_bit_of_a_reply_is_found_with_the_key() {
    for byte in 196..FRAME_BYTES {
        for bit in [0, 3, 7] {
            for frame in [0, 1] {
                // Only the last frame has a MAC.
                let is_covered = frame == 1 || byte >= 228;
                let mut port = Fake::changed(move |frames| frames[frame] = flipped(&frames[frame], byte, bit));
                let done = read(&mut port, Some(&key()), [3, 2], NONCE);
                // The bit of an expired counter is none of the result's code, and the MAC covers it.
                assert_eq!(done.is_err(), is_covered, "frame {frame}, byte {byte}, bit {bit}");
            }
            let mut port = Fake::changed(move |frames| frames[0] = flipped(&frames[0], byte, bit));
            assert!(counter(&mut port, Some(&key()), NONCE).is_err(), "byte {byte}, bit {bit}");
            let mut port = Fake::changed(move |frames| frames[0] = flipped(&frames[0], byte, bit));
            let done = write(&mut port, &key(), 7, (3, &[1; 256]), Consent::CONTENT_LOST);
            assert!(done.is_err(), "byte {byte}, bit {bit}");
        }
    }
}

#[test]
fn a_reply_of_another_key_is_not_believed() {
    let other = RpmbKey::from_file(&[1; 32]).unwrap();
    assert_eq!(counter(&mut Fake::new(), Some(&other), NONCE), Err(RpmbError::Mac));
    assert_eq!(read(&mut Fake::new(), Some(&other), [0, 1], NONCE), Err(RpmbError::Mac));
    let written = write(&mut Fake::new(), &other, 7, (0, &[0; 256]), Consent::CONTENT_LOST);
    assert_eq!(written, Err(RpmbError::Mac));
    assert!(RpmbError::Mac.is_unknown());
}

/// Replies with a right MAC, of another request.
#[test]
fn a_replayed_reply_is_not_believed() {
    let resigned = |change: fn(&mut Frame)| {
        Fake::changed(move |frames| {
            frames.iter_mut().for_each(change);
            sign(frames);
        })
    };
    let key = key();
    for with in [Some(&key), None] {
        let mut port = resigned(|frame| frame.set_nonce(b"another number! "));
        assert_eq!(counter(&mut port, with, NONCE), Err(RpmbError::Nonce));
        assert_eq!(read(&mut port, with, [3, 2], NONCE), Err(RpmbError::Nonce));
        let mut port = resigned(|frame| frame.set_address(4));
        assert_eq!(read(&mut port, with, [3, 2], NONCE), Err(RpmbError::Address { expected: 3, found: 4 }));
        let mut port = resigned(|frame| frame.set_count(1));
        assert_eq!(read(&mut port, with, [3, 2], NONCE), Err(RpmbError::Count { expected: 2, found: 1 }));
        let mut port = resigned(|frame| frame.set_response(Request::Write as u16, RpmbResult::OK));
        let expected = 0x0200;
        assert_eq!(counter(&mut port, with, NONCE), Err(RpmbError::Response { expected, found: 0x0300 }));
        for count in [0, 1, 3] {
            let mut port = Fake::changed(move |frames| frames.resize(count, Frame::default()));
            assert_eq!(read(&mut port, with, [3, 2], NONCE), Err(RpmbError::Count { expected: 2, found: count }));
        }
    }
    let write = |port: &mut Fake| write(port, &key, 7, (3, &[1; 256]), Consent::CONTENT_LOST);
    let mut port = resigned(|frame| frame.set_counter(7));
    assert_eq!(write(&mut port), Err(RpmbError::Counter { expected: 8, found: 7 }));
    let mut port = resigned(|frame| frame.set_address(2));
    assert_eq!(write(&mut port), Err(RpmbError::Address { expected: 3, found: 2 }));
}

#[test]
fn nothing_is_sent_without_consent() {
    let mut port = Fake::new();
    for consent in [Consent::REVERSIBLE, Consent::CONTENT_LOST] {
        let refused = program_key(&mut port, &key(), consent).unwrap_err();
        assert!(matches!(refused, RpmbError::NotAgreed(_)) && !refused.is_unknown());
    }
    for consent in [Consent::REVERSIBLE, permanent()] {
        assert!(matches!(write(&mut port, &key(), 7, (0, &[0; 256]), consent), Err(RpmbError::NotAgreed(_))));
    }
    assert_eq!(port.requests, []);
}

#[test]
fn a_write_has_one_mac_over_all_its_frames() {
    let command = RpmbCommand::write(&key(), 9, 4, &[5; 512], Consent::CONTENT_LOST).unwrap();
    let frames = command.frames();
    assert!(command.changes_card() && command.answer_frames() == 1);
    assert_eq!(command.result_request().unwrap().request(), Request::ReadResult as u16);
    assert!(frames.iter().all(|frame| (frame.counter(), frame.address(), frame.count()) == (9, 4, 2)));
    assert_eq!((frames[0].key(), frames[1].key()), ([0; 32], mac(key().bytes(), frames)));
    let asks = RpmbCommand::read(4, 3, NONCE);
    assert!(!asks.changes_card() && asks.result_request().is_none() && asks.answer_frames() == 3);
}

#[test]
fn a_key_is_32_bytes_or_64_digits_and_never_shown() {
    let hexadecimal = b"4141414142424242434343434444444445454545464646464747474748484848";
    for end in ["", "\n", "\r\n"] {
        let content = [&hexadecimal[..], end.as_bytes()].concat();
        assert_eq!(RpmbKey::from_file(&content), Ok(key()), "{end:?}");
    }
    for length in [0, 1, 31, 33, 34, 63, 65, 66, 128] {
        assert_eq!(RpmbKey::from_file(&vec![b'4'; length]), Err(KeyError::Length { found: length }), "{length}");
    }
    let mut bad = *hexadecimal;
    bad[9] = b'g';
    let error = RpmbKey::from_file(&bad).unwrap_err();
    assert_eq!(error, KeyError::Digit { at: 10 });
    assert!(!format!("{error} {error:?}").contains("4141"));
    let command = RpmbCommand::program_key(&key(), permanent()).unwrap();
    let text = format!("{:?} {command:?}", key());
    assert!(!text.contains("AAAA") && !text.contains("65, 65") && !text.contains("4141"), "{text}");
    assert_eq!(command.frames()[0].key(), *key().bytes());
}

#[test]
fn the_size_and_the_writes_follow_the_registers() {
    let mut ext_csd = [0; EXT_CSD_BYTES];
    assert_eq!(RpmbShape::of(&ExtCsd::from_bytes(ext_csd)), None);
    (ext_csd[reg::RPMB_SIZE_MULT], ext_csd[reg::REL_WR_SEC_C]) = (1, 0);
    let shape = RpmbShape::of(&ExtCsd::from_bytes(ext_csd)).unwrap();
    assert_eq!((shape.blocks, shape.chunk(0, 100)), (512, 1));
    (ext_csd[reg::RPMB_SIZE_MULT], ext_csd[reg::REL_WR_SEC_C]) = (32, 1);
    let shape = RpmbShape::of(&ExtCsd::from_bytes(ext_csd)).unwrap();
    let chunks = [(0, 100), (1, 100), (2, 1), (32, 32)].map(|(address, left)| shape.chunk(address, left));
    assert_eq!((shape.blocks, chunks), (16384, [2, 1, 1, 2]));
    ext_csd[reg::WR_REL_PARAM] = 1 << 4;
    let shape = RpmbShape::of(&ExtCsd::from_bytes(ext_csd)).unwrap();
    let chunks = [(0, 100), (31, 100), (32, 31), (64, 32)].map(|(address, left)| shape.chunk(address, left));
    assert_eq!(chunks, [32, 1, 2, 32]);
}
