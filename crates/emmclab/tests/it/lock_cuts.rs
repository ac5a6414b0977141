//! Power cuts of CMD42 before and after every request, and at steps of the flash within a forced erase: what the result
//! says is so, the card comes up locked by a password that is known, and no content that it locked can be read without
//! it.

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions, WriteFlags};
use emmc_card::nand::{FaultPlan, StoredContent};
use emmc_port::lock::{Ended, LockAnswer, LockCommand, LockPort, Order, Password, Worked, carry_out};
use emmc_port::{Consent, PortError};
use emmc_regs::r1::R1;
use emmc_sim::CommandTarget;
use emmc_units::Instant;

use crate::support::virtual_cards::profile;

const UNITS: u64 = 512;
const SECTORS: u32 = 8;

fn password(text: &str) -> Password {
    Password::from_file(text.as_bytes()).unwrap()
}

/// A card with 2 MiB of content.
fn filled() -> CommandTarget {
    let mut card = Card::new(profile(), DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    let flags = WriteFlags { reliable: false, force: true };
    let data = vec![0x5a; (UNITS * 4096) as usize];
    let done = card.device_mut().write(Area::User, 0, UNITS as u32 * SECTORS, flags, Some(&data), Instant::START);
    let now = card.device_mut().flush(done.unwrap().done).unwrap().done;
    CommandTarget::new(card, now).unwrap()
}

/// Units that still hold their content, and those that are erased.
fn look(target: CommandTarget) -> (CommandTarget, u64, u64) {
    let (mut card, now) = target.into_card();
    let (mut content, mut erased) = (0, 0);
    for unit in 0..UNITS {
        let mut out = vec![0xaa; 4096];
        card.device_mut().read(Area::User, unit * u64::from(SECTORS), SECTORS, Some(&mut out), now).unwrap();
        content += u64::from(out.iter().all(|byte| *byte == 0x5a));
        erased += u64::from(out.iter().all(|byte| *byte == 0));
    }
    (CommandTarget::new(card, now).unwrap(), content, erased)
}

fn run(port: &mut dyn LockPort, order: &Order) -> Worked {
    let consent = if *order == Order::ForceErase { Consent::CONTENT_LOST } else { Consent::permanent("1", 1).unwrap() };
    carry_out(port, order, consent, &mut || true)
}

fn set(old: Option<&str>, new: &str, lock: bool) -> Order {
    Order::Set { old: old.map(password), new: password(new), lock }
}

/// The password of a card that has just been powered on, which it keeps.
fn password_of(card: &mut CommandTarget) -> Option<&'static str> {
    if !card.card().is_locked() {
        return None;
    }
    let found = ["old", "new"].into_iter().find(|text| run(card, &Order::Unlock(password(text))).ended == Ended::Done);
    Some(found.expect("neither the old password nor the new one"))
}

/// A card whose power is lost before, or after, the request of this number.
struct CutPort<'a> {
    card: &'a mut CommandTarget,
    left: u32,
    is_after: bool,
}

impl LockPort for CutPort<'_> {
    fn status(&mut self) -> Result<R1, PortError> {
        self.card.status()
    }

    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return self.card.lock(command);
        }
        if self.is_after {
            self.card.lock(command)?;
        }
        Err(PortError::Lost { opcode: 42, reason: "power is lost".into() })
    }
}

/// Has the card an old password; is it locked; what is wanted; what the password is afterwards, if it is taken.
const CASES: [(bool, bool, &str); 9] = [
    (false, false, "set"),
    (false, false, "set and lock"),
    (true, false, "replace"),
    (true, true, "replace"),
    (true, true, "replace and lock"),
    (true, false, "clear"),
    (true, true, "clear"),
    (true, false, "lock"),
    (true, true, "unlock"),
];

fn order(name: &str) -> (Order, Option<&'static str>) {
    match name {
        "set" => (set(None, "new", false), Some("new")),
        "set and lock" => (set(None, "new", true), Some("new")),
        "replace" => (set(Some("old"), "new", false), Some("new")),
        "replace and lock" => (set(Some("old"), "new", true), Some("new")),
        "clear" => (Order::Clear(password("old")), None),
        "lock" => (Order::Lock(password("old")), Some("old")),
        _ => (Order::Unlock(password("old")), Some("old")),
    }
}

