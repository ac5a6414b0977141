#![no_main]
//! A machine in simulated time that sends any messages and writes anything to its rings: each message is handled or
//! ends the connection, time never goes back, and nothing panics or loops forever.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::pci::{Board, Function, Identity, Record};
use emmc_serve::served::Served;
use emmc_serve::uml::{Machine, MachineError};
use emmc_units::Instant;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Unit: bytes.
const MEMORY: u64 = 0x1_0000;
/// The rings are there, 4 KiB for each; buffers above.
const RINGS: u64 = 0;
const BUFFERS: u64 = 0x2000;
const ENTRIES: u32 = 8;
const STEPS: usize = 300;

fn message(request: u32, payload: &[u8]) -> Vec<u8> {
    let header = [request, 9, payload.len() as u32].map(u32::to_ne_bytes).concat();
    [header, payload.to_vec()].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn calendar(op: u32, time: u64) -> [u8; 16] {
    let bytes = [&op.to_ne_bytes()[..], &1u32.to_ne_bytes(), &time.to_ne_bytes()].concat();
    bytes.try_into().expect("sixteen bytes")
}

/// A file without a name.
fn memory() -> File {
    let path = std::env::temp_dir().join(format!("emmclab-fuzz-uml-{}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("its name");
    file.set_len(MEMORY).expect("its size");
    file
}

struct Kernel {
    machine: Machine,
    memory: File,
    page: File,
    offered: u16,
}

impl Kernel {
    fn new() -> Self {
        let mut profile = shipped::named("generic-8g").expect("a shipped profile");
        profile.areas.user_bytes = (2 << 30) + (8 << 20);
        (profile.areas.wp_group_bytes, profile.ftl.unit_bytes) = (8 << 20, 16384);
        profile.areas.enhanced_groups_max = 8;
        (profile.areas.boot_bytes, profile.areas.rpmb_bytes) = (128 << 10, 128 << 10);
        (profile.nand.pages_per_block, profile.nand.over_provisioning) = (256, 0.1);
        (profile.nand.spare_blocks, profile.nand.factory_bad_blocks) = (8, 2);
        let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).expect("a card");
        let start = Instant(1_000_000_000);
        let board = Board::new(Function::new(Identity::Gl9763e), Arc::new(Served::driven(card, start)));
        let record = Record::new(start, None, None).expect("no files");
        let machine = Machine::new(board, record, start).expect("a page");
        let page = File::from(machine.page().try_clone_to_owned().expect("a descriptor"));
        Self { machine, memory: memory(), page, offered: 0 }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at.min(MEMORY - bytes.len() as u64)).expect("memory");
    }

    /// What a driver does first.
    fn connect(&mut self) -> std::result::Result<(), MachineError> {
        self.machine.calendar_message(calendar(1, 0))?;
        self.page.write_all_at(&1u32.to_ne_bytes(), 4096 + 128).expect("the page");
        self.connect_device()
    }

    fn connect_device(&mut self) -> std::result::Result<(), MachineError> {
        let region = [0, MEMORY, 0, 0].map(u64::to_ne_bytes).concat();
        let file: OwnedFd = self.memory.try_clone().expect("a descriptor").into();
        self.machine.device_message(&message(5, &[words(&[1, 0]), region].concat()), vec![file])?;
        for ring in 0..2 {
            let at = RINGS + 0x1000 * u64::from(ring);
            let places = [at, at + 0x800, at + 0x400].map(u64::to_ne_bytes).concat();
            for (request, payload) in [
                (8, words(&[ring, ENTRIES])),
                (10, words(&[ring, 0])),
                (9, [words(&[ring, 0]), places].concat()),
                (18, words(&[ring, 1])),
            ] {
                self.machine.device_message(&message(request, &payload), Vec::new())?;
            }
        }
        Ok(())
    }

    /// An access in the first ring, mostly as drivers make them.
    fn access(&mut self, input: &mut Unstructured) -> Result<std::result::Result<(), MachineError>> {
        let op = input.int_in_range(0..=9u8)?;
        let size = *input.choose(&[1u32, 2, 4, 8, 16, 4096, 5000])?;
        let offset = u64::from(input.arbitrary::<u16>()? & 0x1fff);
        let data: [u8; 8] = input.arbitrary()?;
        let access = [&[op, 0, 0, 0][..], &size.to_le_bytes(), &offset.to_le_bytes(), &data].concat();
        self.put(BUFFERS, &access);
        let descriptor = |address: u64, bytes: u32, flags: u16, next: u16| {
            [&address.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()].concat()
        };
        self.put(RINGS, &descriptor(BUFFERS, access.len() as u32, 1, 1));
        self.put(RINGS + 16, &descriptor(BUFFERS + 0x1000, input.arbitrary::<u16>()?.into(), 2, 0));
        self.put(RINGS + 0x404 + 2 * u64::from(self.offered % ENTRIES as u16), &[0, 0]);
        self.offered = self.offered.wrapping_add(1);
        self.put(RINGS + 0x402, &self.offered.to_le_bytes());
        Ok(self.machine.device_message(&message(35, &words(&[0, 0])), Vec::new()))
    }

    fn step(&mut self, input: &mut Unstructured) -> Result<std::result::Result<(), MachineError>> {
        Ok(match input.int_in_range(0..=11u8)? {
            0..=3 => return self.access(input),
            4 => self.machine.calendar_message(calendar(input.int_in_range(0..=10)?, input.arbitrary()?)),
            5 => self.machine.calendar_message(calendar(3, 0)),
            6 => self.machine.advance().map(drop),
            7 => self.machine.call_reply(&words(&[4, 5, 8, 0, 0])),
            8 => {
                let payload: Vec<u8> = input.arbitrary()?;
                self.machine.device_message(&message(input.int_in_range(0..=40)?, &payload), Vec::new())
            }
            9 => {
                // The shared page: anything, in the header or in the machine's part.
                let at = *input.choose(&[8u64, 16, 24, 4096, 4224, 4228, 4232])?;
                self.page.write_all_at(&input.arbitrary::<[u8; 8]>()?, at).expect("the page");
                Ok(())
            }
            10 => {
                self.put(u64::from(input.arbitrary::<u16>()? & 0x2fff), &input.arbitrary::<[u8; 16]>()?);
                Ok(())
            }
            _ => {
                // The driver leaves, and comes again with empty rings.
                self.machine.device_is_gone();
                self.offered = 0;
                self.put(RINGS + 0x400, &[0; 4]);
                self.put(RINGS + 0x1400, &[0; 4]);
                self.connect_device()
            }
        })
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let mut kernel = Kernel::new();
    if input.ratio(15, 16).unwrap_or(true) {
        kernel.connect().expect("a driver's own messages");
    }
    let mut last = 0;
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match kernel.step(&mut input) {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => break,
        }
        let now = kernel.machine.now();
        assert!(now >= last, "time went back from {last} to {now}");
        last = now;
        let out = kernel.machine.outbox();
        assert!(out.calendar.len() % 16 == 0, "half a message");
        out.calendar.clear();
        out.device.clear();
        out.calls.clear();
    }
});
