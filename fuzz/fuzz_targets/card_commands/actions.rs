//! The host's actions, chosen by the input.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::FaultPlan;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{BusMode, GcPolicy, Mapping, Profile, SdIdentity, Segment, SegmentOrder, shipped};
use emmc_regs::CardKind;
use emmc_regs::command::Response;
use emmc_units::{Instant, Nanos};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::oracle::{Oracle, check_reply};

/// A card and its host.
pub struct Host {
    pub card: Card,
    pub kind: CardKind,
    pub now: Instant,
    oracle: Oracle,
    pub rca: u32,
    /// Power is off, or was lost at an armed cut.
    is_off: bool,
    sectors: u32,
    by_byte: bool,
}

/// A part that is small enough to be created for every run.
fn profile(input: &mut Unstructured) -> Result<Profile> {
    let mut profile = shipped::named("generic-8g").expect("a shipped profile");
    profile.areas.user_bytes = 32 << 20;
    profile.areas.wp_group_bytes = 1 << 20;
    profile.areas.enhanced_groups_max = 8;
    (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (16, 0.5);
    (profile.nand.spare_blocks, profile.nand.factory_bad_blocks) = (8, 2);
    profile.identity.firmware = "FUZZ0001".into();
    match input.arbitrary::<u8>()? % 7 {
        0 => {}
        // Sector addresses; larger units, so that a run is still quick.
        6 => {
            profile.areas.user_bytes = (2 << 30) + (8 << 20);
            (profile.areas.wp_group_bytes, profile.ftl.unit_bytes) = (8 << 20, 16384);
            (profile.nand.pages_per_block, profile.nand.over_provisioning) = (256, 0.1);
        }
        1 => (profile.nand.native.endurance, profile.ftl.wear.static_gap) = (12, 4),
        2 => {
            (profile.identity.ext_csd_rev, profile.identity.firmware) = (5, String::new());
            (profile.controller.cache_bytes, profile.controller.queue_depth) = (0, 0);
            (profile.controller.packed_commands, profile.controller.auto_bkops) = (0, false);
            profile.controller.bus_max = BusMode::Ddr52;
        }
        3 => profile.ftl.gc = GcPolicy::Fifo,
        sd => {
            (profile.kind, profile.identity.oem_id) = (CardKind::Sd, 0x5344);
            (profile.identity.product, profile.identity.firmware) = ("FUZZY".into(), String::new());
            let app_class = 0;
            profile.identity.sd = Some(SdIdentity { speed_class: 10, uhs_grade: 1, app_class, au_bytes: 1 << 20 });
            (profile.areas.boot_bytes, profile.areas.rpmb_bytes, profile.areas.enhanced_groups_max) = (0, 0, 0);
            (profile.controller.bus_max, profile.controller.write_reliability) = (BusMode::Sdr104, false);
            (profile.controller.cache_bytes, profile.controller.queue_depth) = (0, 0);
            (profile.controller.packed_commands, profile.controller.auto_bkops) = (0, false);
            if sd == 5 {
                let layer = &mut profile.ftl;
                (layer.mapping, layer.separate_gc, layer.gc_high_blocks) = (Mapping::Segment, false, 0);
                layer.wear.static_gap = 0;
                let order = SegmentOrder::Linear;
                layer.segment =
                    Some(Segment { open_aus: 3, order, random_logs: 1, random_log_bytes: 0, steps_back: 3, merges_at_once: 1 });
            }
        }
    }
    Ok(profile)
}

impl Host {
    pub fn new(input: &mut Unstructured) -> Result<Self> {
        let profile = profile(input)?;
        let keep = [StoredContent::Data, StoredContent::Orders, StoredContent::Nothing]
            [usize::from(input.arbitrary::<u8>()? % 3)];
        let (kind, sectors) = (profile.kind, (profile.areas.user_bytes / 512) as u32);
        let made = Card::new(profile, DeviceOptions { keep, seed: 1 });
        let mut card = made.unwrap_or_else(|error| panic!("the profile is good: {error}"));
        let oracle = Oracle::new(&mut card);
        let by_byte = sectors <= (2 << 30) / 512;
        Ok(Self { card, kind, now: Instant::START, oracle, rca: 0x1_0000, is_off: false, sectors, by_byte })
    }

    /// One step, and what must hold after it.
    pub fn step(&mut self, input: &mut Unstructured) -> Result<()> {
        match input.arbitrary::<u8>()? % 19 {
            0 => self.any_command(input)?,
            1..=4 => self.likely_command(input)?,
            5 => self.identify(),
            6 => self.write(input)?,
            7 => self.read(input)?,
            8 => self.data(input)?,
            9 => self.take_data(input.int_in_range(0..=40)?),
            10 => self.pass_time(input)?,
            11 => self.rare(input)?,
            12 => self.switch(input)?,
            13 => self.rpmb(input)?,
            14 => self.queue(input)?,
            15 => self.erase(input)?,
            16 => self.excursion(input)?,
            17 => self.write_and_read_back(input)?,
            _ => self.stream(input)?,
        }
        self.now = self.now + Nanos::from_micros(1);
        Oracle::check_state(&mut self.card, self.kind, self.now);
        self.oracle.check(&mut self.card);
        Ok(())
    }

    /// At the end power comes back, and everything is consistent.
    pub fn finish(&mut self) {
        self.power_cycle();
        self.card.device().audit().expect("the layers agree");
        self.oracle.check(&mut self.card);
        self.identify();
        self.send(13, self.rca);
    }

    pub fn send(&mut self, index: u8, argument: u32) -> Response {
        let reply = self.card.handle_command(index, argument, self.now);
        check_reply(index, argument, self.kind, &reply, self.now);
        assert!(!self.is_off || reply.response == Response::None, "a card without power answers");
        self.now = self.now + Nanos::from_micros(2);
        reply.response
    }

    pub fn address(&self, input: &mut Unstructured) -> Result<u32> {
        let sector = match input.arbitrary::<u8>()? % 8 {
            0 => self.sectors - 1,
            1 => self.sectors,
            2 => input.arbitrary()?,
            3 => u32::from(input.arbitrary::<u8>()?) * 2048,
            _ => u32::from(input.arbitrary::<u16>()?) % self.sectors,
        };
        Ok(if self.by_byte { sector.wrapping_mul(512) } else { sector })
    }

    fn any_command(&mut self, input: &mut Unstructured) -> Result<()> {
        let (index, argument) = (input.arbitrary::<u8>()? % 64, input.arbitrary()?);
        self.send(index, argument);
        Ok(())
    }

    /// A command with an argument that it may have.
    fn likely_command(&mut self, input: &mut Unstructured) -> Result<()> {
        let index = input.arbitrary::<u8>()? % 64;
        let argument = match index {
            0 => [0, 0xf0f0_f0f0, 0xffff_fffa][usize::from(input.arbitrary::<u8>()? % 3)],
            1 | 41 => 0x40ff_8080,
            3 | 7 | 9 | 10 | 12 | 55 => self.rca,
            13 => self.rca | u32::from(input.arbitrary::<bool>()?) | u32::from(input.arbitrary::<bool>()?) << 15,
            5 => self.rca | u32::from(input.arbitrary::<bool>()?) << 15,
            // Only rarely: the rest of the run is lost.
            15 => {
                if input.arbitrary::<u8>()? == 0 {
                    self.rca
                } else {
                    0
                }
            }
            8 => 0x1aa,
            16 => [512, 16, 1, 4096][usize::from(input.arbitrary::<u8>()? % 4)],
            23 => u32::from(input.arbitrary::<u8>()? % 70) | u32::from(input.arbitrary::<u8>()?) << 24,
            38 => [0, 1, 2, 3, 0x8000_0000, 0x8000_0001, 0x8000_8000][usize::from(input.arbitrary::<u8>()? % 7)],
            56 => [0, 0x11, 0x21, 0x39, 0x83, 0x185][usize::from(input.arbitrary::<u8>()? % 6)],
            17 | 18 | 24 | 25 | 28..=33 | 35 | 36 => self.address(input)?,
            _ => input.arbitrary()?,
        };
        self.send(index, argument);
        Ok(())
    }

    /// From wherever the card is to `tran`, as a host does it.
    fn identify(&mut self) {
        self.send(0, 0);
        match self.kind {
            CardKind::Emmc => {
                self.now = self.now + Nanos::from_secs(1);
                self.send(1, 0x40ff_8080);
            }
            CardKind::Sd => {
                self.send(8, 0x1aa);
                self.now = self.now + Nanos::from_secs(1);
                self.send(55, 0);
                self.send(41, 0x41ff_8000);
            }
        }
        self.send(2, 0);
        if let Response::R6 { rca, .. } = self.send(3, 0x1_0000) {
            self.rca = u32::from(rca) << 16;
        } else if self.kind == CardKind::Emmc {
            self.rca = 0x1_0000;
        }
        self.send(7, self.rca);
    }

    pub fn wait(&mut self) {
        if let Some(until) = self.card.poll_timeout() {
            self.now = self.now.max(until);
            self.card.handle_timeout(self.now);
        }
    }

    pub fn blocks(&mut self, count: u32, fill: u8) {
        for block in 0..count {
            let _ = self.card.handle_data(&[fill.wrapping_add(block as u8); 512], self.now);
            self.now = self.now + Nanos::from_micros(3);
        }
    }

    fn write(&mut self, input: &mut Unstructured) -> Result<()> {
        let (count, address) = (u32::from(input.arbitrary::<u8>()? % 64), self.address(input)?);
        let fill = input.arbitrary()?;
        if input.arbitrary()? {
            self.send(23, count | u32::from(input.arbitrary::<u8>()? & 0xa1) << 24);
        }
        self.send(25, address);
        self.blocks(count, fill);
        if input.arbitrary()? {
            self.send(12, 0);
        }
        if input.arbitrary()? {
            self.wait();
        }
        Ok(())
    }

    fn read(&mut self, input: &mut Unstructured) -> Result<()> {
        let (count, address) = (u32::from(input.arbitrary::<u8>()? % 64), self.address(input)?);
        if input.arbitrary()? {
            self.send(23, count);
        }
        self.send(18, address);
        self.take_data(count);
        if input.arbitrary()? {
            self.send(12, 0);
        }
        Ok(())
    }

    pub fn take_data(&mut self, count: u32) {
        for _ in 0..count {
            let Some(block) = self.card.poll_data(self.now) else { break };
            assert!(!block.bytes.is_empty() && !self.is_off);
            self.now = self.now.max(block.at);
        }
    }

    /// A block of any length, or a damaged one.
    fn data(&mut self, input: &mut Unstructured) -> Result<()> {
        let length = match input.arbitrary::<u8>()? % 4 {
            0 => usize::from(input.arbitrary::<u16>()? % 5000),
            1 => 16,
            _ => 512,
        };
        let mut block = vec![input.arbitrary()?; length];
        for byte in block.iter_mut().take(24) {
            *byte = input.arbitrary()?;
        }
        if input.arbitrary::<u8>()? % 16 == 0 {
            let _ = self.card.handle_damaged_data(self.now);
        } else {
            let _ = self.card.handle_data(&block, self.now);
        }
        Ok(())
    }

    fn pass_time(&mut self, input: &mut Unstructured) -> Result<()> {
        match input.arbitrary::<u8>()? % 3 {
            0 => self.wait(),
            1 => self.now = self.now + Nanos::from_micros(input.arbitrary::<u16>()?.into()),
            _ => self.now = self.now + Nanos::from_millis(input.arbitrary::<u16>()?.into()),
        }
        Ok(())
    }

    /// Power, resets, cuts, noise.
    fn rare(&mut self, input: &mut Unstructured) -> Result<()> {
        match input.arbitrary::<u8>()? % 8 {
            0 => self.power_cycle(),
            1 => {
                self.card.power_off(self.now);
                (self.is_off, self.oracle.power_went) = (true, true);
            }
            2 => {
                self.oracle.power_went = true;
                if self.card.hardware_reset(self.now).is_err() {
                    self.power_cycle();
                }
            }
            3 | 4 if self.card.device().nand().keep() == StoredContent::Nothing => {}
            3 | 4 => {
                let nand = self.card.device_mut().nand_mut();
                let step = nand.steps() + 1 + u64::from(input.arbitrary::<u8>()?);
                nand.arm(FaultPlan { step, seed: input.arbitrary()? });
            }
            5 => {
                self.card.handle_damaged_command(self.now);
            }
            _ if !self.is_off && self.card.state(self.now).is_some() => {
                self.card.device().audit().expect("the layers agree");
            }
            _ => self.power_cycle(),
        }
        Ok(())
    }

    /// Power away and back; a cut may come while the card recovers.
    fn power_cycle(&mut self) {
        self.oracle.power_went = true;
        for _ in 0..4 {
            self.card.power_off(self.now);
            self.now = self.now + Nanos::from_millis(5);
            if let Ok(ready) = self.card.power_on(self.now) {
                self.now = self.now.max(ready);
                self.is_off = false;
                self.card.device().audit().expect("the layers agree after recovery");
                return;
            }
        }
        panic!("one cut stops one start only");
    }
}
