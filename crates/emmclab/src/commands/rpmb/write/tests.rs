use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_port::PortError;
use emmc_port::rpmb::RpmbCommand;
use emmc_regs::rpmb::{Frame, Request};
use emmc_sim::CommandTarget;
use emmc_units::Instant;

use super::*;

/// What goes wrong with the write of this number, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The request does not arrive.
    Request,
    /// The reply does not.
    Reply,
    /// The reply is that of the write before.
    Replay,
    /// Nothing arrives any more: the card is pulled.
    Pulled,
    /// Another host writes in between.
    OtherHost,
}

struct Faulty {
    card: CommandTarget,
    fault: Fault,
    at: u32,
    writes: u32,
    is_gone: bool,
    last: Vec<Frame>,
}

impl RpmbPort for Faulty {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        let lost = Err(PortError::Lost { opcode: 25, reason: "no answer".into() });
        let is_write = command.request() == Request::Write;
        self.writes += u32::from(is_write);
        if self.is_gone {
            return lost;
        }
        if !is_write || self.writes != self.at {
            let reply = self.card.exchange(command);
            if is_write {
                self.last = reply.clone().unwrap();
            }
            return reply;
        }
        match self.fault {
            Fault::Request => lost,
            Fault::Reply => self.card.exchange(command).and(lost),
            Fault::Replay => self.card.exchange(command).map(|_| self.last.clone()),
            Fault::Pulled => {
                self.is_gone = true;
                self.card.exchange(command).and(lost)
            }
            Fault::OtherHost => {
                let other = RpmbCommand::write(&key(), self.at - 1, 100, &[9; DATA_BYTES], Consent::CONTENT_LOST);
                self.card.exchange(&other.unwrap()).unwrap();
                self.card.exchange(command)
            }
        }
    }
}

fn key() -> RpmbKey {
    RpmbKey::from_file(&[7; 32]).unwrap()
}

/// Writes eight blocks in pairs, of which the third write meets the fault.
fn written(fault: Fault) -> RpmbDocument {
    let card = Card::new(shipped::named("generic-8g").unwrap(), DeviceOptions { keep: StoredContent::Data, seed: 1 });
    let mut card = CommandTarget::new(card.unwrap(), Instant::START).unwrap();
    rpmb::program_key(&mut card, &key(), Consent::permanent("1", 1).unwrap()).unwrap();
    let mut port = Faulty { card, fault, at: 3, writes: 0, is_gone: false, last: Vec::new() };
    let shape = RpmbShape { blocks: 512, pairs: true, large: false };
    let data: Vec<u8> = (0..8u8).flat_map(|block| [block + 1; DATA_BYTES]).collect();
    let (key, consent) = (key(), Consent::CONTENT_LOST);
    let mut job = Job { key: &key, data: &data, address: 16, shape, consent, counter: 0, at: 0 };
    let mut document = RpmbDocument { ended: "complete", ..RpmbDocument::default() };
    job.run(&mut port, &AtomicBool::new(false), &mut document).unwrap();
    document.written_blocks = Some(job.at);
    // What is called written is there, whoever lost what.
    let mut card = port.card;
    let mut expected = data[..job.at as usize * DATA_BYTES].to_vec();
    let content = rpmb::read(&mut card, Some(&key), [16, 8], [1; 16]).unwrap();
    if document.unsure_blocks.is_none() {
        expected.resize(8 * DATA_BYTES, 0);
        assert!(content == expected, "{fault:?}");
        let counter = rpmb::counter(&mut card, Some(&key), [2; 16]).unwrap();
        assert_eq!(counter, if fault == Fault::OtherHost { 3 } else { job.counter }, "{fault:?}");
    } else {
        assert!(content.starts_with(&expected), "{fault:?}");
    }
    document
}

#[test]
fn a_write_that_ends_early_says_which_blocks_are_written() {
    for (fault, ended, written_blocks, unsure) in [
        (Fault::Request, "lost", 4, None),
        (Fault::Reply, "lost", 6, None),
        (Fault::Replay, "not authentic", 6, None),
        (Fault::Pulled, "lost", 4, Some([20, 22])),
        (Fault::OtherHost, "refused", 4, None),
    ] {
        let document = written(fault);
        assert_eq!((document.ended, document.written_blocks), (ended, Some(written_blocks)), "{fault:?}");
        assert_eq!(document.unsure_blocks, unsure, "{fault:?}");
        let reason = document.reason.unwrap();
        assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    }
}
