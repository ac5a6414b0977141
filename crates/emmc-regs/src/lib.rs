//! Registers, commands and responses of eMMC and SD, as bytes and as what they mean.
//!
//! One file per register; each decodes any bytes without panicking and says what breaks the standard instead of failing.
//! Absent on purpose: where the bytes come from (`emmc-port`), and any judgement of them (`emmc-analysis`).

pub mod bits;
pub mod cid;
pub mod command;
pub mod crc;
pub mod csd;
pub mod date;
pub mod ext_csd;
pub mod manufacturer;
pub mod ocr;
pub mod r1;
pub mod row;
pub mod scr;
pub mod ssr;
