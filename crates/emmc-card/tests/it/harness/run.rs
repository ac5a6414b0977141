//! Executes the steps of a script on a card.

use emmc_card::card::{Card, DataStatus};
use emmc_card::nand::FaultPlan;
use emmc_regs::CardKind;
use emmc_regs::command::Response;
use emmc_units::{Instant, Nanos};

use super::answer::{Answer, show};
use super::step::{Line, Step};

/// Between two steps.
const STEP: Nanos = Nanos::from_micros(10);

/// A card and its host's clock.
pub(crate) struct Session {
    pub(crate) card: Card,
    kind: CardKind,
    now: Instant,
    started: Instant,
    /// While power is off the card is saved as an image and restored from it.
    pub(crate) through_images: bool,
}

impl Session {
    pub(crate) fn new(card: Card) -> Self {
        let kind = card.device().profile().kind;
        Self { card, kind, now: Instant::START, started: Instant::START, through_images: false }
    }

    /// Plays steps once.
    pub(crate) fn play(&mut self, lines: &[Line]) -> Result<(), String> {
        self.play_round(lines, 0)
    }

    fn play_round(&mut self, lines: &[Line], round: u64) -> Result<(), String> {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let number = line.number;
            if let Step::Repeat(times) = line.step {
                let end = end_of(lines, at).ok_or_else(|| format!("{number}: repeat without end"))?;
                for inner in 0..times {
                    let fault = |fault| format!("{fault} (round {inner} of the repeat in line {number})");
                    self.play_round(&lines[at + 1..end], inner).map_err(fault)?;
                }
                at = end + 1;
                continue;
            }
            self.step(&line.step, round).map_err(|fault| format!("{number}: {fault}"))?;
            self.now = self.now + STEP;
            at += 1;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, round: u64) -> Result<(), String> {
        match step {
            Step::Identify => self.identify(),
            Step::Command { text, index, argument, damaged, answer } => {
                let argument = argument.in_round(round);
                self.command(text, *index, argument, *damaged, answer.as_ref())
            }
            Step::Data { bytes, damaged, status } => {
                let found = match damaged {
                    true => self.card.handle_damaged_data(self.now),
                    false => self.card.handle_data(&bytes.in_round(round), self.now),
                };
                let found = match found {
                    DataStatus::Accepted { busy_until: Some(_) } => "busy",
                    DataStatus::Accepted { busy_until: None } => "ok",
                    DataStatus::Rejected => "rejected",
                    DataStatus::Ignored => "ignored",
                };
                status.as_ref().map_or(Ok(()), |status| expect("", status, found))
            }
            Step::Expect(bytes) => {
                let block = self.card.poll_data(self.now).ok_or("expected data, found nothing")?;
                self.now = self.now.max(block.at);
                bytes.differs(round, &block.bytes).map_or(Ok(()), Err)
            }
            Step::ExpectNothing => match self.card.poll_data(self.now) {
                None => Ok(()),
                Some(block) => Err(format!("expected nothing, found {} bytes", block.bytes.len())),
            },
            Step::Wait(None) => self.wait(),
            Step::Wait(Some(time)) => {
                self.now = self.now + *time;
                self.card.handle_timeout(self.now);
                Ok(())
            }
            Step::Start => {
                self.started = self.now;
                Ok(())
            }
            Step::Took(longer, limit) => {
                let took = self.now.since(self.started);
                let right = if *longer { took > *limit } else { took < *limit };
                let sign = if *longer { "more" } else { "less" };
                if right { Ok(()) } else { Err(format!("expected {sign} than {limit}, found {took}")) }
            }
            Step::State(expected) => {
                let state = self.card.state(self.now);
                expect("state ", expected, state.map_or("none", |state| state.name()))
            }
            Step::ExtCsd { text, bytes, mask, value } => {
                let register = self.card.registers().ext_csd;
                let found: Vec<u8> = register[bytes.clone()].iter().map(|byte| byte & mask).collect();
                let show = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                expect("", &show(value), &show(&found)).map_err(|fault| format!("{text}: {fault}"))
            }
            Step::PowerOff => {
                self.card.power_off(self.now);
                if self.through_images { self.go_through_image() } else { Ok(()) }
            }
            Step::PowerOn => self.power_on(),
            Step::Reset => self.card.hardware_reset(self.now).map(|_| ()).map_err(|error| error.to_string()),
            Step::Cut(step) => {
                let step = self.card.device().nand().steps() + step;
                self.card.device_mut().nand_mut().arm(FaultPlan { step, seed: 1 });
                Ok(())
            }
            Step::Spoil(sector) => {
                self.spoil(*sector);
                Ok(())
            }
            Step::Repeat(_) => Ok(()),
            Step::End => Err("end without repeat".into()),
        }
    }

