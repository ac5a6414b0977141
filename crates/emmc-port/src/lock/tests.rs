use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::r1::State;

use super::*;

fn password(text: &str) -> Password {
    Password::from_file(text.as_bytes()).unwrap()
}

fn serial() -> Consent {
    Consent::permanent("1", 1).unwrap()
}

/// A card by the standard's rules, whose answers can be spoilt.
#[derive(Default)]
struct Script {
    password: Vec<u8>,
    is_locked: bool,
    sent: Vec<u8>,
    /// The request of this number gets no answer, after the card has taken it or not.
    lost: Option<(usize, bool)>,
    /// Each request ends at the host's time limit, although the card takes it.
    doubts: bool,
    /// The card says that it took everything, and does nothing.
    pretends: bool,
}

impl Script {
    fn apply(&mut self, block: &[u8; BLOCK_BYTES]) -> bool {
        let own = self.password.clone();
        let given = &block[2..2 + usize::from(block[1])];
        let is_right = !own.is_empty() && given == own;
        match block[0] {
            SET_PWD => {
                let new = given.strip_prefix(&own[..]).filter(|new| (1..=16).contains(&new.len()));
                if let Some(new) = new {
                    self.password = new.to_vec();
                }
                new.is_some()
            }
            CLR_PWD if is_right => {
                (self.password, self.is_locked) = (Vec::new(), false);
                true
            }
            LOCK_UNLOCK if is_right && !self.is_locked => {
                self.is_locked = true;
                true
            }
            0 if is_right && self.is_locked => {
                self.is_locked = false;
                true
            }
            ERASE if self.is_locked => {
                (self.password, self.is_locked) = (Vec::new(), false);
                true
            }
            _ => false,
        }
    }
}

impl LockPort for Script {
    fn status(&mut self) -> Result<R1, PortError> {
        let ready = R1::in_state(State::Tran).with(R1::READY_FOR_DATA);
        Ok(if self.is_locked { ready.with(R1::IS_LOCKED) } else { ready })
    }

    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError> {
        self.sent.push(command.block()[0]);
        let lost = self.lost.filter(|(number, _)| *number == self.sent.len());
        let is_taken = lost.is_none_or(|(_, taken)| taken);
        let is_good = self.pretends || !is_taken || self.apply(command.block());
        if lost.is_some() {
            return Err(PortError::Lost { opcode: 42, reason: "power is lost".into() });
        }
        let status = self.status()?;
        let status = if is_good { status } else { status.with(R1::LOCK_UNLOCK_FAILED) };
        Ok(LockAnswer { status, doubt: self.doubts.then(|| "timed out".into()) })
    }
}

fn run(card: &mut Script, order: &Order) -> Worked {
    let consent = if *order == Order::ForceErase { Consent::CONTENT_LOST } else { serial() };
    carry_out(card, order, consent, &mut || true)
}

fn set(old: Option<&str>, new: &str, lock: bool) -> Order {
    Order::Set { old: old.map(password), new: password(new), lock }
}

fn refused(worked: &Worked) -> &str {
    let Ended::Refused(reason) = &worked.ended else { panic!("{worked:?}") };
    reason
}

#[test]
fn a_password_is_1_to_16_bytes_from_a_file() {
    for (content, bytes) in [
        (&b"a"[..], Some(&b"a"[..])),
        (b"secret\n", Some(b"secret")),
        (b"secret\r\n", Some(b"secret")),
        (b" two words ", Some(b" two words ")),
        (b"line\n\n", Some(b"line\n")),
        (&[0; 16], Some(&[0; 16])),
        (b"0123456789abcdef\n", Some(b"0123456789abcdef")),
        (b"0123456789abcdefg", None),
        (b"", None),
        (b"\n", None),
        (b"\r\n", None),
    ] {
        let found = Password::from_file(content);
        assert_eq!(found.as_ref().ok().map(Password::bytes), bytes, "{content:?}");
        let said = format!("{found:?} {}", found.as_ref().err().map_or(String::new(), ToString::to_string));
        assert!(!said.contains("secret\"") && !said.contains("0123"), "{said}");
    }
}

#[test]
fn requests_have_the_standards_form() {
    let [old, new] = ["old", "newer"].map(password);
    let block = |command: &LockCommand, bytes: usize| command.block()[..bytes].to_vec();
    assert_eq!(block(&LockCommand::set(None, &new, serial()).unwrap(), 8), b"\x01\x05newer\0");
    assert_eq!(block(&LockCommand::set(Some(&old), &new, serial()).unwrap(), 11), b"\x01\x08oldnewer\0");
    assert_eq!(block(&LockCommand::clear(&old), 6), b"\x02\x03old\0");
    assert_eq!(block(&LockCommand::lock(&old), 6), b"\x04\x03old\0");
    assert_eq!(block(&LockCommand::unlock(&old), 6), b"\x00\x03old\0");
    let erase = LockCommand::force_erase(Consent::CONTENT_LOST).unwrap();
    assert_eq!((block(&erase, 4), erase.timeout_ms()), (b"\x08\0\0\0".to_vec(), 180_000));
    assert!(!format!("{:?}", LockCommand::clear(&old)).contains("old"));
}

