#![no_main]
//! Any bytes as the replies of an RPMB: none is believed with a key, and without one only what fits its request.

use emmc_port::rpmb::{RpmbCommand, RpmbError, RpmbKey, RpmbPort, counter, program_key, read, write};
use emmc_port::{Consent, PortError};
use emmc_regs::rpmb::{DATA_BYTES, FRAME_BYTES, Frame};
use libfuzzer_sys::fuzz_target;

const NONCE: [u8; 16] = *b"a number once.  ";

/// A card that replies with these bytes, and nothing after them.
struct Any<'a>(&'a [u8]);

impl RpmbPort for Any<'_> {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        let frames = self.0.chunks(FRAME_BYTES).take(usize::from(command.answer_frames()));
        Ok(frames.map(Frame::from_bytes).collect())
    }
}

fn printed<T>(result: &Result<T, RpmbError>) {
    if let Err(error) = result {
        let text = error.to_string();
        assert!(!text.is_empty() && !text.contains('\n') && !text.contains("TOPSECRET"));
        error.is_unknown();
    }
}

fuzz_target!(|data: (u16, u8, &[u8])| {
    let (address, count, bytes) = data;
    let key = RpmbKey::from_file(b"TOPSECRETTOPSECRETTOPSECRETTOPSE").expect("32 bytes");
    let count = u16::from(count % 33).max(1);
    let counted = counter(&mut Any(bytes), Some(&key), NONCE);
    let authentic = read(&mut Any(bytes), Some(&key), [address, count], NONCE);
    let written = write(&mut Any(bytes), &key, 7, (address, &[0; DATA_BYTES]), Consent::CONTENT_LOST);
    assert!(counted.is_err() && authentic.is_err() && written.is_err(), "nobody guesses a MAC");
    let plain = read(&mut Any(bytes), None, [address, count], NONCE);
    if let Ok(data) = &plain {
        assert_eq!(data.len(), usize::from(count) * DATA_BYTES);
        for (frame, data) in bytes.chunks(FRAME_BYTES).map(Frame::from_bytes).zip(data.chunks(DATA_BYTES)) {
            assert_eq!((frame.nonce(), frame.address(), frame.count()), (NONCE, address, count));
            assert_eq!(frame.data(), data);
        }
    }
    let consent = Consent::permanent("1", 1).expect("the number");
    let programmed = program_key(&mut Any(bytes), &key, consent);
    let frame = Frame::from_bytes(bytes);
    assert_eq!(Frame::from_bytes(frame.bytes()), frame);
    printed(&counted);
    printed(&authentic);
    printed(&written);
    printed(&plain);
    printed(&programmed);
    if let Err(error) = RpmbKey::from_file(bytes) {
        assert!(bytes.len() != 32);
        let _ = error.to_string();
    }
});
