//! Registers, commands and responses of eMMC and SD: bytes and their meaning.
//!
//! One file per register; each decodes any bytes without panicking and says what breaks the standard instead of
//! failing. Absent on purpose: where the bytes come from (`emmc-port`), and any judgement of them (`emmc-analysis`).

mod area;
mod bits;
mod card_kind;
pub mod cid;
pub mod command;
pub mod crc;
pub mod csd;
pub mod date;
mod error;
pub mod ext_csd;
mod hex;
mod layout;
pub mod manufacturer;
pub mod ocr;
mod persistence;
pub mod r1;
pub mod row;
pub mod rpmb;
pub mod scr;
pub mod ssr;

pub use area::{Area, UnknownArea};
pub use card_kind::CardKind;
pub use error::Error;
pub use layout::BitField;
pub use persistence::Persistence;
