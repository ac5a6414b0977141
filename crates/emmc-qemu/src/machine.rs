//! One card with its controller in the machine: a board on QEMU's clock, and the files of its record.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::control::{Control, ControlServer, StopOrder};
use emmc_serve::layer::{Faults, Stats};
use emmc_serve::pci::{Board, Function, Record};
use emmc_serve::sdhci::{GuestMemory, HostFaults};
use emmc_serve::served::Served;
use emmc_serve::store::{SOCKET_FILE, StoreError};
use emmc_units::{Instant, Nanos};

use crate::options::{CardOptions, Source};

/// Why there is no card.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoCard {
    #[error("profile={0}: {1}")]
    New(String, String),
    #[error("card={}: {source}", path.display())]
    Folder { path: PathBuf, source: Box<StoreError> },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("host={0}: {1}")]
    Host(i32, io::Error),
}

/// A card in the machine.
pub(crate) struct Machine {
    pub(crate) board: Board,
    /// The card's time when the machine's clock shows 0.
    offset: Nanos,
    record: Record,
    control: Option<ControlServer>,
    due: Option<Instant>,
    last_access: Instant,
    /// The longest time by which an event came later than it was due: less than an instruction, if all is well.
    late: Nanos,
}

fn create(path: &Path) -> Result<File, NoCard> {
    emmc_serve::output::create(path).map_err(|source| NoCard::File { path: path.into(), source })
}

impl Machine {
    /// Opens the card. The machine's clock shows 0 at its start.
    pub(crate) fn open(options: &CardOptions, host: Option<i32>) -> Result<Self, NoCard> {
        let served = match &options.source {
            Source::Folder(path) => Served::open_driven(path)
                .map_err(|source| NoCard::Folder { path: path.clone(), source: source.into() })?,
            Source::Profile(name) => {
                let profile = shipped::named(name).map_err(|error| NoCard::New(name.clone(), error.to_string()))?;
                let keep = DeviceOptions { keep: StoredContent::Data, seed: 1 };
                let mut card =
                    Card::new(profile, keep).map_err(|error| NoCard::New(name.clone(), error.to_string()))?;
                let now = card.power_on(Instant::START).unwrap_or(Instant::START);
                Served::driven(card, now)
            }
        };
        let served = Arc::new(served);
        let faults = HostFaults::default();
        let mut board = Board::new(Function::new(options.controller).with_faults(faults.clone()), Arc::clone(&served));
        if let Some(path) = &options.log {
            board = board.with_log(Box::new(BufWriter::new(create(path)?)));
        }
        if let Some(descriptor) = host {
            let rig = crate::host::at(descriptor).map_err(|error| NoCard::Host(descriptor, error))?;
            board = board.with_mailbox(Box::new(rig));
        }
        let control = match &options.source {
            Source::Folder(folder) => Some(serve_control(&folder.join(SOCKET_FILE), &served, faults)?),
            Source::Profile(_) => None,
        };
        let start = served.now();
        let record = Record::new(start, options.requests.as_deref(), options.summary.as_deref());
        let record = record.map_err(|source| {
            let path = options.requests.clone().unwrap_or_default();
            NoCard::File { path, source }
        })?;
        Ok(Self {
            board,
            offset: start.since(Instant::START),
            record,
            control,
            due: None,
            last_access: start,
            late: Nanos::ZERO,
        })
    }

    /// The card's time when the machine's clock shows `ns`.
    fn at(&self, ns: i64) -> Instant {
        Instant::START + self.offset + Nanos(u64::try_from(ns).unwrap_or(0))
    }

    /// The machine's clock at `at`.
    fn machine_ns(&self, at: Instant) -> u64 {
        at.since(Instant::START + self.offset).0
    }

    /// Software reads the registers when the machine's clock shows `ns`.
    pub(crate) fn read(&mut self, offset: usize, bytes: usize, memory: &dyn GuestMemory, ns: i64) -> u64 {
        self.last_access = self.at(ns);
        self.board.read(offset, bytes, memory, self.last_access)
    }

    /// Software writes the registers.
    pub(crate) fn write(&mut self, offset: usize, bytes: usize, value: u64, memory: &dyn GuestMemory, ns: i64) {
        self.last_access = self.at(ns);
        self.board.write(offset, bytes, value, memory, self.last_access);
    }

    /// Software writes configuration space.
    pub(crate) fn write_config(&mut self, offset: usize, bytes: usize, value: u64, ns: i64) {
        let now = self.at(ns);
        self.board.write_config(offset, bytes, value, now);
    }

    /// The event that was asked for has come.
    pub(crate) fn tick(&mut self, memory: &dyn GuestMemory, ns: i64) {
        let now = self.at(ns);
        self.late = self.late.max(self.due.map_or(Nanos::ZERO, |due| now.since(due)));
        self.board.advance(memory, now);
    }

    /// Records the requests that have ended; returns when the next event is due on the machine's clock, if ever.
    pub(crate) fn settle(&mut self) -> Option<i64> {
        self.record.settle(&mut self.board);
        self.due = self.board.next();
        self.due.map(|at| i64::try_from(self.machine_ns(at)).unwrap_or(i64::MAX))
    }

    /// The machine ends: the record is written out, the card is switched off and its folder saved.
    ///
    /// Errors: in words, one for each thing that failed.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        self.control = None;
        let mut errors = self.record.finish(&mut self.board, self.last_access, self.late);
        errors.extend(self.board.served().finish().err().map(|error| format!("the card: {error}")));
        errors
    }
}

/// Lets `emmclab sim ctl` reach the card.
fn serve_control(path: &Path, served: &Arc<Served>, host_faults: HostFaults) -> Result<ControlServer, NoCard> {
    let faults = Arc::new(Faults::new(Arc::clone(served) as _));
    let stats = Arc::new(Stats::new(Arc::clone(&faults) as _, Arc::clone(served)));
    let (stop, stopped) = mpsc::channel::<StopOrder>();
    std::thread::spawn(move || {
        for order in stopped {
            order.answer(Err("the card is in a machine: it stops with the machine".into()));
        }
    });
    let control = Control { served: Arc::clone(served), faults, host_faults, stats, stop };
    ControlServer::start(path, control).map_err(|source| NoCard::File { path: path.into(), source })
}
