//! The difference between two sources, field by field and bit by bit.
//!
//! The bits that differ decide how persistent a difference is, not their field: PARTITION_CONFIG holds
//! the boot configuration, which is persistent, and the accessed area, which a reset clears. Absent on purpose: the
//! persistence of each bit, which is in the field tables of `emmc-regs`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use emmc_port::CardData;
use emmc_regs::Persistence;
use emmc_regs::ext_csd::{Field, field_at};
use serde::Serialize;

use crate::registers::{RegisterRow, rows};

/// A group of bits of one field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BitDifference {
    /// The standard's name of the bits; the field's name if the bits have none.
    ///
    /// Absent where the standard leaves them unassigned.
    pub name: Option<Cow<'static, str>>,
    /// Highest bit, counted inside the field.
    pub hi: u16,
    /// Lowest bit.
    pub lo: u16,
    /// The number in A.
    pub raw_a: u64,
    /// The number in B.
    pub raw_b: u64,
    /// Persistence of these bits.
    pub persistence: Persistence,
}

/// A field that differs between two sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The register.
    pub register: &'static str,
    /// The standard's name.
    pub name: Cow<'static, str>,
    /// First byte in EXT_CSD, lowest bit elsewhere.
    pub offset: u16,
    /// The number in A; absent where A does not know it.
    pub raw_a: Option<u64>,
    /// The number in B; absent where B does not know it.
    pub raw_b: Option<u64>,
    /// What it means in A.
    pub value_a: Option<String>,
    /// What it means in B.
    pub value_b: Option<String>,
    /// Whether a power cycle clears every bit that differs, so that the difference is not one of configuration.
    pub volatile: bool,
    /// Whether some bit that differs can never be changed back.
    pub one_time: bool,
    /// Persistence of the difference: that of its most persistent bit.
    pub persistence: Persistence,
    /// The groups of bits that differ; empty if only the meaning differs, because it depends on another field.
    pub bits: Vec<BitDifference>,
}

/// The comparison of two sources, field by field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Fields that both know.
    pub compared: usize,
    /// Fields that both know with different values.
    pub differences: Vec<Difference>,
    /// Fields that only A knows.
    pub only_a: Vec<Difference>,
    /// Fields that only B knows.
    pub only_b: Vec<Difference>,
    /// With `--persistent`: the differences that it does not list.
    ///
    /// A power cycle clears their bits, or the standard does not say how long they last.
    pub left_out: Vec<Difference>,
    /// Whether only persistent differences are listed.
    pub persistent_only: bool,
}

impl Comparison {
    /// Moves bits that a power cycle may clear to `left_out`.
    pub fn persistent(mut self) -> Self {
        self.persistent_only = true;
        for difference in std::mem::take(&mut self.differences) {
            let (lasting, rest) = difference.split();
            self.differences.extend(lasting);
            self.left_out.extend(rest);
        }
        self
    }
}

impl Difference {
    /// The persistent part, and the part that may not be persistent.
    fn split(self) -> (Option<Self>, Option<Self>) {
        if self.bits.is_empty() {
            return if self.persistence.is_persistent() { (Some(self), None) } else { (None, Some(self)) };
        }
        let (lasting, rest): (Vec<_>, Vec<_>) =
            self.bits.iter().cloned().partition(|bits| bits.persistence.is_persistent());
        let with = |bits: Vec<BitDifference>| (!bits.is_empty()).then(|| self.clone().with_bits(bits));
        (with(lasting), with(rest))
    }

    fn with_bits(mut self, bits: Vec<BitDifference>) -> Self {
        self.volatile = !bits.is_empty() && bits.iter().all(|bits| bits.persistence.is_volatile());
        self.one_time = bits.iter().any(|bits| bits.persistence >= Persistence::OneTimeOnceCommitted);
        self.persistence = bits.iter().map(|bits| bits.persistence).max().unwrap_or(self.persistence);
        self.bits = bits;
        self
    }
}

/// Compares two sources field by field, reserved bytes included.
pub fn compare(a: &CardData, b: &CardData) -> Comparison {
    let (rows_a, rows_b) = (rows(a, true), rows(b, true));
    let (map_a, map_b) = (by_place(&rows_a), by_place(&rows_b));
    let mut comparison = Comparison {
        compared: 0,
        differences: Vec::new(),
        only_a: Vec::new(),
        only_b: Vec::new(),
        left_out: Vec::new(),
        persistent_only: false,
    };
    for row in &rows_a {
        match map_b.get(&place(row)) {
            None => comparison.only_a.push(difference(row, Some(row), None)),
            Some(other) => {
                comparison.compared += 1;
                if other.raw != row.raw || other.value != row.value {
                    comparison.differences.push(difference(row, Some(row), Some(other)));
                }
            }
        }
    }
    let only_b = rows_b.iter().filter(|row| !map_a.contains_key(&place(row)));
    comparison.only_b.extend(only_b.map(|row| difference(row, None, Some(row))));
    comparison
}

