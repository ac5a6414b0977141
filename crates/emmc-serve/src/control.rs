//! The control socket: orders that no host can send to a card, and the card's internal state.
//!
//! One line of JSON per order, one line per reply, any number of times. A line that cannot be parsed is answered with
//! an error and has no effect. User page: docs/sim-ctl.md. Absent on purpose: any access control beyond the permissions
//! of the socket's file.

mod answer;
mod request;
mod stop;
#[cfg(test)]
mod tests;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Wall};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

pub use answer::{ServedState, ServedStats};
pub use request::Order;
pub use stop::StopOrder;

use crate::layer::{Faults, Stats};
use crate::listener::bind_private;
use crate::sdhci::HostFaults;
use crate::served::Served;

/// The largest number of clients.
const CLIENTS_MAX: usize = 32;
/// How long a client may take for a line, and for taking its answer.
const LINE_TIME: Duration = Duration::from_secs(60);
/// The pause after the system had no descriptor for a client.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Longest line. Unit: bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// What the socket controls.
pub struct Control {
    /// The card.
    pub served: Arc<Served>,
    /// Where errors are injected.
    pub faults: Arc<Faults>,
    /// Where errors of host commands are injected.
    pub host_faults: HostFaults,
    /// The statistics.
    pub stats: Arc<Stats>,
    /// Takes orders to end; each is answered when everything has ended, or cannot.
    pub stop: mpsc::Sender<StopOrder>,
}

impl Control {
    /// Executes an order of this process; as on the socket, without orders to stop.
    ///
    /// Errors: why it cannot be executed.
    pub fn execute(self: &Arc<Self>, order: Order) -> Result<serde_json::Value, String> {
        request::check(&order)?;
        answer::carry_out(self, order)
    }

    /// Executes a line and returns its reply. Resources that come with the reply are kept until it is written.
    fn answer(self: &Arc<Self>, line: &str) -> (String, Option<stop::Asker>) {
        let (answered, asker) = match request::parse(line) {
            Ok(Order::Stop) => {
                let (order, asker) = StopOrder::asked();
                // Whoever takes orders may have ended already, for another reason.
                drop(self.stop.send(order));
                (asker.outcome().map(|()| answer::done()), Some(asker))
            }
            Ok(order) => (answer::carry_out(self, order), None),
            Err(error) => (Err(error), None),
        };
        (answered.map_or_else(|error| refusal(&error), |value| value.to_string()), asker)
    }
}

/// A listening control socket. Dropping it stops the thread and removes the file.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens at `path`; replaces a socket that a dead server left there.
    ///
    /// The caller has made sure that no other server of the card is alive (the folder's lock).
    /// Errors: the system's.
    pub fn start(path: &Path, control: Control) -> std::io::Result<Self> {
        Self::start_with(path, control, LINE_TIME)
    }

    /// The same with another time for a line.
    fn start_with(path: &Path, control: Control, line_time: Duration) -> std::io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = bind_private(path)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (control, ended) = (Arc::new(control), Arc::clone(&ends));
        let listen = move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                // Those that wait are accepted when there is room again.
                let Ok(client) = client else {
                    std::thread::sleep(SHORTAGE);
                    continue;
                };
                let place = Arc::clone(&control);
                if Arc::strong_count(&place) > CLIENTS_MAX + 1 {
                    let why =
                        format!("there are {CLIENTS_MAX} clients already; each may take {line_time:?} for a line");
                    drop((&client).write_all((refusal(&why) + "\n").as_bytes()));
                    continue;
                }
                // Do not wait for clients that leave. Without a thread this one is disconnected.
                let answer = move || drop(serve(&client, &place, line_time));
                drop(std::thread::Builder::new().name("control-client".into()).spawn(answer));
            }
        };
        let thread = std::thread::Builder::new().name("control".into()).spawn(listen)?;
        Ok(Self { path: path.into(), ends, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Connecting wakes the listener.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A client's bytes, which have to come before a time.
struct Timed<'a> {
    client: &'a UnixStream,
    until: Wall,
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.saturating_duration_since(Wall::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(Some(left))?;
        let mut client = self.client;
        client.read(into)
    }
}

/// Answers a client's lines until it disconnects, or takes too long for one.
fn serve(client: &UnixStream, control: &Arc<Control>, line_time: Duration) -> std::io::Result<()> {
    client.set_write_timeout(Some(line_time))?;
    let mut reader = BufReader::new(Timed { client, until: Wall::now() });
    let mut writer = client;
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.get_mut().until = Wall::now() + line_time;
        if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let (answer, asker) = if !line.ends_with(b"\n") && line.len() as u64 == LINE_BYTES_MAX {
            skip_line(&mut reader)?;
            (refusal(&format!("the line is longer than {LINE_BYTES_MAX} bytes")), None)
        } else {
            match std::str::from_utf8(&line) {
                Ok(line) => control.answer(line),
                Err(error) => (refusal(&format!("not understood: byte {} is no UTF-8", error.valid_up_to())), None),
            }
        };
        writer.write_all((answer + "\n").as_bytes())?;
        // The process may end from here on.
        drop(asker);
    }
}

fn refusal(why: &str) -> String {
    serde_json::json!({ "error": why }).to_string()
}

/// Skips the rest of a line of any length without storing it.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let (length, ends) = match reader.fill_buf()? {
            [] => return Ok(()),
            bytes => bytes.iter().position(|byte| *byte == b'\n').map_or((bytes.len(), false), |at| (at + 1, true)),
        };
        reader.consume(length);
        if ends {
            return Ok(());
        }
    }
}

/// How long the client of [`ask`] waits for a server that is there, for each part of the answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Asks the server of a card something and returns its answer. After a granted [`Order::Stop`] the server has ended.
///
/// Errors: no server, or the system's; a server that is stopped does not answer in a minute.
pub fn ask(path: &Path, order: &Order) -> std::io::Result<serde_json::Value> {
    ask_within(path, order, ANSWER)
}

/// The same with another time to wait.
///
/// Errors: as [`ask`].
pub fn ask_within(path: &Path, order: &Order, patience: Duration) -> std::io::Result<serde_json::Value> {
    answer_within(path, order, patience).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            let why = format!("the server does not answer in {patience:?}: it is stopped, or its card does not end");
            std::io::Error::new(std::io::ErrorKind::TimedOut, why)
        }
        _ => error,
    })
}

/// A connection on which each step takes at most this time, the connecting too: where the server takes no clients,
/// their number is limited.
fn connect_within(path: &Path, patience: Duration) -> std::io::Result<UnixStream> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(patience))?;
    }
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

fn answer_within(path: &Path, order: &Order, patience: Duration) -> std::io::Result<serde_json::Value> {
    let client = connect_within(path, patience)?;
    let line = serde_json::to_string(order)? + "\n";
    (&client).write_all(line.as_bytes())?;
    let mut answer = String::new();
    let mut reader = BufReader::new(&client);
    reader.read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "the server closed the connection without an answer",
        ));
    }
    let answer: serde_json::Value = serde_json::from_str(&answer)?;
    if *order == Order::Stop && answer.get("error").is_none() {
        // The connection ends with the process.
        reader.read_to_end(&mut Vec::new())?;
    }
    Ok(answer)
}
