//! A server's certificates and keys, and the handshake with them.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::pkey::PKey;
use openssl::ssl::{
    Error, ErrorCode, HandshakeError, Ssl, SslAcceptor, SslAcceptorBuilder, SslFiletype, SslMethod, SslMode,
    SslOptions, SslRef, SslSessionCacheMode, SslVerifyMode,
};
use openssl::x509::store::X509Lookup;
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509VerifyResult};

use super::relay::Secured;
use super::{Credentials, TlsError, TlsFailure, psk};
use crate::nbd::socket::Stream;

/// TLS 1.3 binds a key without a named hash to SHA-256.
const PSK_SUITES: &str = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
/// Of TLS 1.2, those with forward secrecy.
const PSK_CIPHERS: &str = "ECDHE-PSK-CHACHA20-POLY1305:DHE-PSK-AES256-GCM-SHA384:DHE-PSK-AES128-GCM-SHA256:\
                           DHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES256-CBC-SHA384:ECDHE-PSK-AES128-CBC-SHA256";

/// The user that a client claimed to be, and whether there is a key of that name.
type Claim = (String, bool);

static CLAIM: LazyLock<Option<Index<Ssl, Claim>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

/// The server's side of every handshake.
pub(super) struct Context {
    acceptor: SslAcceptor,
    /// Where the keys are.
    keys: Option<PathBuf>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn load(credentials: &Credentials) -> Result<(Self, Vec<String>), TlsError> {
        let mut warnings = Vec::new();
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).map_err(library)?;
        builder.set_options(SslOptions::NO_TICKET | SslOptions::NO_RENEGOTIATION);
        builder.set_session_cache_mode(SslSessionCacheMode::OFF);
        builder.set_num_tickets(0).map_err(library)?;
        builder.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
        // A record's header and its data in one system call.
        builder.set_read_ahead(true);
        let keys = match credentials {
            Credentials::Certificates { folder, verify_clients } => {
                load_certificate(&mut builder, folder, &mut warnings)?;
                if *verify_clients {
                    load_authority(&mut builder, folder)?;
                }
                None
            }
            Credentials::Keys(path) => {
                load_keys(&mut builder, path, &mut warnings)?;
                Some(path.clone())
            }
        };
        Ok((Self { acceptor: builder.build(), keys }, warnings))
    }

    pub(super) fn accept(&self, stream: Stream) -> Result<Secured, TlsFailure> {
        self.acceptor.accept(stream).map_err(|error| match error {
            HandshakeError::SetupFailure(error) => TlsFailure(reasons(&error)),
            HandshakeError::Failure(ended) | HandshakeError::WouldBlock(ended) => {
                TlsFailure(self.explain(ended.ssl(), ended.error()))
            }
        })
    }

    /// Why a handshake failed.
    fn explain(&self, ssl: &SslRef, error: &Error) -> String {
        let claim = CLAIM.and_then(|index| ssl.ex_data(index));
        match (ssl.verify_result(), claim, &self.keys) {
            (result, ..) if result != X509VerifyResult::OK => {
                format!("the client's certificate: {}", result.error_string())
            }
            (_, Some((user, false)), Some(keys)) => format!("user {user:?} has no key in {}", keys.display()),
            (_, Some((user, true)), Some(keys)) if error.code() == ErrorCode::SSL => {
                format!("user {user:?} has another key than the one in {}: {}", keys.display(), why(error))
            }
            _ => why(error),
        }
    }
}

/// Why a connection failed, in a few words.
pub(super) fn why(error: &Error) -> String {
    if let Some(error) = error.io_error() {
        return error.to_string();
    }
    match error.ssl_error() {
        Some(errors) => reasons(errors),
        None => "the client closed the connection".into(),
    }
}

fn reasons(errors: &ErrorStack) -> String {
    let reasons = errors.errors().iter().filter_map(|error| error.reason());
    let reasons: Vec<String> = reasons
        .map(|reason| match reason.split_once(" alert ") {
            Some((_, alert)) => format!("the client reports: {alert}"),
            None if reason.starts_with("unexpected eof") => "the client closed the connection".into(),
            None => reason.to_owned(),
        })
        .collect();
    if reasons.is_empty() { "OpenSSL names no reason".into() } else { reasons.join(", ") }
}

