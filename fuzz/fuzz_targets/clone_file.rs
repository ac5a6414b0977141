#![no_main]
//! Any bytes as the header and the records of a clone: what is accepted is written again as it was.

use emmc_clone::format::{HEAD_BYTES, Head, Header, RECORD_BYTES, Record, Sequence};
use libfuzzer_sys::fuzz_target;

/// Where the checksum of a record is.
const SUM: std::ops::Range<usize> = 28..32;

fuzz_target!(|data: &[u8]| {
    let _ = Head::parse(data);
    // A text, and records behind it.
    let Some(split) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (text, records) = (&data[..split], &data[split + 1..]);
    let Ok(header) = serde_json::from_slice::<Header>(text) else { return };
    let Ok(encoded) = header.encode() else { return };
    let head = Head::parse(&encoded).expect("it was just written");
    assert_eq!(head.text_bytes as usize, encoded.len() - HEAD_BYTES);
    let Ok(again) = head.header(&encoded[HEAD_BYTES..]) else { return };
    assert_eq!(again, header);
    let mut sequence = Sequence::new(&header.areas);
    let mut count = 0;
    for chunk in records.chunks_exact(RECORD_BYTES) {
        let mut bytes = <[u8; RECORD_BYTES]>::try_from(chunk).expect("its length");
        // With its own checksum, so that more than that is tried.
        bytes[..4].copy_from_slice(b"PIEC");
        bytes[SUM].fill(0);
        let sum = crc32fast::hash(&bytes);
        bytes[SUM].copy_from_slice(&sum.to_le_bytes());
        let Ok(record) = Record::parse(&bytes, 0) else { continue };
        assert_eq!(Record::parse(&record.encode(), 0), Ok(record));
        let before = sequence.next();
        match sequence.take(&record, 0) {
            Ok(true) => return assert_eq!(record, sequence.end()),
            Ok(false) => count += 1,
            Err(_) => assert_eq!(sequence.next(), before),
        }
    }
    assert_eq!(sequence.records(), count);
    let end = sequence.end();
    assert_eq!(sequence.take(&end, 0), Ok(true));
});
