//! From the greeting to the choice of an export: fixed newstyle negotiation.
//!
//! It reads no byte beyond an option, so what a client sends behind `NBD_OPT_STARTTLS` is read by TLS or by nobody.
//! Absent on purpose: oldstyle negotiation.

use std::io::{self, Read, Write};

use super::option::{self, ClientOption, OptionError, OptionHeader, info, reply, transmission};
use crate::block::Export;

/// The longest request for data or with data. Unit: bytes.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// A client that sends an option with more data than this is dropped. Unit: bytes.
const OPTION_BYTES_MAX: u32 = 1 << 20;
/// Options with more data than this are refused. Unit: bytes.
const OPTION_BYTES_READ: u32 = 64 << 10;
const CONTEXT: &str = "base:allocation";

/// Result of the negotiation.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    /// The export.
    pub(crate) export: Export,
    /// Reads and errors are answered in chunks.
    pub(crate) structured: bool,
    /// The client may query block status.
    pub(crate) allocation: bool,
}

/// Why the negotiation failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection failed.
    #[error("the connection: {0}")]
    Io(#[from] io::Error),
    /// The stream is out of sync.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Flags that this server did not offer.
    #[error("client flags 0x{0:08x}; expected no other than 0x00000003")]
    Flags(u32),
    /// An option that is too long to be skipped.
    #[error("option {number} has {length} bytes of data; expected at most {OPTION_BYTES_MAX}")]
    TooLong {
        /// Which option.
        number: u32,
        /// Unit: bytes.
        length: u32,
    },
    /// Chosen with `NBD_OPT_EXPORT_NAME`, which cannot be refused.
    #[error("there is no export {0:?}")]
    NoExport(String),
    /// The same option where TLS is required.
    #[error("the client does not use TLS, which this server requires")]
    NotSecured,
}

/// Whether TLS can, must or does protect a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// There is no TLS.
    Off,
    /// The client may start it.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is none"))]
    Offered,
    /// The client must start it before anything else.
    Required,
    /// It is in use.
    Secured,
}

/// How a negotiation ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An export is chosen.
    Agreed(Agreed),
    /// The client has ended the session.
    Ended,
    /// TLS begins; everything negotiated so far is forgotten.
    StartTls,
}

/// Greets a client; returns whether the old option gets no zeros.
pub(crate) fn greet(input: &mut impl Read, output: &mut impl Write) -> Result<bool, HandshakeError> {
    let mut greeting = [0; 18];
    greeting[..8].copy_from_slice(&option::GREETING_MAGIC.to_be_bytes());
    greeting[8..16].copy_from_slice(&option::OPTION_MAGIC.to_be_bytes());
    greeting[16..].copy_from_slice(&(option::FLAG_FIXED_NEWSTYLE | option::FLAG_NO_ZEROES).to_be_bytes());
    output.write_all(&greeting)?;
    let mut flags = [0; 4];
    input.read_exact(&mut flags)?;
    let flags = u32::from_be_bytes(flags);
    if flags & !u32::from(option::FLAG_FIXED_NEWSTYLE | option::FLAG_NO_ZEROES) != 0 {
        return Err(HandshakeError::Flags(flags));
    }
    Ok(flags & u32::from(option::FLAG_NO_ZEROES) != 0)
}

