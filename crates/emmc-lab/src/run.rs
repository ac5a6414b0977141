//! One run: serves the card, starts the machine, listens to it, and ends both.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Wall};

use emmc_serve::block::BlockError;
use emmc_serve::pci::Identity;
use emmc_serve::sdhci::HostFaults;
use emmc_serve::served::Served;
use emmc_serve::uml::{self, UmlOptions, Watch};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::account::{Mark, Phase};
use crate::boots::{Boots, Restart};
use crate::folder::last_lines;
use crate::guest::{self, GuestFiles, HOST_FOLDER};
use crate::kernel::Kernel;
use crate::machine::{CONSOLE, MachineSetup, Mailbox, SERVER_FOLDER, start};

/// How often signals and the clock are looked at while the machine says nothing.
const LOOK: Duration = Duration::from_millis(100);
/// The files of the record in the run's folder.
pub const REQUESTS: &str = "requests";
pub(crate) const SUMMARY: &str = "summary.json";

/// What a run is made of.
pub struct Run<'a> {
    /// The card, on a driven clock.
    pub served: Arc<Served>,
    /// The controller; it must have MSI.
    pub identity: Identity,
    /// Errors between controller and card.
    pub host_faults: HostFaults,
    /// The machine's kernel.
    pub kernel: &'a Kernel,
    /// A new folder for this run.
    pub folder: &'a Path,
    /// What the guest finds.
    pub files: GuestFiles<'a>,
    /// The machine's memory. Unit: MiB.
    pub memory_mib: u32,
    /// Further parameters of the kernel.
    pub parameters: &'a [OsString],
    /// Each access of a register goes to this file.
    pub accesses: Option<&'a Path>,
    /// When it is ended from outside.
    pub limits: Limits<'a>,
    /// Answers the script's other questions, `ask WORDS`: the status and the text.
    pub control: &'a mut dyn FnMut(&str) -> (i32, String),
}

/// When a run is ended from outside.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Real time for which simulated time may stand still; none: for ever.
    pub patience: Option<Duration>,
    /// Simulated time in which the script must end; none: any. Unit: ns.
    pub limit_ns: Option<u64>,
    /// Ends the run when it is set.
    pub stop: &'a AtomicBool,
}

/// The accesses of the controller's registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accesses {
    /// SHA-256 of all of them with their instants: equal runs have equal ones.
    pub digest: String,
    /// Registers read.
    pub reads: u64,
    /// Registers written.
    pub writes: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Requests that crossed the bus or kept the card busy.
    pub requests: u64,
    /// The last of them, since the machine's start. Unit: ns.
    pub last_access_ns: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The script's exit status.
    pub status: u8,
    /// What it printed.
    pub output: String,
    /// Accesses of registers.
    pub accesses: Accesses,
    /// The requests.
    pub phases: Vec<Phase>,
    /// What the script measured itself, in its sequence.
    pub figures: Vec<Figure>,
}

/// A figure that the script reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value, in the script's unit.
    pub value: f64,
}

/// Runs it to the end of the script, over as many boots as that asks for.
///
/// Errors: there is no result; machine and server have ended.
pub fn run(mut run: Run<'_>) -> Result<Ran, LabError> {
    guest::lay_out(run.folder, &run.files)?;
    let mailbox = Mailbox::bind(run.folder)?;
    let (mut boots, mut figures) = (Boots::default(), Vec::new());
    let status = loop {
        let base_ns = run.served.now().since(run.served.started()).0;
        let heard = boot(&mut run, &mailbox, boots.next(), base_ns)?;
        boots.take(run.folder, &heard.marks, base_ns)?;
        figures.extend(heard.figures);
        if heard.restart.is_none() {
            break heard.status;
        }
        // The card is as after power-up.
        let failed = |error: BlockError| LabError::Serve(error.to_string());
        run.served.cut_power().and_then(|()| run.served.restore_power()).map_err(failed)?;
        guest::set_environment(run.folder, run.files.environment, boots.next())?;
    };
    let (accesses, phases) = boots.finish(run.folder)?;
    let path = run.folder.join(HOST_FOLDER).join("output");
    let output = fs::read(&path).map_err(LabError::file(&path))?;
    Ok(Ran { status, output: String::from_utf8_lossy(&output).into_owned(), accesses, phases, figures })
}

