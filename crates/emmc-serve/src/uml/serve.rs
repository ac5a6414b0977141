//! The server thread: accepts a machine, passes on messages, and waits only for the machine: time is the calendar's.

use std::fs::File;
use std::io::{self, BufWriter, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::calendar::MESSAGE_BYTES;
use super::machine::{Machine, MachineError};
use super::vhost_user::{self, Malformed};
use super::{Sockets, UmlOptions, Watch};
use crate::pci::{Board, Function, LineHost, Record};
use crate::sdhci::HostFaults;
use crate::served::Served;
use crate::stream::{Filled, Incoming};

/// A send that the machine does not accept is aborted after this time.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a machine is disconnected.
#[derive(Debug, thiserror::Error)]
enum Parted {
    /// It ended.
    #[error("closed")]
    Closed,
    /// The server ends.
    #[error("stopped")]
    Stopped,
    #[error("{0}")]
    Machine(#[from] MachineError),
    #[error("its sockets: {0}")]
    Socket(#[from] io::Error),
}

impl From<Malformed> for Parted {
    fn from(error: Malformed) -> Self {
        Self::Machine(error.into())
    }
}

/// Serves machines until `stop` is closed.
pub(super) fn run(
    sockets: &Sockets,
    stop: &UnixStream,
    served: &Arc<Served>,
    faults: &HostFaults,
    options: &UmlOptions,
    accesses: Option<&File>,
) {
    while let Ok(Ready { stops: false, .. }) = await_input(stop, &[Some(sockets.time.socket.as_fd())], false) {
        let Ok((socket, _)) = sockets.time.socket.accept() else { continue };
        let watch = options.watch.as_deref();
        let parted = match connect(socket, served, faults, options, accesses) {
            Ok(mut client) => {
                let Err(parted) = client.serve(sockets, stop, watch);
                client.report(watch);
                parted
            }
            Err(error) => Parted::Socket(error),
        };
        if options.power_follows_client {
            // Without its store the card is useless to the next machine too, which gets the error.
            let _ = served.cut_power().and_then(|()| served.restore_power());
        }
        match parted {
            Parted::Stopped => return,
            Parted::Closed => {}
            other => match watch {
                Some(watch) => watch.complain(other.to_string()),
                None => eprintln!("uml: a machine was disconnected: {other}"),
            },
        }
    }
}

/// A machine that has connected to the calendar.
///
/// Errors: the system's; nobody listens at the mailbox's socket.
fn connect(
    socket: UnixStream,
    served: &Arc<Served>,
    faults: &HostFaults,
    options: &UmlOptions,
    accesses: Option<&File>,
) -> io::Result<Client> {
    super::processor::share(&socket);
    let start = served.now();
    let mut board = Board::new(Function::new(options.identity).with_faults(faults.clone()), Arc::clone(served));
    if let Some(file) = accesses {
        board = board.with_log(Box::new(BufWriter::new(file.try_clone()?)));
    }
    if let Some(path) = &options.mailbox {
        board = board.with_mailbox(Box::new(LineHost::new(UnixStream::connect(path)?)));
    }
    let file = |name: &str| options.record.as_ref().map(|folder| folder.join(name));
    let record = Record::new(start, file("requests").as_deref(), file("summary.json").as_deref())?;
    let machine = Machine::new(board, record, start)?;
    Ok(Client { machine, calendar: Link::new(socket, MESSAGE_BYTES)?, device: None, calls: None })
}

/// What there is to do.
struct Ready {
    stops: bool,
    /// Which of the sources have input.
    inputs: [bool; 3],
}

/// Waits for input on one of at most three sources, or does not wait.
fn await_input(stop: &UnixStream, sources: &[Option<BorrowedFd<'_>>], is_busy: bool) -> io::Result<Ready> {
    let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(stop, PollFlags::IN)];
    fds.extend(sources.iter().flatten().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)));
    let timeout = is_busy.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut ready = Ready { stops: !fds[0].revents().is_empty(), inputs: [false; 3] };
    let mut rest = fds[1..].iter();
    for (input, source) in ready.inputs.iter_mut().zip(sources) {
        *input = source.is_some() && rest.next().is_some_and(|fd| !fd.revents().is_empty());
    }
    Ok(ready)
}

/// An uninhabited type.
enum Never {}

/// A socket and what has arrived there.
struct Link {
    socket: UnixStream,
    incoming: Incoming,
}

impl Link {
    fn new(socket: UnixStream, longest_message: usize) -> io::Result<Self> {
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { socket, incoming: Incoming::new(longest_message) })
    }

    /// Reads what has arrived; returns whether it is open.
    fn fill(&mut self) -> io::Result<bool> {
        Ok(self.incoming.fill(&self.socket)? != Filled::Closed)
    }

    fn send(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if !bytes.is_empty() {
            self.socket.write_all(bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

struct Client {
    machine: Machine,
    calendar: Link,
    /// vhost-user, once the machine's driver has connected.
    device: Option<Link>,
    /// The device's own requests.
    calls: Option<Link>,
}

impl Client {
    /// Serves until the machine is disconnected.
    fn serve(&mut self, sockets: &Sockets, stop: &UnixStream, watch: Option<&Watch>) -> Result<Never, Parted> {
        loop {
            self.carry()?;
            let is_busy = self.machine.advance()?;
            if let Some(watch) = watch {
                watch.see(self.machine.now(), self.machine.last_access());
            }
            self.send()?;
            let device = self.device.as_ref().map_or(sockets.card.socket.as_fd(), |link| link.socket.as_fd());
            let calls = self.calls.as_ref().map(|link| link.socket.as_fd());
            let ready = await_input(stop, &[Some(self.calendar.socket.as_fd()), Some(device), calls], is_busy)?;
            if ready.stops {
                return Err(Parted::Stopped);
            }
            let [calendar, device, calls] = ready.inputs;
            if device {
                self.device_input(sockets)?;
            }
            if let (true, Some(link)) = (calls, &mut self.calls) {
                if !link.fill()? {
                    self.calls = None;
                    self.machine.device_is_gone();
                }
            }
            if calendar && !self.calendar.fill()? {
                return Err(Parted::Closed);
            }
        }
    }

    /// The driver connects, sends or leaves.
    fn device_input(&mut self, sockets: &Sockets) -> Result<(), Parted> {
        match &mut self.device {
            Some(link) => {
                if !link.fill()? {
                    (self.device, self.calls) = (None, None);
                    self.machine.device_is_gone();
                }
            }
            None => {
                if let Ok((socket, _)) = sockets.card.socket.accept() {
                    self.device = Some(Link::new(socket, vhost_user::MESSAGE_MAX)?);
                }
            }
        }
        Ok(())
    }

    /// Handles the messages that have arrived.
    fn carry(&mut self) -> Result<(), Parted> {
        let whole = |bytes: &[u8]| Ok::<_, Malformed>((bytes.len() >= MESSAGE_BYTES).then_some(MESSAGE_BYTES));
        while let Some((message, _)) = self.calendar.incoming.next(whole)? {
            if let Ok(message) = self.calendar.incoming.bytes(message).try_into() {
                self.machine.calendar_message(message)?;
            }
        }
        if let Some(link) = &mut self.device {
            while let Some((message, fds)) = link.incoming.next(vhost_user::message_bytes)? {
                self.machine.device_message(link.incoming.bytes(message), fds)?;
            }
            if let Some(calls) = self.machine.take_calls() {
                self.calls = Some(Link::new(UnixStream::from(calls), vhost_user::MESSAGE_MAX)?);
            }
        }
        if let Some(link) = &mut self.calls {
            while let Some((message, _)) = link.incoming.next(vhost_user::message_bytes)? {
                self.machine.call_reply(link.incoming.bytes(message))?;
            }
        }
        Ok(())
    }

    /// Sends what the machine is to get.
    fn send(&mut self) -> io::Result<()> {
        if self.machine.outbox().has_page {
            self.send_page()?;
        }
        let out = self.machine.outbox();
        if let Some(link) = &mut self.device {
            link.send(&mut out.device)?;
        }
        if let Some(link) = &mut self.calls {
            link.send(&mut out.calls)?;
        }
        self.calendar.send(&mut out.calendar)
    }

    /// Sends the first reply with two descriptors: the page, and a file for logs that nobody reads.
    fn send_page(&mut self) -> io::Result<()> {
        let log = std::fs::File::options().write(true).open("/dev/null")?;
        let bytes = std::mem::take(&mut self.machine.outbox().calendar);
        let fds = [self.machine.page(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let has_room = control.push(SendAncillaryMessage::ScmRights(&fds));
        let sent = sendmsg(&self.calendar.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        if !has_room || sent != bytes.len() {
            return Err(io::Error::other("the calendar's page could not be sent"));
        }
        self.machine.outbox().has_page = false;
        Ok(())
    }

    /// Prints what the machine did, unless somebody watches: two runs of the same work print the same line.
    fn report(&mut self, watch: Option<&Watch>) {
        let errors = self.machine.finish();
        if let Some(watch) = watch {
            errors.into_iter().for_each(|error| watch.complain(error));
            return;
        }
        for error in errors {
            eprintln!("uml: {error}");
        }
        let ns = self.machine.now();
        let (counts, digest) = (self.machine.board().counts(), self.machine.board().digest());
        eprintln!(
            "uml: the machine ended at {}.{:09} s: {} reads and {} writes of registers, {} interrupts, {} requests, \
             accesses {digest}",
            ns / 1_000_000_000,
            ns % 1_000_000_000,
            counts.reads,
            counts.writes,
            counts.interrupts,
            counts.requests,
        );
    }
}
