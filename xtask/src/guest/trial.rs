//! One trial: a card, its server, a machine with it, a script inside, and the checks after shutdown.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use emmc_lab::folder::{RunFolder, last_lines};
use emmc_lab::guest::HOST_FOLDER;

use crate::guest::answers::{Aside, answer};
use crate::guest::machine::{Clock, Machine, Outcome, Setup, Show};
use crate::guest::packages;
use crate::guest::record;
use crate::guest::rig::Rig;
use crate::guest::server::{Controller, Emmclab, Pace, Server, build_plugin};
use crate::guest::{spans, uml};

/// The configuration of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None: no card, unless the further arguments for QEMU have one.
    pub(crate) controller: Option<Controller>,
    /// The folder of a card that exists.
    pub(crate) card: Option<PathBuf>,
    /// The profile of a card that is made for this trial.
    pub(crate) profile: String,
    /// The shipped profile of a second card, in memory, behind a controller of its own.
    pub(crate) second: Option<String>,
    /// The card's history: a job of `emmclab sim run`.
    pub(crate) age: Option<PathBuf>,
    pub(crate) pace: Pace,
    pub(crate) clock: ClockKind,
    /// It runs twice, and both runs must be the same.
    pub(crate) twice: bool,
    /// It runs in QEMU and in User-Mode Linux, both on one clock with the card, and both must agree.
    pub(crate) both: bool,
    /// CI runs one of those of a script that have this, another one each day.
    pub(crate) in_turn: bool,
    pub(crate) memory_mib: u32,
    pub(crate) processors: u8,
    /// The destination of the files that the script leaves in /out.
    pub(crate) out: Option<PathBuf>,
    pub(crate) show: Show,
    /// Further arguments for QEMU, or of the kernel of User-Mode Linux.
    pub(crate) qemu: Vec<OsString>,
    /// The guest is a User-Mode Linux in simulated time.
    pub(crate) uml: bool,
    /// Another kernel than the built one: User-Mode Linux.
    pub(crate) kernel: Option<PathBuf>,
    /// The file for each access of a register, with its time.
    pub(crate) accesses: Option<PathBuf>,
}

/// What moves the guest's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    /// The host machine's clock.
    Wall,
    /// The guest's instructions, of 2^`shift` ns each.
    Virtual { shift: u8 },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller: None,
            card: None,
            profile: "generic-8g".into(),
            second: None,
            age: None,
            pace: Pace::Real,
            clock: ClockKind::Wall,
            twice: false,
            both: false,
            in_turn: false,
            // Enough for the whole first file system and the tools.
            memory_mib: 512,
            processors: 1,
            out: None,
            show: Show::Output,
            qemu: Vec::new(),
            uml: false,
            kernel: None,
            accesses: None,
        }
    }
}

/// What is checked when the machine is off, from the script.
enum Check {
    /// A register field has a value.
    Field { field: String, value: u128 },
    /// The recording in /out has the card's requests, and on one clock with the card its spans.
    Spans,
    /// What it says of depth 1 and 32 predicts the speed at every depth.
    Depths,
}

/// Additional host-side behaviour for a script.
pub(crate) trait Host {
    /// The guest printed a line that is not part of the common protocol.
    fn told(&mut self, line: &str, server: Option<&Server>) -> anyhow::Result<Next>;

    /// The guest sent a request, and waits for the reply.
    fn asked(&mut self, words: &str, server: Option<&Server>) -> anyhow::Result<String>;
}

/// How a trial continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Normally.
    Continue,
    /// Machine and server are killed together.
    Kill,
}

/// No additional behaviour: lines are ignored, questions are refused.
pub(crate) struct Nobody;

impl Host for Nobody {
    fn told(&mut self, _: &str, _: Option<&Server>) -> anyhow::Result<Next> {
        Ok(Next::Continue)
    }

    fn asked(&mut self, words: &str, _: Option<&Server>) -> anyhow::Result<String> {
        bail!("the guest asks {words:?}, and nobody is there to answer")
    }
}

