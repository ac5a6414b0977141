//! Invariants of a card, whatever the host does.

use emmc_card::card::{Card, Reply};
use emmc_regs::command::{Command, DataDirection, Response, ResponseKind};
use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, field_at};
use emmc_regs::r1::State;
use emmc_regs::{BitField, CardKind};
use emmc_units::Instant;

/// One-time fields of the CSD: their bits go from 0 to 1.
const CSD_ONE_TIME: [&BitField; 4] = [mmc::FILE_FORMAT_GRP, mmc::COPY, mmc::PERM_WRITE_PROTECT, mmc::FILE_FORMAT];

/// The last observations of a card.
pub struct Oracle {
    factory: [u8; EXT_CSD_BYTES],
    seen: [u8; EXT_CSD_BYTES],
    csd: [u8; 16],
    erases: u64,
    bad: u32,
    rpmb: Option<u32>,
    /// Power was lost: flash operations that were scheduled for later did not happen, and caused no wear.
    pub power_went: bool,
}

impl Oracle {
    pub fn new(card: &mut Card) -> Self {
        let registers = card.registers();
        let mut oracle = Self {
            factory: registers.ext_csd,
            seen: registers.ext_csd,
            csd: registers.csd,
            erases: 0,
            bad: 0,
            rpmb: None,
            power_went: false,
        };
        oracle.check(card);
        oracle
    }

    /// Monotonic values have not gone back.
    pub fn check(&mut self, card: &mut Card) {
        let registers = card.registers();
        let committed = self.seen[155] & 1 == 1;
        for index in 0..192u16 {
            let at = usize::from(index);
            let Some(field) = field_at(index) else { continue };
            let is_setting = matches!(index, 52 | 53 | 136..=154 | 156 | 167);
            if is_setting && !committed {
                continue;
            }
            let spent = (self.seen[at] ^ self.factory[at]) & field.one_time_mask(index - field.offset);
            let changed = (registers.ext_csd[at] ^ self.seen[at]) & spent;
            assert_eq!(changed, 0, "one-time bits of {field} went back: {:#x}", registers.ext_csd[at]);
        }
        for field in CSD_ONE_TIME {
            let lost = field.get(&self.csd) & !field.get(&registers.csd);
            assert_eq!(lost, 0, "one-time bits of {field:?} in the CSD went back");
        }
        let nand = card.device().nand();
        let erases = nand.blocks().iter().map(|block| u64::from(block.erase_count)).sum();
        let power_went = std::mem::take(&mut self.power_went) || nand.off_since().is_some();
        assert!(power_went || erases >= self.erases, "wear went back");
        assert_eq!(nand.counters().violations, 0, "the contract of the flash is broken");
        let health = card.device().health();
        let bad = health.factory_bad + health.grown_bad;
        assert!(power_went || bad >= self.bad, "bad blocks became good");
        assert!(health.spares_left <= health.spares);
        let rpmb = card.rpmb_counter();
        assert!(rpmb >= self.rpmb, "RPMB went back: {:?} after {:?}", rpmb, self.rpmb);
        (self.seen, self.csd, self.erases, self.bad, self.rpmb) = (registers.ext_csd, registers.csd, erases, bad, rpmb);
    }

    /// The state is one that this kind of card has.
    pub fn check_state(card: &mut Card, kind: CardKind, now: Instant) {
        let state = card.state(now);
        let foreign = matches!(state, Some(State::Btst | State::Slp)) && kind == CardKind::Sd;
        assert!(!foreign, "{state:?} on SD");
        if let Some(due) = card.poll_timeout() {
            let due = due.max(now);
            card.handle_timeout(due);
            assert!(card.poll_timeout().is_none_or(|next| next > due), "the card waits for {due:?} again and again");
        }
    }
}

/// The answer has a form that its command allows.
pub fn check_reply(index: u8, argument: u32, kind: CardKind, reply: &Reply, now: Instant) {
    let commands = [Command::decode(index, argument, kind), Command::decode_app(index, argument, kind)];
    let specs = commands.map(|command| command.spec());
    let allowed = |found: ResponseKind| {
        specs.iter().any(|spec| {
            // A command that is refused, or has nothing to be busy with, is answered without being busy; CMD12 as an
            // interrupt is busy.
            found == spec.response || (found, spec.response) == (ResponseKind::R1, ResponseKind::R1b)
        })
    };
    let found = reply.response.kind();
    assert!(found == ResponseKind::None || allowed(found), "CMD{index} {argument:#x}: {:?}", reply.response);
    assert!(reply.busy_until.is_none() || found == ResponseKind::R1b, "busy after {:?}", reply.response);
    assert!(reply.busy_until.is_none_or(|until| until >= now), "busy until the past");
    let Some(data) = reply.data else { return };
    let boots = commands[0] == Command::BootInitiation;
    assert!(boots || matches!(reply.response, Response::R1(_)), "data after {:?}", reply.response);
    let directions = specs.map(|spec| spec.data);
    let expected = Some(data.direction);
    assert!(directions.contains(&expected) || boots && data.direction == DataDirection::Read, "CMD{index} {data:?}");
    assert!(data.ready >= now && data.block_bytes > 0 && data.blocks != Some(0), "{data:?}");
}
