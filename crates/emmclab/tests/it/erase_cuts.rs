//! Power cuts of an erase at every step of the flash, and before and after every command: what the result calls erased
//! is erased, what it does not name is unchanged, and the resumed erase completes it.

use emmc_analysis::erase::{self, Ended, EraseKind, Geometry, Reach, in_chunks};
use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions, WriteFlags};
use emmc_card::nand::{FaultPlan, NO_UNIT, StoredContent};
use emmc_port::{Approved, ApprovedErase, CommandPort, Consent, PortError};
use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_sim::CommandTarget;
use emmc_units::Instant;

use crate::support::virtual_cards::profile;

const MIB: u64 = 1 << 20;
/// Content lies from 0 to here.
const FILLED: u64 = 4 * MIB;
/// What is erased: whole erase groups.
const RANGES: [[u64; 2]; 2] = [[MIB, 2 * MIB], [5 * MIB / 2, 7 * MIB / 2]];
const CHUNK: u64 = MIB / 2;
const UNIT: u64 = 4096;

/// A card with content of which each unit says where it lies.
fn filled() -> CommandTarget {
    let mut card = Card::new(profile(), DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    let mut now = Instant::START;
    for at in (0..FILLED).step_by(MIB as usize) {
        let data: Vec<u8> = (0..MIB / UNIT).flat_map(|unit| content(at / UNIT + unit)).collect();
        let flags = WriteFlags { reliable: false, force: true };
        let done = card.device_mut().write(Area::User, at / 512, (MIB / 512) as u32, flags, Some(&data), now);
        now = done.unwrap().done;
    }
    now = card.device_mut().flush(now).unwrap().done;
    CommandTarget::new(card, now).unwrap()
}

fn content(unit: u64) -> Vec<u8> {
    (unit + 1).to_le_bytes().repeat(UNIT as usize / 8)
}

/// What each unit of the filled part reads as: its content, erased, or something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Content,
    Erased,
    Other,
}

fn look(target: CommandTarget) -> (CommandTarget, Vec<Found>) {
    let (mut card, now) = target.into_card();
    let found = (0..FILLED / UNIT).map(|unit| {
        let mut out = vec![0xaa; UNIT as usize];
        card.device_mut().read(Area::User, unit * 8, 8, Some(&mut out), now).unwrap();
        match out {
            out if out == content(unit) => Found::Content,
            out if out.iter().all(|byte| *byte == 0) => Found::Erased,
            _ => Found::Other,
        }
    });
    let found = found.collect();
    (CommandTarget::new(card, now).unwrap(), found)
}

fn geometry(target: &CommandTarget) -> Geometry {
    Geometry::of(&target.card().device().card_data("card")).unwrap()
}

fn run(port: &mut dyn CommandPort, geometry: &Geometry, kind: EraseKind, from: u64) -> Reach {
    let mut erase = |chunk| erase::on_card(port, kind, geometry, chunk, Consent::CONTENT_LOST);
    in_chunks(&RANGES, from, CHUNK, &mut erase, &mut |_| true)
}

fn is_in(unit: u64, ranges: &[[u64; 2]]) -> bool {
    ranges.iter().any(|[from, to]| (*from..*to).contains(&(unit * UNIT)))
}

/// Compares the card after a cut with what the result says of it.
fn check(kind: EraseKind, reach: &Reach, found: &[Found], say: &str) {
    for (unit, found) in (0..).zip(found) {
        let at = unit * UNIT;
        let is_unsure = reach.unsure.is_some_and(|[from, to]| (from..to).contains(&at));
        let is_erased = is_in(unit, &RANGES) && at < reach.to_bytes;
        match found {
            Found::Content if is_erased => {
                assert_eq!(kind, EraseKind::Discard, "{say}: byte {at} is named as erased");
            }
            Found::Content => {}
            Found::Erased => assert!(is_erased || is_unsure, "{say}: byte {at} is lost and not named"),
            Found::Other => panic!("{say}: byte {at} holds neither"),
        }
    }
}

const KINDS: [EraseKind; 5] =
    [EraseKind::Discard, EraseKind::Trim, EraseKind::Erase, EraseKind::SecureTrim, EraseKind::SecureErase];

#[test]
fn a_cut_at_every_step_of_the_flash_is_reported_and_resumed() {
    let mut cuts = 0;
    for kind in KINDS {
        let mut whole = filled();
        let geometry = geometry(&whole);
        let before = whole.card().device().nand().steps();
        assert_eq!(run(&mut whole, &geometry, kind, 0).ended, Ended::Complete, "{kind:?}");
        let steps = whole.card().device().nand().steps() - before;
        // A discard is noted in memory only: a card may forget it.
        assert!(steps > 0 || kind == EraseKind::Discard, "{kind:?}: no step of the flash");
        // Every step, or 24 of a kind that moves a lot.
        for step in (1..=steps).step_by(steps.div_ceil(24).max(1) as usize) {
            let (mut card, now) = filled().into_card();
            card.device_mut().nand_mut().arm(FaultPlan { step: before + step, seed: step });
            let mut target = CommandTarget::new(card, now).unwrap();
            let reach = run(&mut target, &geometry, kind, 0);
            let say = format!("{kind:?}, cut at step {step} of {steps}: {reach:?}");
            target.power_cycle().unwrap();
            let (mut target, found) = look(target);
            check(kind, &reach, &found, &say);
            let rest = run(&mut target, &geometry, kind, reach.to_bytes);
            assert_eq!((rest.ended.clone(), rest.to_bytes), (Ended::Complete, RANGES[1][1]), "{say}: {rest:?}");
            let (_, found) = look(target);
            for (unit, found) in (0..).zip(&found) {
                let is_erased = is_in(unit, &RANGES);
                let is_kept = kind == EraseKind::Discard && *found == Found::Content;
                assert!(is_kept || is_erased == (*found == Found::Erased), "{say}: unit {unit} after resuming");
            }
            cuts += u32::from(matches!(reach.ended, Ended::Lost(_)));
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 20, "{cuts}");
}

/// A card whose power is lost before, or after, the command of this number.
struct CutPort<'a> {
    card: &'a mut CommandTarget,
    left: u32,
    is_after: bool,
}