/// Runs it. The result has no status if `host` had machine and server killed.
pub(crate) fn run(
    rig: &Rig,
    emmclab: Option<&Emmclab>,
    options: &Options,
    script: &str,
    programs: &[(&str, PathBuf)],
    host: &mut dyn Host,
) -> anyhow::Result<Outcome> {
    if options.uml {
        return uml::run(emmclab, options, script, programs, host);
    }
    let folder = RunFolder::new()?;
    let mut card = PathBuf::new();
    let mut qemu = options.qemu.clone();
    let mut server = None;
    match (options.controller, emmclab) {
        (Some(Controller::Qemu), _) => qemu.extend(qemus_own(&folder.path)?),
        (Some(controller), Some(emmclab)) => {
            card = self::card(emmclab, options, &folder.path)?;
            if options.clock == ClockKind::Wall {
                let socket = folder.path.join("card.sock");
                server = Some(Server::start(emmclab, &card, &socket, controller, options.pace, &folder.path)?);
                qemu.extend(["-device".into(), device(&socket)]);
            } else {
                server = Some(Server::inside(emmclab, &card));
            }
        }
        (Some(_), None) => bail!("a card without the program that serves it"),
        (None, _) => {}
    }
    let controller = options.controller.map_or("none", Controller::name);
    let environment = [variable("CONTROLLER", controller), dilation(options), clock_name(options.clock)];
    let inside = match options.clock {
        ClockKind::Wall => None,
        ClockKind::Virtual { shift } => {
            ensure!(
                server.is_some(),
                "--clock virtual: needs a card: --profile, --card, or --controller cqe, no-cqe or hs200"
            );
            let record = |card: u32| {
                let [summary, requests] = record::names(card).map(|name| folder.path.join(name).display().to_string());
                format!("summary={summary},requests={requests}")
            };
            let mut arguments = format!("controller={controller},card={},host=0,{}", card.display(), record(1));
            if let Some(second) = &options.second {
                arguments += &format!(",profile={second},{}", record(2));
                qemu.extend(["-device", "emmclab-sdhci-2"].map(OsString::from));
            }
            Some((shift, build_plugin()?, arguments))
        }
    };
    let setup = Setup {
        rig,
        folder: &folder.path,
        script,
        environment: &environment,
        programs,
        memory_mib: options.memory_mib,
        processors: options.processors,
        qemu: &qemu,
        clock: match &inside {
            None => Clock::Wall,
            Some((shift, plugin, arguments)) => Clock::Virtual { shift: *shift, plugin, arguments },
        },
        show: options.show,
    };
    let machine = Machine::start(&setup)?;
    let card = Served { folder: &folder.path, card: &card, emmclab, server, has_record: inside.is_some() };
    attend(machine, card, options, host)
}

/// The folder of the trial's card, which is made in this run's `folder` unless the options name one.
pub(crate) fn card(emmclab: &Emmclab, options: &Options, folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(card) = &options.card {
        return Ok(card.clone());
    }
    let card = folder.join("card");
    emmclab.create(&card, &options.profile)?;
    if let Some(job) = &options.age {
        emmclab.age(&card, job)?;
    }
    Ok(card)
}

/// The card's side of a machine that runs.
pub(crate) struct Served<'a> {
    /// This run's.
    pub(crate) folder: &'a Path,
    pub(crate) card: &'a Path,
    pub(crate) emmclab: Option<&'a Emmclab>,
    pub(crate) server: Option<Server<'a>>,
    /// The run leaves a record: it is on one clock with the card.
    pub(crate) has_record: bool,
}

/// Answers the guest until it is off, and checks what it left.
pub(crate) fn attend(
    mut machine: Machine,
    served: Served<'_>,
    options: &Options,
    host: &mut dyn Host,
) -> anyhow::Result<Outcome> {
    let Served { folder, card, emmclab, server, has_record } = served;
    let queues = options.controller == Some(Controller::Cqe);
    let aside = Aside { server: server.as_ref(), emmclab, profile: &options.profile, queues, folder };
    let Some(checks) = listen(&mut machine, &aside, host)? else {
        // Both lose their memory; only the folder remains, which the server wrote before its replies.
        server.map(Server::kill).transpose()?;
        let (outcome, unread) = machine.kill()?;
        // What it did between the decision and its end counts: it may have written more.
        for line in unread.iter().filter(|line| !line.starts_with("ask ")) {
            host.told(line, None)?;
        }
        return Ok(outcome);
    };
    let mut outcome = machine.finish()?;
    if let Some(out) = &options.out {
        unpack(&folder.join("files.tar"), out)?;
    }
    if outcome.status.is_none() {
        bail!("the guest stopped before the script ended:\n{}", last_lines(&folder.join("console")));
    }
    if has_record {
        outcome.digest = Some(record::report(folder, options)?);
    }
    if let Some(server) = server {
        server.stop().with_context(|| last_lines(&folder.join("serve")))?;
    }
    let on_one_clock = options.uml || options.clock != ClockKind::Wall;
    for check in checks {
        match check {
            Check::Field { field, value } => {
                let emmclab = emmclab.context("a check of a card without the program that shows it")?;
                let found = emmclab.field(card, &field)?;
                ensure!(found == value, "the card's {field} is {found:#x}, expected {value:#x}");
                println!("ok: afterwards the card's {field} is {found:#x}");
            }
            Check::Depths => {
                let queueing = options.controller == Some(Controller::Cqe);
                spans::predict(&left_by_guest(folder)?, queueing, on_one_clock, options.processors.into())?;
            }
            Check::Spans => {
                spans::compare(&left_by_guest(folder)?, &folder.join("requests"), on_one_clock)?;
            }
        }
    }
    Ok(outcome)
}

