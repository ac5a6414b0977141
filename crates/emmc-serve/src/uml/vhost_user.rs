//! Messages of vhost-user, as many as `arch/um/drivers/virtio_uml.c` of Linux sends.
//!
//! Source: QEMU, "Vhost-user Protocol"; Linux, `arch/um/drivers/vhost_user.h`. Numbers have the machine's byte order.
//! Kicks and interrupts are messages too: only then the time at which they happen is exact.

/// Unit: bytes.
pub(super) const HEADER_BYTES: usize = 12;
/// The longest message: a table of eight regions. Unit: bytes.
pub(super) const MESSAGE_MAX: usize = HEADER_BYTES + 8 + 8 * REGION_BYTES;
const REGION_BYTES: usize = 32;
/// Rings: accesses and interrupts.
pub(super) const RINGS: usize = 2;

/// Flags: version 1, a reply, a reply is wanted.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const WANTS_REPLY: u32 = 1 << 3;

/// Features of the device: protocol features, version 1 of virtio.
const FEATURES: u64 = 1 << 30 | 1 << 32;
/// Of the protocol: acknowledged requests, requests by the device, kicks as messages.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 14;

/// A request by the device: a ring has a used buffer.
const CALL: u32 = 4;
/// The ring of interrupts.
const INTERRUPTS: u32 = 1;

/// A message that the stream cannot continue after, or whose content is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("vhost-user message {request} of {bytes} bytes, which is none of this device")]
pub struct Malformed {
    request: u32,
    bytes: usize,
}

/// A range of the machine's memory: a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
}

/// A request of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    GetFeatures,
    GetProtocolFeatures,
    /// Nothing depends on it.
    Noted,
    Memory(Vec<Region>),
    Size(usize, u32),
    Base(usize, u16),
    Places {
        ring: usize,
        descriptors: u64,
        used: u64,
        available: u64,
    },
    Enable(usize, bool),
    Kick(usize),
    /// The descriptor that comes with it takes the device's requests.
    RequestsTo,
}

/// A request and the reply it wants.
#[derive(Debug)]
pub(super) struct Message {
    number: u32,
    flags: u32,
    pub(super) request: Request,
}

/// The length of the message at the start of some bytes, if they are enough to say.
///
/// Errors: too long.
pub(super) fn message_bytes(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(request) = number(bytes, 0) else { return Ok(None) };
    let Some(size) = number(bytes, 8) else { return Ok(None) };
    let whole = (size as usize).saturating_add(HEADER_BYTES);
    if whole <= MESSAGE_MAX { Ok(Some(whole)) } else { Err(Malformed { request, bytes: size as usize }) }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// The number of a ring of ours.
fn ring(payload: &[u8]) -> Option<usize> {
    number(payload, 0).map(|ring| ring as usize).filter(|ring| *ring < RINGS)
}

impl Message {
    /// Shape: one whole message.
    ///
    /// Errors: not a request of this device.
    pub(super) fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let numbers = number(message, 0).zip(number(message, 4));
        let malformed = Malformed { request: numbers.map_or(0, |(request, _)| request), bytes: message.len() };
        let (number, flags) = numbers.ok_or(malformed)?;
        let payload = message.get(HEADER_BYTES..).ok_or(malformed)?;
        if flags & VERSION_MASK != VERSION || flags & REPLY != 0 {
            return Err(malformed);
        }
        let request = Request::parse(number, payload).ok_or(malformed)?;
        Ok(Self { number, flags, request })
    }

    /// The reply: a value, or the acknowledgement if one is wanted.
    pub(super) fn reply(&self, out: &mut Vec<u8>) {
        let value = match self.request {
            Request::GetFeatures => FEATURES,
            Request::GetProtocolFeatures => PROTOCOL_FEATURES,
            _ if self.flags & WANTS_REPLY != 0 => 0,
            _ => return,
        };
        put(out, &[self.number, VERSION | REPLY, 8]);
        out.extend_from_slice(&value.to_ne_bytes());
    }
}

impl Request {
    fn parse(number_: u32, payload: &[u8]) -> Option<Self> {
        let second = || number(payload, 4);
        Some(match number_ {
            1 => Self::GetFeatures,
            15 => Self::GetProtocolFeatures,
            // Features, owner, descriptors for kicks and calls, which nobody uses here.
            2 | 3 | 12 | 13 | 14 | 16 => Self::Noted,
            5 => Self::Memory(regions(payload)?),
            8 => Self::Size(ring(payload)?, second()?),
            9 => Self::Places {
                ring: ring(payload)?,
                descriptors: long(payload, 8)?,
                used: long(payload, 16)?,
                available: long(payload, 24)?,
            },
            10 => Self::Base(ring(payload)?, u16::try_from(second()?).ok()?),
            18 => Self::Enable(ring(payload)?, second()? != 0),
            21 => Self::RequestsTo,
            35 => Self::Kick(ring(payload)?),
            _ => return None,
        })
    }
}