fn library(errors: ErrorStack) -> TlsError {
    TlsError::Library(reasons(&errors))
}

fn content(path: &Path, what: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.to_owned(), what: what.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

/// The content of a file that only its owner should read.
fn read_secret(path: &Path, warnings: &mut Vec<String>) -> Result<Vec<u8>, TlsError> {
    let failed = |source: io::Error| TlsError::File { path: path.to_owned(), source };
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o044 != 0 {
        warnings.push(format!("{}: others can read this key (mode {mode:04o}; expected 0600)", path.display()));
    }
    read(path)
}

fn load_certificate(
    builder: &mut SslAcceptorBuilder,
    folder: &Path,
    warnings: &mut Vec<String>,
) -> Result<(), TlsError> {
    let path = folder.join("server-cert.pem");
    let mut chain = X509::stack_from_pem(&read(&path)?).map_err(|error| content(&path, reasons(&error)))?.into_iter();
    let certificate = chain.next().ok_or_else(|| content(&path, "expected a certificate in PEM"))?;
    let now = Asn1Time::days_from_now(0).map_err(library)?;
    if *certificate.not_after() < now || *certificate.not_before() > now {
        let (from, to) = (certificate.not_before(), certificate.not_after());
        warnings.push(format!("{}: valid from {from} to {to} only: clients will refuse it", path.display()));
    }
    builder.set_certificate(&certificate).map_err(|error| content(&path, reasons(&error)))?;
    for issuer in chain {
        builder.add_extra_chain_cert(issuer).map_err(|error| content(&path, reasons(&error)))?;
    }
    let path = folder.join("server-key.pem");
    let text = read_secret(&path, warnings)?;
    // A passphrase cannot be asked for: nobody sits at a server.
    let no_passphrase = |_: &mut [u8]| Ok(0);
    let key = PKey::private_key_from_pem_callback(&text, no_passphrase);
    let key = key.map_err(|error| {
        content(&path, format!("expected a private key in PEM without a passphrase: {}", reasons(&error)))
    })?;
    let ours = builder.set_private_key(&key).and_then(|()| builder.check_private_key());
    ours.map_err(|_| content(&path, "is not the key of the certificate in server-cert.pem"))
}

/// Who must have signed the clients' certificates, and which of them are revoked.
fn load_authority(builder: &mut SslAcceptorBuilder, folder: &Path) -> Result<(), TlsError> {
    let path = folder.join("ca-cert.pem");
    let authorities = X509::stack_from_pem(&read(&path)?).map_err(|error| content(&path, reasons(&error)))?;
    if authorities.is_empty() {
        return Err(content(&path, "expected a certificate in PEM"));
    }
    for authority in authorities {
        builder.add_client_ca(&authority).map_err(library)?;
        builder.cert_store_mut().add_cert(authority).map_err(|error| content(&path, reasons(&error)))?;
    }
    let path = folder.join("ca-crl.pem");
    if path.exists() {
        let store = builder.cert_store_mut();
        let lookup = store.add_lookup(X509Lookup::file()).map_err(library)?;
        lookup.load_crl_file(&path, SslFiletype::PEM).map_err(|error| content(&path, reasons(&error)))?;
        store.set_flags(X509VerifyFlags::CRL_CHECK).map_err(library)?;
    }
    builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    Ok(())
}

fn load_keys(builder: &mut SslAcceptorBuilder, path: &Path, warnings: &mut Vec<String>) -> Result<(), TlsError> {
    let keys = Arc::new(psk::parse(&read_secret(path, warnings)?).map_err(|what| content(path, what))?);
    builder.set_ciphersuites(PSK_SUITES).map_err(library)?;
    builder.set_cipher_list(PSK_CIPHERS).map_err(library)?;
    builder.set_psk_server_callback(move |ssl, user, into| {
        let user = user.unwrap_or_default();
        let key = keys.get(user).filter(|key| key.len() <= into.len());
        if let Some(index) = *CLAIM {
            ssl.set_ex_data(index, (String::from_utf8_lossy(user).into_owned(), key.is_some()));
        }
        // Of length 0: there is none.
        let Some(key) = key else { return Ok(0) };
        into[..key.len()].copy_from_slice(key);
        Ok(key.len())
    });
    Ok(())
}
