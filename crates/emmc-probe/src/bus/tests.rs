use std::cell::RefCell;
use std::rc::Rc;

use emmc_port::{BlockDone, BlockOp, BlockRequest, TargetKind, TargetShape};
use emmc_units::Instant;

use super::*;

/// A bus that damages every `every`th read above a clock; the kernel repeats it.
struct Board {
    clock_hz: u64,
    good_hz: u64,
    min_hz: u64,
    reads: u64,
    errors: u64,
    sets: Vec<u64>,
}

struct Card(Rc<RefCell<Board>>, Instant, TargetShape);
struct Link(Rc<RefCell<Board>>);

fn board(good_hz: u64) -> (Card, Link) {
    let board = Board { clock_hz: 200_000_000, good_hz, min_hz: 0, reads: 0, errors: 0, sets: Vec::new() };
    let board = Rc::new(RefCell::new(board));
    let shape = TargetShape {
        name: "card".into(),
        kind: TargetKind::Simulated,
        size_bytes: 64 << 20,
        sector_bytes: 512,
        depth_max: 1,
        can_trim: false,
        engine: "simulated",
    };
    (Card(Rc::clone(&board), Instant::default(), shape), Link(board))
}

impl BlockTarget for Card {
    fn shape(&self) -> &TargetShape {
        &self.2
    }

    fn now(&mut self) -> Instant {
        self.1
    }

    fn submit(&mut self, _: BlockRequest) -> Result<(), TargetError> {
        unreachable!("only whole reads")
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.1 = self.1 + time;
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        unreachable!("only whole reads")
    }
}

impl BlockContent for Card {
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError> {
        let mut board = self.0.borrow_mut();
        board.reads += 1;
        if board.clock_hz > board.good_hz && board.reads % 50 == 0 {
            board.errors += 1;
        }
        // One MiB of each four holds something.
        for (place, byte) in (offset_bytes..).zip(into.iter_mut()) {
            *byte = if place >> 20 & 3 == 0 { (place ^ place >> 8) as u8 } else { 0 };
        }
        let submitted = self.1;
        self.1 = submitted + Nanos::from_micros(100);
        let bytes = into.len() as u64;
        let request = BlockRequest { op: BlockOp::Read, offset_bytes, bytes, through: false, tag: 0 };
        Ok(BlockDone { request, submitted, done: self.1, error: None })
    }

    fn write_from(&mut self, _: u64, _: &[u8], _: bool) -> Result<BlockDone, TargetError> {
        unreachable!("nothing is written")
    }
}

impl BusLink for Link {
    fn host(&mut self) -> Result<Host, String> {
        let board = self.0.borrow();
        let mut host = Host::default();
        for (name, value) in [
            ("clock", format!("{} Hz", board.clock_hz)),
            ("timing spec", "9 (mmc HS200)".to_string()),
            ("bus width", "3 (8 bits)".to_string()),
        ] {
            host.ios.insert(name.into(), value);
        }
        host.err_stats.insert("Data CRC Errors Occurred".into(), 7 + board.errors);
        Ok(host)
    }

    fn set_clock(&mut self, hz: u64) -> Result<(), String> {
        let mut board = self.0.borrow_mut();
        if hz < board.min_hz {
            return Err("Invalid argument".into());
        }
        board.sets.push(hz);
        board.clock_hz = hz;
        Ok(())
    }

    fn new_log(&mut self) -> Option<String> {
        None
    }
}

fn has_errors(round: &BusRound) -> bool {
    round.counted.as_ref().unwrap().values().sum::<u64>() > 0
}

const LADDER: [u64; 3] = [150_000_000, 100_000_000, 50_000_000];

fn plan(lower_hz: &[u64]) -> Stress {
    Stress { time: Nanos::from_millis(200), lower_hz: lower_hz.to_vec(), seed: 1 }
}

#[test]
fn a_good_bus_is_read_once_and_its_clock_is_not_touched() {
    let (mut card, mut link) = board(200_000_000);
    let go = AtomicBool::new(false);
    let found = stress(&mut card, &mut link, &plan(&LADDER), has_errors, &go).unwrap();
    assert_eq!((found.rounds.len(), found.unset), (1, None));
    let round = &found.rounds[0];
    assert!(round.reads >= 2000 && round.seconds >= 0.2, "{round:?}");
    assert_eq!((round.failed, round.differing), (0, 0));
    let uniform = round.uniform_blocks as f64 / (round.bytes as f64 / 8192.0);
    assert!((0.6..0.9).contains(&uniform), "{uniform}");
    assert!(link.0.borrow().sets.is_empty());
}

#[test]
fn lower_clocks_are_tried_until_one_is_good_and_the_clock_is_set_back() {
    let (mut card, mut link) = board(100_000_000);
    let go = AtomicBool::new(false);
    let found = stress(&mut card, &mut link, &plan(&LADDER), has_errors, &go).unwrap();
    let asked: Vec<Option<u64>> = found.rounds.iter().map(|round| round.asked_hz).collect();
    assert_eq!(asked, [None, Some(150_000_000), Some(100_000_000)]);
    let errors: Vec<bool> = found.rounds.iter().map(has_errors).collect();
    assert_eq!(errors, [true, true, false]);
    // Those from before do not count.
    let counted = found.rounds[0].counted.as_ref().unwrap()["Data CRC Errors Occurred"];
    assert_eq!(counted, found.rounds[0].reads / 50);
    assert_eq!(link.0.borrow().sets, [150_000_000, 100_000_000, 200_000_000]);
    assert_eq!(found.rounds[2].bus[0].as_ref().unwrap().clock_hz, 100_000_000);
}

#[test]
fn the_clock_is_set_back_after_a_stop_and_what_was_seen_stays_when_it_cannot_be_set() {
    let (mut card, mut link) = board(0);
    link.0.borrow_mut().min_hz = 120_000_000;
    let go = AtomicBool::new(false);
    let found = stress(&mut card, &mut link, &plan(&LADDER), has_errors, &go).unwrap();
    assert_eq!((found.rounds.len(), found.unset.as_deref()), (2, Some("Invalid argument")));
    assert_eq!(link.0.borrow().sets, [150_000_000, 200_000_000]);

    let stop = AtomicBool::new(true);
    let stopped = stress(&mut card, &mut link, &plan(&LADDER), has_errors, &stop);
    assert_eq!(stopped, Err(StressError::Stopped));
}
