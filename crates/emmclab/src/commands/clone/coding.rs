//! Content as one frame of zstd: by the C library where it is linked (feature `zstd`, glibc), else in Rust.

use emmc_clone::format::Coding;

/// Compresses; content that does not get shorter stays plain.
pub(super) fn compress(level: i32, content: &[u8]) -> (Coding, Vec<u8>) {
    match frame(level, content).filter(|frame| frame.len() < content.len()) {
        Some(frame) => (Coding::Zstd, frame),
        None => (Coding::Plain, content.to_vec()),
    }
}

/// The content of `bytes` bytes that was stored.
///
/// Errors: no frame, or one of another length.
pub(super) fn restore(coding: Coding, stored: Vec<u8>, bytes: usize) -> Result<Vec<u8>, String> {
    let content = match coding {
        Coding::Plain => stored,
        Coding::Zstd => content(&stored, bytes)?,
    };
    if content.len() == bytes { Ok(content) } else { Err(format!("{} bytes instead of {bytes}", content.len())) }
}

#[cfg(all(feature = "zstd", target_env = "gnu"))]
mod library {
    use std::cell::RefCell;

    use zstd::bulk::{Compressor, Decompressor};

    thread_local! {
        static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }

    pub(super) fn frame(level: i32, content: &[u8]) -> Option<Vec<u8>> {
        COMPRESSOR.with_borrow_mut(|kept| {
            if kept.as_ref().is_none_or(|(of, _)| *of != level) {
                *kept = Some((level, Compressor::new(level).ok()?));
            }
            kept.as_mut()?.1.compress(content).ok()
        })
    }

    pub(super) fn content(frame: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
        DECOMPRESSOR.with_borrow_mut(|kept| {
            if kept.is_none() {
                *kept = Some(Decompressor::new().map_err(|error| error.to_string())?);
            }
            let decompressor = kept.as_mut().ok_or("no decompressor")?;
            decompressor.decompress(frame, bytes).map_err(|error| error.to_string())
        })
    }
}

#[cfg(not(all(feature = "zstd", target_env = "gnu")))]
mod library {
    use std::io::Read;

    /// The encoder has one level.
    pub(super) fn frame(_level: i32, content: &[u8]) -> Option<Vec<u8>> {
        Some(ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest))
    }

    pub(super) fn content(frame: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
        let decoder = ruzstd::decoding::StreamingDecoder::new(frame).map_err(|error| error.to_string())?;
        let mut content = Vec::with_capacity(bytes);
        decoder.take(bytes as u64 + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
        Ok(content)
    }
}

use library::{content, frame};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_survives_and_other_bytes_do_not() {
        let text: Vec<u8> = b"the same line again and again\n".repeat(1000);
        let (coding, stored) = compress(3, &text);
        assert!(coding == Coding::Zstd && stored.len() < text.len() / 10, "{} bytes", stored.len());
        assert_eq!(restore(coding, stored.clone(), text.len()).unwrap(), text);
        assert!(restore(coding, stored.clone(), text.len() - 1).is_err());
        assert!(restore(coding, stored[..stored.len() - 1].to_vec(), text.len()).is_err());
        assert!(restore(coding, text.clone(), text.len()).is_err());
        let mut rng = emmc_units::Rng::new(1);
        let random: Vec<u8> = std::iter::repeat_with(|| rng.next_u64() as u8).take(4096).collect();
        assert_eq!(compress(3, &random), (Coding::Plain, random.clone()));
        // The frame of the other implementation: zstd -3 of the text "emmclab\n".
        let other =
            [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x08, 0x41, 0x00, 0x00, b'e', b'm', b'm', b'c', b'l', b'a', b'b', b'\n'];
        assert_eq!(restore(Coding::Zstd, other.to_vec(), 8).unwrap(), b"emmclab\n");
    }
}
