//! The NBD server with a client that goes to the edges, and with real clients.

mod card;
mod client;
mod haggling;
mod lifecycle;
mod real_clients;
mod transmission;