impl CutPort<'_> {
    fn run(&mut self, act: impl FnOnce(&mut CommandTarget) -> Result<(), PortError>) -> Result<(), PortError> {
        let lost = Err(PortError::Lost { opcode: 38, reason: "power is lost".into() });
        if self.left == 0 {
            return lost;
        }
        self.left -= 1;
        match (self.left, self.is_after) {
            (0, true) => act(self.card).and(lost),
            (0, false) => lost,
            _ => act(self.card),
        }
    }
}

impl CommandPort for CutPort<'_> {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        self.card.ext_csd()
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        self.card.protection(address)
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        self.run(|card| card.send(command))
    }

    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        self.run(|card| card.erase(command))
    }
}

#[test]
fn a_cut_before_and_after_every_command_is_reported() {
    for kind in [EraseKind::Trim, EraseKind::Erase, EraseKind::SecureTrim] {
        for (number, is_after) in (1..=8).flat_map(|number| [(number, false), (number, true)]) {
            let mut target = filled();
            let geometry = geometry(&target);
            let mut port = CutPort { card: &mut target, left: number, is_after };
            let reach = run(&mut port, &geometry, kind, 0);
            let say = format!("{kind:?}, command {number}, after: {is_after}: {reach:?}");
            // Four chunks; a secure trim takes two commands for each.
            let commands = if kind == EraseKind::SecureTrim { 8 } else { 4 };
            assert_eq!(matches!(reach.ended, Ended::Lost(_)), number <= commands, "{say}");
            target.power_cycle().unwrap();
            let (_, found) = look(target);
            check(kind, &reach, &found, &say);
        }
    }
}

/// The copies of erased units that the flash still holds.
fn copies(target: &CommandTarget) -> usize {
    let nand = target.card().device().nand();
    let blocks = 0..nand.blocks().len() as u32;
    let units = blocks.flat_map(|block| nand.spare(block).to_vec());
    units.filter(|unit| *unit != NO_UNIT && is_in(u64::from(*unit), &RANGES)).count()
}

#[test]
fn a_trim_leaves_copies_in_the_flash_and_a_sanitize_removes_them() {
    let mut target = filled();
    let geometry = geometry(&target);
    let before = copies(&target);
    assert!(before >= 512, "{before} copies");
    assert_eq!(run(&mut target, &geometry, EraseKind::Trim, 0).ended, Ended::Complete);
    assert_eq!(copies(&target), before, "a trim removes nothing from the flash yet");
    assert!(matches!(erase::sanitize(&mut target, Consent::REVERSIBLE), Ended::Refused(_)));
    assert_eq!(copies(&target), before);
    assert_eq!(erase::sanitize(&mut target, Consent::CONTENT_LOST), Ended::Complete);
    assert_eq!(copies(&target), 0);
    let (_, found) = look(target);
    for (unit, found) in (0..).zip(&found) {
        assert_eq!(*found == Found::Erased, is_in(unit, &RANGES), "unit {unit}");
    }
}

#[test]
fn a_cut_at_every_step_of_a_sanitize_loses_nothing_that_is_mapped() {
    let prepare = || {
        let mut target = filled();
        let geometry = geometry(&target);
        assert_eq!(run(&mut target, &geometry, EraseKind::Trim, 0).ended, Ended::Complete);
        target
    };
    let mut whole = prepare();
    let before = whole.card().device().nand().steps();
    assert_eq!(erase::sanitize(&mut whole, Consent::CONTENT_LOST), Ended::Complete);
    let steps = whole.card().device().nand().steps() - before;
    let mut cuts = 0;
    for step in (1..=steps).step_by(steps.div_ceil(48) as usize) {
        let (mut card, now) = prepare().into_card();
        card.device_mut().nand_mut().arm(FaultPlan { step: before + step, seed: step });
        let mut target = CommandTarget::new(card, now).unwrap();
        let ended = erase::sanitize(&mut target, Consent::CONTENT_LOST);
        cuts += u32::from(matches!(ended, Ended::Lost(_)));
        target.power_cycle().unwrap();
        let (mut target, found) = look(target);
        for (unit, found) in (0..).zip(&found) {
            let expected = if is_in(unit, &RANGES) { Found::Erased } else { Found::Content };
            assert_eq!(*found, expected, "cut at step {step} of {steps}: unit {unit}");
        }
        assert_eq!(erase::sanitize(&mut target, Consent::CONTENT_LOST), Ended::Complete, "step {step}");
        assert_eq!(copies(&target), 0, "step {step}");
    }
    assert!(cuts > 3, "{cuts} of {steps} steps");
}