/// What a machine said.
struct Heard {
    marks: Vec<Mark>,
    figures: Vec<Figure>,
    status: u8,
    restart: Option<Restart>,
}

/// One machine, from its start to its end.
fn boot(run: &mut Run<'_>, mailbox: &Mailbox, number: u32, base_ns: u64) -> Result<Heard, LabError> {
    let watch = Arc::new(Watch::default());
    let options = UmlOptions {
        identity: run.identity,
        power_follows_client: false,
        accesses: run.accesses.map(|path| accesses_of(path, number)),
        record: Some(run.folder.into()),
        mailbox: Some(mailbox.path.clone()),
        watch: Some(Arc::clone(&watch)),
    };
    let faults = run.host_faults.clone();
    let server = uml::serve(Arc::clone(&run.served), faults, &run.folder.join(SERVER_FOLDER), options)
        .map_err(|error| LabError::Serve(error.to_string()))?;
    let setup =
        MachineSetup { kernel: run.kernel, folder: run.folder, memory_mib: run.memory_mib, parameters: run.parameters };
    let mut machine = Guard(start(&setup)?);
    let control = mailbox.accept(&mut machine.0)?;
    let host = run.folder.join(HOST_FOLDER);
    let mut talk = Talk {
        control,
        host: &host,
        watch: &watch,
        answers: 0,
        marks: vec![start_mark()],
        figures: Vec::new(),
        status: None,
        restart: None,
    };
    let heard = talk.listen(&run.limits, base_ns, run.control);
    let Talk { control, marks, figures, status, restart, .. } = talk;
    match heard {
        Ok(()) if restart == Some(Restart::PowerLoss) => {
            // It waits for the answer: nothing of it comes after this instant.
            let cut = run.served.cut_power();
            drop(machine);
            // The server's thread waits for it too.
            let _ = (&control).write_all(b"0 0\n");
            cut.map_err(|error| LabError::Serve(error.to_string()))?;
        }
        // It powers itself off.
        Ok(()) => drop(machine.0.wait()),
        Err(error) => {
            drop(machine);
            server.stop();
            return Err(error);
        }
    }
    drop(control);
    // The thread writes the record when the machine has gone.
    server.stop();
    let seconds = (base_ns + watch.now_ns()) as f64 / 1e9;
    if restart == Some(Restart::PowerLoss) {
        // The machine was killed: it has no exit status, and its complaints mean nothing.
        return Ok(Heard { marks, figures, status: 0, restart });
    }
    let complaints = watch.complaints();
    let Some(status) = status else {
        let console = last_lines(&run.folder.join(CONSOLE));
        let why = complaints.first().cloned().or_else(|| console.lines().last().map(str::to_owned));
        return Err(LabError::Ended { seconds, why: why.unwrap_or_else(|| "no message".into()) });
    };
    if let Some(complaint) = complaints.first() {
        return Err(LabError::Serve(complaint.clone()));
    }
    Ok(Heard { marks, figures, status, restart })
}

/// The file of the accesses of a boot: of the second one with `.2` at its name's end.
fn accesses_of(path: &Path, boot: u32) -> PathBuf {
    if boot == 1 {
        return path.into();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{boot}"));
    name.into()
}

/// A machine; it is killed when this is dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_mark() -> Mark {
    Mark { name: "setup".into(), start_ns: 0 }
}

/// The guest's last access to the card, in simulated and in real time.
struct Progress {
    access_ns: u64,
    at: Wall,
}

impl Progress {
    /// Why there is none: the clock stands at `now_ns`, or has advanced to it without any request.
    fn none_since(&self, now_ns: u64) -> LabError {
        let (seconds, real_s) = (self.access_ns as f64 / 1e9, self.at.elapsed().as_secs());
        // An idle machine tells its time once an hour, a busy one at its last event.
        const HOUR_NS: u64 = 3_600_000_000_000;
        if now_ns.saturating_sub(self.access_ns) < HOUR_NS {
            return LabError::StandsStill { seconds, real_s };
        }
        LabError::Waits { seconds, until_s: now_ns as f64 / 1e9, real_s }
    }
}

