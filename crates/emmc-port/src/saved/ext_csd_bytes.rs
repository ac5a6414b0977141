//! Whether 512 bytes are an EXT_CSD, and in which order: old kernels print byte 511 first.
//!
//! Absent on purpose: any judgement of a card; a register that merely breaks the standard is still a register.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, fields};

/// Reserved bytes that may be set before a register is taken for something else.
///
/// Assumed: of the real registers in testdata none sets any, and random bytes set nearly all 217.
const RESERVED_SET_MAX: usize = 16;

/// Impossible fields from which on bytes are no EXT_CSD at all: of the first bytes alone, and of all 512.
///
/// A real one in testdata has at most one; each of them shifted by one byte has 19 or more.
const IMPOSSIBLE_FIELDS_MIN: [usize; 2] = [3, 8];

/// What is wrong with bytes that should be an EXT_CSD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The implausible byte.
    pub(crate) offset: u64,
    /// The expected value.
    pub(crate) expected: &'static str,
    /// The value found.
    pub(crate) found: String,
}

/// The register in 512 bytes, and whether they came with byte 511 first.
///
/// Errors: a register in neither order, or equally well in both.
pub(super) fn ordered(bytes: &[u8; EXT_CSD_BYTES]) -> Result<(ExtCsd, bool), Fault> {
    let mut reversed = *bytes;
    reversed.reverse();
    match (fault(bytes), fault(&reversed)) {
        (None, Some(_)) => Ok((ExtCsd::from_bytes(*bytes), false)),
        (Some(_), None) => Ok((ExtCsd::from_bytes(reversed), true)),
        (Some(fault), Some(_)) => Err(fault),
        (None, None) => match oddities(bytes).cmp(&oddities(&reversed)) {
            std::cmp::Ordering::Less => Ok((ExtCsd::from_bytes(*bytes), false)),
            std::cmp::Ordering::Greater => Ok((ExtCsd::from_bytes(reversed), true)),
            std::cmp::Ordering::Equal => Err(Fault {
                offset: 0,
                expected: "an EXT_CSD that is plausible in one byte order",
                found: "bytes that could be in either order".into(),
            }),
        },
    }
}

/// What keeps the bytes, of which the first is byte 0, from being an EXT_CSD.
pub(crate) fn fault(bytes: &[u8]) -> Option<Fault> {
    let fault = |offset: u64, expected, found| Some(Fault { offset, expected, found });
    let value = |offset: u64, expected, byte: u8| fault(offset, expected, format!("{byte:#04x}"));
    match bytes {
        [] => return fault(0, "EXT_CSD", "nothing".into()),
        [first, rest @ ..] if bytes.len() > 1 && rest.iter().all(|byte| byte == first) => {
            return fault(0, "EXT_CSD", format!("{first:#04x} {} times", bytes.len()));
        }
        _ => {}
    }
    match (bytes.get(192), bytes.get(194), bytes.get(196)) {
        (Some(10..), _, _) => value(192, "EXT_CSD_REV from 0 to 9", bytes.get(192).copied().unwrap_or_default()),
        (_, Some(4..), _) => value(194, "CSD_STRUCTURE from 0 to 3", bytes.get(194).copied().unwrap_or_default()),
        (_, _, Some(0)) => value(196, "a DEVICE_TYPE with at least one bus mode", 0),
        (Some(_), Some(_), Some(_)) => {
            let set = reserved_set(bytes);
            let first = fields().find(|field| field.is_reserved() && any_set(bytes, field.offset, field.width));
            let offset = first.map_or(0, |field| u64::from(field.offset));
            let found = format!("{set} of them set");
            if set > RESERVED_SET_MAX {
                return fault(offset, "EXT_CSD's reserved bytes to be zero", found);
            }
            impossible(bytes)
        }
        _ => fault(bytes.len() as u64, "EXT_CSD at least up to DEVICE_TYPE, byte 196", "the end".into()),
    }
}

/// The error for bytes with too many impossible fields.
fn impossible(bytes: &[u8]) -> Option<Fault> {
    let mut ext_csd = ExtCsd::unknown();
    (0..512).zip(bytes).for_each(|(offset, byte)| ext_csd.set_bits(offset, 0xff, *byte));
    let fields = ext_csd.impossible_fields();
    let [part, whole] = IMPOSSIBLE_FIELDS_MIN;
    let least = if bytes.len() < EXT_CSD_BYTES { part } else { whole };
    let first = fields.first().filter(|_| fields.len() >= least)?;
    let found = format!("{} such fields, first {}", fields.len(), first.name);
    Some(Fault { offset: first.offset.into(), expected: "an EXT_CSD without fields that no part can have", found })
}

/// How much of a plausible register is unusual.
fn oddities(bytes: &[u8]) -> usize {
    let odd = |odd: bool| usize::from(odd);
    reserved_set(bytes)
        + odd(bytes.get(504).is_some_and(|&sets| sets != 1))
        + odd(bytes.get(212..216).is_some_and(|count| count == [0; 4]))
        + odd(bytes.get(196).is_some_and(|&modes| modes & 1 == 0))
        + odd(bytes.get(224) == Some(&0))
}