/// The folder with what the script left in /out.
fn left_by_guest(folder: &Path) -> anyhow::Result<PathBuf> {
    let shared = folder.join(HOST_FOLDER).join("out");
    if !shared.is_dir() {
        unpack(&folder.join("files.tar"), &shared)?;
    }
    Ok(shared)
}

/// Serves the guest until it is off; returns none if it is to be killed.
fn listen(machine: &mut Machine, aside: &Aside, host: &mut dyn Host) -> anyhow::Result<Option<Vec<Check>>> {
    let mut checks = Vec::new();
    while let Some(line) = machine.told()? {
        if let Some(words) = line.strip_prefix("ask ") {
            let (status, text) = answer(words, aside, host)?;
            let lines: String = text.lines().map(|line| format!("{line}\n")).collect();
            machine.tell(&format!("{status} {}\n{lines}", text.lines().count()))?;
        } else if let Some(words) = line.strip_prefix("card ") {
            let (field, value) = words.split_once(' ').with_context(|| format!("the guest says {line:?}"))?;
            let value = value.parse().with_context(|| format!("the guest says {line:?}"))?;
            checks.push(Check::Field { field: field.into(), value });
        } else if line == "spans" {
            checks.push(Check::Spans);
        } else if line == "depths" {
            checks.push(Check::Depths);
        } else if host.told(&line, aside.server)? == Next::Kill {
            return Ok(None);
        }
    }
    Ok(Some(checks))
}

/// An environment variable of the script.
pub(crate) fn variable(name: &str, value: impl ToString) -> (String, String) {
    (name.into(), value.to_string())
}

fn clock_name(clock: ClockKind) -> (String, String) {
    match clock {
        ClockKind::Wall => variable("CLOCK", "wall"),
        ClockKind::Virtual { .. } => variable("CLOCK", "virtual"),
    }
}

fn dilation(options: &Options) -> (String, String) {
    let times = match options.pace {
        _ if options.clock != ClockKind::Wall => 1,
        Pace::Dilated(times) => times,
        Pace::Real => 1,
        Pace::NoDelay => 0,
    };
    variable("DILATION", times)
}

/// QEMU's option for our card.
pub(crate) fn device(socket: &Path) -> OsString {
    let address = serde_json::json!({"type": "unix", "path": socket.to_string_lossy()});
    serde_json::json!({"driver": "vfio-user-pci", "socket": address}).to_string().into()
}

/// QEMU's own controller with its own card of 256 MiB.
fn qemus_own(folder: &Path) -> anyhow::Result<Vec<OsString>> {
    const BOOT_BYTES: u64 = 2 << 20;
    const RPMB_BYTES: u64 = 128 << 10;
    let image = folder.join("emmc.img");
    File::create(&image)?.set_len((256 << 20) + 2 * BOOT_BYTES + RPMB_BYTES).context("an image of QEMU's card")?;
    let drive = format!("if=none,id=emmc,format=raw,cache=unsafe,file={}", image.display());
    let card = format!("emmc,drive=emmc,boot-partition-size={BOOT_BYTES},rpmb-partition-size={RPMB_BYTES}");
    Ok(["-device", "sdhci-pci", "-drive", &drive, "-device", &card].map(OsString::from).to_vec())
}

/// Unpacks the guest's output files.
fn unpack(files: &Path, out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    if fs::metadata(files).is_ok_and(|metadata| metadata.len() > 0) {
        packages::run(Command::new("tar").arg("--extract").arg("--file").arg(files).arg("--directory").arg(out))?;
    }
    Ok(())
}
