//! U-Boot's prompt on the serial port of a machine.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};

const PROMPT: &str = "\n=> ";

/// A machine at U-Boot's prompt; dropping this ends it.
pub(super) struct Console {
    machine: Child,
    /// All that it printed.
    said: String,
}

impl Console {
    /// Starts the machine and waits for the first prompt.
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let machine = command.spawn().context("cannot start QEMU")?;
        let mut console = Self { machine, said: String::new() };
        console.until_prompt()?;
        Ok(console)
    }

    /// Runs a command; what it printed.
    ///
    /// Errors: the machine ended.
    pub(super) fn command(&mut self, command: &str) -> anyhow::Result<String> {
        let input = self.machine.stdin.as_mut().context("no serial port")?;
        input.write_all(format!("{command}\r").as_bytes()).context("U-Boot's input")?;
        self.until_prompt()
    }

    /// The same, and what it must have printed.
    ///
    /// Errors: it did not.
    pub(super) fn expect(&mut self, command: &str, phrases: &[&str]) -> anyhow::Result<String> {
        let said = self.command(command)?;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for phrase in phrases {
            ensure!(words(&said).contains(phrase), "U-Boot: {command}: expected {phrase:?}, found:\n{said}");
        }
        Ok(said)
    }

    /// Switches the machine off.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.machine.kill().context("ending QEMU")?;
        self.machine.wait().context("ending QEMU")?;
        Ok(())
    }

    fn until_prompt(&mut self) -> anyhow::Result<String> {
        let from = self.said.len();
        let output = self.machine.stdout.as_mut().context("no serial port")?;
        let mut byte = [0];
        while !self.said[from..].ends_with(PROMPT) {
            if output.read(&mut byte).context("U-Boot's output")? == 0 {
                bail!("the machine ended:\n{}", self.said);
            }
            // The port has carriage returns too.
            if byte[0] != b'\r' {
                self.said.push(byte[0].into());
            }
        }
        Ok(self.said[from..].to_owned())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}
