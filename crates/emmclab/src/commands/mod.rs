//! One file per verb: takes options, makes one library call, prints a document.

#[cfg(feature = "twin")]
pub(crate) mod advise;
#[cfg(feature = "bench")]
pub(crate) mod apply;
#[cfg(feature = "bench")]
pub(crate) mod bench;
pub(crate) mod check;
#[cfg(feature = "bench")]
pub(crate) mod compare;
pub(crate) mod diff;
pub(crate) mod health;
pub(crate) mod help;
#[cfg(feature = "serve")]
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod monitor;
#[cfg(feature = "pages")]
pub(crate) mod pages;
pub(crate) mod plan;
#[cfg(feature = "bench")]
pub(crate) mod probe;
#[cfg(feature = "schema")]
pub(crate) mod schema;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod show;
#[cfg(feature = "sim")]
pub(crate) mod sim;
pub(crate) mod snapshot;
pub(crate) mod study;
#[cfg(feature = "trace")]
pub(crate) mod trace;
#[cfg(feature = "twin")]
pub(crate) mod twin;
#[cfg(feature = "twin")]
mod workload;
