//! Tests of the crate as its users see it.

mod damage;
mod export;
mod formats;
mod live;
mod recorded;
mod requests;
mod support;
mod whole;
