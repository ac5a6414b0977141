//! The lines that Linux logs when it detects a card: bus mode, name, size, boot areas.
//!
//! Source: `mmc_add_card()` in drivers/mmc/core/bus.c, `mmc_blk_alloc_req()` and `mmc_blk_alloc_part()` in block.c.
//! Absent on purpose: errors of the bus, which say more about the board than about the card.

use emmc_regs::CardKind;
use emmc_units::Bytes;

use super::text::{Text, excerpt};
use crate::{CardData, Disk, Format, SourceError, StatedSize};

/// Bytes of which every boot area and RPMB is a multiple.
const AREA_STEP_BYTES: u64 = 128 << 10;

const UNITS: [(&str, u32); 5] = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// What one line says.
#[derive(Debug, PartialEq)]
enum Said<'t> {
    /// `mmc0: new HS400 Enhanced strobe MMC card at address 0001`
    Card { host: &'t str, mode: &'t str, kind: CardKind, class: &'t str, address: u16 },
    /// `mmcblk0: mmc0:0001 DG4008 7.28 GiB`
    Disk { disk: &'t str, host: &'t str, name: &'t str, size: Size<'t>, read_only: bool },
    /// `mmc0: Command Queue Engine enabled`
    Queue { host: &'t str },
}

/// A size of three digits, rounded.
#[derive(Debug, PartialEq)]
struct Size<'t> {
    text: &'t str,
    min: u64,
    max: u64,
}

/// Whether any line is one that Linux logs about a memory card.
pub(super) fn recognises(text: &Text) -> bool {
    text.lines().any(|line| matches!(said(line.text), Some(Said::Card { .. } | Said::Disk { .. })))
}

/// Reads the kernel's values of the only card in the log.
///
/// Errors: two cards in one log.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::KernelLog);
    let mut one: Option<&str> = None;
    let mut named: Option<&str> = None;
    for line in text.lines() {
        let Some(said) = said(line.text) else { continue };
        let (Said::Card { host, .. } | Said::Disk { host, .. } | Said::Queue { host }) = said;
        if matches!(said, Said::Queue { .. }) && one.is_none_or(|one| one == host) {
            data.note(format!("line {}: the kernel switched the command queue on", line.number));
            continue;
        }
        match one {
            Some(one) if one != host => {
                let expected = format!("one card, {one}'s as before; keep its lines, as with grep -e {one}: -e mmcblk");
                return Err(text.malformed(line.number, expected, format!("a card of {host}")));
            }
            _ => one = Some(host),
        }
        match said {
            Said::Card { mode, kind, class, address, .. } => {
                data.kind = Some(kind);
                data.rca = Some(address);
                // A card that is found again, after sleep or an error, may run in another mode: the last one counts.
                data.stated.bus_mode = Some(if mode.is_empty() { "legacy".into() } else { mode.to_string() });
                if class != "MMC" && class != "SD" {
                    data.note(format!("the kernel calls the card {class}"));
                }
            }
            Said::Disk { disk, name, size, read_only, .. } => {
                match named {
                    Some(known) if known != name => {
                        let expected = format!("one card, named {} before", excerpt(known));
                        return Err(text.malformed(line.number, expected, excerpt(name)));
                    }
                    _ => named = Some(name),
                }
                take_disk(&mut data, disk, &size, read_only);
            }
            Said::Queue { .. } => {}
        }
    }
    data.stated.name = named.map(String::from);
    Ok(data)
}

fn take_disk(data: &mut CardData, name: &str, size: &Size, read_only: bool) {
    let is_user = name.strip_prefix("mmcblk").is_some_and(|rest| rest.bytes().all(|letter| letter.is_ascii_digit()));
    let bytes = if is_user {
        let (min, max) = (Bytes(size.min), Bytes(size.max));
        data.stated.user_capacity = Some(StatedSize { text: size.text.into(), min, max });
        None
    } else {
        // Of boot areas and RPMB the rounded size leaves one multiple of their unit.
        let (first, last) = (size.min.div_ceil(AREA_STEP_BYTES), size.max / AREA_STEP_BYTES);
        let small = name.contains("boot") || name.ends_with("rpmb");
        (first == last && small).then_some(Bytes(first * AREA_STEP_BYTES))
    };
    if data.blocks.disks.iter().all(|disk| disk.name != name) {
        let read_only = read_only.then_some(true);
        data.blocks.disks.push(Disk { name: name.into(), bytes, read_only, partitions: Vec::new() });
    }
}

