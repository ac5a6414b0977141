use super::*;

/// The frames of the card script `rpmb_large_write`, whose MACs were computed by Python's `hmac`, with the same key.
const KEY: [u8; 32] = *b"It's a nice day for a key to be.";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn numbers_are_where_the_standard_puts_them() {
    let mut frame = Frame::asking(Request::Write);
    frame.set_counter(0x0102_0304);
    frame.set_address(0x0506);
    frame.set_count(0x0708);
    frame.set_nonce(&[9; 16]);
    frame.set_data(&[0xaa; 256]);
    frame.sign(&[0xbb; 32]);
    let bytes = frame.bytes();
    assert_eq!(bytes[..196], [0; 196]);
    assert_eq!(bytes[196..228], [0xbb; 32]);
    assert_eq!(bytes[228..484], [0xaa; 256]);
    assert_eq!(bytes[484..500], [9; 16]);
    assert_eq!(bytes[500..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 3]);
    let same = Frame::from_bytes(bytes);
    assert_eq!((same.counter(), same.address(), same.count()), (0x0102_0304, 0x0506, 0x0708));
    assert_eq!((same.nonce(), same.data(), same.key()), ([9; 16], &[0xaa; 256][..], [0xbb; 32]));
}

#[test]
fn the_mac_is_hmac_sha256_over_284_bytes() {
    let frame = Frame::default();
    let expected = Hmac::<Sha256>::new_from_slice(&[0; 32]).unwrap().chain_update([0; 284]).finalize().into_bytes();
    assert_eq!(mac(&[0; 32], &[frame])[..], expected[..]);
    assert_eq!(FRAME_BYTES - frame::AUTHENTICATED_FROM, 284);
}

#[test]
fn the_mac_of_a_write_of_32_frames_is_that_of_another_implementation() {
    let mut frames: Vec<Frame> = (0..32u8)
        .map(|fill| {
            let mut frame = Frame::asking(Request::Write);
            frame.set_count(32);
            frame.set_data(&[fill; 256]);
            frame
        })
        .collect();
    let expected = hex("ee6d18e2f638f012158f1f5fea620c2bfa9016217a606aa14d54630679a3e7bc");
    assert_eq!(mac(&KEY, &frames)[..], expected[..]);
    let proof = mac(&KEY, &frames);
    frames[31].sign(&proof);
    assert!(is_authentic(&KEY, &frames));
    let mut answer = Frame::default();
    answer.set_response(Request::Write as u16, RpmbResult::OK);
    answer.set_counter(1);
    let expected = hex("cbe8d7805c45ef6ef3519cdfe8b0cd974a6995807abd93412a5c89160a5223f8");
    assert_eq!(mac(&KEY, &[answer])[..], expected[..]);
}

#[test]
fn every_bit_of_the_authenticated_part_and_of_the_mac_counts() {
    let mut frame = Frame::asking(Request::Read);
    frame.set_data(&[7; 256]);
    frame.sign(&mac(&KEY, std::slice::from_ref(&frame)));
    for byte in 196..FRAME_BYTES {
        for bit in 0..8 {
            let mut bytes = *frame.bytes();
            bytes[byte] ^= 1 << bit;
            assert!(!is_authentic(&KEY, &[Frame::from_bytes(&bytes)]), "byte {byte}, bit {bit}");
        }
    }
    let mut stuffed = *frame.bytes();
    stuffed[..196].fill(0xff);
    assert!(is_authentic(&KEY, &[Frame::from_bytes(&stuffed)]), "stuffing is not covered");
    assert!(!is_authentic(&KEY, &[]));
}

#[test]
fn a_frame_of_any_bytes_prints_neither_key_nor_data() {
    for length in [0, 1, 195, 511, 512, 600] {
        let frame = Frame::from_bytes(&vec![0xa5; length]);
        let text = format!("{frame:?} {}", frame.result());
        assert!(!text.contains("a5a5a5a5") && !text.contains("165, 165"), "{text}");
    }
}

#[test]
fn every_result_has_its_text() {
    let mut texts: Vec<String> = (0..9).map(|code| RpmbResult(code).to_string()).collect();
    assert!(RpmbResult(0x85).is_expired() && RpmbResult(0x85).code() == RpmbResult::WRITE_FAILURE);
    assert!(RpmbResult(0x85).to_string().contains("has expired"));
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 9);
    assert!((1..=7).all(|code| Request::of(code).unwrap().response() == code << 8));
    assert_eq!((Request::of(0), Request::of(8)), (None, None));
}

/// The offsets that mmc-utils prints them from.
#[test]
fn the_device_configuration_is_at_the_end_of_the_data() {
    let on = SecureWriteProtection { is_on: true, allows_changes: false };
    let data = on.to_data();
    assert_eq!((data[255], data[254]), (1, 0));
    for state in [on, SecureWriteProtection { allows_changes: true, ..on }, SecureWriteProtection::default()] {
        assert_eq!(SecureWriteProtection::from_data(&state.to_data()), state);
    }
    assert_eq!((ConfigByte::data(true)[255], ConfigByte::data(false)), (1, [0; DATA_BYTES]));
    assert_eq!([0, 1, 2, 3].map(|at| ConfigByte::at(at).map(|byte| byte as u16)), [None, Some(1), Some(2), None]);
    assert_eq!(SecureWriteProtection::from_data(&[]), SecureWriteProtection::default());
}