fn place(row: &RegisterRow) -> (&'static str, u16, &str) {
    (row.register, row.offset, &row.name)
}

fn by_place(rows: &[RegisterRow]) -> BTreeMap<(&'static str, u16, &str), &RegisterRow> {
    rows.iter().map(|row| (place(row), row)).collect()
}

/// The difference of a field; `row` is that of either source.
fn difference(row: &RegisterRow, a: Option<&RegisterRow>, b: Option<&RegisterRow>) -> Difference {
    // A field that only one source knows may differ in every bit.
    let all = u64::MAX >> (64 - row.width_bits.clamp(1, 64));
    let differing = a.zip(b).map_or(all, |(a, b)| a.raw ^ b.raw);
    let raw = |row: Option<&RegisterRow>| row.map_or(0, |row| row.raw);
    let bits = |mask| bits(row, mask, raw(a), raw(b));
    // If the numbers are equal, the meaning depends on another field; the persistence is that of all bits of this
    // field.
    let persistence = bits(all).iter().map(|bits| bits.persistence).max().unwrap_or(Persistence::NotSpecified);
    let difference = Difference {
        register: row.register,
        name: row.name.clone(),
        offset: row.offset,
        raw_a: a.map(|row| row.raw),
        raw_b: b.map(|row| row.raw),
        value_a: a.map(RegisterRow::value_text),
        value_b: b.map(RegisterRow::value_text),
        volatile: false,
        one_time: false,
        persistence,
        bits: Vec::new(),
    };
    let mut difference = difference.with_bits(bits(differing));
    if a.is_none() || b.is_none() {
        difference.bits.clear();
    }
    difference
}

/// The groups of a field's bits that have a bit in `mask`.
fn bits(row: &RegisterRow, mask: u64, raw_a: u64, raw_b: u64) -> Vec<BitDifference> {
    let groups = match (row.persistence, field_at(row.offset)) {
        (None, Some(field)) => groups(field, row),
        (persistence, _) => vec![Group {
            name: Some(row.name.clone()),
            hi: row.width_bits.saturating_sub(1),
            lo: 0,
            persistence: persistence.unwrap_or(Persistence::NotSpecified),
        }],
    };
    let differs = groups.into_iter().filter(|group| group.mask() & mask != 0);
    let differs = differs.map(|group| {
        let raw = |raw: u64| (raw & group.mask()) >> group.lo;
        let (raw_a, raw_b) = (raw(raw_a), raw(raw_b));
        BitDifference { name: group.name, hi: group.hi, lo: group.lo, raw_a, raw_b, persistence: group.persistence }
    });
    differs.collect()
}

/// Bits of a field that are judged together.
struct Group {
    name: Option<Cow<'static, str>>,
    hi: u16,
    lo: u16,
    persistence: Persistence,
}

impl Group {
    fn mask(&self) -> u64 {
        (u64::MAX >> (63 - (self.hi - self.lo).min(63))) << self.lo.min(63)
    }
}

/// The groups of a field of EXT_CSD, highest first: its named bits, and each bit between them that has no name.
fn groups(field: &'static Field, row: &RegisterRow) -> Vec<Group> {
    let first_byte = row.offset - field.offset;
    let persistence = |bit: u16| field.persistence_of_bit(first_byte + bit / 8, (bit % 8) as u8);
    if field.bits.is_empty() {
        let name = Some(row.name.clone()).filter(|_| !field.is_reserved());
        return vec![Group { name, hi: row.width_bits - 1, lo: 0, persistence: persistence(0) }];
    }
    let named = |bit: u16| field.bits.iter().find(|bits| bits.mask() >> bit & 1 == 1);
    let mut groups = Vec::new();
    let mut below = row.width_bits;
    while let Some(bit) = below.checked_sub(1) {
        let (name, lo) = named(bit).map_or((None, bit), |bits| (Some(bits.name.into()), bits.lo.into()));
        groups.push(Group { name, hi: bit, lo, persistence: persistence(lo) });
        below = lo;
    }
    groups
}

#[cfg(test)]
mod tests;
