//! Sequences that lead somewhere: registers, RPMB, the queue, firmware, packed commands.

use emmc_card::card::firmware_image;
use emmc_regs::command::Response;
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
}
