//! The control socket: what no host can ask of a card, and what can be known of it from inside.
//!
//! A line of JSON is asked, a line is answered, as often as a client likes; a line that makes no sense is answered with
//! an error and nothing is done. User page: docs/sim-ctl.md. Absent on purpose: any right beyond that of the socket's
//! file.

mod answer;
mod request;
#[cfg(test)]
mod tests;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use answer::{ServedState, ServedStats};
pub use request::Order;

use crate::layer::{Faults, Stats};
use crate::sdhci::HostFaults;
use crate::served::Served;

/// No line is longer. Unit: bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// What is controlled.
pub struct Control {
    /// The card.
    pub served: Arc<Served>,
    /// Where errors are injected.
    pub faults: Arc<Faults>,
    /// The same for commands of a host.
    pub host_faults: HostFaults,
    /// What is counted.
    pub stats: Arc<Stats>,
    /// Told when all is to end.
    pub stop: mpsc::Sender<()>,
}

impl Control {
    /// Answers a line.
    fn answer(&self, line: &str) -> String {
        let answered = request::parse(line).and_then(|order| answer::carry_out(self, order));
        answered.map_or_else(|error| refusal(&error), |value| value.to_string())
    }
}

/// A socket that is listened at. It ends when this is dropped, and its file with it.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens at `path`; a file that a dead server has left there is replaced.
    ///
    /// The caller has made sure that no other server of the card is alive (its folder's lock).
    /// Errors: whatever the system says.
    pub fn start(path: &Path, control: Control) -> std::io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (control, ended) = (Arc::new(control), Arc::clone(&ends));
        let listen = move || {
            for client in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                let Ok(client) = client else { continue };
                let control = Arc::clone(&control);
                // A client that leaves is not waited for.
                std::thread::spawn(move || drop(serve(&client, &control)));
            }
        };
        let thread = std::thread::Builder::new().name("control".into()).spawn(listen)?;
        Ok(Self { path: path.into(), ends, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // The listener wakes up by being spoken to.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers a client's lines until it leaves.
fn serve(client: &UnixStream, control: &Control) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut writer = client;
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = if !line.ends_with(b"\n") && line.len() as u64 == LINE_BYTES_MAX {
            skip_line(&mut reader)?;
            refusal(&format!("the line is longer than {LINE_BYTES_MAX} bytes"))
        } else {
            match std::str::from_utf8(&line) {
                Ok(line) => control.answer(line),
                Err(error) => refusal(&format!("not understood: byte {} is no UTF-8", error.valid_up_to())),
            }
        };
        writer.write_all((answer + "\n").as_bytes())?;
    }
}

fn refusal(why: &str) -> String {
    serde_json::json!({ "error": why }).to_string()
}

/// Leaves out what is left of a line, however long, without keeping it.
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

/// Asks the server of a card something; answers with the line it says. After [`Order::Stop`] it has ended.
///
/// Errors: nobody serves it, or whatever the system says.
pub fn ask(path: &Path, order: &Order) -> std::io::Result<serde_json::Value> {
    let client = UnixStream::connect(path)?;
    let line = serde_json::to_string(order)? + "\n";
    (&client).write_all(line.as_bytes())?;
    let mut answer = String::new();
    let mut reader = BufReader::new(&client);
    reader.read_line(&mut answer)?;
    if *order == Order::Stop {
        // The line goes when the process does.
        reader.read_to_end(&mut Vec::new())?;
    }
    if answer.is_empty() {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server left without an answer"));
    }
    Ok(serde_json::from_str(&answer)?)
}
