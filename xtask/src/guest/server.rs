//! The card's side of a trial: a card's folder, and `emmclab serve` for it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, bail, ensure};
use emmc_lab::folder::last_lines;
use emmc_lab::machine::bound_to_us;

use crate::metadata;

/// The controller that the guest sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// With command queueing.
    Cqe,
    /// The same without.
    NoCqe,
    /// A plain one, up to HS200.
    Hs200,
    /// QEMU's own controller and card, for comparison.
    Qemu,
}

impl Controller {
    /// By its name on the command line.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        let all = [Self::Cqe, Self::NoCqe, Self::Hs200, Self::Qemu];
        let found = all.into_iter().find(|controller| controller.name() == name);
        found.with_context(|| format!("--controller {name}: expected cqe, no-cqe, hs200 or qemu"))
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cqe => "cqe",
            Self::NoCqe => "no-cqe",
            Self::Hs200 => "hs200",
            Self::Qemu => "qemu",
        }
    }
}

/// The speed of the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The model's times.
    #[default]
    Real,
    /// N times slower.
    Dilated(u32),
    /// No delays.
    NoDelay,
}

/// How what serves a card is built.
const BUILD: [&str; 5] = ["build", "--quiet", "--profile", "trial", "--locked"];

/// The card's device for QEMU: the one named by `EMMCLAB_QEMU`, or a new optimised build; the path of the plugin.
pub(crate) fn build_plugin() -> anyhow::Result<PathBuf> {
    if let Some(plugin) = std::env::var_os("EMMCLAB_QEMU") {
        return Ok(plugin.into());
    }
    let workspace = metadata::workspace()?;
    let mut cargo = Command::new("cargo");
    cargo.args(BUILD).args(["--package", "emmc-qemu"]).current_dir(workspace.root);
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(workspace.target.join("trial/libemmc_qemu.so"))
}

/// The program under test.
pub(crate) struct Emmclab {
    program: PathBuf,
}

impl Emmclab {
    /// The one named by `EMMCLAB`, or a new optimised build of this workspace.
    pub(crate) fn build() -> anyhow::Result<Self> {
        if let Some(program) = std::env::var_os("EMMCLAB") {
            return Ok(Self { program: program.into() });
        }
        let workspace = metadata::workspace()?;
        let mut cargo = Command::new("cargo");
        cargo.args(BUILD).args(["--package", "emmclab"]).current_dir(workspace.root);
        let status = cargo.status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo build: {status}");
        Ok(Self { program: workspace.target.join("trial/emmclab") })
    }

    /// Runs it to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> anyhow::Result<Output> {
        let output = Command::new(&self.program).args(args).stdin(Stdio::null()).output();
        output.with_context(|| format!("cannot run {}", self.program.display()))
    }

    /// Makes a card in a folder.
    pub(crate) fn create(&self, card: &Path, profile: &str) -> anyhow::Result<()> {
        let card = card.to_string_lossy();
        self.expect_success(&["sim", "create", "--profile", profile, &card]).map(|_| ())
    }

    /// Runs a job on a card in simulated time.
    pub(crate) fn age(&self, card: &Path, job: &Path) -> anyhow::Result<()> {
        let (card, job) = (card.to_string_lossy(), job.to_string_lossy());
        self.expect_success(&["sim", "run", &card, "--job", &job]).map(|_| ())
    }

    /// The raw value of a register field of a card that is not being served.
    pub(crate) fn field(&self, card: &Path, field: &str) -> anyhow::Result<u128> {
        let source = format!("sim:{}", card.display());
        let text = self.expect_success(&["show", &source, "--field", field, "--raw"])?;
        let text = text.trim();
        let value = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u128::from_str_radix(digits, 16));
        value.with_context(|| format!("{field}: {text:?} is no number"))
    }

    fn expect_success(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.run(args)?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "emmclab {}: {}", args.join(" "), error.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A served card; dropping this kills the server.
pub(crate) struct Server<'a> {
    emmclab: &'a Emmclab,
    card: PathBuf,
    /// Absent: the card is inside the machine.
    child: Option<Child>,
    said: Option<JoinHandle<()>>,
}

impl<'a> Server<'a> {
    /// Serves `card` at `socket`; the server's output goes to files in `folder`.
    pub(crate) fn start(
        emmclab: &'a Emmclab,
        card: &Path,
        socket: &Path,
        controller: Controller,
        pace: Pace,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let mut command = bound_to_us(&emmclab.program);
        command.args(["serve", "--json"]).arg(card).arg("--vfio-user").arg(socket);
        command.args(["--controller", controller.name()]).arg("--record").arg(folder);
        match pace {
            Pace::Real => {}
            Pace::Dilated(times) => drop(command.arg("--dilate").arg(times.to_string())),
            Pace::NoDelay => drop(command.arg("--no-delay")),
        }
        Self::await_ready(emmclab, card, command, socket, folder)
    }

    /// Serves `card` in simulated time to a User-Mode Linux, in the folder `uml` of `folder`.
    pub(crate) fn start_uml(
        emmclab: &'a Emmclab,
        card: &Path,
        folder: &Path,
        controller: Controller,
        more: &[OsString],
    ) -> anyhow::Result<Self> {
        let sockets = folder.join("uml");
        let mut command = bound_to_us(&emmclab.program);
        command.args(["serve", "--json"]).arg(card).arg("--uml").arg(&sockets);
        command.args(["--controller", controller.name()]).args(more);
        Self::await_ready(emmclab, card, command, &sockets, folder)
    }

    /// Starts the server, and waits until it has printed `address`.
    fn await_ready(
        emmclab: &'a Emmclab,
        card: &Path,
        mut command: Command,
        address: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join("serve");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().context("cannot start emmclab serve")?;
        let mut lines = BufReader::new(child.stdout.take().context("the server's output")?);
        // It prints its address when it is ready.
        let name = address.to_string_lossy().into_owned();
        let mut line = String::new();
        while !line.contains(&name) {
            line.clear();
            if lines.read_line(&mut line).context("the server's output")? == 0 {
                let status = child.wait()?;
                bail!("emmclab serve: {status}: {}", last_lines(&log));
            }
        }
        let said = std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(drop));
        Ok(Self { emmclab, card: card.to_path_buf(), child: Some(child), said: Some(said) })
    }

    /// A card inside the machine, which serves it itself.
    pub(crate) fn inside(emmclab: &'a Emmclab, card: &Path) -> Self {
        Self { emmclab, card: card.to_path_buf(), child: None, said: None }
    }

    /// Runs `emmclab sim ctl CARD WORDS` on the served card.
    pub(crate) fn control(&self, words: &[&str]) -> anyhow::Result<Output> {
        let card = self.card.to_string_lossy();
        let args: Vec<&str> = ["sim", "ctl", &*card].iter().chain(words).copied().collect();
        self.emmclab.run(&args)
    }

    /// Saves the card and ends the server.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        if self.child.is_none() {
            return Ok(());
        }
        let output = self.control(&["stop"])?;
        ensure!(output.status.success(), "sim ctl stop: {}", String::from_utf8_lossy(&output.stderr).trim());
        let status =
            self.child.take().map(|mut child| child.wait()).transpose().context("waiting for emmclab serve")?;
        let status = status.context("the server")?;
        ensure!(status.success(), "emmclab serve ended with {status}");
        self.said.take().map(JoinHandle::join);
        Ok(())
    }

    /// Ends it as kill -9 does.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.take().map_or(Ok(()), |mut child| child.kill().context("killing emmclab serve"))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
