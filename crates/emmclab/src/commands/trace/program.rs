//! The command of `trace record`: how it is started and ended, and the exit code for it.
//!
//! As `time`, `env` and `timeout` have it: its own code, 128 and the signal that ended it, 127 if it does not exist,
//! 126 if it cannot be run.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::exit::Exit;
use crate::signals::{self, Wakes};

/// Why the command does not run.
#[derive(Debug)]
pub(crate) struct CannotRun {
    program: String,
    error: std::io::Error,
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot run: {}", self.program, self.error)
    }
}

impl std::error::Error for CannotRun {}

impl CannotRun {
    pub(crate) fn code(&self) -> u8 {
        if self.error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
    }
}

/// Signals that this program gets, and what wakes it.
pub(super) struct Signals {
    last: Arc<AtomicUsize>,
    wakes: Wakes,
}

impl Signals {
    /// From now on they do not end this program.
    ///
    /// Errors: those of the kernel.
    pub(super) fn new() -> anyhow::Result<Self> {
        let last = Arc::default();
        signals::keep_signal(&last)?;
        Ok(Self { last, wakes: Wakes::new()? })
    }

    /// The last one that came.
    pub(super) fn last(&self) -> Option<u8> {
        u8::try_from(self.last.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }

    /// Until a signal comes, a child ends, or this instant. Whether it was a signal or the instant.
    ///
    /// Errors: those of the kernel.
    fn wait(&self, until: Option<Instant>) -> anyhow::Result<bool> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let is_over = || self.last().is_some() || until.is_some_and(|until| until <= Instant::now());
        if !is_over() {
            self.wakes.wait(left)?;
        }
        Ok(is_over())
    }

    /// Until a signal comes, or this instant.
    ///
    /// Errors: those of the kernel.
    pub(super) fn wait_until(&self, until: Option<Instant>) -> anyhow::Result<()> {
        while !self.wait(until)? {}
        Ok(())
    }
}

/// The command, started.
pub(super) struct Program(Child);

impl Program {
    /// Errors: it cannot be run.
    pub(super) fn start(command: &[OsString], stdout: Stdio) -> anyhow::Result<Self> {
        let (program, rest) = command.split_first().ok_or_else(|| anyhow::anyhow!("no COMMAND"))?;
        let spawned = Command::new(program).args(rest).stdout(stdout).spawn();
        let named = |error| CannotRun { program: program.to_string_lossy().into_owned(), error };
        Ok(Self(spawned.map_err(named)?))
    }

    /// Until it ends by itself, with its status; or until a signal comes or the time is over, when it is asked to end.
    ///
    /// Errors: those of the kernel.
    pub(super) fn wait(&mut self, signals: &Signals, until: Option<Instant>) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if signals.wait(until)? {
                let status = self.0.try_wait()?;
                if status.is_none() {
                    self.ask_to_end();
                }
                return Ok(status);
            }
        }
    }

    /// Until it ends by itself, as above; every so often something is looked at.
    ///
    /// Errors: those of the kernel.
    pub(super) fn watch(
        &mut self,
        signals: &Signals,
        every: Duration,
        mut look: impl FnMut(),
    ) -> anyhow::Result<Option<ExitStatus>> {
        let mut due = Instant::now();
        loop {
            look();
            due += every;
            loop {
                if let Some(status) = self.0.try_wait()? {
                    return Ok(Some(status));
                }
                if signals.wait(Some(due))? {
                    break;
                }
            }
            if signals.last().is_some() {
                self.ask_to_end();
                return Ok(None);
            }
        }
    }

    /// Until it has ended after it was asked to, or one more signal comes.
    ///
    /// Errors: those of the kernel.
    pub(super) fn end(mut self, signals: &Signals) -> anyhow::Result<()> {
        let first = signals.last.swap(0, Ordering::Relaxed);
        while self.0.try_wait()?.is_none() && !signals.wait(None)? {}
        signals.last.store(first, Ordering::Relaxed);
        Ok(())
    }

    fn ask_to_end(&self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
    }
}

/// The exit code for a command that ended by itself.
pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Script(code as u8),
        (None, Some(signal)) => by_signal(signal as u8),
        (None, None) => Exit::Unusable,
    }
}

/// The exit code for an end by a signal.
pub(super) fn by_signal(signal: u8) -> Exit {
    Exit::Script(128u8.saturating_add(signal))
}