fn said(line: &str) -> Option<Said<'_>> {
    // Before the message stand times, hosts and levels, each with its own colons and brackets.
    let starts = line.match_indices("mmc").map(|(at, _)| at).take(6);
    starts
        .filter(|&at| at == 0 || line.get(..at).is_some_and(|before| before.ends_with([' ', ']', '>', '\t'])))
        .find_map(|at| {
            let message = line.get(at..)?.trim_end();
            let (source, rest) = message.split_once(": ")?;
            match source.strip_prefix("mmcblk") {
                Some(disk) if disk.starts_with(|letter: char| letter.is_ascii_digit()) => found_disk(source, rest),
                None if is_host(source) => found_card(source, rest),
                _ => None,
            }
        })
}

fn is_host(name: &str) -> bool {
    let number = name.strip_prefix("mmc");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit()))
}

/// `new HS400 Enhanced strobe MMC card at address 0001`
fn found_card<'t>(host: &'t str, rest: &'t str) -> Option<Said<'t>> {
    if rest == "Command Queue Engine enabled" {
        return Some(Said::Queue { host });
    }
    let (what, address) = rest.strip_prefix("new ")?.split_once(" card at address ")?;
    let address =
        Some(address).filter(|digits| digits.len() == 4).and_then(|digits| u16::from_str_radix(digits, 16).ok())?;
    let (mode, class) = what.rsplit_once(' ').unwrap_or(("", what));
    let kind = match class {
        "MMC" => CardKind::Emmc,
        "SD" | "SDHC" | "SDXC" | "SDUC" => CardKind::Sd,
        _ => return None,
    };
    Some(Said::Card { host, mode, kind, class, address })
}

/// `mmc0:0001 DG4008 partition 1 4.00 MiB, chardev (249:0)`; a name may have blanks or end with one.
fn found_disk<'t>(disk: &'t str, rest: &'t str) -> Option<Said<'t>> {
    let (address, rest) = rest.split_once(' ')?;
    let (host, number) = address.split_once(':').filter(|(host, _)| is_host(host))?;
    if number.len() != 4 || !number.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.split_once(", chardev").map_or(rest, |(rest, _)| rest);
    let (rest, read_only) = rest.strip_suffix(" (ro)").map_or((rest, false), |rest| (rest, true));
    let unit_at = rest.rfind(' ')?;
    let number_at = rest.get(..unit_at)?.rfind(' ')?;
    let size = size(rest.get(number_at + 1..)?)?;
    let name = rest.get(..number_at)?;
    let name = name.rsplit_once(" partition ").filter(|(_, n)| n.parse::<u8>().is_ok()).map_or(name, |(name, _)| name);
    Some(Said::Disk { disk, host, name: name.trim(), size, read_only })
}

/// `7.28 GiB`: three digits, cut off by older kernels and rounded by newer ones.
fn size(text: &str) -> Option<Size<'_>> {
    let (number, unit) = text.split_once(' ')?;
    let (_, shift) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|letter| letter.is_ascii_digit());
    if whole.is_empty() || whole.len() > 4 || fraction.len() > 2 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let value: u128 = format!("{whole}{fraction}").parse().ok()?;
    let unit = 1u128 << shift;
    let min = (2 * value).saturating_sub(1) * unit / (2 * scale);
    let max = ((value + 1) * unit).div_ceil(scale).saturating_sub(1);
    // Whole bytes and small numbers are exact.
    let exact = fraction.is_empty() && (unit == 1 || whole.len() < 3);
    let (min, max) = if exact { (value * unit, value * unit) } else { (min, max) };
    Some(Size { text, min: u64::try_from(min).ok()?, max: u64::try_from(max).ok()? })
}

#[cfg(test)]
mod tests;
