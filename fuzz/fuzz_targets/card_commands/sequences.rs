//! Meaningful sequences: registers, RPMB, the queue, firmware, packed commands.

use emmc_card::card::firmware_image;
use emmc_regs::CardKind;
use emmc_regs::command::Response;
use emmc_regs::r1::{R1, State};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::actions::Host;

/// Bytes of EXT_CSD that a host writes, with values that mean something.
const SWITCHES: [(u8, &[u8]); 42] = [
    (15, &[0, 1]),
    (16, &[0x10]),
    (17, &[0x10]),
    (29, &[1, 2]),
    (30, &[0, 1]),
    (31, &[1]),
    (32, &[1, 2]),
    (33, &[0, 1]),
    (34, &[0, 1, 2, 3, 4]),
    (37, &[0, 1, 2, 3]),
    (52, &[1, 2]),
    (56, &[0, 8]),
    (59, &[1]),
    (62, &[1]),
    (133, &[0, 1]),
    (134, &[1]),
    (136, &[0, 1]),
    (137, &[0x10, 0x20]),
    (140, &[1, 2]),
    (143, &[1]),
    (146, &[1]),
    (155, &[1]),
    (156, &[1, 2, 3]),
    (161, &[0, 1]),
    (162, &[1, 2]),
    (163, &[1, 2, 3]),
    (164, &[1]),
    (165, &[1]),
    (167, &[0, 0x1f]),
    (169, &[1]),
    (171, &[0, 1, 4, 8, 0x10, 0x40, 0x80]),
    (173, &[1, 4, 0x10, 0x40, 0x81, 0x83]),
    (175, &[0, 1]),
    (177, &[0, 2, 0x0a]),
    (178, &[1, 0x10]),
    (179, &[0, 1, 2, 3, 4, 5, 8, 0x38, 0x48]),
    (183, &[0, 1, 2, 5, 6]),
    (185, &[0, 1, 2, 3]),
    (187, &[0, 1]),
    (191, &[0]),
    (53, &[1]),
    (22, &[1]),
];

impl Host {
    pub fn switch(&mut self, input: &mut Unstructured) -> Result<()> {
        let (index, values) = SWITCHES[usize::from(input.arbitrary::<u8>()?) % SWITCHES.len()];
        let value = values[usize::from(input.arbitrary::<u8>()?) % values.len()];
        let access = [3, 3, 3, 1, 2][usize::from(input.arbitrary::<u8>()? % 5)];
        self.send(6, access << 24 | u32::from(index) << 16 | u32::from(value) << 8);
        if input.arbitrary()? {
            self.wait();
        }
        Ok(())
    }

    /// Frames that ask RPMB for something; without the key, but of the right form.
    pub fn rpmb(&mut self, input: &mut Unstructured) -> Result<()> {
        let count = u32::from(input.arbitrary::<u8>()? % 4);
        if input.arbitrary()? {
            self.send(6, 0x03b3_0300);
            self.wait();
        }
        self.send(23, count | u32::from(input.arbitrary::<bool>()?) << 31);
        self.send(25, 0);
        let (request, address) = (input.arbitrary::<u8>()? % 8, input.arbitrary::<u16>()?);
        for _ in 0..count {
            let mut frame = [0; 512];
            frame[504..506].copy_from_slice(&address.to_be_bytes());
            (frame[507], frame[511]) = (count as u8, request);
            let _ = self.card.handle_data(&frame, self.now);
        }
        self.wait();
        self.send(23, count);
        self.send(18, 0);
        self.take_data(count);
        Ok(())
    }

    pub fn queue(&mut self, input: &mut Unstructured) -> Result<()> {
        if input.arbitrary::<u8>()? % 4 == 0 {
            self.send(6, 0x030f_0100);
            self.wait();
        }
        for _ in 0..input.arbitrary::<u8>()? % 6 {
            let task = u32::from(input.arbitrary::<u8>()? % 32) << 16;
            let flags = u32::from(input.arbitrary::<u8>()?) << 24 | u32::from(input.arbitrary::<u8>()? & 0x80) << 16;
            self.send(44, flags | task | u32::from(input.arbitrary::<u8>()? % 16));
            let address = self.address(input)?;
            self.send(45, address);
        }
        if let Some(ready) = self.card.poll_queue(self.now) {
            self.now = self.now.max(ready);
        }
        let Response::R1(ready) = self.send(13, self.rca | 1 << 15) else { return Ok(()) };
        let task = if ready.0 == 0 { 0 } else { ready.0.trailing_zeros() };
        self.send(46, task << 16);
        self.send(47, task << 16);
        self.take_data(16);
        self.blocks(u32::from(input.arbitrary::<u8>()? % 16), 0x51);
        if input.arbitrary()? {
            self.send(48, 1 | u32::from(input.arbitrary::<u8>()? % 2));
        }
        Ok(())
    }

