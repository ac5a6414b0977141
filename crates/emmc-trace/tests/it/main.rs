//! Tests of the crate as its users see it.

mod damage;
mod formats;
mod requests;
mod support;
