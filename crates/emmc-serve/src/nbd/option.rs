//! Options and their replies as bytes: the negotiation between client and server. Pure.
//!
//! Source: the NBD protocol, "Fixed newstyle negotiation", "Option types", "Option reply types". Absent on purpose:
//! extended headers, which are answered as unsupported.

/// The first bytes of a server: `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// The first bytes of an option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The first bytes of an option's reply.
pub const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// An option without its data. Unit: bytes.
pub const OPTION_BYTES: usize = 16;
/// Longest name. Unit: bytes.
pub const NAME_BYTES_MAX: usize = 4096;

/// Both directions: options get replies.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Both directions: without 124 zeros after `NBD_OPT_EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// What an export supports, as sent when it is chosen.
pub mod transmission {
    #![expect(missing_docs, reason = "named as in the protocol")]
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Kinds of information about an export.
pub mod info {
    #![expect(missing_docs, reason = "named as in the protocol")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// The kinds of replies to options.
pub mod reply {
    #![expect(missing_docs, reason = "named as in the protocol")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// What a client requests during the negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the protocol")]
pub enum ClientOption {
    /// Choose an export; the only refusal is to disconnect.
    ExportName(String),
    Abort,
    List,
    /// Continue in TLS.
    StartTls,
    /// Information about an export; which of `info` is requested.
    Info(String, Vec<u16>),
    /// The same, and choose it.
    Go(String, Vec<u16>),
    StructuredReply,
    /// An export and the requested contexts.
    ListMetaContext(String, Vec<String>),
    SetMetaContext(String, Vec<String>),
    /// One that this server does not know.
    Other(u32),
}

/// Number of the option, and length of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// Which option.
    pub number: u32,
    /// Unit: bytes.
    pub length: u32,
}

/// Why bytes are not an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The stream is out of sync.
    #[error("an option begins with 0x{0:016x}; expected 0x{OPTION_MAGIC:016x}")]
    Magic(u64),
    /// Length and content contradict each other.
    #[error("option {number}: {what}")]
    Data {
        /// Which option.
        number: u32,
        /// What is wrong.
        what: &'static str,
    },
}

/// Number and length.
///
/// Errors: not the start of an option.
pub fn decode_header(bytes: &[u8; OPTION_BYTES]) -> Result<OptionHeader, OptionError> {
    let [m0, m1, m2, m3, m4, m5, m6, m7, n0, n1, n2, n3, l0, l1, l2, l3] = *bytes;
    let found = u64::from_be_bytes([m0, m1, m2, m3, m4, m5, m6, m7]);
    if found != OPTION_MAGIC {
        return Err(OptionError::Magic(found));
    }
    Ok(OptionHeader { number: u32::from_be_bytes([n0, n1, n2, n3]), length: u32::from_be_bytes([l0, l1, l2, l3]) })
}

/// An option from its number and all of its data.
///
/// Errors: lengths that point outside, names that are too long or not UTF-8, data where there is none.
pub fn decode(number: u32, data: &[u8]) -> Result<ClientOption, OptionError> {
    let mut rest = Rest { number, data };
    let option = match number {
        1 => ClientOption::ExportName(rest.string(data.len())?),
        2 => return Ok(ClientOption::Abort),
        3 => ClientOption::List,
        5 => ClientOption::StartTls,
        6 => ClientOption::Info(rest.name()?, rest.wanted()?),
        7 => ClientOption::Go(rest.name()?, rest.wanted()?),
        8 => ClientOption::StructuredReply,
        9 => ClientOption::ListMetaContext(rest.name()?, rest.queries()?),
        10 => ClientOption::SetMetaContext(rest.name()?, rest.queries()?),
        other => return Ok(ClientOption::Other(other)),
    };
    if rest.data.is_empty() { Ok(option) } else { Err(rest.error("more data than it says")) }
}

/// A reply to option `number`.
pub fn encode_reply(out: &mut Vec<u8>, number: u32, kind: u32, data: &[&[u8]]) {
    out.extend_from_slice(&REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&(length as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The rest of an option's data.
struct Rest<'a> {
    number: u32,
    data: &'a [u8],
}

impl<'a> Rest<'a> {
    fn error(&self, what: &'static str) -> OptionError {
        OptionError::Data { number: self.number, what }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], OptionError> {
        let (taken, rest) = self.data.split_at_checked(bytes).ok_or_else(|| self.error("less data than it says"))?;
        self.data = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, OptionError> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, OptionError> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self, bytes: usize) -> Result<String, OptionError> {
        if bytes > NAME_BYTES_MAX {
            return Err(self.error("a name longer than 4096 bytes"));
        }
        let bytes = self.take(bytes)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.error("a name that is not UTF-8"))
    }

    fn name(&mut self) -> Result<String, OptionError> {
        let bytes = self.u32()?;
        self.string(bytes as usize)
    }

    fn wanted(&mut self) -> Result<Vec<u16>, OptionError> {
        let count = self.u16()?;
        (0..count).map(|_| self.u16()).collect()
    }

    fn queries(&mut self) -> Result<Vec<String>, OptionError> {
        let count = self.u32()?;
        (0..count).map(|_| self.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed() {
        let mut bytes = *b"IHAVEOPT\0\0\0\x07\0\0\0\x09";
        assert_eq!(decode_header(&bytes), Ok(OptionHeader { number: 7, length: 9 }));
        bytes[0] = b'J';
        assert_eq!(decode_header(&bytes), Err(OptionError::Magic(0x4a48_4156_454f_5054)));
    }

    #[test]
    fn options_are_parsed() {
        let go = b"\0\0\0\x05boot0\0\x02\0\x03\0\x01";
        assert_eq!(decode(7, go), Ok(ClientOption::Go("boot0".into(), vec![3, 1])));
        let contexts = b"\0\0\0\0\0\0\0\x01\0\0\0\x05base:";
        assert_eq!(decode(10, contexts), Ok(ClientOption::SetMetaContext(String::new(), vec!["base:".into()])));
        assert_eq!(decode(1, b"user"), Ok(ClientOption::ExportName("user".into())));
        assert_eq!(decode(3, b""), Ok(ClientOption::List));
        assert_eq!(decode(5, b""), Ok(ClientOption::StartTls));
        assert_eq!(decode(11, b"anything"), Ok(ClientOption::Other(11)));
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let wrong = |number, data: &[u8], what| {
            assert_eq!(decode(number, data), Err(OptionError::Data { number, what }));
        };
        wrong(7, b"\xff\xff\xff\xffuser\0\0", "a name longer than 4096 bytes");
        wrong(7, b"\0\0\0\x05user", "less data than it says");
        wrong(7, b"\0\0\0\x04user\0\x02\0\x03", "less data than it says");
        wrong(6, b"\0\0\0\x04user\0\0x", "more data than it says");
        wrong(10, b"\0\0\0\x04user\xff\xff\xff\xff", "less data than it says");
        wrong(3, b"x", "more data than it says");
        wrong(5, b"x", "more data than it says");
        wrong(1, b"\xff", "a name that is not UTF-8");
    }

    #[test]
    fn replies() {
        let mut out = Vec::new();
        encode_reply(&mut out, 3, reply::SERVER, &[&4u32.to_be_bytes(), b"user"]);
        assert_eq!(out[..8], REPLY_MAGIC.to_be_bytes());
        assert_eq!(out[8..], *b"\0\0\0\x03\0\0\0\x02\0\0\0\x08\0\0\0\x04user");
    }
}
