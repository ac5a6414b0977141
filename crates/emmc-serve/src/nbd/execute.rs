//! Executes a request on the card and builds its reply.

use emmc_card::nand::Landing;
use emmc_units::Instant;

use super::buffer::Buffer;
use super::handshake::{Agreed, PAYLOAD_BYTES_MAX};
use super::outbox::Due;
use super::wire::{self, Command, Errno, Request};
use crate::block::{self, Block, BlockError};

const SECTOR_BYTES: u64 = 512;
/// Granularity in which holes are detected in data that is read. Unit: bytes.
const GRAIN_BYTES: usize = 4096;
/// Longest single write where zeros must be written out. Unit: bytes.
const ZEROS_BYTES: usize = 1 << 20;
static ZEROS: [u8; ZEROS_BYTES] = [0; ZEROS_BYTES];
/// Block status is queried in pieces of this size. Unit: bytes.
const STATUS_BYTES: u64 = 64 << 20;
/// Most descriptors in one block status reply.
const STATUS_MAX: usize = 4096;

/// Why a request is refused: the protocol's number and a sentence.
struct Refusal(Errno, String);

impl From<BlockError> for Refusal {
    fn from(error: BlockError) -> Self {
        let errno = match &error {
            BlockError::OutOfRange { .. } | BlockError::Misaligned { .. } => Errno::Einval,
            BlockError::ReadOnly => Errno::Eperm,
            BlockError::PowerLost => Errno::Eshutdown,
            BlockError::Medium(_) | BlockError::Store(_) => Errno::Eio,
        };
        Self(errno, error.to_string())
    }
}