/// The implausibility of bytes of EXT_CSD that begin at byte `start`; `None` when they cannot be one.
///
/// The real registers in testdata have at most 1, and at least 5 with the bytes of their words swapped.
pub(super) fn unlikeness(start: usize, given: &[Option<u8>]) -> Option<usize> {
    let mut bytes = [0; EXT_CSD_BYTES];
    for (byte, given) in bytes.iter_mut().skip(start).zip(given) {
        *byte = given.unwrap_or_default();
    }
    let known =
        |offset: usize| offset.checked_sub(start).is_some_and(|index| matches!(given.get(index), Some(Some(_))));
    let value = |offset: usize| bytes.get(offset).copied().filter(|_| known(offset));
    let impossible = value(192).is_some_and(|revision| revision > 9)
        || value(194).is_some_and(|structure| structure > 3)
        || value(196) == Some(0);
    let odd = |odd: bool| usize::from(odd);
    let unlikely = reserved_set(&bytes)
        + odd(value(192) == Some(0))
        + odd(value(504).is_some_and(|sets| sets != 1))
        + odd((212..216).all(|offset| value(offset) == Some(0)))
        + odd(value(196).is_some_and(|modes| modes & 1 == 0))
        + odd(value(224) == Some(0));
    (!impossible && unlikely <= RESERVED_SET_MAX).then_some(unlikely)
}

fn reserved_set(bytes: &[u8]) -> usize {
    let reserved = fields().filter(|field| field.is_reserved());
    reserved.map(|field| slice(bytes, field.offset, field.width).iter().filter(|&&byte| byte != 0).count()).sum()
}

fn any_set(bytes: &[u8], offset: u16, width: u16) -> bool {
    slice(bytes, offset, width).iter().any(|&byte| byte != 0)
}

fn slice(bytes: &[u8], offset: u16, width: u16) -> &[u8] {
    let start = usize::from(offset).min(bytes.len());
    let end = (usize::from(offset) + usize::from(width)).min(bytes.len());
    bytes.get(start..end).unwrap_or_default()
}

/// Recognises well-known content that is not a register: a read without a response, a boot sector.
pub(super) fn known_junk(bytes: &[u8]) -> Option<String> {
    let all = |value: u8| bytes.len() > 4 && bytes.iter().all(|&byte| byte == value);
    if all(0) {
        return Some(format!("{} bytes of 0x00: nothing was read", bytes.len()));
    }
    if all(0xff) {
        return Some(format!("{} bytes of 0xff: no card answered", bytes.len()));
    }
    if bytes.len() >= 512 && bytes.get(510..512) == Some(&[0x55, 0xaa]) {
        return Some("a boot sector (55 aa at its end): the card's first block, not a register".into());
    }
    let boot_code = match bytes {
        // Interrupts off, then a segment register is set up; or a jump over a parameter block.
        [0xfa, 0xb8 | 0x33 | 0x31, ..] | [0x33, 0xc0, 0x8e, 0xd0, ..] => bytes.len() >= 16,
        [0xeb, _, 0x90, ..] => bytes.len() >= 16,
        _ => false,
    };
    boot_code.then(|| "boot code of an MBR: the card's first block, not a register".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register() -> [u8; EXT_CSD_BYTES] {
        let mut bytes = [0; EXT_CSD_BYTES];
        for (offset, value) in [(192, 8), (194, 2), (196, 0x57), (212, 1), (224, 1), (504, 1)] {
            bytes[offset] = value;
        }
        bytes
    }

    #[test]
    fn both_byte_orders_are_distinguished() {
        let bytes = register();
        let mut reversed = bytes;
        reversed.reverse();
        assert_eq!(ordered(&bytes), Ok((ExtCsd::from_bytes(bytes), false)));
        assert_eq!(ordered(&reversed), Ok((ExtCsd::from_bytes(bytes), true)));
        let mut both = bytes;
        for offset in 0..256 {
            both[511 - offset] |= both[offset];
            both[offset] = both[511 - offset];
        }
        assert_eq!(ordered(&both).unwrap_err().found, "bytes that could be in either order");
    }

    #[test]
    fn the_error_names_the_byte_that_is_impossible() {
        let with = |changes: &[(usize, u8)]| {
            let mut bytes = register();
            changes.iter().for_each(|&(offset, value)| bytes[offset] = value);
            fault(&bytes).map(|fault| (fault.offset, fault.found))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[(192, 0x0a)]), Some((192, "0x0a".into())));
        assert_eq!(with(&[(194, 4)]), Some((194, "0x04".into())));
        assert_eq!(with(&[(196, 0)]), Some((196, "0x00".into())));
        let noise: Vec<_> = (309..326).map(|offset| (offset, 1)).collect();
        assert_eq!(with(&noise), Some((309, "17 of them set".into())));
        assert_eq!(with(&noise[1..]), None);
        assert_eq!(fault(&register()[..197]), None);
        assert_eq!(fault(&register()[..196]).map(|fault| fault.offset), Some(196));
        assert_eq!(fault(&[]).map(|fault| fault.found), Some("nothing".into()));
    }

    #[test]
    fn other_bytes_are_named() {
        let mut mbr = [0x11; 512];
        mbr[510..].copy_from_slice(&[0x55, 0xaa]);
        for (bytes, name) in [
            (&[0; 512][..], "512 bytes of 0x00"),
            (&[0xff; 512], "512 bytes of 0xff"),
            (&mbr, "a boot sector"),
            (&[0xfa, 0xb8, 0, 0x10, 0x8e, 0xd0, 0xbc, 0, 0xb0, 0xb8, 0, 0, 0x8e, 0xd8, 0x8e, 0xc0], "boot code"),
        ] {
            assert!(known_junk(bytes).unwrap().starts_with(name), "{name}");
        }
        assert_eq!(known_junk(&register()), None);
    }
}