/// Negotiates with a greeted client.
pub(crate) fn negotiate(
    exports: &[Export],
    no_zeroes: bool,
    security: Security,
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<Outcome, HandshakeError> {
    let mut negotiation = Negotiation {
        exports,
        no_zeroes,
        security,
        structured: false,
        contexts_of: None,
        replies: Vec::new(),
        choice: None,
    };
    loop {
        let Some(header) = next_header(input)? else { return Ok(Outcome::Ended) };
        let next = match read_data(header, input)? {
            Some(data) => negotiation.answer(header.number, &data)?,
            None => {
                negotiation.reply(header.number, reply::ERR_TOO_BIG, &[b"more data than any option needs"]);
                Next::Option
            }
        };
        output.write_all(&negotiation.replies)?;
        negotiation.replies.clear();
        match next {
            Next::Option => {}
            Next::End => return Ok(negotiation.agreed().map_or(Outcome::Ended, Outcome::Agreed)),
            Next::Tls => return Ok(Outcome::StartTls),
        }
    }
}

/// What follows an option.
enum Next {
    Option,
    End,
    Tls,
}

/// `None`: the client has disconnected between two options, as clients do that only list exports.
fn next_header(input: &mut impl Read) -> Result<Option<OptionHeader>, HandshakeError> {
    let mut header = [0; option::OPTION_BYTES];
    let first = loop {
        match input.read(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    input.read_exact(&mut header[first..])?;
    Ok(Some(option::decode_header(&header)?))
}

/// An option's data; `None`: too long, and skipped.
fn read_data(header: OptionHeader, input: &mut impl Read) -> Result<Option<Vec<u8>>, HandshakeError> {
    let OptionHeader { number, length } = header;
    if length > OPTION_BYTES_MAX {
        return Err(HandshakeError::TooLong { number, length });
    }
    let mut data = Vec::new();
    input.by_ref().take(length.into()).read_to_end(&mut data)?;
    if data.len() < length as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok((length <= OPTION_BYTES_READ).then_some(data))
}

struct Negotiation<'a> {
    exports: &'a [Export],
    no_zeroes: bool,
    security: Security,
    structured: bool,
    /// The export for which contexts were requested.
    contexts_of: Option<&'a Export>,
    replies: Vec<u8>,
    choice: Option<&'a Export>,
}

impl<'a> Negotiation<'a> {
    /// Answers an option.
    fn answer(&mut self, number: u32, data: &[u8]) -> Result<Next, HandshakeError> {
        if self.security == Security::Required && !matches!(number, 2 | 5) {
            if number == 1 {
                return Err(HandshakeError::NotSecured);
            }
            self.reply(number, reply::ERR_TLS_REQD, &[b"expected NBD_OPT_STARTTLS: this server requires TLS"]);
            return Ok(Next::Option);
        }
        let option = match option::decode(number, data) {
            Ok(option) => option,
            // `NBD_OPT_EXPORT_NAME` has no error reply.
            Err(error) if number == 1 => return Err(error.into()),
            Err(error) => {
                self.reply(number, reply::ERR_INVALID, &[error.to_string().as_bytes()]);
                return Ok(Next::Option);
            }
        };
        match option {
            ClientOption::ExportName(name) => self.choose_old_style(name)?,
            ClientOption::Abort => self.acknowledge(number),
            ClientOption::StartTls => match self.security {
                Security::Offered | Security::Required => {
                    self.acknowledge(number);
                    return Ok(Next::Tls);
                }
                Security::Off => self.reply(number, reply::ERR_UNSUP, &[b"this server has no TLS"]),
                Security::Secured => self.reply(number, reply::ERR_INVALID, &[b"TLS is in use already"]),
            },
            ClientOption::List => self.list(number),
            ClientOption::Info(name, _) => {
                self.tell(number, &name);
            }
            ClientOption::Go(name, _) => self.choice = self.tell(number, &name),
            ClientOption::StructuredReply => {
                self.structured = true;
                self.acknowledge(number);
            }
            ClientOption::ListMetaContext(name, queries) => self.contexts(number, &name, &queries, false),
            ClientOption::SetMetaContext(name, queries) => self.contexts(number, &name, &queries, true),
            ClientOption::Other(_) => self.reply(number, reply::ERR_UNSUP, &[b"not supported"]),
        }
        Ok(if self.choice.is_some() || number == 2 { Next::End } else { Next::Option })
    }

    fn agreed(self) -> Option<Agreed> {
        let export = self.choice?.clone();
        // A context is valid only for the export that it was requested for.
        let allocation = self.contexts_of.is_some_and(|of| of.name == export.name);
        Some(Agreed { export, structured: self.structured, allocation })
    }

    fn reply(&mut self, number: u32, kind: u32, data: &[&[u8]]) {
        option::encode_reply(&mut self.replies, number, kind, data);
    }

    fn acknowledge(&mut self, number: u32) {
        self.reply(number, reply::ACK, &[]);
    }

    /// The empty name is the first export: the user area.
    fn find(&self, name: &str) -> Option<&'a Export> {
        self.exports.iter().find(|export| name.is_empty() || export.name == name)
    }

    fn choose_old_style(&mut self, name: String) -> Result<(), HandshakeError> {
        let Some(export) = self.find(&name) else { return Err(HandshakeError::NoExport(name)) };
        self.replies.extend_from_slice(&export.size_bytes.to_be_bytes());
        self.replies.extend_from_slice(&self.flags(export).to_be_bytes());
        if !self.no_zeroes {
            self.replies.extend_from_slice(&[0; 124]);
        }
        self.choice = Some(export);
        Ok(())
    }

    fn list(&mut self, number: u32) {
        for export in self.exports {
            let length = (export.name.len() as u32).to_be_bytes();
            self.reply(number, reply::SERVER, &[&length, export.name.as_bytes()]);
        }
        self.acknowledge(number);
    }

    /// Sends all information about an export, requested or not; returns the export if it exists.
    fn tell(&mut self, number: u32, name: &str) -> Option<&'a Export> {
        let Some(export) = self.find(name) else {
            self.reply(number, reply::ERR_UNKNOWN, &[format!("there is no export {name:?}").as_bytes()]);
            return None;
        };
        let (size, flags) = (export.size_bytes.to_be_bytes(), self.flags(export).to_be_bytes());
        self.reply(number, reply::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags]);
        self.reply(number, reply::INFO, &[&info::NAME.to_be_bytes(), export.name.as_bytes()]);
        let description = format!("{} area of a virtual card", export.name);
        self.reply(number, reply::INFO, &[&info::DESCRIPTION.to_be_bytes(), description.as_bytes()]);
        let sizes = [512, preferred_bytes(export), PAYLOAD_BYTES_MAX].map(u32::to_be_bytes);
        self.reply(number, reply::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), &sizes[0], &sizes[1], &sizes[2]]);
        self.acknowledge(number);
        Some(export)
    }

    fn contexts(&mut self, number: u32, name: &str, queries: &[String], set: bool) {
        if set {
            self.contexts_of = None;
        }
        if !self.structured {
            return self.reply(number, reply::ERR_INVALID, &[b"expected structured replies to be agreed on before"]);
        }
        let Some(export) = self.find(name) else {
            return self.reply(number, reply::ERR_UNKNOWN, &[format!("there is no export {name:?}").as_bytes()]);
        };
        let listed = !set && (queries.is_empty() || queries.iter().any(|query| query == "base:"));
        if listed || queries.iter().any(|query| query == CONTEXT) {
            let id = if set { super::wire::ALLOCATION_ID } else { 0 };
            self.reply(number, reply::META_CONTEXT, &[&id.to_be_bytes(), CONTEXT.as_bytes()]);
            if set {
                self.contexts_of = Some(export);
            }
        }
        self.acknowledge(number);
    }

    fn flags(&self, export: &Export) -> u16 {
        use transmission::*;
        let always =
            HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO | CAN_MULTI_CONN;
        let structured = if self.structured { SEND_DF } else { 0 };
        always | structured | if export.read_only { READ_ONLY } else { 0 }
    }
}

/// The preferred write granularity: a power of two, as the protocol requires.
fn preferred_bytes(export: &Export) -> u32 {
    export.preferred_bytes.clamp(4096, PAYLOAD_BYTES_MAX).next_power_of_two()
}