/// One connection's requests on one area.
pub(crate) struct Executor<'a> {
    block: &'a dyn Block,
    agreed: Agreed,
    extents: Vec<(u32, u32)>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(block: &'a dyn Block, agreed: Agreed) -> Self {
        Self { block, agreed, extents: Vec::new() }
    }

    /// Executes it in the model and appends the reply; returns when that may be sent.
    pub(crate) fn execute(&mut self, request: &Request, payload: &[u8], out: &mut Buffer) -> Option<Due> {
        let start = out.length();
        let done = self.check(request).and_then(|()| match request.command {
            Command::Read => self.read(request, out),
            Command::BlockStatus => self.status(request, out).map(|()| None),
            _ => {
                self.change(request, payload).inspect(|_| out.put(&wire::simple_reply(request.cookie, None))).map(Some)
            }
        });
        match done {
            Ok(at) => at.and_then(|at| Some(Due { wall: self.block.due(at)?, at })),
            Err(refusal) => {
                out.truncate(start);
                self.refuse(request, &refusal, out);
                None
            }
        }
    }

    /// Memory to receive the data of a write into, if the card has some.
    pub(crate) fn landing(&self, request: &Request) -> Option<Landing> {
        let is_write = request.command == Command::Write && self.check(request).is_ok();
        is_write.then(|| self.block.landing(self.agreed.export.area, request.offset, request.length as usize)).flatten()
    }

    /// Whether replies need not wait for the card.
    pub(crate) fn is_immediate(&self) -> bool {
        self.block.due(Instant::START).is_none()
    }

    /// The same for another thread.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.block, self.agreed.clone())
    }

    pub(crate) fn end_landing(&self, landing: Landing) {
        self.block.end_landing(landing);
    }

    /// A client got the reply to work that ended at `at`.
    pub(crate) fn answered(&self, at: Instant) {
        self.block.answered(at);
    }

    /// For a write whose data was skipped.
    pub(crate) fn refuse_as_too_long(&self, request: &Request, out: &mut Buffer) {
        self.refuse(request, &too_long(request), out);
    }

    /// For a request that all clients' memory has no room for.
    pub(crate) fn refuse_without_memory(&self, request: &Request, out: &mut Buffer) {
        let what = format!("no memory for {} bytes: other clients have it and do not give it back", request.length);
        self.refuse(request, &Refusal(Errno::Enomem, what), out);
    }

    fn refuse(&self, request: &Request, Refusal(errno, message): &Refusal, out: &mut Buffer) {
        if self.agreed.structured {
            wire::error_chunk(out, request.cookie, *errno, message);
        } else {
            out.put(&wire::simple_reply(request.cookie, Some(*errno)));
        }
    }

    /// Checks that need no card.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let Request { flags, command, offset, length, .. } = *request;
        let invalid = |what: String| Err(Refusal(Errno::Einval, what));
        if matches!(command, Command::Cache | Command::Other(_) | Command::Disconnect) {
            return invalid(format!("command {} is not supported", command.number()));
        }
        let unknown = flags & !command.flags();
        if unknown != 0 || flags & wire::FLAG_DF != 0 && !self.agreed.structured {
            return invalid(format!("flags 0x{flags:04x} of command {}", command.number()));
        }
        if command == Command::Flush {
            return if offset == 0 && length == 0 {
                Ok(())
            } else {
                invalid("a flush has no offset and no length".into())
            };
        }
        if command == Command::BlockStatus && !self.agreed.allocation {
            return invalid("expected the context base:allocation to be agreed on before".into());
        }
        let size = self.agreed.export.size_bytes;
        if length == 0 {
            return invalid("a request for nothing".into());
        }
        if matches!(command, Command::Read | Command::Write) && length > PAYLOAD_BYTES_MAX {
            return Err(too_long(request));
        }
        if offset % SECTOR_BYTES != 0 || u64::from(length) % SECTOR_BYTES != 0 {
            return invalid(format!("{length} bytes at {offset}: expected whole sectors of 512 bytes"));
        }
        if offset.checked_add(length.into()).is_none_or(|end| end > size) {
            let writes = matches!(command, Command::Write | Command::WriteZeroes);
            let errno = if writes { Errno::Enospc } else { Errno::Einval };
            return Err(Refusal(errno, format!("{length} bytes at {offset} lie outside an area of {size} bytes")));
        }
        Ok(())
    }

    fn submit(&self, request: block::Request<'_>) -> Result<Instant, Refusal> {
        Ok(self.block.submit(self.agreed.export.area, request)?)
    }

    fn read(&self, request: &Request, out: &mut Buffer) -> Result<Option<Instant>, Refusal> {
        let Request { offset, length, cookie, flags, .. } = *request;
        let start = out.length();
        let head = if self.agreed.structured { wire::DATA_CHUNK_BYTES } else { wire::SIMPLE_REPLY_BYTES };
        let reply = out.room(head + length as usize);
        let (head, into) = reply.split_at_mut(head);
        let at = self.submit(block::Request::Read { offset, into })?;
        if !self.agreed.structured {
            head.copy_from_slice(&wire::simple_reply(cookie, None));
        } else if flags & wire::FLAG_DF != 0 || !has_hole(into) {
            head.copy_from_slice(&wire::data_chunk(cookie, true, offset, length));
        } else {
            let reply_bytes = leave_out_holes(reply, cookie, offset);
            out.truncate(start + reply_bytes);
        }
        Ok(Some(at))
    }

    fn change(&mut self, request: &Request, payload: &[u8]) -> Result<Instant, Refusal> {
        let Request { offset, flags, .. } = *request;
        let bytes = u64::from(request.length);
        let through = flags & wire::FLAG_FUA != 0;
        match request.command {
            Command::Write => self.submit(block::Request::Write { offset, data: payload, through }),
            Command::Flush => self.submit(block::Request::Flush),
            Command::Trim => {
                let at = self.submit(block::Request::Trim { offset, bytes })?;
                Ok(if through { at.max(self.submit(block::Request::Flush)?) } else { at })
            }
            _ => {
                // Trimmed bytes may read as ones; then zeros have to be written, and that is not fast.
                let no_hole = flags & wire::FLAG_NO_HOLE != 0;
                if flags & wire::FLAG_FAST_ZERO != 0 && (no_hole || self.agreed.export.erased_byte != 0) {
                    return Err(Refusal(Errno::Enotsup, "these zeros would have to be written".into()));
                }
                if no_hole {
                    self.write_zeros(offset, bytes, through)
                } else {
                    self.submit(block::Request::Zero { offset, bytes, through })
                }
            }
        }
    }

    fn write_zeros(&mut self, mut offset: u64, bytes: u64, through: bool) -> Result<Instant, Refusal> {
        let end = offset + bytes;
        let mut done = Instant::START;
        while offset < end {
            let step = (end - offset).min(ZEROS_BYTES as u64);
            let data = &ZEROS[..step as usize];
            done = done.max(self.submit(block::Request::Write { offset, data, through })?);
            offset += step;
        }
        Ok(done)
    }

    fn status(&mut self, request: &Request, out: &mut Buffer) -> Result<(), Refusal> {
        let export = &self.agreed.export;
        let hole = wire::STATE_HOLE | if export.erased_byte == 0 { wire::STATE_ZERO } else { 0 };
        let most = if request.flags & wire::FLAG_REQ_ONE != 0 { 1 } else { STATUS_MAX };
        let extents = &mut self.extents;
        extents.clear();
        let (mut from, end) = (request.offset, request.offset + u64::from(request.length));
        // One more than is reported, so that the last reported one has its full length.
        while from < end && extents.len() <= most {
            let until = end.min(from + STATUS_BYTES);
            for run in self.block.mapped(export.area, from..until)? {
                let state = if run.mapped { 0 } else { hole };
                // Neither a request nor a part of it is longer than 4 GiB.
                let length = (run.range.end - run.range.start) as u32;
                match extents.last_mut() {
                    Some(last) if last.1 == state => last.0 += length,
                    _ => extents.push((length, state)),
                }
            }
            from = until;
        }
        extents.truncate(most);
        wire::status_chunk(out, request.cookie, extents);
        Ok(())
    }
}