    /// Firmware, packed commands.
    pub fn stream(&mut self, input: &mut Unstructured) -> Result<()> {
        if input.arbitrary()? {
            self.send(6, 0x031e_0100);
            self.wait();
            let image = firmware_image(*b"FUZZ0002", &[7; 600]);
            self.send(23, (image.len() / 512) as u32);
            self.send(25, 0xfffa_fff0);
            for block in image.chunks(512) {
                let _ = self.card.handle_data(block, self.now);
            }
            self.wait();
            self.send(6, 0x031d_0100);
        } else {
            let (entries, direction) = (input.arbitrary::<u8>()? % 5, 1 + input.arbitrary::<u8>()? % 2);
            let mut header = [0; 512];
            header[..3].copy_from_slice(&[1, direction, entries]);
            let mut total = 0;
            for entry in header[8..].chunks_exact_mut(8).take(entries.into()) {
                let count = u32::from(input.arbitrary::<u8>()? % 5);
                total += count;
                entry[..4].copy_from_slice(&count.to_le_bytes());
                entry[4..].copy_from_slice(&self.address(input)?.to_le_bytes());
            }
            let sent = if direction == 2 { total } else { 0 };
            self.send(23, 1 << 30 | (1 + sent));
            self.send(25, 0);
            let _ = self.card.handle_data(&header, self.now);
            self.blocks(sent, 3);
            self.wait();
            self.send(23, 1 << 30 | total);
            self.send(18, 0);
            self.take_data(total);
        }
        Ok(())
    }

    /// The commands of an erase, in order.
    pub fn erase(&mut self, input: &mut Unstructured) -> Result<()> {
        let commands = if self.kind == CardKind::Emmc { [35, 36] } else { [32, 33] };
        for index in commands {
            let address = self.address(input)?;
            self.send(index, address);
        }
        let how = [0, 1, 3, 0x8000_0000, 0x8000_0001, 0x8000_8000][usize::from(input.arbitrary::<u8>()? % 6)];
        self.send(38, how);
        if input.arbitrary()? {
            self.send(13, self.rca | 1);
        }
        self.wait();
        Ok(())
    }

    /// To sleep and back, or through application commands.
    pub fn excursion(&mut self, input: &mut Unstructured) -> Result<()> {
        let choice = usize::from(input.arbitrary::<u8>()?);
        if self.kind == CardKind::Emmc {
            self.send(7, 0);
            self.send(5, self.rca | 1 << 15);
            self.wait();
            self.send([5, 0, 13, 7][choice % 4], self.rca);
            self.send(7, self.rca);
            self.send(if choice % 3 == 0 { 21 } else { 13 }, self.rca);
        } else {
            self.send(55, self.rca);
            let (index, argument) = [(13, 0), (51, 0), (22, 0), (6, 2), (23, 8), (42, 1), (17, 0), (6, 0)][choice % 8];
            self.send(index, argument);
            self.take_data(1);
            self.send(6, [0x00ff_ffff, 0x80ff_fff1, 0x80ff_fff3, 0x80ff_ff10][choice % 4]);
            self.take_data(1);
            self.send(19, 0);
        }
        self.take_data(1);
        Ok(())
    }

    /// Data that the card accepted without an error reads back.
    pub fn write_and_read_back(&mut self, input: &mut Unstructured) -> Result<()> {
        const ERRORS: u32 = 0xfdff_e080;
        let (count, address, fill) =
            (1 + input.arbitrary::<u8>()? % 40, self.address(input)?, input.arbitrary::<u8>()?);
        self.send(12, 0);
        self.wait();
        self.send(13, self.rca);
        let Response::R1(before) = self.send(13, self.rca) else { return Ok(()) };
        let ready = before.state() == Some(State::Tran) && before.0 & (ERRORS | R1::IS_LOCKED.0) == 0;
        let partition = self.card.registers().ext_csd[179] & 7;
        if !ready || partition == 3 || !self.card.device().keeps_data() {
            return Ok(());
        }
        let blocks = u32::from(count);
        let multiple = |index| [(23, blocks), (index, address)];
        for (index, argument) in multiple(25) {
            self.send(index, argument);
        }
        self.blocks(blocks, fill);
        // Without CMD23, on some SD cards, the transfer is open-ended. An error is reported once, by the first of the
        // two.
        if matches!(self.send(12, 0), Response::R1(stopped) | Response::R1b(stopped) if stopped.0 & (ERRORS & !R1::ILLEGAL_COMMAND.0) != 0)
        {
            return Ok(());
        }
        self.wait();
        let Response::R1(after) = self.send(13, self.rca) else { return Ok(()) };
        if after.state() != Some(State::Tran) || after.0 & (ERRORS & !R1::ILLEGAL_COMMAND.0) != 0 {
            return Ok(());
        }
        for (index, argument) in multiple(18) {
            self.send(index, argument);
        }
        for block in 0..count {
            let Some(read) = self.card.poll_data(self.now) else { break };
            self.now = self.now.max(read.at);
            let expected = fill.wrapping_add(block);
            let first = read.bytes.first();
            assert!(
                read.bytes.iter().all(|byte| *byte == expected),
                "block {block} of {count} at {address:#x} came back otherwise: {first:02x?} for {expected:02x}"
            );
        }
        self.send(12, 0);
        Ok(())
    }
}
