//! One document tree, rendered as terminal text and, with the feature `html`, as one self-contained HTML file.
//!
//! A command builds a [`Document`] of titled sections and plain blocks and prints it with [`text()`] or writes it with
//! `html`. Both renderers escape what they print: a name read from a card may hold anything, terminal escapes and
//! markup included.
//!
//! The renderers know only the tree; [`present`] turns what the analysis found into trees.
//!
//! Absent on purpose: figures that the analysis did not compute, JSON (each result serialises itself), I/O, the
//! clock, and asking whether the output is a terminal.

mod bars;
mod document;
#[cfg(feature = "html")]
mod html;
mod lead;
mod picture;
pub mod present;
mod text;
mod visible;

pub use bars::{BarItem, BarLayout, Bars};
pub use document::{Align, Block, Cell, Chart, Column, Document, KeyValue, Section, Table, Tone};
pub use emmc_analysis::{Finding, Severity};
#[cfg(feature = "html")]
pub use html::{HtmlOptions, html};
pub use lead::{Lead, LeadLine};
pub use picture::{Curve, Drawing, Matrix, Picture};
pub use text::{TextOptions, text};
pub use visible::visible;
