//! The NBD server with a client for edge cases, and with real clients.

mod card;
mod client;
pub(crate) mod hostile;
mod lifecycle;
mod negotiation;
mod real_clients;
#[cfg(feature = "tls")]
mod tls;
mod transmission;
