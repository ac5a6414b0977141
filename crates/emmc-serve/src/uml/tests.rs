//! A machine's side of the links: a driver that identifies the card, and machines that send anything.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_units::Instant;
use rustix::fs::{MemfdFlags, memfd_create};

use super::calendar::tests::message as calendar_message;
use super::machine::{Machine, MachineError};
use super::pcidev::tests::header;
use super::vhost_user::tests::{message, words};
use super::{CalendarError, UmlError, UmlOptions, serve};
use crate::pci::{Board, Function, Identity, Record};
use crate::sdhci::HostFaults;
use crate::served::Served;

/// Operations of the calendar.
const START: u32 = 1;
const WAIT: u32 = 3;

/// The machine's memory: the rings of accesses and of interrupts, and buffers.
const BASE: u64 = 0x10_0000;
const RING: u64 = 0x1000;
const BUFFER: u64 = 0x8000;
const INTERRUPT_BUFFER: u64 = 0x9000;
const MEMORY: u64 = 0x10_000;
const ENTRIES: u32 = 8;

fn served() -> Arc<Served> {
    let profile = shipped::named("generic-8g").unwrap();
    let mut card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    let now = card.power_on(Instant::START).unwrap();
    Arc::new(Served::driven(card, now))
}

/// A kernel that is connected: accesses are buffers in the first ring.
struct Kernel {
    machine: Machine,
    memory: File,
    accesses: u16,
    now: u64,
}

