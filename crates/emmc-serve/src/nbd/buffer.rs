//! Reusable byte buffers: their memory grows, is not cleared, and beyond a limit is not kept.

/// Memory that a buffer keeps when it is empty: as much as requests of 1 MiB need. Larger ones are rare, and a client
/// that makes one may stay for days. Unit: bytes.
pub(super) const KEPT_BYTES_MAX: usize = 5 << 18;

/// Bytes from the start up to a length.
#[derive(Debug, Default)]
pub struct Buffer {
    memory: Vec<u8>,
    length: usize,
}

impl Buffer {
    /// What was put in.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// How much was put in. Unit: bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends `bytes` bytes for the caller to fill; they hold old content.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.length;
        self.length += bytes;
        if self.memory.len() < self.length {
            self.memory.resize(self.length, 0);
        }
        &mut self.memory[start..self.length]
    }

    /// The content from `start` on.
    pub fn tail(&mut self, start: usize) -> &mut [u8] {
        &mut self.memory[start..self.length]
    }

    /// Drops the bytes beyond `length`.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.length = 0;
        if self.memory.len() > KEPT_BYTES_MAX {
            self.memory = Vec::new();
        }
    }

    /// Allocated memory. Unit: bytes.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_within_its_limits() {
        let mut buffer = Buffer::default();
        buffer.put(b"abc");
        buffer.put(b"de");
        assert_eq!(buffer.bytes(), b"abcde");
        buffer.truncate(3);
        buffer.room(1)[0] = b'x';
        assert_eq!(buffer.tail(2), b"cx");
        assert_eq!((buffer.bytes(), buffer.capacity()), (&b"abcx"[..], 5));
        buffer.clear();
        assert_eq!((buffer.length(), buffer.capacity()), (0, 5));
        buffer.room(KEPT_BYTES_MAX + 1);
        buffer.clear();
        assert_eq!((buffer.length(), buffer.capacity()), (0, 0));
    }
}