/// The talk with the guest.
struct Talk<'a> {
    control: UnixStream,
    /// The folder that the guest sees.
    host: &'a Path,
    watch: &'a Watch,
    answers: u32,
    marks: Vec<Mark>,
    figures: Vec<Figure>,
    status: Option<u8>,
    restart: Option<Restart>,
}

impl Talk<'_> {
    /// Listens until the machine, which was started at `base_ns` of the run, is off or loses its power.
    ///
    /// Errors: it must be ended.
    fn listen(
        &mut self,
        limits: &Limits,
        base_ns: u64,
        control: &mut dyn FnMut(&str) -> (i32, String),
    ) -> Result<(), LabError> {
        let failed = || LabError::system("the guest's mailbox");
        self.control.set_read_timeout(Some(LOOK)).map_err(failed())?;
        let mut pending = Vec::new();
        let mut buffer = [0; 4096];
        let mut progress = Progress { access_ns: 0, at: Wall::now() };
        loop {
            match self.control.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => pending.extend_from_slice(&buffer[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // A machine that was disconnected.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(failed()(error)),
            }
            while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                self.hear(String::from_utf8_lossy(&line).trim_end(), control)?;
                if self.restart == Some(Restart::PowerLoss) {
                    return Ok(());
                }
            }
            if limits.stop.load(Ordering::Relaxed) {
                return Err(LabError::Stopped);
            }
            let now_ns = self.watch.now_ns();
            if limits.limit_ns.is_some_and(|limit| base_ns + now_ns > limit) {
                return Err(LabError::TooLong { limit_s: limits.limit_ns.unwrap_or(0) / 1_000_000_000 });
            }
            let access_ns = self.watch.access_ns();
            if progress.access_ns != access_ns {
                progress = Progress { access_ns, at: Wall::now() };
            }
            if limits.patience.is_some_and(|patience| progress.at.elapsed() > patience) {
                return Err(progress.none_since(now_ns));
            }
        }
    }

    /// A figure of the script: `NAME VALUE`.
    fn figure(&mut self, words: &str) -> (i32, String) {
        let figure = words.rsplit_once(' ').and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        match figure.filter(|(_, value)| value.is_finite()) {
            Some((name, value)) => self.figures.push(Figure { name: name.into(), value }),
            None => return (1, format!("figure {words}: expected NAME NUMBER")),
        }
        (0, String::new())
    }

    /// A line of the guest.
    fn hear(&mut self, line: &str, control: &mut dyn FnMut(&str) -> (i32, String)) -> Result<(), LabError> {
        if let Some(status) = line.strip_prefix("exit ") {
            self.status = status.parse().ok();
        }
        let Some(question) = line.strip_prefix("ask ") else { return Ok(()) };
        if question == "power-loss" {
            // There is no answer.
            self.restart = Some(Restart::PowerLoss);
            return Ok(());
        }
        let (status, text) = if question == "restart" {
            self.restart = Some(Restart::Orderly);
            (0, String::new())
        } else if let Some(name) = question.strip_prefix("mark ") {
            // Its time stands still, so all that it did before was issued earlier.
            self.marks.push(Mark { name: name.into(), start_ns: self.watch.now_ns() });
            (0, String::new())
        } else if let Some(words) = question.strip_prefix("figure ") {
            self.figure(words)
        } else {
            control(question)
        };
        let lines: String = text.lines().map(|line| format!("{line}\n")).collect();
        let answer = format!("{status} {}\n{lines}", text.lines().count());
        self.answers += 1;
        let path = self.host.join(format!("answer-{}", self.answers));
        fs::write(&path, &answer).map_err(LabError::file(&path))?;
        self.control.write_all(answer.as_bytes()).map_err(LabError::system("the guest's mailbox"))
    }
}
