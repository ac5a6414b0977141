//! The server thread: accepts a client, handles its messages, services the function when it is due.

use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant as Wall};

use emmc_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::VfioUserOptions;
use super::protocol::MESSAGE_MAX;
use super::session::{Session, message_bytes};
use crate::block::BlockError;
use crate::listener::Listener;
use crate::pci::{Function, Record};
use crate::sdhci::HostFaults;
use crate::served::Served;
use crate::stream::{Filled, Incoming};

/// Work that is due within this time is done immediately: a single access of the guest takes longer, so it cannot
/// notice, and so does a sleep this short.
const SLACK: Duration = Duration::from_micros(8);
/// Steps before the client's messages are checked again.
const STEPS_MAX: u32 = 256;
/// A send that the client does not accept is aborted after this time.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a client could not be accepted.
const SHORTAGE: Duration = Duration::from_millis(20);

/// The time in which a client must agree on a version: until then it keeps the next one waiting for nothing.
const NEGOTIATION: Duration = Duration::from_secs(10);

/// Why a client is disconnected.
#[derive(Debug, thiserror::Error)]
enum Parted {
    #[error("no version was agreed on in {0:?}")]
    Silent(Duration),
    /// It closed its socket.
    #[error("closed")]
    Closed,
    /// The server ends.
    #[error("stopped")]
    Stopped,
    #[error("{0}")]
    Malformed(#[from] super::session::Malformed),
    #[error("its socket: {0}")]
    Socket(#[from] io::Error),
}

/// Serves clients until `stop` is closed.
pub(super) fn run(
    listener: &Listener,
    stop: &UnixStream,
    served: &Served,
    faults: &HostFaults,
    options: &VfioUserOptions,
) {
    // Sleeps should end on time; a system that cannot do that serves all the same, only later.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    while let Ok(true) = await_input(&[&listener.socket.as_fd()], stop, None) {
        let Ok((socket, _)) = listener.socket.accept() else {
            // Without a descriptor the client goes on waiting, and so would this loop.
            std::thread::sleep(SHORTAGE);
            continue;
        };
        let mut client = Client {
            socket,
            incoming: Incoming::new(MESSAGE_MAX),
            session: Session::new(Function::new(options.identity).with_faults(faults.clone())),
            served,
            record: options.record.as_deref().and_then(|folder| record(folder, served)),
            failed: None,
        };
        let parted = match client.serve(stop, options.negotiation.unwrap_or(NEGOTIATION)) {
            Err(parted) => parted,
            Ok(never) => match never {},
        };
        if let Some(Err(error)) = client.record.as_mut().map(Record::flush) {
            eprintln!("vfio-user: the record of the requests: {error}");
        }
        drop(client);
        if options.power_follows_client {
            // Without its store the card is useless to the next client too, which gets the error.
            let _ = served.cut_power().and_then(|()| served.restore_power());
        }
        match parted {
            Parted::Stopped => return,
            Parted::Closed => {}
            other => eprintln!("vfio-user: a client was disconnected: {other}"),
        }
    }
}

/// The file of a client's requests.
fn record(folder: &Path, served: &Served) -> Option<Record> {
    let path = folder.join("requests");
    let record = Record::new(served.now(), Some(&path), None);
    record.inspect_err(|error| eprintln!("vfio-user: {}: {error}", path.display())).ok()
}

/// Waits for input on one of `sources`, or until a time; returns whether the server continues.
fn await_input(sources: &[&dyn AsFd], stop: &UnixStream, until: Option<Wall>) -> io::Result<bool> {
    let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(stop, PollFlags::IN)];
    fds.extend(sources.iter().map(|source| PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN)));
    let left = until.map(|until| until.saturating_duration_since(Wall::now()));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds[0].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
}

/// An uninhabited type.
enum Never {}

struct Client<'a> {
    socket: UnixStream,
    incoming: Incoming,
    session: Session,
    served: &'a Served,
    record: Option<Record>,
    /// The last error that prevented serving the card.
    failed: Option<BlockError>,
}

impl Client<'_> {
    /// Serves until the client is disconnected.
    fn serve(&mut self, stop: &UnixStream, negotiation: Duration) -> Result<Never, Parted> {
        self.socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        let begun = Wall::now();
        loop {
            self.carry()?;
            let mut due = self.catch_up();
            if !self.session.is_agreed() {
                if begun.elapsed() >= negotiation {
                    return Err(Parted::Silent(negotiation));
                }
                due = Some(begun + negotiation);
            }
            match self.incoming.fill(&self.socket)? {
                Filled::Some => {}
                Filled::Closed => return Err(Parted::Closed),
                Filled::None => {
                    if !await_input(&[&self.socket.as_fd()], stop, due)? {
                        return Err(Parted::Stopped);
                    }
                }
            }
        }
    }

    /// Handles the received messages, and replies.
    fn carry(&mut self) -> Result<(), Parted> {
        while let Some((message, fds)) = self.incoming.next(message_bytes)? {
            // An access of software sees the work that was due before it.
            self.catch_up();
            let now = self.served.now();
            self.session.receive(self.incoming.bytes(message), fds, now)?;
            if self.session.wants_service() {
                self.service(now);
            } else {
                self.session.signal();
            }
            let answers = self.session.answers();
            if !answers.is_empty() {
                self.socket.write_all(answers)?;
                answers.clear();
            }
        }
        Ok(())
    }

    /// Executes due work without an access; returns the time of the next call.
    fn catch_up(&mut self) -> Option<Wall> {
        for _ in 0..STEPS_MAX {
            let at = self.session.poll_timeout()?;
            // Where clients do not wait, the card's clock has jumped by now.
            if let Some(wall) = self.served.wall(at) {
                if wall > Wall::now() + SLACK {
                    return Some(wall);
                }
            }
            let was_up = self.session.interrupt();
            self.service(at);
            if !was_up && self.session.interrupt() {
                self.served.count_answer(at);
            }
        }
        Some(Wall::now())
    }

    /// Services the function up to now, or to `at`, which may be slightly ahead.
    fn service(&mut self, at: Instant) {
        let session = &mut self.session;
        let kept = self.served.with_card(|card, now| session.service(card, now.max(at)));
        if let Err(error) = kept {
            // The guest must not learn that it was done. It runs into its timeout instead; disconnecting could crash
            // the whole virtual machine.
            self.session.abandon();
            if self.failed.replace(error.clone()) != Some(error.clone()) {
                eprintln!("vfio-user: the guest gets no answers any more: {error}");
            }
        }
        let ended = self.session.take_accounts();
        if !ended.is_empty() {
            self.served.count_requests(ended.iter());
            if let Some(record) = &mut self.record {
                ended.iter().for_each(|account| record.add(account, None));
            }
        }
        self.session.signal();
    }
}