impl Kernel {
    fn connected() -> Self {
        let served = served();
        let start = served.now();
        let board = Board::new(Function::new(Identity::Gl9763e), served);
        let machine = Machine::new(board, Record::new(start, None, None).unwrap(), start).unwrap();
        let memory = File::from(memfd_create("uml", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(MEMORY).unwrap();
        let mut kernel = Self { machine, memory, accesses: 0, now: 0 };
        kernel.machine.calendar_message(calendar_message(START, 1, 0)).unwrap();
        assert!(kernel.machine.outbox().has_page);
        kernel.machine.outbox().has_page = false;
        kernel.machine.outbox().calendar.clear();
        let region = [BASE, MEMORY, BASE, 0].map(u64::to_ne_bytes).concat();
        let file: OwnedFd = kernel.memory.try_clone().unwrap().into();
        kernel.send(5, &[words(&[1, 0]), region].concat(), vec![file]);
        for ring in 0..2 {
            kernel.send(8, &words(&[ring, ENTRIES]), vec![]);
            kernel.send(10, &words(&[ring, 0]), vec![]);
            let places = [0, 0x800, 0x400].map(|part| (BASE + RING * u64::from(ring) + part).to_ne_bytes()).concat();
            kernel.send(9, &[words(&[ring, 0]), places].concat(), vec![]);
            kernel.send(18, &words(&[ring, 1]), vec![]);
        }
        let (requests, _) = UnixStream::pair().unwrap();
        kernel.send(21, &[], vec![requests.into()]);
        assert!(kernel.machine.take_calls().is_some());
        // One buffer for interrupts, offered again each time.
        kernel.describe(1, 0, INTERRUPT_BUFFER, 20, 2, 0);
        kernel.put(RING + 0x402, &1u16.to_le_bytes());
        // Memory and bus mastering, MSI to an address with number 77.
        kernel.write_config(4, 2, 6);
        kernel.write_config(0x54, 4, 0xfee0_0000);
        kernel.write_config(0x5c, 2, 77);
        kernel.write_config(0x52, 2, 1);
        kernel
    }

    /// Sends a device message and checks its acknowledgement.
    fn send(&mut self, request: u32, payload: &[u8], fds: Vec<OwnedFd>) {
        self.machine.device_message(&message(request, payload), fds).unwrap();
        let acknowledged = [words(&[request, 5, 8]), vec![0; 8]].concat();
        assert_eq!(std::mem::take(&mut self.machine.outbox().device), acknowledged);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        self.memory.read_exact_at(&mut found, at).unwrap();
        found
    }

    fn describe(&self, ring: u64, index: u64, at: u64, bytes: u32, flags: u16, next: u16) {
        let entry = [&(BASE + at).to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        self.put(ring * RING + 16 * index, &entry.concat());
    }

    /// One access, with the kernel's time.
    fn access(&mut self, access: &[u8], answer_bytes: u32) -> Vec<u8> {
        self.machine.shared().set_current(self.now);
        self.put(BUFFER, access);
        let last = answer_bytes == 0;
        self.describe(0, 0, BUFFER, access.len() as u32, u16::from(!last), 1);
        self.describe(0, 1, BUFFER + 0x800, answer_bytes, 2, 0);
        self.put(0x404 + 2 * u64::from(self.accesses % ENTRIES as u16), &0u16.to_le_bytes());
        self.accesses += 1;
        self.put(0x402, &self.accesses.to_le_bytes());
        self.send(35, &words(&[0, 0]), vec![]);
        assert_eq!(self.get(0x802, 2), self.accesses.to_le_bytes(), "the access is done");
        self.get(BUFFER + 0x800, answer_bytes as usize)
    }

    fn write_config(&mut self, at: u64, bytes: u32, value: u64) {
        self.access(&[header(2, 0, bytes, at), value.to_le_bytes().to_vec()].concat(), 0);
    }

    fn write(&mut self, at: u64, bytes: u32, value: u64) {
        let data = &value.to_le_bytes()[..bytes as usize];
        self.access(&[header(4, 0, bytes, at), data.to_vec()].concat(), 0);
    }

    fn read(&mut self, at: u64, bytes: u32) -> u64 {
        let mut value = [0; 8];
        value[..bytes as usize].copy_from_slice(&self.access(&header(3, 0, bytes, at), bytes));
        u64::from_le_bytes(value)
    }

    /// Waits until an interrupt comes or `until`; returns whether it came.
    fn wait(&mut self, until: u64) -> bool {
        self.machine.shared().set_current(self.now);
        self.machine.shared().ask(1, 1, until);
        self.machine.calendar_message(calendar_message(WAIT, 2, 0)).unwrap();
        assert!(self.machine.outbox().calendar.is_empty(), "WAIT has no reply");
        let mut came = false;
        loop {
            assert!(!self.machine.advance().unwrap());
            let calls = std::mem::take(&mut self.machine.outbox().calls);
            if !calls.is_empty() {
                came = true;
                let interrupt = self.get(INTERRUPT_BUFFER, 20);
                assert_eq!(interrupt, [header(7, 0, 4, 0xfee0_0000), vec![77, 0, 0, 0]].concat());
                let used = u16::from_le_bytes(self.get(RING + 0x802, 2).try_into().unwrap());
                self.put(RING + 0x402, &(used + 1).to_le_bytes());
                // It asks to run at once: the handler is an event of now.
                let now = self.machine.now();
                self.machine.shared().ask(1, 1, now);
                self.machine.call_reply(&words(&[4, 5, 8, 0, 0])).unwrap();
                continue;
            }
            let run = std::mem::take(&mut self.machine.outbox().calendar);
            self.now = self.machine.now();
            assert_eq!(run, calendar_message(6, 0, self.now));
            self.machine.shared().ask(1, 0, 0);
            return came;
        }
    }

    /// A command without data; the first word of its response.
    fn command(&mut self, index: u64, argument: u64, flags: u64) -> u64 {
        self.write(0x08, 4, argument);
        self.write(0x0c, 4, index << 24 | flags << 16);
        let ends = if flags & 3 == 3 { 3 } else { 1 };
        let mut status = 0;
        while status & ends != ends {
            assert!(self.wait(self.now + 1_000_000_000), "CMD{index} takes a second");
            let new = self.read(0x30, 4);
            self.write(0x30, 4, new);
            status |= new;
        }
        self.read(0x10, 4)
    }

    /// Identifies the card; returns its relative address and the time it took.
    fn identify(&mut self) -> u64 {
        for (offset, bytes, value) in
            [(0x29, 1, 0x0f), (0x2c, 2, 5), (0x2e, 1, 0x0e), (0x34, 4, 0xffff_ffff), (0x38, 4, 0xffff_ffff)]
        {
            self.write(offset, bytes, value);
        }
        self.command(0, 0, 0);
        while self.command(1, 0x40ff_8080, 2) >> 31 == 0 {
            assert!(!self.wait(self.now + 1_000_000));
        }
        self.command(2, 0, 9);
        self.command(3, 0x1_0000, 0x1a);
        self.command(7, 0x1_0000, 0x1b)
    }
}

#[test]
fn a_kernel_identifies_the_card_at_the_same_nanoseconds_each_time() {
    let run = || {
        let mut kernel = Kernel::connected();
        assert_eq!(kernel.access(&header(1, 0, 4, 0), 4), 0xe763_17a0u32.to_le_bytes());
        let ready = kernel.identify();
        assert_eq!(ready >> 8 & 1, 1, "ready for data");
        (kernel.now, kernel.machine.board().digest(), kernel.machine.board().counts())
    };
    let first = run();
    assert!(first.0 > 0 && first.2.interrupts >= 5, "{first:?}");
    assert_eq!(run(), first);
}

#[test]
fn a_running_kernel_may_pass_time_only_until_the_next_event() {
    let mut kernel = Kernel::connected();
    kernel.identify();
    kernel.write(0x08, 4, 0x1_0000);
    kernel.write(0x0c, 4, 13 << 24 | 0x1a << 16);
    let (until, running) = kernel.machine.shared().state();
    assert!(until > kernel.now && until < kernel.now + 1_000_000 && running == 1, "{until}");
    assert!(kernel.wait(kernel.now + 1_000_000));
    assert_eq!(kernel.now, until, "the interrupt comes exactly then");
}

#[test]
fn accesses_outside_the_device_read_as_ones() {
    let mut kernel = Kernel::connected();
    assert_eq!(kernel.access(&header(3, 0, 4, 0xffe), 4), [0xff; 4]);
    assert_eq!(kernel.access(&header(3, 1, 4, 0), 4), [0xff; 4]);
    assert_eq!(kernel.access(&header(1, 0, 8, 0xffc), 8), [0xff; 8]);
    kernel.access(&[header(4, 0, 4, u64::MAX), vec![1; 4]].concat(), 0);
    kernel.access(&[header(5, 0, 32, 0x10), vec![0]].concat(), 0);
    assert_eq!(kernel.access(&header(3, 0, 32, 0x10), 32).len(), 32);
}

#[test]
fn a_machine_that_waits_for_ever_is_told() {
    let mut kernel = Kernel::connected();
    kernel.now = 1_500_000_000;
    kernel.machine.shared().set_current(kernel.now);
    kernel.machine.shared().ask(1, 1, i64::MAX as u64);
    kernel.machine.calendar_message(calendar_message(WAIT, 9, 0)).unwrap();
    let error = loop {
        match kernel.machine.advance() {
            Ok(_) => assert!(kernel.machine.waits()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, MachineError::Deadlock { .. }), "{error}");
    assert!(error.to_string().starts_with("at 1.500000000 s"), "{error}");
}

#[test]
fn bad_kernels_are_disconnected() {
    let mut kernel = Kernel::connected();
    assert!(kernel.machine.device_message(&message(99, &[]), vec![]).is_err());
    // An access that is none, and one that is not in memory.
    kernel.describe(0, 0, BUFFER, 3, 0, 0);
    kernel.put(0x402, &(kernel.accesses + 1).to_le_bytes());
    assert!(kernel.machine.device_message(&message(35, &words(&[0, 0])), vec![]).is_err());
    let mut kernel = Kernel::connected();
    kernel.describe(0, 0, MEMORY, 16, 0, 0);
    kernel.put(0x402, &(kernel.accesses + 1).to_le_bytes());
    assert!(kernel.machine.device_message(&message(35, &words(&[0, 0])), vec![]).is_err());
    let mut kernel = Kernel::connected();
    kernel.machine.shared().ask(0, 0, 0);
    let error = kernel.machine.calendar_message(calendar_message(WAIT, 0, 0)).unwrap_err();
    assert!(matches!(error, MachineError::Calendar(CalendarError::DoesNotShare)), "{error}");
}

#[test]
fn sockets_serve_one_machine_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("uml");
    let server = serve(served(), HostFaults::default(), &at, UmlOptions::default()).unwrap();
    let parameters = server.kernel_parameters();
    let at = at.canonicalize().unwrap();
    assert!(parameters.contains(&format!("time-travel=ext:{}/time.sock", at.display())), "{parameters}");
    for _ in 0..2 {
        let mut time = UnixStream::connect(at.join("time.sock")).unwrap();
        let mut card = UnixStream::connect(at.join("card.sock")).unwrap();
        let mut reply = [0; 16];
        time.write_all(&calendar_message(START, 7, 0)).unwrap();
        time.read_exact(&mut reply).unwrap();
        assert_eq!(reply, calendar_message(0, 7, 1));
        let mut features = [0; 20];
        card.write_all(&words(&[1, 1, 0])).unwrap();
        card.read_exact(&mut features).unwrap();
        assert_eq!(features[..12], words(&[1, 5, 8]));
        // What is not the protocol ends the connection.
        time.write_all(&[0xff; 16]).unwrap();
        assert_eq!(time.read(&mut reply).unwrap(), 0);
    }
    server.stop();
    assert!(!at.join("time.sock").exists() && !at.join("card.sock").exists());
}

#[test]
fn what_the_kernel_cannot_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &str, identity| {
        let options = UmlOptions { identity, ..UmlOptions::default() };
        serve(served(), HostFaults::default(), &folder.path().join(name), options).map(drop)
    };
    assert!(matches!(start("a", Identity::Generic), Err(UmlError::NeedsMsi)));
    assert!(matches!(start("a:b", Identity::Gl9763e), Err(UmlError::Name(_))));
    assert!(matches!(start(&"a".repeat(120), Identity::Gl9763e), Err(UmlError::Listen { .. })));
}