#[test]
fn nothing_is_sent_without_consent_to_what_is_lost() {
    let new = password("new");
    for consent in [Consent::REVERSIBLE, Consent::CONTENT_LOST] {
        assert!(LockCommand::set(None, &new, consent).is_err());
    }
    for consent in [Consent::REVERSIBLE, serial()] {
        assert!(LockCommand::force_erase(consent).is_err());
    }
    let mut card = Script::default();
    let worked = carry_out(&mut card, &set(None, "new", true), Consent::REVERSIBLE, &mut || true);
    assert!(matches!(worked.ended, Ended::Refused(_)) && card.sent.is_empty(), "{worked:?}");
    let stopped = carry_out(&mut card, &set(None, "new", true), serial(), &mut || false);
    assert!(stopped.ended == Ended::Stopped && card.sent.is_empty(), "{stopped:?}");
    assert_eq!(stopped.is_set, Some(false));
}

#[test]
fn a_password_is_set_proven_replaced_and_removed() {
    for doubts in [false, true] {
        let mut card = Script { doubts, ..Script::default() };
        let worked = run(&mut card, &set(None, "one", false));
        // After SET_PWD nothing shows, so a host's error leaves it open.
        if doubts {
            assert!(matches!(worked.ended, Ended::Lost(_)) && worked.is_set.is_none(), "{worked:?}");
            card.doubts = false;
            assert_eq!(run(&mut card, &set(Some("one"), "one", false)).ended, Ended::Done);
            card.doubts = true;
        } else {
            assert_eq!((worked.ended, worked.is_set, worked.taken), (Ended::Done, Some(true), 3));
        }
        assert_eq!((card.password.as_slice(), card.is_locked), (&b"one"[..], false));
        assert_eq!(run(&mut card, &Order::Lock(password("one"))).ended, Ended::Done);
        assert_eq!(run(&mut card, &Order::Lock(password("one"))).ended, Ended::Already);
        card.doubts = false;
        assert_eq!(run(&mut card, &set(Some("one"), "two", true)).is_set, Some(true));
        assert_eq!((card.password.as_slice(), card.is_locked), (&b"two"[..], true));
        card.doubts = doubts;
        assert_eq!(run(&mut card, &Order::Unlock(password("two"))).ended, Ended::Done);
        assert_eq!(run(&mut card, &Order::Unlock(password("two"))).ended, Ended::Already);
        card.doubts = false;
        assert_eq!(run(&mut card, &Order::Clear(password("two"))).ended, Ended::Done);
        assert!(card.password.is_empty());
        assert_eq!(run(&mut card, &set(None, "three", true)).ended, Ended::Done);
        assert!(card.is_locked);
        card.doubts = doubts;
        let erased = run(&mut card, &Order::ForceErase);
        assert_eq!((erased.ended, card.password.as_slice()), (Ended::Done, &b""[..]));
    }
}

#[test]
fn a_refusal_names_only_what_can_be_the_cause() {
    let mut card = Script::default();
    run(&mut card, &set(None, "one", false));
    for (order, reason) in [
        (set(None, "two", false), "the card has a password already, which is needed too"),
        (set(Some("no"), "two", false), "the old password is not the card's, or the card has none"),
        (Order::Lock(password("no")), "the password is not the card's, or the card has none"),
        (Order::Clear(password("no")), "the password is not the card's, or the card has none"),
        (Order::ForceErase, "the card is not locked: `erase` erases it"),
    ] {
        let worked = run(&mut card, &order);
        assert_eq!((refused(&worked), worked.taken), (reason, 0), "{order:?}");
        assert_eq!((card.password.as_slice(), card.is_locked), (&b"one"[..], false));
    }
    run(&mut card, &Order::Lock(password("one")));
    for (order, reason) in [
        (set(None, "two", false), "the card is locked, so it has a password, which is needed"),
        (set(Some("no"), "two", false), "the old password is not the card's"),
        (Order::Unlock(password("no")), "the password is not the card's"),
        (Order::Clear(password("no")), "the password is not the card's"),
    ] {
        assert_eq!(refused(&run(&mut card, &order)), reason, "{order:?}");
        assert_eq!((card.password.as_slice(), card.is_locked), (&b"one"[..], true));
    }
}

#[test]
fn a_card_that_only_pretends_is_a_surprise() {
    let mut card = Script { pretends: true, ..Script::default() };
    let worked = run(&mut card, &set(None, "one", false));
    assert_eq!(worked.ended, Ended::Surprise("the card is unlocked, and not locked".into()));
    assert_eq!(worked.is_set, None);
}

#[test]
fn a_lost_answer_is_never_taken_for_a_result() {
    for (number, taken) in [(1, false), (1, true), (2, false), (2, true), (3, false), (3, true)] {
        let mut card = Script { lost: Some((number, taken)), ..Script::default() };
        let worked = run(&mut card, &set(None, "one", false));
        assert!(matches!(worked.ended, Ended::Lost(_)), "{worked:?}");
        assert_eq!((worked.is_locked, worked.taken), (None, number - 1), "{worked:?}");
        if let Some(is_set) = worked.is_set {
            assert_eq!(is_set, !card.password.is_empty(), "{worked:?}");
        }
        assert_eq!(worked.is_set.is_some(), number > 2, "{worked:?}");
    }
}

#[test]
fn registers_say_what_a_card_has() {
    assert_eq!(LockRegisters::of(None, None), LockRegisters { supported: None, disabled: None });
    let mut bytes = [0; EXT_CSD_BYTES];
    for (raw, disabled) in [(0, false), (0x7f, false), (0x80, true)] {
        bytes[reg::USER_WP] = raw;
        assert_eq!(LockRegisters::of(None, Some(&ExtCsd::from_bytes(bytes))).disabled, Some(disabled));
    }
}
