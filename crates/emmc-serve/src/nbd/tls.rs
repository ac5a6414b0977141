//! TLS for NBD: certificates or pre-shared keys, as QEMU, nbdkit and libnbd name and store them.
//!
//! `credentials` reads the files, `psk` those of keys; `relay` passes bytes between a TLS connection and a session,
//! which knows nothing of TLS. The protocol itself is OpenSSL's (feature `tls`); without the feature there are no
//! credentials, so nothing of this is reached. Absent on purpose: TLS before 1.2, resumption, and keys as arguments,
//! which every process of the machine can read.

#[cfg(feature = "tls")]
mod credentials;
#[cfg(feature = "tls")]
mod psk;
#[cfg(feature = "tls")]
mod relay;

use std::io;
use std::path::PathBuf;

#[cfg(feature = "tls")]
pub(super) use self::relay::relay;

use super::handshake::Security;
use super::socket::Stream;

/// What a server identifies itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// `server-cert.pem`, `server-key.pem`, and for the clients' certificates `ca-cert.pem` and perhaps `ca-crl.pem`.
    Certificates {
        /// Where they are.
        folder: PathBuf,
        /// Whether clients need a certificate of that authority.
        verify_clients: bool,
    },
    /// A file of lines `USER:HEXKEY`, as `psktool` makes it.
    Keys(PathBuf),
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The feature is off.
    #[error("this build has no TLS: `cargo build --features tls` makes one that has it")]
    NotBuilt,
    /// No such file, or no permission.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It has something else.
    #[error("{}: {what}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// OpenSSL cannot start.
    #[error("TLS: {0}")]
    Library(String),
}

/// Why a client's TLS ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsFailure(pub(super) String);

/// TLS of a server.
#[derive(Debug)]
pub struct Tls {
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is none"))]
    is_required: bool,
    #[cfg(feature = "tls")]
    context: credentials::Context,
    #[cfg(not(feature = "tls"))]
    context: std::convert::Infallible,
}

#[cfg(feature = "tls")]
impl Tls {
    /// Reads the files. `is_required`: clients must use it. Returns warnings, too: of keys that others can read, and of
    /// certificates out of their time.
    ///
    /// Errors: a file is missing or has something else.
    pub fn load(credentials: &Credentials, is_required: bool) -> Result<(Self, Vec<String>), TlsError> {
        let (context, warnings) = credentials::Context::load(credentials)?;
        Ok((Self { is_required, context }, warnings))
    }

    /// Whether clients must use it.
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// What a client may do before it has started TLS.
    pub(super) fn security(&self) -> Security {
        if self.is_required { Security::Required } else { Security::Offered }
    }

    /// The handshake with a client.
    pub(super) fn accept(&self, stream: Stream) -> Result<relay::Secured, TlsFailure> {
        self.context.accept(stream)
    }
}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// Errors: always.
    pub fn load(_credentials: &Credentials, _is_required: bool) -> Result<(Self, Vec<String>), TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Whether clients must use it.
    pub fn is_required(&self) -> bool {
        match self.context {}
    }

    pub(super) fn security(&self) -> Security {
        match self.context {}
    }

    pub(super) fn accept(&self, _stream: Stream) -> Result<std::convert::Infallible, TlsFailure> {
        match self.context {}
    }
}

#[cfg(not(feature = "tls"))]
pub(super) fn relay(
    secured: std::convert::Infallible,
    _plain: &std::os::unix::net::UnixStream,
) -> Result<(), TlsFailure> {
    match secured {}
}