    fn command(
        &mut self,
        text: &str,
        index: u8,
        argument: u32,
        damaged: bool,
        answer: Option<&Answer>,
    ) -> Result<(), String> {
        let reply = match damaged {
            true => self.card.handle_damaged_command(self.now),
            false => self.card.handle_command(index, argument, self.now),
        };
        match answer.and_then(|answer| answer.differs(&reply, self.kind)) {
            Some(fault) => Err(format!("{text}: {fault}")),
            None => Ok(()),
        }
    }

    fn go_through_image(&mut self) -> Result<(), String> {
        let image = self.card.to_image(self.now);
        let profile = self.card.device().profile().clone();
        let (card, now) = Card::from_image(profile, &image, &[], None).map_err(|error| error.to_string())?;
        self.card = card;
        expect("time in the image", &self.now.0.to_string(), &now.0.to_string())
    }

    fn power_on(&mut self) -> Result<(), String> {
        self.card.power_on(self.now).map(|_| ()).map_err(|error| error.to_string())
    }

    /// Every flash page that holds the unit of a sector, old copies too, stops reading.
    fn spoil(&mut self, sector: u64) {
        let nand = self.card.device_mut().nand_mut();
        let geometry = *nand.geometry();
        let unit = (sector * 512 / u64::from(geometry.unit_bytes)) as u32;
        for block in 0..geometry.blocks {
            let held: Vec<usize> =
                (0..).zip(nand.spare(block)).filter(|(_, held)| **held == unit).map(|(at, _)| at).collect();
            for at in held {
                nand.spoil(block, at as u32 / geometry.units_per_page);
            }
        }
    }

    /// Until the card is no longer busy.
    fn wait(&mut self) -> Result<(), String> {
        match self.card.poll_timeout() {
            Some(until) => {
                self.now = self.now.max(until);
                self.card.handle_timeout(self.now);
                Ok(())
            }
            None => Err("there is nothing to wait for".into()),
        }
    }

    /// The usual way from power-up to `tran`.
    fn identify(&mut self) -> Result<(), String> {
        match self.kind {
            CardKind::Emmc => self.identify_emmc(),
            CardKind::Sd => self.identify_sd(),
        }
    }

    fn identify_emmc(&mut self) -> Result<(), String> {
        self.card.handle_command(0, 0, self.now);
        self.power_up(1, 0x40ff_8080, None)?;
        for (index, argument) in [(2, 0), (3, 0x1_0000), (7, 0x1_0000)] {
            self.must_answer(index, argument)?;
        }
        Ok(())
    }

    fn identify_sd(&mut self) -> Result<(), String> {
        self.card.handle_command(0, 0, self.now);
        self.must_answer(8, 0x1aa)?;
        self.power_up(41, 0x40ff_8000, Some(55))?;
        self.must_answer(2, 0)?;
        let rca = self.must_answer(3, 0)? & 0xffff_0000;
        self.must_answer(7, rca).map(|_| ())
    }

    /// Asks for the OCR until the card is ready, at most ten seconds.
    fn power_up(&mut self, index: u8, argument: u32, before: Option<u8>) -> Result<(), String> {
        for _ in 0..1000 {
            if let Some(before) = before {
                self.must_answer(before, 0)?;
            }
            if self.must_answer(index, argument)? >> 31 == 1 {
                return Ok(());
            }
            self.now = self.now + Nanos::from_millis(10);
        }
        Err("identify: the card does not power up".into())
    }

    fn must_answer(&mut self, index: u8, argument: u32) -> Result<u32, String> {
        let reply = self.card.handle_command(index, argument, self.now);
        self.now = self.now + STEP;
        match reply.response {
            Response::None => Err(format!("identify: CMD{index}: found {}", show(&reply, self.kind))),
            response => Ok(response.words()[0]),
        }
    }
}

fn end_of(lines: &[Line], repeat: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, line) in lines.iter().enumerate().skip(repeat) {
        match line.step {
            Step::Repeat(_) => depth += 1,
            Step::End => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn expect(what: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("expected {what}{expected}, found {found}")) }
}