fn too_long(request: &Request) -> Refusal {
    let what = format!("{} bytes in one request; expected at most {PAYLOAD_BYTES_MAX}", request.length);
    Refusal(Errno::Einval, what)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0) && bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

fn has_hole(data: &[u8]) -> bool {
    data.chunks(GRAIN_BYTES).any(is_zero)
}

/// Splits a reply, which has room for one header before its data, into several chunks with holes for zeros; returns its
/// length.
///
/// In place: a hole omits at least 512 bytes, more than its own chunk and the header of the next chunk take, so data
/// only moves to the front.
fn leave_out_holes(reply: &mut [u8], cookie: u64, offset: u64) -> usize {
    let data = wire::DATA_CHUNK_BYTES..reply.len();
    let (mut from, mut to) = (data.start, 0);
    while from < data.end {
        let hole = is_zero(&reply[from..data.end.min(from + GRAIN_BYTES)]);
        let mut until = from;
        while until < data.end && is_zero(&reply[until..data.end.min(until + GRAIN_BYTES)]) == hole {
            until = data.end.min(until + GRAIN_BYTES);
        }
        let (at, length) = (offset + (from - data.start) as u64, (until - from) as u32);
        let done = until == data.end;
        if hole {
            reply[to..to + wire::HOLE_CHUNK_BYTES].copy_from_slice(&wire::hole_chunk(cookie, done, at, length));
            to += wire::HOLE_CHUNK_BYTES;
        } else {
            reply.copy_within(from..until, to + wire::DATA_CHUNK_BYTES);
            reply[to..to + wire::DATA_CHUNK_BYTES].copy_from_slice(&wire::data_chunk(cookie, done, at, length));
            to += wire::DATA_CHUNK_BYTES + (until - from);
        }
        from = until;
    }
    to
}