fn regions(payload: &[u8]) -> Option<Vec<Region>> {
    let count = number(payload, 0)? as usize;
    let rest = payload.get(8..)?;
    let region =
        |bytes: &[u8]| Some(Region { address: long(bytes, 0)?, size: long(bytes, 8)?, offset: long(bytes, 24)? });
    let found: Option<Vec<Region>> = rest.chunks_exact(REGION_BYTES).take(count).map(region).collect();
    found.filter(|found| found.len() == count)
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_ne_bytes());
    }
}

/// The device's request: the ring of interrupts has a used buffer. The machine replies.
pub(super) fn call(out: &mut Vec<u8>) {
    put(out, &[CALL, VERSION | WANTS_REPLY, 8, INTERRUPTS, 0]);
}

/// Whether a message on the device's own channel is the reply to a call.
///
/// Errors: another message, or the machine refused.
pub(super) fn check_call_reply(message: &[u8]) -> Result<(), Malformed> {
    let header = [number(message, 0), number(message, 4), number(message, 8)];
    let fits = header == [Some(CALL), Some(VERSION | REPLY), Some(8)] && long(message, HEADER_BYTES) == Some(0);
    let request = header[0].unwrap_or_default();
    if fits { Ok(()) } else { Err(Malformed { request, bytes: message.len() }) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::uml) fn message(request: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, &[request, VERSION | WANTS_REPLY, payload.len() as u32]);
        bytes.extend_from_slice(payload);
        bytes
    }

    pub(in crate::uml) fn words(words: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, words);
        bytes
    }

    #[test]
    fn requests_are_parsed_and_answered() {
        let region = [0x1000u64, 0x2000, 0x1000, 0x3000].map(u64::to_ne_bytes).concat();
        let places = [words(&[1, 0]), [1u64, 2, 3, 4].map(u64::to_ne_bytes).concat()].concat();
        for (number, payload, request, value) in [
            (1, vec![], Request::GetFeatures, FEATURES),
            (15, vec![], Request::GetProtocolFeatures, PROTOCOL_FEATURES),
            (3, vec![], Request::Noted, 0),
            (
                5,
                [words(&[1, 0]), region].concat(),
                Request::Memory(vec![Region { address: 0x1000, size: 0x2000, offset: 0x3000 }]),
                0,
            ),
            (8, words(&[1, 256]), Request::Size(1, 256), 0),
            (9, places, Request::Places { ring: 1, descriptors: 1, used: 2, available: 3 }, 0),
            (10, words(&[0, 9]), Request::Base(0, 9), 0),
            (18, words(&[0, 1]), Request::Enable(0, true), 0),
            (35, words(&[1, 0]), Request::Kick(1), 0),
        ] {
            let bytes = message(number, &payload);
            assert_eq!(message_bytes(&bytes), Ok(Some(bytes.len())));
            let message = Message::parse(&bytes).unwrap();
            assert_eq!(message.request, request);
            let mut reply = Vec::new();
            message.reply(&mut reply);
            assert_eq!(reply, [words(&[number, 5, 8]), value.to_ne_bytes().to_vec()].concat());
        }
    }

    #[test]
    fn other_messages_are_refused() {
        for (request, payload) in [
            (0, vec![]),
            (99, vec![]),
            (5, words(&[1, 0])),
            (5, words(&[u32::MAX, 0])),
            (8, words(&[2, 8])),
            (8, words(&[1])),
            (10, words(&[0, 1 << 16])),
            (9, words(&[0, 0, 1])),
            (35, vec![]),
        ] {
            assert!(Message::parse(&message(request, &payload)).is_err(), "{request} {payload:?}");
        }
        for flags in [0, 2, VERSION | REPLY] {
            assert!(Message::parse(&words(&[1, flags, 0])).is_err());
        }
        assert!(Message::parse(&[1, 0]).is_err());
        assert!(message_bytes(&words(&[1, 1, MESSAGE_MAX as u32])).is_err());
        assert_eq!(message_bytes(&words(&[1, 1])), Ok(None));
    }

    #[test]
    fn a_call_wants_its_reply() {
        let mut bytes = Vec::new();
        call(&mut bytes);
        assert_eq!(bytes, words(&[4, 9, 8, 1, 0]));
        assert_eq!(check_call_reply(&words(&[4, 5, 8, 0, 0])), Ok(()));
        for bad in [&[4, 5, 8, 1, 0][..], &[4, 9, 8, 0, 0], &[5, 5, 8, 0, 0], &[4, 5], &[4, 5, 8, 0]] {
            assert!(check_call_reply(&words(bad)).is_err(), "{bad:?}");
        }
    }
}