fn prepared(has_old: bool, is_locked: bool) -> CommandTarget {
    let mut card = filled();
    if has_old {
        assert_eq!(run(&mut card, &set(None, "old", is_locked)).ended, Ended::Done);
    }
    card
}

#[test]
fn a_cut_before_and_after_every_request_leaves_a_password_that_is_known() {
    let mut cuts = 0;
    for (has_old, is_locked, name) in CASES {
        let (order, wanted) = order(name);
        for (number, is_after) in (1..).flat_map(|number| [(number, false), (number, true)]) {
            let mut card = prepared(has_old, is_locked);
            let worked = run(&mut CutPort { card: &mut card, left: number, is_after }, &order);
            let say = format!("{name}, old {has_old}, locked {is_locked}, {number}, after {is_after}: {worked:?}");
            card.power_cycle().unwrap();
            let found = password_of(&mut card);
            let before = has_old.then_some("old");
            assert!(found == before || found == wanted, "{say}: {found:?}");
            if let Some(is_set) = worked.is_set {
                assert_eq!(is_set, found == Some("new"), "{say}: {found:?}");
            }
            if !matches!(worked.ended, Ended::Lost(_)) {
                assert_eq!((worked.ended.clone(), found), (Ended::Done, wanted), "{say}");
                break;
            }
            // The page's way on: the same again, with the new password as the old one if the card has it.
            let again = match (&order, found) {
                (Order::Set { lock, .. }, found) => set(found, "new", *lock),
                (Order::Clear(_), None) => Order::Unlock(password("old")),
                (order, _) => order.clone(),
            };
            let again = run(&mut card, &again);
            assert!(matches!(again.ended, Ended::Done | Ended::Already), "{say}: {again:?}");
            card.power_cycle().unwrap();
            assert_eq!(password_of(&mut card), wanted, "{say}");
            let (_, content, _) = look(card);
            assert_eq!(content, UNITS, "{say}");
            cuts += 1;
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 20, "{cuts}");
}

#[test]
fn a_cut_of_a_forced_erase_never_opens_a_card_with_content() {
    let mut whole = prepared(true, true);
    let before = whole.card().device().nand().steps();
    let done = run(&mut whole, &Order::ForceErase);
    assert_eq!((done.ended, done.is_locked), (Ended::Done, Some(false)));
    let steps = whole.card().device().nand().steps() - before;
    let (_, content, erased) = look(whole);
    assert_eq!((content, erased), (0, UNITS));
    let mut cuts = 0;
    for step in (1..=steps).step_by(steps.div_ceil(40).max(1) as usize) {
        let (mut card, now) = prepared(true, true).into_card();
        card.device_mut().nand_mut().arm(FaultPlan { step: before + step, seed: step });
        let mut card = CommandTarget::new(card, now).unwrap();
        let worked = run(&mut card, &Order::ForceErase);
        let say = format!("cut at step {step} of {steps}: {worked:?}");
        card.power_cycle().unwrap();
        let is_locked = card.card().is_locked();
        let (mut card, content, _) = look(card);
        assert!(is_locked || content == 0, "{say}: not locked, and {content} units can be read");
        if is_locked {
            assert_eq!(run(&mut card, &Order::ForceErase).ended, Ended::Done, "{say}");
            assert_eq!(look(card).1, 0, "{say}");
        }
        cuts += u32::from(matches!(worked.ended, Ended::Lost(_)));
    }
    for is_after in [false, true] {
        let mut card = prepared(true, true);
        let worked = run(&mut CutPort { card: &mut card, left: 1, is_after }, &Order::ForceErase);
        assert!(matches!(worked.ended, Ended::Lost(_)), "{worked:?}");
        card.power_cycle().unwrap();
        assert_eq!(card.card().is_locked(), !is_after);
        assert_eq!(look(card).1, if is_after { 0 } else { UNITS });
    }
    println!("{cuts} cuts at {steps} steps");
    assert!(cuts > 0);
}
