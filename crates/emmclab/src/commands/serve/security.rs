//! Who may reach the NBD server: TLS by its options, and warnings.

use std::sync::Arc;

use anyhow::ensure;
use emmc_report::visible;
use emmc_serve::nbd::{Credentials, Listen, Tls};

use crate::cli::{ServeArgs, TlsArg};

/// Errors: TLS without a certificate or key.
pub(super) fn check(args: &ServeArgs) -> anyhow::Result<()> {
    let wants = matches!(args.tls, Some(TlsArg::On | TlsArg::Require));
    ensure!(!wants || credentials(args).is_some(), "--tls: expected --tls-certificates or --tls-psk with it");
    Ok(())
}

fn credentials(args: &ServeArgs) -> Option<Credentials> {
    let keys = args.tls_psk.clone().map(Credentials::Keys);
    let verify_clients = args.tls_verify_peer;
    keys.or_else(|| args.tls_certificates.clone().map(|folder| Credentials::Certificates { folder, verify_clients }))
}

/// TLS, if it is wanted; prints what its files are warned of.
///
/// Errors: a file cannot be used, or this build has no TLS.
pub(super) fn tls(args: &ServeArgs) -> anyhow::Result<Option<Arc<Tls>>> {
    let Some(credentials) = credentials(args).filter(|_| args.tls != Some(TlsArg::Off)) else { return Ok(None) };
    let (tls, warnings) = Tls::load(&credentials, args.tls != Some(TlsArg::On))?;
    for warning in warnings {
        eprintln!("nbd: warning: {}", visible(&warning));
    }
    Ok(Some(Arc::new(tls)))
}

/// Warns of an address that other machines reach.
pub(super) fn warn(listen: &Listen, tls: Option<&Tls>) {
    let who = "other machines can connect";
    match tls {
        _ if listen.is_local() => {}
        None => {
            eprintln!("nbd: warning: {listen}: {who}, without encryption or a key, and change the card (see --tls)")
        }
        Some(tls) if !tls.is_required() => {
            eprintln!("nbd: warning: {listen}: {who} without TLS, and change the card (see --tls require)");
        }
        Some(_) => {}
    }
}
