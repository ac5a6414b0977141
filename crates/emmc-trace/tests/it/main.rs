//! Tests of the crate as its users see it.

mod damage;
mod export;
mod formats;
mod late;
mod limits;
mod live;
mod recorded;
mod requests;
mod support;
mod tools;
mod whole;
